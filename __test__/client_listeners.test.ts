// A signal that lives long: what listens to it, and what becomes of answers that nobody holds any more.
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { expectRejection } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, deferred, reasonOf, serve } from "./support/http_server.js";
import { type Body, collect, collector, nextTo, text } from "./support/http_streams.js";

describe("a long-lived signal", () => {
  const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

  test("is left alone by every call that is through", async () => {
    const server = await serve((req, res) => {
      if (req.url === "/v1/error") res.writeHead(500).end();
      else if (req.url === "/v1/break") req.socket.destroy();
      else answer(res, { id: "sb-1", status: "running" });
    });
    const client = clientOf(server.origin);
    const { signal } = new AbortController();
    await client.json("/x", "GET", undefined, signal);
    await client.getSandbox("sb-1", signal);
    await client.transition("sb-1", "running", signal);
    await reasonOf(client.request("/error", { signal }));
    await reasonOf(client.request("/break", { signal }));
    await (await client.request("/x", { signal })).text();
    await (await client.request("/x", { signal })).body?.cancel();
    await reasonOf(client.getSandbox("no id!", signal));
    await reasonOf(client.request("/x", { signal, method: "PUT", body: {} as Body, headers: { "a b": "c" } }));
    expect(listeners(signal)).toBe(0);
  });

  test("gathers one listener for each Response in use, and none for those collected unread", async () => {
    const gc = await collector();
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    const { signal } = new AbortController();
    for (let round = 0; round < 20; round += 1) await client.request("/x", { signal, method: "DELETE" });
    await collect(gc, () => listeners(signal) <= 1);
    expect(listeners(signal)).toBeLessThanOrEqual(1);
  });

  // fetch lifts the limit for its signal. Here the eleventh request in flight under one signal prints a
  // MaxListenersExceededWarning, though nothing leaks.
  test("takes many requests at a time without a warning", async () => {
    const warnings: string[] = [];
    const note = (warning: Error) => void warnings.push(warning.name);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const server = await serve((_, res) => answer(res));
    const { signal } = new AbortController();
    const client = clientOf(server.origin);
    await Promise.all(Array.from({ length: 12 }, () => client.json("/x", "GET", undefined, signal)));
    await turn();
    expect(listeners(signal)).toBe(0);
    expect(warnings).toEqual([]);
  });

  test("a body goes on after its Response is collected", async () => {
    const gc = await collector();
    const goOn = deferred();
    const server = await serve(async (_, res) => {
      res.writeHead(200);
      res.write("one");
      await goOn.promise;
      res.end("two");
    });
    const controller = new AbortController();
    const { body } = await clientOf(server.origin).request("/x", { signal: controller.signal });
    await collect(gc);
    const reader = body?.getReader();
    expect(text((await nextTo(reader)).value)).toBe("one");
    const pending = nextTo(reader);
    await collect(gc);
    goOn.resolve();
    expect(text((await pending).value)).toBe("two");
    await collect(gc);
    expect((await nextTo(reader)).done).toBe(true);
  });

  test("still ends a body whose Response is collected", async () => {
    const gc = await collector();
    const server = await serve((_, res) => void (res.writeHead(200), res.write("one")));
    const controller = new AbortController();
    const { body } = await clientOf(server.origin).request("/x", { signal: controller.signal });
    const reader = body?.getReader();
    await nextTo(reader);
    await collect(gc);
    const pending = nextTo(reader);
    gc();
    controller.abort("stop");
    await expectRejection(pending, "stop");
  });

  test("and memory let go of a Response that nobody read, and so does its connection", async () => {
    const gc = await collector();
    const server = await serve((_, res) => void (res.writeHead(200), res.write("never read")));
    let closed = false;
    await clientOf(server.origin).request("/x");
    void (await server.requests.at(0)).closed.then(() => (closed = true));
    await collect(gc, () => closed, 100);
    expect(closed).toBe(true);
  });
});
