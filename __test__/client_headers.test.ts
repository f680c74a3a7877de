// Section 6: X-Api-Key is ours alone; what a caller adds travels, unless it is a credential or the connection's own.
import { describe, expect, test } from "vitest";
import { expectConnectionFailed } from "./support/http_errors.js";
import { clientOf, CreateosClient, KEY } from "./support/http_package.js";
import { answer, reasonOf, serve, serveBytes } from "./support/http_server.js";

/** The values of a header in the order they came. */
function values(rawHeaders: string[], name: string): string[] {
  return rawHeaders.filter((_, place) => place % 2 === 1 && rawHeaders[place - 1]?.toLowerCase() === name);
}

describe("the key", () => {
  test("goes along with every request, once", async () => {
    const server = await serve((_, res) => answer(res, { id: "sb-1", status: "running" }));
    const client = clientOf(server.origin);
    await client.request("/x");
    await client.json("/x", "POST", {});
    await client.getSandbox("sb-1");
    await client.createSandbox();
    await client.destroySandbox("sb-1");
    await client.upload("sb-1", "/x", "x");
    await client.setEgress("sb-1", ["*"]);
    await client.transition("sb-1", "running");
    const keys = server.requests.all.map(({ rawHeaders }) => values(rawHeaders, "x-api-key"));
    expect(keys).toEqual(Array(8).fill([KEY]));
  });

  test.each(["x-api-key", "X-API-KEY", "X-Api-Key", "authorization", "Authorization", "X-Auth-Token", "x-access-token", "Cookie", "cookie2", "Proxy-Authorization"])(
    "is not joined by a caller's own %s",
    async (name) => {
      const server = await serve((_, res) => answer(res));
      const client = clientOf(server.origin);
      const given = { [name]: "intruder", "x-kept": "1" };
      await client.request("/x", { headers: given });
      await client.request("/x", { headers: new Headers(given), method: "POST", body: "x" });
      await client.request("/x", { headers: Object.entries(given) as [string, string][] });
      for (const { rawHeaders } of server.requests.all) {
        expect(rawHeaders.join("\n")).not.toContain("intruder");
        expect(values(rawHeaders, "x-api-key")).toEqual([KEY]);
        expect(values(rawHeaders, "x-kept")).toEqual(["1"]);
      }
      expect(server.requests.length).toBe(3);
    },
  );

  test.each([
    ["a control character", "skp\u0001key"],
    ["DEL", "skp\u007fkey"],
    ["a character outside Latin-1", "skp-☃"],
    ["a lone surrogate", "skp-\ud800"],
    ["an emoji", "skp-😀"],
  ])("with %s in it is no legal header: a failed connection, without a request", async (_, apiKey) => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin, { apiKey });
    expect(client.apiKey).toBe(apiKey);
    for (const call of [
      () => client.request("/x"),
      () => client.json("/x"),
      () => client.getSandbox("sb-1"),
      () => client.createSandbox(),
      () => client.destroySandbox("sb-1"),
      () => client.transition("sb-1", "paused"),
      () => client.upload("sb-1", "/x", "x"),
    ]) {
      expectConnectionFailed(await reasonOf(call()), apiKey, "skp");
    }
    expect(server.connections.length).toBe(0);
  });

  test.each([["blanks inside", "a b\tc"], ["Latin-1", "clé-ÿ"], ["punctuation", "!#$%&'*+-.^_`|~\"(),/:;<=>?@[\\]{}"]])(
    "with %s is sent as fetch would send it",
    async (_, apiKey) => {
      const server = await serve((_, res) => answer(res));
      await clientOf(server.origin, { apiKey }).request("/x");
      expect((await server.requests.at(0)).headers["x-api-key"]).toBe(apiKey);
    },
  );

  test("of the configuration is trimmed", async () => {
    const server = await serve((_, res) => answer(res));
    await clientOf(server.origin, { apiKey: "\u3000 key \n" }).request("/x");
    expect((await server.requests.at(0)).headers["x-api-key"]).toBe("key");
  });

  test.each(["a\rb", "a\nb", "a\0b"])("%j is refused before there is a client", async (apiKey) => {
    expect(() => new CreateosClient({ apiUrl: "http://127.0.0.1:1", apiKey, shape: "s" })).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^ERR_CREATEOS_(API_KEY|CONFIG)$/) }),
    );
  });
});

