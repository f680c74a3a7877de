// Section 6: paths are relative to <apiUrl>/v1, and none leads anywhere else.
import { describe, expect, test } from "vitest";
import { expectConnectionFailed } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, reasonOf, serve } from "./support/http_server.js";

describe("a path", () => {
  test.each([
    ["/", "/v1/"],
    ["/sandboxes", "/v1/sandboxes"],
    ["//elsewhere.invalid/x", "/v1//elsewhere.invalid/x"],
    ["///x", "/v1///x"],
    ["/http://elsewhere.invalid/x", "/v1/http://elsewhere.invalid/x"],
    ["/@elsewhere.invalid", "/v1/@elsewhere.invalid"],
    ["/user:password@elsewhere.invalid/", "/v1/user:password@elsewhere.invalid/"],
    ["/:80/x", "/v1/:80/x"],
    ["/\\elsewhere.invalid\\x", "/v1//elsewhere.invalid/x"],
    ["/a/../b", "/v1/b"],
    ["/a/./b", "/v1/a/b"],
    ["/a/%2e%2e/b", "/v1/b"],
    ["/a/..%2fb", "/v1/a/..%2fb"],
    ["/..%2f..%2fb", "/v1/..%2f..%2fb"],
    ["/...", "/v1/..."],
    ["/a?", "/v1/a?"],
    ["/?", "/v1/?"],
    ["/a?b=c&d=%C3%A9", "/v1/a?b=c&d=%C3%A9"],
    ["/a?b=../../c", "/v1/a?b=../../c"],
    ["/a?b=http://elsewhere.invalid", "/v1/a?b=http://elsewhere.invalid"],
    ["/a??b", "/v1/a??b"],
    ["/a#b", "/v1/a"],
    ["/a#b?c", "/v1/a"],
    ["/a?b#c", "/v1/a?b"],
    ["/#", "/v1/"],
    ["/#/../..", "/v1/"],
    ["/é☃😀", "/v1/%C3%A9%E2%98%83%F0%9F%98%80"],
    ["/a b", "/v1/a%20b"],
    ["/a?b=é c", "/v1/a?b=%C3%A9%20c"],
    ["/a\ud800b", "/v1/a%EF%BF%BDb"],
    ["/%", "/v1/%"],
    ["/%zz", "/v1/%zz"],
    ["/a%00b", "/v1/a%00b"],
    ["/a\0b", "/v1/a%00b"],
    ["/a\nHost: elsewhere.invalid", "/v1/aHost:%20elsewhere.invalid"],
    ["/a\r\n\r\nGET /x", "/v1/aGET%20/x"],
    ["/a\tb", "/v1/ab"],
  ])("%j is asked for as %s", async (path, expected) => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    await client.request(path);
    await client.json(path, "POST", {});
    expect(server.requests.all.map(({ url }) => url)).toEqual([expected, expected]);
    expect(server.requests.all.map(({ headers }) => headers.host)).toEqual(Array(2).fill(`127.0.0.1:${server.port}`));
    // As the platform reads the same text.
    expect(expected).toBe(new URL(`${server.origin}/v1${path}`).href.slice(server.origin.length).split("#")[0]);
  });

  test.each([
    "",
    "sandboxes",
    "?x",
    "#x",
    "@elsewhere.invalid/",
    ".elsewhere.invalid/",
    "x@elsewhere.invalid/",
    ":80/x",
    "http://elsewhere.invalid/",
    "https:/elsewhere.invalid",
    "\\elsewhere.invalid",
    "\\/elsewhere.invalid",
    " /sandboxes",
    "\t/sandboxes",
    "\n/sandboxes",
    "/..",
    "/../",
    "/../x",
    "/../v2/x",
    "/..//elsewhere.invalid/x",
    "/../@elsewhere.invalid",
    "/a/../../x",
    "/a/../..",
    "/%2e%2e/x",
    "/.%2E/x",
    "/.\t./x",
    "/\n../x",
    "/..\\x",
    "\\..\\x",
    "/a\\..\\..\\x",
    "/%2E%2e\\x",
    "/../v1",
    "/../v10/x",
  ])("%j goes nowhere", async (path) => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    expectConnectionFailed(await reasonOf(client.request(path)), "elsewhere");
    expectConnectionFailed(await reasonOf(client.json(path, "POST", {})), "elsewhere");
    expect(server.connections.length).toBe(0);
  });

  test("that leaves and comes back is at home", async () => {
    const server = await serve((_, res) => answer(res));
    await clientOf(server.origin).json("/../v1/sandboxes");
    expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/sandboxes"]);
  });

  test.each(["", "/", "/v1", "/v1/"])("is the same with %j behind the configured origin", async (ending) => {
    const server = await serve((_, res) => answer(res));
    await clientOf(`${server.origin}${ending}`).json("/x?y");
    expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/x?y"]);
  });

  test("that is no string is read as one", async () => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    await client.request({ toString: () => "/x" } as unknown as string);
    expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/x"]);
    for (const path of [undefined, null, 1, Symbol("/x")]) {
      expectConnectionFailed(await reasonOf(client.request(path as unknown as string)));
    }
    expect(server.requests.length).toBe(1);
  });
});
