/// <reference types="node" />
// A certificate authority for the time of a test, made with openssl, and TLS servers with its certificates.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { type Seen, Watched } from "./http_server.js";

/** Without it these tests can't be run, and say so. */
export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
if (!hasOpenssl) console.warn("openssl is missing: tests that need certificates are skipped.");

/** A name that no resolver knows. */
export const FAKE_NAME = "api.sandboxes.invalid";

export interface Certificate {
  key: string;
  cert: string;
  certFile: string;
}

export interface Certificates {
  directory: string;
  authority: Certificate;
  /** For localhost, 127.0.0.1, ::1 and the fake name, signed by the authority. */
  server: Certificate;
  /** Signed by the authority, for another name. */
  misnamed: Certificate;
  /** Signed by the authority, and expired. */
  expired: Certificate;
  /** Signed by nobody but itself. */
  own: Certificate;
  remove(): void;
}

const NAMES = `DNS:localhost,DNS:${FAKE_NAME},IP:127.0.0.1,IP:::1`;

export function makeCertificates(): Certificates {
  const directory = mkdtempSync(path.join(tmpdir(), "client-certificates-"));
  const run = (...args: string[]) => execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });
  const read = (name: string): Certificate => ({
    key: readFileSync(path.join(directory, `${name}.key`), "utf8"),
    cert: readFileSync(path.join(directory, `${name}.crt`), "utf8"),
    certFile: path.join(directory, `${name}.crt`),
  });
  const keyArgs = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const selfSigned = (name: string, ...extensions: string[]) => {
    const added = extensions.flatMap((extension) => ["-addext", extension]);
    run("req", "-x509", ...keyArgs, "-keyout", `${name}.key`, "-out", `${name}.crt`, "-days", "2", "-subj", `/CN=${name}`, ...added);
    return read(name);
  };
  // `openssl ca` is the one of its commands that takes any dates.
  writeFileSync(
    path.join(directory, "ca.conf"),
    [
      "[ca]\ndefault_ca=it\n[it]\nnew_certs_dir=.\ndatabase=index.txt\nrand_serial=yes\npolicy=any\ndefault_md=sha256\nunique_subject=no",
      "copy_extensions=copy\n[any]\ncommonName=supplied\n",
    ].join("\n"),
  );
  writeFileSync(path.join(directory, "index.txt"), "");
  const signed = (name: string, names: string, from: string, to: string) => {
    const added = ["-addext", `subjectAltName=${names}`, "-addext", "basicConstraints=CA:FALSE"];
    run("req", "-new", ...keyArgs, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`, ...added);
    const dates = ["-startdate", from, "-enddate", to];
    const authority = ["-cert", "authority.crt", "-keyfile", "authority.key"];
    run("ca", "-batch", "-notext", "-config", "ca.conf", ...authority, "-in", `${name}.csr`, "-out", `${name}.crt`, ...dates);
    return read(name);
  };
  const authority = selfSigned("authority", "keyUsage=critical,keyCertSign,cRLSign");
  return {
    directory,
    authority,
    server: signed("server", NAMES, "20200101000000Z", "20500101000000Z"),
    misnamed: signed("misnamed", "DNS:elsewhere.invalid", "20200101000000Z", "20500101000000Z"),
    expired: signed("expired", NAMES, "20200101000000Z", "20210101000000Z"),
    own: selfSigned("own", `subjectAltName=${NAMES}`),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export interface TlsServer {
  port: number;
  requests: Watched<Pick<Seen, "method" | "url" | "headers">>;
  connections: Watched<Socket>;
}

/** An HTTPS server on 127.0.0.1 that answers everything with "secure". */
export async function serveTls({ key, cert }: Certificate): Promise<TlsServer> {
  const requests: TlsServer["requests"] = new Watched();
  const connections = new Watched<Socket>();
  const server = https.createServer({ key, cert }, ({ method = "", url = "", headers }, res) => {
    requests.push({ method, url, headers });
    res.end("secure");
  });
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => {});
    connections.push(socket);
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of connections.all) socket.destroy();
      }),
  );
  return { port: (server.address() as AddressInfo).port, requests, connections };
}
