// Section 6, trusted roots as in Node. Each in a process of its own, since the environment tells at its start.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certificate, type Certificates, hasOpenssl, makeCertificates, serveTls } from "./support/http_certificates.js";
import { KEY } from "./support/http_package.js";
import { expectChildFailed, requestInChild } from "./support/http_process.js";

describe.skipIf(!hasOpenssl)("certificates", () => {
  let made: Certificates;
  beforeAll(() => {
    made = makeCertificates();
  });
  afterAll(() => made.remove());

  async function expectTrusted(certificate: Certificate, env: Record<string, string>, host = "localhost") {
    const server = await serveTls(certificate);
    const outcome = await requestInChild(`https://${host}:${server.port}`, env);
    expect(outcome).toMatchObject({ status: 200, text: "secure" });
    expect(server.requests.all.map(({ method, url, headers }) => [method, url, headers["x-api-key"]])).toEqual([
      ["GET", "/v1/sandboxes?secret=query", KEY],
    ]);
  }

  /** The handshake fails, so that the key is never sent. */
  async function expectRefused(certificate: Certificate, env: Record<string, string>) {
    const server = await serveTls(certificate);
    expectChildFailed(await requestInChild(`https://localhost:${server.port}`, env), String(server.port), "ertificate");
    expect(server.connections.length).toBeGreaterThan(0);
    expect(server.requests.length).toBe(0);
  }

  test.each(["localhost", "127.0.0.1"])("NODE_EXTRA_CA_CERTS makes https://%s work", async (host) => {
    await expectTrusted(made.server, { NODE_EXTRA_CA_CERTS: made.authority.certFile }, host);
  });

  test("a file of several certificates counts whole", async () => {
    const file = path.join(made.directory, "several.pem");
    writeFileSync(file, `# a comment\n${made.own.cert}\n\n${made.authority.cert}`);
    await expectTrusted(made.server, { NODE_EXTRA_CA_CERTS: file });
  });

  test("a server's own certificate may be the one that is added", async () => {
    await expectTrusted(made.own, { NODE_EXTRA_CA_CERTS: made.own.certFile });
  });

  test("without it nobody is trusted", async () => {
    await expectRefused(made.server, {});
    await expectRefused(made.own, {});
  });

  test("an empty one, one that is not there and one that is no certificate are none, and nothing crashes", async () => {
    const garbage = path.join(made.directory, "garbage.pem");
    writeFileSync(garbage, "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n");
    for (const file of ["", path.join(made.directory, "absent.pem"), garbage]) {
      await expectRefused(made.server, { NODE_EXTRA_CA_CERTS: file });
    }
  });

  test("the authority of another is none", async () => {
    await expectRefused(made.server, { NODE_EXTRA_CA_CERTS: made.own.certFile });
  });

  test("another name, and an end in the past, are refused though the authority is trusted", async () => {
    await expectRefused(made.misnamed, { NODE_EXTRA_CA_CERTS: made.authority.certFile });
    await expectRefused(made.expired, { NODE_EXTRA_CA_CERTS: made.authority.certFile });
  });

  test("NODE_USE_SYSTEM_CA=1 adds the system's, which SSL_CERT_FILE names", async () => {
    await expectTrusted(made.server, { NODE_USE_SYSTEM_CA: "1", SSL_CERT_FILE: made.authority.certFile });
  });

  test("both may be given", async () => {
    await expectTrusted(made.server, {
      NODE_USE_SYSTEM_CA: "1",
      SSL_CERT_FILE: made.own.certFile,
      NODE_EXTRA_CA_CERTS: made.authority.certFile,
    });
  });

  test.each([undefined, "0", "", "true"])("the system's do not count with NODE_USE_SYSTEM_CA=%s", async (value) => {
    const env: Record<string, string> = value === undefined ? {} : { NODE_USE_SYSTEM_CA: value };
    await expectRefused(made.server, { ...env, SSL_CERT_FILE: made.authority.certFile });
  });
});
