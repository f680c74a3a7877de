// Section 6: which requests go through a proxy of the environment, and that no key goes in clear.
import http from "node:http";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Certificates, FAKE_NAME, hasOpenssl, makeCertificates, serveTls } from "./support/http_certificates.js";
import { KEY } from "./support/http_package.js";
import { expectChildFailed, requestInChild } from "./support/http_process.js";
import { serve, Watched } from "./support/http_server.js";

interface Proxy {
  url: string;
  host: string;
  connections: Watched<net.Socket>;
  /** The heads of CONNECT requests, and of any others. */
  heads: string[];
  /** Every byte that came in before a tunnel was made. */
  clear(): string;
}

/** A proxy that notes everything, and leads every tunnel to one port of this machine. */
async function proxy(target?: number, refusal = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"): Promise<Proxy> {
  const connections = new Watched<net.Socket>();
  const heads: string[] = [];
  let clear = "";
  const server = net.createServer((socket) => {
    connections.push(socket);
    socket.on("error", () => {});
    let head = "";
    const onData = (piece: Buffer) => {
      clear += piece.toString("latin1");
      head += piece.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      heads.push(head);
      socket.off("data", onData);
      if (target === undefined || !head.startsWith("CONNECT ")) return void socket.end(refusal);
      const tunnel = net.connect(target, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        socket.pipe(tunnel).pipe(socket);
      });
      tunnel.on("error", () => socket.destroy());
    };
    socket.on("data", onData);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of connections.all) socket.destroy();
      }),
  );
  const { port } = server.address() as net.AddressInfo;
  return { url: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, connections, heads, clear: () => clear };
}

/** Every variable that any library reads, in both spellings. */
function everyVariable(url: string): Record<string, string> {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WS_PROXY", "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY"];
  return Object.fromEntries(names.flatMap((name) => [name, name.toLowerCase()]).map((name) => [name, url]));
}

describe("a loopback address is reached without a proxy", () => {
  test.each(["127.0.0.1", "localhost"])("over HTTP, %s", async (host) => {
    const recorder = await proxy();
    const server = await serve((_, res) => res.end("direct"));
    const outcome = await requestInChild(`http://${host}:${server.port}`, everyVariable(recorder.url));
    expect(outcome).toMatchObject({ status: 200, text: "direct" });
    expect(recorder.connections.length).toBe(0);
  });

  test("when nobody listens there, it still is", async () => {
    const recorder = await proxy();
    for (const origin of ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://127.0.0.1:1", "https://localhost:1", "https://[::1]:1", "https://127.8.9.10:1"]) {
      expectChildFailed(await requestInChild(origin, everyVariable(recorder.url)));
    }
    expect(recorder.connections.length).toBe(0);
  });
});

describe.skipIf(!hasOpenssl)("with certificates", () => {
  let made: Certificates;
  let trust: Record<string, string>;
  beforeAll(() => {
    made = makeCertificates();
    trust = { NODE_EXTRA_CA_CERTS: made.authority.certFile };
  });
  afterAll(() => made.remove());

  test.each(["127.0.0.1", "localhost"])("a loopback address is reached directly over HTTPS, %s", async (host) => {
    const recorder = await proxy();
    const server = await serveTls(made.server);
    const outcome = await requestInChild(`https://${host}:${server.port}`, { ...trust, ...everyVariable(recorder.url) });
    expect(outcome).toMatchObject({ status: 200, text: "secure" });
    expect(recorder.connections.length).toBe(0);
  });

  test.each<[string, (proxy: Proxy) => Record<string, string>]>([
    ["HTTPS_PROXY", ({ url }) => ({ HTTPS_PROXY: url })],
    ["https_proxy", ({ url }) => ({ https_proxy: url })],
    ["HTTPS_PROXY without a scheme", ({ host }) => ({ HTTPS_PROXY: host })],
    ["HTTPS_PROXY with a slash", ({ url }) => ({ HTTPS_PROXY: `${url}/` })],
    ["a NO_PROXY for others", ({ url }) => ({ HTTPS_PROXY: url, NO_PROXY: `localhost,elsewhere.invalid,x${FAKE_NAME},127.0.0.1` })],
    ["a NO_PROXY for another port", ({ url }) => ({ HTTPS_PROXY: url, NO_PROXY: `${FAKE_NAME}:8443` })],
    ["an empty NO_PROXY", ({ url }) => ({ HTTPS_PROXY: url, NO_PROXY: "" })],
  ])("an https origin goes through the proxy with %s, and the key only within TLS", async (_, variables) => {
    const server = await serveTls(made.server);
    const through = await proxy(server.port);
    const outcome = await requestInChild(`https://${FAKE_NAME}`, { ...trust, ...variables(through) });
    expect(outcome).toMatchObject({ status: 200, text: "secure" });
    expect(through.heads.map((head) => head.split("\r\n")[0])).toEqual([`CONNECT ${FAKE_NAME}:443 HTTP/1.1`]);
    expect(through.heads.join("").toLowerCase()).not.toContain("x-api-key");
    expect(through.clear()).not.toContain(KEY);
    expect(through.clear()).not.toContain("sandboxes?");
    expect(server.requests.all.map(({ headers }) => [headers["x-api-key"], headers.host])).toEqual([[KEY, FAKE_NAME]]);
  });

  test("a port of the origin's own is asked for", async () => {
    const server = await serveTls(made.server);
    const through = await proxy(server.port);
    const outcome = await requestInChild(`https://${FAKE_NAME}:8443`, { ...trust, HTTPS_PROXY: through.url });
    expect(outcome.status).toBe(200);
    expect(through.heads[0]).toMatch(new RegExp(`^CONNECT ${FAKE_NAME}:8443 HTTP/1.1\r\n`));
  });

  test("the proxy's own user and password go to the proxy, and nowhere else", async () => {
    const server = await serveTls(made.server);
    const through = await proxy(server.port);
    const url = through.url.replace("http://", "http://user:pass%20word@");
    expect((await requestInChild(`https://${FAKE_NAME}`, { ...trust, HTTPS_PROXY: url })).status).toBe(200);
    expect(through.heads[0]?.toLowerCase()).toContain("proxy-authorization: basic ");
    expect(JSON.stringify(server.requests.all.map(({ headers }) => headers))).not.toContain("proxy-authorization");
  });

  test("the proxy's word is not taken for the origin's: without a certificate of that name it fails", async () => {
    const server = await serveTls(made.misnamed);
    const through = await proxy(server.port);
    expectChildFailed(await requestInChild(`https://${FAKE_NAME}`, { ...trust, HTTPS_PROXY: through.url }), FAKE_NAME);
    expect(server.requests.length).toBe(0);
  });
});