describe("a caller's header", () => {
  test("travels as given, several of a name joined as fetch joins them", async () => {
    const server = await serve((_, res) => answer(res));
    const headers = new Headers([["X-Mine", "é ÿ"], ["X-List", "a"], ["x-list", "b"], ["Accept", "text/x"], ["X-Empty", ""]]);
    await clientOf(server.origin).request("/x", { headers });
    const seen = await server.requests.at(0);
    expect(seen.headers).toMatchObject({ "x-mine": "é ÿ", "x-list": "a, b", accept: "text/x", "x-empty": "" });
  });

  test.each(["Host", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Content-Length", "Accept-Encoding"])(
    "%s, which is the connection's own, does not",
    async (name) => {
      const server = await serve((_, res) => answer(res));
      await clientOf(server.origin).request("/x", { method: "PUT", body: "four", headers: { [name]: "77" } });
      const seen = await server.requests.at(0);
      expect(seen.rawHeaders).not.toContain("77");
      expect(seen.headers).toMatchObject({ host: `127.0.0.1:${server.port}`, "content-length": "4" });
      expect((await seen.body).toString()).toBe("four");
    },
  );

  test.each<[string, Record<string, string>]>([
    ["name", { "a b": "c" }],
    ["name that is empty", { "": "c" }],
    ["value with a line break", { a: "b\r\nx-api-key: intruder" }],
    ["value outside Latin-1", { a: "☃" }],
  ])("with an illegal %s is a TypeError, as fetch's, without a request", async (_, headers) => {
    const server = await serve((_, res) => answer(res));
    expect(await reasonOf(clientOf(server.origin).request("/x", { headers }))).toBeInstanceOf(TypeError);
    expect(server.connections.length).toBe(0);
  });

  test("with a control character in its value is refused too", async () => {
    const server = await serve((_, res) => answer(res));
    const error = await reasonOf(clientOf(server.origin).request("/x", { headers: { a: "\u0001" } }));
    expect(error).toBeInstanceOf(Error);
    expect(server.connections.length).toBe(0);
  });
});

describe("a method", () => {
  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])("%s is sent, however it is spelt", async (method) => {
    const server = await serve((_, res) => res.end());
    const client = clientOf(server.origin);
    await client.request("/x", { method });
    await client.request("/x", { method: method.toLowerCase() });
    expect(server.requests.all.map((one) => one.method)).toEqual([method, method]);
  });

  test.each(["", "G T", "GET\r\nX: y", "é"])("%j is none: a failed connection, without a request", async (method) => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    expectConnectionFailed(await reasonOf(client.request("/x", { method })));
    expectConnectionFailed(await reasonOf(client.json("/x", method)));
    expect(server.connections.length).toBe(0);
  });

  test("POST without a body sends {} as JSON; the others send none", async () => {
    const server = await serve((req, res) => answer(res, { id: "sb-1", status: req.method === "POST" ? "running" : "paused" }));
    const client = clientOf(server.origin);
    await client.request("/a", { method: "POST" });
    await client.request("/b", { method: "POST", body: null });
    await client.request("/c", { method: "post", body: undefined, headers: { "content-type": "text/plain" } });
    await client.json("/d", "POST");
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) await client.request("/e", { method });
    const seen = await Promise.all(
      server.requests.all.map(async ({ method, headers, body }) => [
        method,
        headers["content-type"],
        headers["content-length"],
        headers["transfer-encoding"],
        (await body).toString(),
      ]),
    );
    const post = ["POST", "application/json", "2", undefined, "{}"];
    expect(seen).toEqual([
      post,
      post,
      post,
      post,
      ["GET", undefined, undefined, undefined, ""],
      ["PUT", undefined, "0", undefined, ""],
      ["PATCH", undefined, "0", undefined, ""],
      ["DELETE", undefined, undefined, undefined, ""],
    ]);
  });

  test("a POST with an empty string keeps it", async () => {
    const server = await serve((_, res) => answer(res));
    await clientOf(server.origin).request("/x", { method: "POST", body: "" });
    const seen = await server.requests.at(0);
    expect([(await seen.body).toString(), seen.headers["content-length"]]).toEqual(["", "0"]);
  });
});

test("an answer's headers are all there, as they came", async () => {
  const server = await serveBytes(
    "HTTP/1.1 200 OK\r\nX-One: a\r\nx-one: b\r\nSet-Cookie: c=1\r\nset-cookie: d=2\r\nX-Latin: \xe9\r\nX-Empty:\r\ncontent-length: 0\r\n\r\n",
  );
  const { headers } = await clientOf(server.origin).request("/x");
  expect(headers.get("x-one")).toBe("a, b");
  expect(headers.getSetCookie()).toEqual(["c=1", "d=2"]);
  expect(headers.get("x-empty")).toBe("");
  expect(headers.has("x-latin")).toBe(true);
});
