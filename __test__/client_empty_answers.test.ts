// Section 6: an empty answer still has a body.
import { describe, expect, test } from "vitest";
import { clientOf } from "./support/http_package.js";
import { serveBytes, within } from "./support/http_server.js";
import { nextTo } from "./support/http_streams.js";

describe("an empty answer still has a body", () => {
  test.each<[string, string, number, string]>([
    ["of length 0", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, "OK"],
    ["of no chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, "OK"],
    ["that ends with its connection", "HTTP/1.1 200 OK\r\n\r\n", 200, "OK"],
    ["204", "HTTP/1.1 204 No Content\r\n\r\n", 204, "No Content"],
    ["205", "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n", 205, "Reset Content"],
    ["202 with a phrase of its own", "HTTP/1.1 202 In a while\r\ncontent-length: 0\r\n\r\n", 202, "In a while"],
  ])("%s", async (_, bytes, status, statusText) => {
    const server = await serveBytes(bytes);
    const client = clientOf(server.origin);
    const response = await client.request("/x", { method: "POST" });
    expect(response).toBeInstanceOf(Response);
    expect([response.status, response.statusText, response.ok]).toEqual([status, statusText, true]);
    expect(response.body).toBeInstanceOf(ReadableStream);
    const reader = response.body?.getReader();
    expect(await nextTo(reader)).toEqual({ done: true, value: undefined });
    expect(await (await client.request("/x")).text()).toBe("");
    expect((await (await client.request("/x")).arrayBuffer()).byteLength).toBe(0);
    const own = (await client.request("/x")).body?.getReader({ mode: "byob" });
    expect((await within(own?.read(new Uint8Array(4)) ?? Promise.reject(), "the end")).done).toBe(true);
    await within((await client.request("/x")).body?.cancel() ?? Promise.reject(), "the cancellation");
  });

  // The platform makes no Response with a body of status 204, so the package puts the status on one of 200, and a clone
  // shows what is below.
  test("whose clone has the same status", async () => {
    const server = await serveBytes("HTTP/1.1 204 No Content\r\n\r\n");
    const response = await clientOf(server.origin).request("/x");
    expect(response.clone().status).toBe(204);
  });

  test("HEAD, whatever length it announces", async () => {
    const server = await serveBytes("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n");
    const response = await clientOf(server.origin).request("/x", { method: "HEAD" });
    expect(response.headers.get("content-length")).toBe("99");
    expect(response.body).toBeInstanceOf(ReadableStream);
    expect(await within(response.text(), "the end")).toBe("");
  });
});
