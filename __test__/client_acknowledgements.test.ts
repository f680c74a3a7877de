// Section 6 and the provider contract, section 3: what creates and acknowledges sends, and what it makes of the answer.
import { describe, expect, test } from "vitest";
import { expectApiError, expectResponseError } from "./support/http_errors.js";
import { clientOf, type Client } from "./support/http_package.js";
import { answer, reasonOf, serve } from "./support/http_server.js";

const ACKNOWLEDGED: [string, (client: Client) => Promise<unknown>][] = [
  ["destroySandbox", (client) => client.destroySandbox("sb-1")],
  ["upload", (client) => client.upload("sb-1", "/x", "x")],
  ["setEgress", (client) => client.setEgress("sb-1", ["a"])],
];

describe.each(ACKNOWLEDGED)("%s", (_, call) => {
  test.each<[string, string, number]>([
    ["ok", '{"status":"success","data":{"ok":true}}', 200],
    ["an empty object as data", '{"status":"success","data":{}}', 200],
    ["nothing", "", 204],
  ])("takes %s", async (_, body, status) => {
    const server = await serve((_, res) => res.writeHead(status).end(body));
    await expect(call(clientOf(server.origin))).resolves.toBeUndefined();
    expect(server.requests.length).toBe(1);
  });

  test.each(["fail", "error"])("does not take a success whose envelope says %s", async (status) => {
    const server = await serve((_, res) => res.end(JSON.stringify({ status, message: "secret-echo", data: null })));
    const error = await reasonOf(call(clientOf(server.origin)));
    expectResponseError(error, "CreateOS returned an unsuccessful response.", "secret-echo");
  });
});

test("destroySandbox: HTTP 404 is a success, by the status and never by a text", async () => {
  const server = await serve((req, res) => {
    res.writeHead(req.url?.endsWith("gone") ? 404 : 500).end('{"status":"fail","code":404,"data":"404 not found"}');
  });
  const client = clientOf(server.origin);
  await expect(client.destroySandbox("gone")).resolves.toBeUndefined();
  expectApiError(await reasonOf(client.destroySandbox("here")), 500, "sandbox lifecycle");
  expect(server.requests.all.map(({ method, url }) => `${method} ${url}`)).toEqual([
    "DELETE /v1/sandboxes/gone",
    "DELETE /v1/sandboxes/here",
  ]);
});

test("a 404 of anything else is an error", async () => {
  const server = await serve((_, res) => res.writeHead(404).end());
  const client = clientOf(server.origin);
  expectApiError(await reasonOf(client.getSandbox("sb-1")), 404, "sandbox lifecycle");
  expectApiError(await reasonOf(client.upload("sb-1", "/x", "x")), 404, "file transfer");
  expectApiError(await reasonOf(client.createSandbox()), 404, "sandbox lifecycle");
});

test("createSandbox sends shape and region of the configuration, a name of its own, and what it is given", async () => {
  const server = await serve((_, res) => answer(res, { id: "sb-1" }, 201));
  const client = clientOf(server.origin, { shape: "s-2", region: "eu", rootfs: "not-by-itself" });
  await expect(client.createSandbox()).resolves.toEqual({ id: "sb-1" });
  await client.createSandbox(null, { rootfs: "deb\"ian\u2028", egress: ["é", "b:1"], autoPauseAfterSeconds: 61 });
  const [first, second] = await Promise.all(
    server.requests.all.map(async ({ body }) => JSON.parse((await body).toString()) as Record<string, unknown>),
  );
  expect(server.requests.all.map(({ method, url }) => `${method} ${url}`)).toEqual(Array(2).fill("POST /v1/sandboxes"));
  expect(first).toEqual({ name: first?.["name"], shape: "s-2", region: "eu", ingress_enabled: false });
  expect(second).toEqual({
    name: second?.["name"],
    shape: "s-2",
    region: "eu",
    rootfs: "deb\"ian\u2028",
    egress: ["é", "b:1"],
    auto_pause_after_seconds: 61,
    ingress_enabled: false,
  });
  expect(first?.["name"]).toMatch(/^\S+$/);
  expect(second?.["name"]).not.toBe(first?.["name"]);
});

test("setEgress replaces the rules", async () => {
  const server = await serve((_, res) => answer(res));
  await clientOf(server.origin).setEgress("sb-1", ["a.example:443", "10.0.0.0/8"]);
  const seen = await server.requests.at(0);
  expect([seen.method, seen.url, seen.headers["content-type"], (await seen.body).toString()]).toEqual([
    "PUT",
    "/v1/sandboxes/sb-1/egress",
    "application/json",
    '{"egress":["a.example:443","10.0.0.0/8"]}',
  ]);
});
