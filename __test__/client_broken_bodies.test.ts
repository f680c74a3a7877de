// Section 6: a Response body that breaks midway fails with a TypeError, as fetch's does; before the answer it is a failed
// connection.
import { describe, expect, test } from "vitest";
import { expectConnectionFailed, printed } from "./support/http_errors.js";
import { clientOf, KEY, type Client } from "./support/http_package.js";
import { answer, freePort, reasonOf, serve, serveBytes, serveRaw, within } from "./support/http_server.js";

const CALLS: [string, (client: Client) => Promise<unknown>][] = [
  ["request", (client) => client.request("/secret-path?q=1")],
  ["request with a body", (client) => client.request("/secret-path", { method: "PUT", body: "secret-body" })],
  ["json", (client) => client.json("/secret-path", "POST", { secret: "secret-body" })],
  ["getSandbox", (client) => client.getSandbox("secret-path")],
  ["createSandbox", (client) => client.createSandbox()],
  ["destroySandbox", (client) => client.destroySandbox("secret-path")],
  ["transition", (client) => client.transition("secret-path", "running")],
  ["upload", (client) => client.upload("secret-path", "/secret-path", "secret-body")],
];
const SECRETS = ["secret-path", "secret-body"];

describe.each(CALLS)("before the answer, %s fails as a connection", (_, call) => {
  test("when it is refused", async () => {
    const port = await freePort();
    expectConnectionFailed(await reasonOf(call(clientOf(`http://127.0.0.1:${port}`))), String(port), ...SECRETS);
  });

  test("when it is reset at once", async () => {
    const server = await serveRaw((socket) => socket.resetAndDestroy());
    expectConnectionFailed(await reasonOf(call(clientOf(server.origin))), String(server.port), ...SECRETS);
  });

  test("when it is reset in the middle of the head, once the request is there", async () => {
    const server = await serveBytes("HTTP/1.1 200 OK\r\nconte", "reset");
    expectConnectionFailed(await reasonOf(call(clientOf(server.origin))), ...SECRETS);
  });

  test("when it is closed without an answer", async () => {
    const server = await serveBytes("", "end");
    expectConnectionFailed(await reasonOf(call(clientOf(server.origin))), ...SECRETS);
  });

  test.each([
    ["another protocol", "SSH-2.0-OpenSSH_9.0\r\n\r\n"],
    ["HTTP/2 frames", Buffer.from("000006040000000000000400000064", "hex")],
    ["an illegal status", "HTTP/1.1 2x0 OK\r\n\r\n"],
    ["two lengths that differ", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["a head without an end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(1024 * 1024)}`],
  ])("when it speaks %s", async (_, bytes) => {
    const server = await serveBytes(bytes);
    expectConnectionFailed(await reasonOf(call(clientOf(server.origin))), ...SECRETS);
  });

  test("when TLS is expected and something else speaks", async () => {
    const server = await serveRaw((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    const client = clientOf(`https://127.0.0.1:${server.port}`);
    expectConnectionFailed(await reasonOf(call(client)), String(server.port), ...SECRETS);
    expect(server.received()).not.toContain(KEY);
  });
});

describe("what may have been done is never sent twice", () => {
  test.each(["GET", "PUT", "POST", "DELETE"])("%s, on a new connection", async (method) => {
    const server = await serve(({ socket }, _, seen) => void seen.body.then(() => socket.destroy()));
    expectConnectionFailed(await reasonOf(clientOf(server.origin).request("/x", { method })));
    // A later request proves that no second try is under way.
    expectConnectionFailed(await reasonOf(clientOf(server.origin).request("/later")));
    expect(server.requests.all.map((one) => `${one.method} ${one.url}`)).toEqual([`${method} /v1/x`, "GET /v1/later"]);
  });

  test.each(["GET", "PUT", "POST", "DELETE"])("%s, on a connection that was used before", async (method) => {
    const server = await serve(({ socket, url }, res, seen) => {
      if (url === "/v1/first") answer(res);
      else void seen.body.then(() => socket.destroy());
    });
    const client = clientOf(server.origin);
    await client.json("/first");
    expectConnectionFailed(await reasonOf(client.request("/x", { method })));
    expectConnectionFailed(await reasonOf(client.request("/later")));
    expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/first", "/v1/x", "/v1/later"]);
    expect(server.connections.length).toBe(2);
  });
});

test("a name that does not exist is a failed connection, and is not told", async () => {
  const client = clientOf("https://no-such-host-7.invalid");
  expectConnectionFailed(await reasonOf(client.request("/x")), "no-such-host-7", "dns", "resolve");
});

/** Reads until it fails. */
const WAYS: [string, (response: Response) => Promise<unknown>][] = [
  ["text()", (response) => response.text()],
  ["json()", (response) => response.json()],
  ["arrayBuffer()", (response) => response.arrayBuffer()],
  ["blob()", (response) => response.blob()],
  [
    "a reader",
    async (response) => {
      const reader = response.body?.getReader();
      while (!(await reader?.read())?.done);
    },
  ],
  [
    "a reader with a buffer of its own",
    async (response) => {
      const reader = response.body?.getReader({ mode: "byob" });
      while (!(await reader?.read(new Uint8Array(16)))?.done);
    },
  ],
  [
    "for await",
    async (response) => {
      for await (const _ of response.body ?? []);
    },
  ],
  ["tee", async (response) => new Response(response.body?.tee()[1]).text()],
  ["clone()", (response) => response.clone().text()],
];

const BREAKS: [string, string, "end" | "reset"][] = [
  ["shorter than announced", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n12345", "end"],
  ["reset", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n12345", "reset"],
  ["without its last chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n", "end"],
  ["with a chunk of no size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\nsecret-chunk\r\n", "end"],
];

describe.each(WAYS)("a body that breaks midway, read by %s, is a TypeError", (_, readAll) => {
  test.each(BREAKS)("%s", async (_, bytes, then) => {
    const server = await serveBytes(bytes, then);
    const response = await clientOf(server.origin).request("/secret-path");
    expect(response.status).toBe(200);
    const error = await reasonOf(readAll(response));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).name).toBe("TypeError");
    for (const secret of [KEY, "127.0.0.1", "secret-path", "secret-chunk"]) expect(printed(error)).not.toContain(secret);
  });
});

test("with a signal too: a broken body is a TypeError, not an abort", async () => {
  const server = await serveBytes("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n12345", "reset");
  const { signal } = new AbortController();
  const response = await clientOf(server.origin).request("/x", { signal });
  expect(await reasonOf(response.text())).toBeInstanceOf(TypeError);
  expect(signal.aborted).toBe(false);
});

test("what came before the break is read", async () => {
  const server = await serveRaw((socket) => {
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n12345"));
  });
  const response = await clientOf(server.origin).request("/x");
  const reader = response.body?.getReader();
  const first = await within(reader?.read() ?? Promise.reject(), "the first piece");
  expect(Buffer.from(first.value ?? []).toString()).toBe("12345");
  (await server.connections.at(0)).resetAndDestroy();
  expect(await reasonOf(reader?.read() ?? Promise.resolve())).toBeInstanceOf(TypeError);
});

describe("a connection is used again", () => {
  test("after a whole answer", async () => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    for (let round = 0; round < 5; round += 1) await client.json("/x");
    expect(server.connections.length).toBe(1);
  });

  test("not after a body that was left half read, nor after an error whose body is still coming", async () => {
    const server = await serve((req, res) => {
      if (req.url === "/v1/last") return answer(res);
      res.writeHead(req.url === "/v1/half" ? 200 : 500);
      res.write("x".repeat(10));
    });
    const client = clientOf(server.origin);
    const half = await client.request("/half");
    await half.body?.cancel();
    await reasonOf(client.request("/error"));
    await client.json("/last");
    expect(server.connections.length).toBe(3);
  });

  test("not when the server ends it after the answer: the next request gets a new one", async () => {
    const server = await serve((_, res) => {
      res.setHeader("connection", "close");
      answer(res);
    });
    const client = clientOf(server.origin);
    for (let round = 0; round < 5; round += 1) await client.json("/x");
    expect(server.requests.length).toBe(5);
    expect(server.connections.length).toBe(5);
  });
});
