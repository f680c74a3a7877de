// Section 6: a redirect is never followed; the key goes nowhere else.
import { describe, expect, test } from "vitest";
import { expectConnectionFailed } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, reasonOf, serve } from "./support/http_server.js";

describe.each([301, 302, 303, 307, 308])("HTTP %i", (status) => {
  test("to another origin is a failed connection, and that origin hears nothing", async () => {
    const elsewhere = await serve((_, res) => answer(res));
    const location = `${elsewhere.origin}/v1/sandboxes`;
    const server = await serve((_, res) => res.writeHead(status, { location }).end("moved"));
    const client = clientOf(server.origin);
    for (const method of ["GET", "POST", "PUT", "DELETE", "HEAD"]) {
      expectConnectionFailed(await reasonOf(client.request("/sandboxes", { method })), String(elsewhere.port), "moved");
    }
    expectConnectionFailed(await reasonOf(client.json("/sandboxes", "POST", {})));
    expectConnectionFailed(await reasonOf(client.createSandbox()));
    expectConnectionFailed(await reasonOf(client.getSandbox("sb-1")));
    expectConnectionFailed(await reasonOf(client.destroySandbox("sb-1")));
    expectConnectionFailed(await reasonOf(client.transition("sb-1", "running")));
    expectConnectionFailed(await reasonOf(client.upload("sb-1", "/tmp/x", "x")));
    expect(elsewhere.connections.length).toBe(0);
    expect(server.requests.length).toBe(11);
  });

  test("to the same origin is not followed either", async () => {
    const server = await serve((req, res) => {
      if (req.url === "/v1/here") res.writeHead(status, { location: "/v1/there" }).end();
      else answer(res);
    });
    expectConnectionFailed(await reasonOf(clientOf(server.origin).json("/here")), "/here", "/there");
    expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/here"]);
  });

  test.each([
    ["without a Location", {}],
    ["with a broken Location", { location: "http://[" }],
    ["with a Refresh header as well", { location: "/v1/a", refresh: "0; url=/v1/b" }],
  ])("%s is the same", async (_, headers: Record<string, string>) => {
    const server = await serve((_, res) => res.writeHead(status, headers).end());
    expectConnectionFailed(await reasonOf(clientOf(server.origin).request("/x")));
    expect(server.requests.length).toBe(1);
  });

  test("in the middle of a streamed upload is not followed, and ends the source", async () => {
    const elsewhere = await serve((_, res) => answer(res));
    const server = await serve((_, res) => res.writeHead(status, { location: elsewhere.origin }).end(), { drain: false });
    let cancelled = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)),
      cancel: () => void (cancelled += 1),
    });
    const error = await reasonOf(clientOf(server.origin).request("/x", { method: "PUT", body, duplex: "half" }));
    expectConnectionFailed(error);
    await expect.poll(() => cancelled, { timeout: 5_000 }).toBe(1);
    expect(elsewhere.connections.length).toBe(0);
  });
});

test("a success with a Location is a success", async () => {
  const elsewhere = await serve((_, res) => answer(res));
  const server = await serve((_, res) => res.writeHead(201, { location: elsewhere.origin }).end("made"));
  const response = await clientOf(server.origin).request("/x");
  expect(await response.text()).toBe("made");
  expect(response.redirected).toBe(false);
  expect(elsewhere.connections.length).toBe(0);
});