describe("an https origin does not go through the proxy", () => {
  test.each<[string, (url: string) => Record<string, string>]>([
    ["HTTP_PROXY", (url) => ({ HTTP_PROXY: url, http_proxy: url })],
    ["ALL_PROXY", (url) => ({ ALL_PROXY: url, all_proxy: url })],
    ["an empty HTTPS_PROXY", () => ({ HTTPS_PROXY: "" })],
    ["NO_PROXY=*", (url) => ({ HTTPS_PROXY: url, NO_PROXY: "*" })],
    ["NO_PROXY with the name", (url) => ({ HTTPS_PROXY: url, NO_PROXY: `other, ${FAKE_NAME}` })],
    ["no_proxy with the name", (url) => ({ https_proxy: url, no_proxy: FAKE_NAME.toUpperCase() })],
    ["NO_PROXY with the domain above", (url) => ({ HTTPS_PROXY: url, NO_PROXY: "sandboxes.invalid" })],
    ["NO_PROXY with a leading dot", (url) => ({ HTTPS_PROXY: url, NO_PROXY: ".sandboxes.invalid" })],
    ["NO_PROXY with name and port", (url) => ({ HTTPS_PROXY: url, NO_PROXY: `${FAKE_NAME}:443` })],
  ])("with %s", async (_, variables) => {
    const recorder = await proxy();
    // There is no such host, so going there directly fails.
    expectChildFailed(await requestInChild(`https://${FAKE_NAME}`, variables(recorder.url)), FAKE_NAME);
    expect(recorder.connections.length).toBe(0);
  });
});

describe("a proxy that does not do it", () => {
  test.each([
    ["refuses", "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 4\r\n\r\nmark"],
    ["wants a password", 'HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm="mark"\r\n\r\n'],
    ["redirects", "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/mark\r\n\r\n"],
    ["talks nonsense", "mark\r\n\r\n"],
    ["says nothing", ""],
  ])("and %s is a failed connection, which names neither of the hosts", async (_, refusal) => {
    const through = await proxy(undefined, refusal);
    const secret = through.url.replace("http://", "http://user:proxy-password@");
    const outcome = await requestInChild(`https://${FAKE_NAME}`, { HTTPS_PROXY: secret });
    expectChildFailed(outcome, FAKE_NAME, "proxy-password", "mark", through.host);
    expect(through.connections.length).toBe(1);
    expect(through.clear()).not.toContain(KEY);
  });

  test.each(["http://127.0.0.1:1", "socks5://127.0.0.1:1", "ftp://proxy.invalid", "http://", "::::", "not a url"])(
    "because it is %j: the request does not go around it",
    async (url) => {
      expectChildFailed(await requestInChild(`https://${FAKE_NAME}`, { HTTPS_PROXY: url }), FAKE_NAME);
    },
  );
});

test("a plain HTTP proxy never sees a request of any kind", async () => {
  const recorder = http.createServer();
  const seen: string[] = [];
  recorder.on("request", (req) => void seen.push(req.url ?? ""));
  await new Promise<void>((resolve) => recorder.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void recorder.close().closeAllConnections());
  const { port } = recorder.address() as net.AddressInfo;
  const server = await serve((_, res) => res.end("direct"));
  const outcome = await requestInChild(server.origin, { ...everyVariable(`http://127.0.0.1:${port}`), NODE_USE_ENV_PROXY: "1" });
  expect(outcome.status).toBe(200);
  expect(seen).toEqual([]);
});
