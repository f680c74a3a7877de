// Section 6: every answer that is no success is a CreateosApiError with the first operation that fits, and nothing of
// the answer.
import { describe, expect, test } from "vitest";
import { expectApiError } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, reasonOf, serve, serveBytes, within } from "./support/http_server.js";

describe("the operation", () => {
  test.each([
    ["/sandboxes/sb-1/files?path=%2Ftmp%2Fx", "file transfer"],
    ["/sandboxes/sb-1/files?", "file transfer"],
    // Before everything else, whatever the file is called.
    ["/sandboxes/sb-1/files?path=/stdin/close", "file transfer"],
    ["/sandboxes/sb-1/files?path=/connect?", "file transfer"],
    ["/sandboxes/sb-1/files?path=/x/processes", "file transfer"],
    ["/sandboxes/sb-1/files?path=/x/exec", "file transfer"],
    ["/sandboxes/sb-1/processes/proc_1/stdin/close", "stdin close"],
    ["/sandboxes/sb-1/processes/proc_1/stdin/close?x=1", "stdin close"],
    ["/sandboxes/sb-1/stdin/close/connect?after=0", "stdin close"],
    ["/sandboxes/sb-1/processes/proc_1/connect?after=0", "output connection"],
    ["/sandboxes/sb-1/connect?x=/processes", "output connection"],
    ["/sandboxes/sb-1/processes", "process creation"],
    ["/sandboxes/sb-1/processes/processes", "process creation"],
    ["/sandboxes/sb-1/processes/proc_1", "process cleanup"],
    ["/sandboxes/sb-1/processes/proc_1?grace_ms=1000", "process cleanup"],
    ["/sandboxes/sb-1/processes/proc_1/wait?scope=tree&timeout_ms=30000", "process cleanup"],
    ["/sandboxes/sb-1/processes/proc_1/exec", "process cleanup"],
    // Without the question mark it is no output connection.
    ["/sandboxes/sb-1/processes/proc_1/connect", "process cleanup"],
    ["/sandboxes/sb-1/exec", "workspace command"],
    ["/sandboxes/sb-1/exec?stream=true", "sandbox lifecycle"],
    ["/sandboxes/sb-1/files", "sandbox lifecycle"],
    ["/sandboxes/sb-1/processes?x=1", "sandbox lifecycle"],
    ["/sandboxes/sb-1", "sandbox lifecycle"],
    ["/sandboxes", "sandbox lifecycle"],
    ["/sandboxes/sb-1/pause", "sandbox lifecycle"],
    ["/", "sandbox lifecycle"],
  ])("of %s is %s", async (path, operation) => {
    const server = await serve((_, res) => res.writeHead(418).end());
    const client = clientOf(server.origin);
    const asked = path.split("?")[0] ?? "";
    const secret = asked.length > 1 ? [asked.slice(1)] : [];
    expectApiError(await reasonOf(client.request(path)), 418, operation, ...secret);
    expectApiError(await reasonOf(client.json(path, "DELETE")), 418, operation, ...secret);
    expect(server.requests.all.map(({ url }) => url)).toEqual([`/v1${path}`, `/v1${path}`]);
  });
});

describe("the status", () => {
  test.each([
    300, 304, 305, 306, 310, 399, 400, 401, 402, 403, 404, 405, 408, 409, 410, 411, 413, 418, 422, 451, 499, 500, 501, 502,
    503, 504, 507, 599,
  ])("HTTP %i surfaces at once, and is never tried again", async (status) => {
    const server = await serve((_, res) => res.writeHead(status, { "retry-after": "0", location: "/v1/elsewhere" }).end());
    const client = clientOf(server.origin);
    expectApiError(await reasonOf(client.request("/sandboxes")), status, "sandbox lifecycle");
    expectApiError(await reasonOf(client.json("/sandboxes", "POST", {})), status, "sandbox lifecycle");
    expect(server.requests.length).toBe(2);
  });

  test.each([200, 201, 202, 203, 206, 207, 226, 299])("HTTP %i is a success", async (status) => {
    const server = await serve((_, res) => answer(res, { found: status }, status));
    const client = clientOf(server.origin);
    const response = await client.request("/sandboxes");
    expect(response).toBeInstanceOf(Response);
    expect({ status: response.status, ok: response.ok }).toEqual({ status, ok: true });
    await expect(response.json()).resolves.toEqual({ status: "success", data: { found: status } });
    await expect(client.json("/sandboxes")).resolves.toEqual({ found: status });
  });

  test("interim answers are passed over", async () => {
    const answerText = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    const server = await serveBytes(`${answerText}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone`);
    const response = await clientOf(server.origin).request("/x");
    await expect(response.text()).resolves.toBe("done");
  });

  test("HTTP 101, which nobody asked for, is none", async () => {
    const server = await serveBytes("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    expectApiError(await reasonOf(clientOf(server.origin).request("/x")), 101, "sandbox lifecycle");
  });

  test("an answer of HTTP/1.0, which ends with its connection, is read whole", async () => {
    const server = await serveBytes("HTTP/1.0 200 OK\r\n\r\nto the end");
    expect(await (await clientOf(server.origin).request("/x")).text()).toBe("to the end");
  });

  test("a status of its own making is told, with an unusual phrase", async () => {
    const server = await serveBytes("HTTP/1.1 799 Whatever It Is\r\ncontent-length: 0\r\n\r\n");
    expectApiError(await reasonOf(clientOf(server.origin).request("/x")), 799, "sandbox lifecycle", "Whatever");
  });
});

describe("a failure's body", () => {
  const ECHO = "SECRET-INPUT-9d2";

  test.each(["application/json", "text/html", "application/octet-stream"])(
    "of type %s never surfaces, though it echoes the key and the input",
    async (type) => {
      const server = await serve(async (req, res, seen) => {
        const body = await seen.body;
        res.writeHead(500, { "content-type": type, "x-echo": ECHO });
        res.end(JSON.stringify({ status: "error", message: `${req.headers["x-api-key"]} ${body}`, code: ECHO }));
      });
      const client = clientOf(server.origin);
      const path = `/sandboxes/${ECHO}/exec`;
      expectApiError(await reasonOf(client.json(path, "POST", { cmd: ECHO })), 500, "workspace command", ECHO);
      const init = { method: "POST", body: ECHO, headers: { "x-of-mine": ECHO } };
      expectApiError(await reasonOf(client.request(path, init)), 500, "workspace command", ECHO);
      const [first] = server.requests.all;
      expect((await first?.body)?.toString()).toContain(ECHO);
    },
  );

  test("is not waited for: one without an end does not delay the error, and its connection is given up", async () => {
    const server = await serve((_, res) => {
      res.writeHead(503);
      res.write("x".repeat(100));
    });
    expectApiError(await reasonOf(clientOf(server.origin).request("/sandboxes"), 5_000), 503, "sandbox lifecycle");
    const seen = await server.requests.at(0);
    expect(await within(seen.closed, "the connection's end")).toBe(true);
  });
});
