// Section 6: an abort rejects with the signal's own reason, at every stage; without a signal the configured timeout does.
import { describe, expect, test } from "vitest";
import { expectRejection, expectTimeout } from "./support/http_errors.js";
import { clientOf, LeaseDriver, type Client } from "./support/http_package.js";
import { answer, deferred, type HttpServer, reasonOf, serve, settlesWithin, success, within } from "./support/http_server.js";

const frozen = Object.freeze({ why: "frozen" });
const REASONS: [string, unknown][] = [
  ["an Error", new Error("mine")],
  ["a string", "stop"],
  ["an empty string", ""],
  ["a symbol", Symbol("stop")],
  ["zero", 0],
  ["NaN", Number.NaN],
  ["a bigint", 1n],
  ["false", false],
  ["null", null],
  ["a frozen object", frozen],
  ["a function", () => {}],
  ["a promise", Promise.resolve("not waited for")],
  ["an ABORTED look-alike", Object.freeze({})],
];

/** Never answers. */
const silence = () => {};

describe.each(REASONS)("with %s as the reason", (_, reason) => {
  test("before the call: that reason, and no connection", async () => {
    const server = await serve(silence);
    const client = clientOf(server.origin);
    const signal = AbortSignal.abort(reason);
    const given = signal.reason as unknown;
    await expectRejection(client.request("/x", { signal }), given);
    await expectRejection(client.json("/x", "GET", undefined, signal), given);
    await expectRejection(client.getSandbox("sb-1", signal), given);
    await expectRejection(client.createSandbox(signal), given);
    await expectRejection(client.destroySandbox("sb-1", signal), given);
    await expectRejection(client.transition("sb-1", "paused", signal), given);
    await expectRejection(client.upload("sb-1", "/tmp/x", "x", signal), given);
    await expectRejection(client.setEgress("sb-1", [], signal), given);
    expect(server.connections.length).toBe(0);
  });

  test("while waiting for the head: that reason, and the connection is given up", async () => {
    const server = await serve(silence);
    const controller = new AbortController();
    const call = clientOf(server.origin).request("/x", { signal: controller.signal });
    const seen = await server.requests.at(0);
    controller.abort(reason);
    await expectRejection(call, controller.signal.reason);
    expect(await within(seen.closed, "the connection's end")).toBe(true);
  });

  test("while a JSON body is read: that reason, not invalid JSON", async () => {
    const begun = deferred();
    const server = await serve((_, res) => {
      res.writeHead(200);
      res.write('{"status":"succ', () => begun.resolve());
    });
    const controller = new AbortController();
    const call = clientOf(server.origin).json("/x", "GET", undefined, controller.signal);
    await within(begun.promise, "half an answer");
    controller.abort(reason);
    await expectRejection(call, controller.signal.reason);
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  test("while the body stream is read: that reason, also for later reads", async () => {
    const server = await serve((_, res) => {
      res.writeHead(200);
      res.write("first");
    });
    const controller = new AbortController();
    const response = await clientOf(server.origin).request("/x", { signal: controller.signal });
    const reader = response.body?.getReader();
    if (!reader) throw new Error("no body");
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("first");
    const pending = reader.read();
    controller.abort(reason);
    await expectRejection(pending, controller.signal.reason);
    await expectRejection(reader.read(), controller.signal.reason);
    await expectRejection(reader.closed, controller.signal.reason);
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  test("before anybody reads the body: that reason", async () => {
    const server = await serve((_, res) => {
      res.writeHead(200);
      res.write("first");
    });
    const controller = new AbortController();
    const response = await clientOf(server.origin).request("/x", { signal: controller.signal });
    controller.abort(reason);
    await expectRejection(response.text(), controller.signal.reason);
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });
});

test("the platform's default reason is passed on as the same object", async () => {
  const server = await serve(silence);
  const controller = new AbortController();
  const call = clientOf(server.origin).request("/x", { signal: controller.signal });
  await server.requests.at(0);
  controller.abort();
  const reason = await reasonOf(call);
  expect(reason).toBe(controller.signal.reason);
  expect(reason).toMatchObject({ name: "AbortError", code: 20 });
});

test("AbortSignal.timeout and AbortSignal.any end a request with their own reasons", async () => {
  const server = await serve(silence);
  const client = clientOf(server.origin);
  const timeout = AbortSignal.timeout(50);
  const timedOut = await reasonOf(client.request("/x", { signal: timeout }));
  expect(timedOut).toBe(timeout.reason);
  expectTimeout(timedOut);
  const controller = new AbortController();
  const any = AbortSignal.any([controller.signal, AbortSignal.timeout(60_000)]);
  const call = client.json("/x", "GET", undefined, any);
  await server.requests.count(2);
  controller.abort("mine");
  await expectRejection(call, "mine");
});

describe("an abort of", () => {
  const calls: [string, (client: Client, signal: AbortSignal) => Promise<unknown>][] = [
    ["json", (client, signal) => client.json("/x", "POST", {}, signal)],
    ["getSandbox", (client, signal) => client.getSandbox("sb-1", signal)],
    ["createSandbox", (client, signal) => client.createSandbox(signal)],
    ["destroySandbox", (client, signal) => client.destroySandbox("sb-1", signal)],
    ["transition", (client, signal) => client.transition("sb-1", "running", signal)],
    ["upload", (client, signal) => client.upload("sb-1", "/tmp/x", "x", signal)],
    ["setEgress", (client, signal) => client.setEgress("sb-1", [], signal)],
  ];
  test.each(calls)("%s ends it with the reason, and its connection", async (_, call) => {
    const server = await serve(silence);
    const controller = new AbortController();
    const pending = call(clientOf(server.origin), controller.signal);
    const seen = await server.requests.at(0);
    controller.abort(frozen);
    await expectRejection(pending, frozen);
    expect(await within(seen.closed, "the connection's end")).toBe(true);
  });
});

test("a signal of another make, whose reason is undefined, ends a request with undefined", async () => {
  class OldSignal extends EventTarget {
    aborted = false;
    reason = undefined;
  }
  const server = await serve(silence);
  const signal = new OldSignal();
  const call = clientOf(server.origin).request("/x", { signal: signal as unknown as AbortSignal });
  await server.requests.at(0);
  signal.aborted = true;
  signal.dispatchEvent(new Event("abort"));
  await expectRejection(call, undefined);
});

test("a caller's own abort listener may call the client again", async () => {
  const server = await serve(({ url }, res) => void (url === "/v1/again" && answer(res, { again: 1 })));
  const client = clientOf(server.origin);
  const controller = new AbortController();
  const again = deferred<unknown>();
  controller.signal.addEventListener("abort", () => again.resolve(client.json("/again")));
  const call = client.json("/x", "GET", undefined, controller.signal);
  await server.requests.at(0);
  controller.abort("stop");
  await expectRejection(call, "stop");
  expect(await within(again.promise, "the second call")).toEqual({ again: 1 });
});

test("an abort in the tick of the call sends nothing", async () => {
  const server = await serve((_, res) => answer(res));
  const client = clientOf(server.origin);
  const controller = new AbortController();
  const call = client.request("/x", { signal: controller.signal });
  controller.abort("at once");
  await expectRejection(call, "at once");
  // A later request proves that nothing is on its way any more.
  await client.json("/later");
  expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/later"]);
});

test("an abort after the end changes nothing", async () => {
  const server = await serve((_, res) => answer(res, { a: 1 }));
  const client = clientOf(server.origin);
  const controller = new AbortController();
  const response = await client.request("/x", { signal: controller.signal });
  const text = await response.text();
  await expect(client.json("/x", "GET", undefined, controller.signal)).resolves.toEqual({ a: 1 });
  controller.abort("late");
  expect(text).toBe(success({ a: 1 }));
});

test.each([["a string", "signal"], ["an object", {}], ["a controller", new AbortController()], ["true", true]])(
  "%s for a signal is a TypeError, and no request",
  async (_, signal) => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    const wrong = signal as unknown as AbortSignal;
    expect(await reasonOf(client.request("/x", { signal: wrong }))).toBeInstanceOf(TypeError);
    expect(await reasonOf(client.json("/x", "GET", undefined, wrong))).toBeInstanceOf(TypeError);
    expect(server.connections.length).toBe(0);
  },
);

describe("without a signal", () => {
  const withTimeout = (server: HttpServer, timeoutMs: number) => clientOf(server.origin, { timeoutMs });

  test("the configured timeout ends the wait for the head", async () => {
    const server = await serve(silence);
    const began = performance.now();
    expectTimeout(await reasonOf(withTimeout(server, 150).request("/x")));
    expect(performance.now() - began).toBeGreaterThanOrEqual(145);
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  test("it ends a JSON body", async () => {
    const server = await serve((_, res) => res.writeHead(200).write("{"));
    expectTimeout(await reasonOf(withTimeout(server, 150).json("/x")));
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  test("it ends a streamed body that keeps coming", async () => {
    const server = await serve(async (_, res) => {
      res.writeHead(200);
      while (!res.destroyed) {
        res.write("drop");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    });
    const response = await withTimeout(server, 300).request("/x");
    const reader = response.body?.getReader();
    const drain = async () => {
      while (!(await reader?.read())?.done);
    };
    expectTimeout(await reasonOf(drain()));
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  test.each<[string, (client: Client) => Promise<unknown>]>([
    ["getSandbox", (client) => client.getSandbox("sb-1")],
    ["createSandbox", (client) => client.createSandbox()],
    ["destroySandbox", (client) => client.destroySandbox("sb-1")],
    ["transition", (client) => client.transition("sb-1", "running")],
    ["upload", (client) => client.upload("sb-1", "/tmp/x", "x")],
  ])("it ends %s", async (_, call) => {
    const server = await serve(silence);
    expectTimeout(await reasonOf(call(withTimeout(server, 100))));
  });

  // The bound is only looked at when somebody reads: an answer that is held and not read keeps its connection.
  test("it ends a body that nobody reads, and the connection", async () => {
    const server = await serve((_, res) => void (res.writeHead(200), res.write("unread")));
    const response = await withTimeout(server, 200).request("/x");
    expect(await within((await server.requests.at(0)).closed, "the connection's end", 1_500)).toBe(true);
    expectTimeout(await reasonOf(response.text()));
  });

  test("a body that is read after the timeout fails with it, though bytes are there", async () => {
    const server = await serve((_, res) => void (res.writeHead(200), res.write("late")));
    const response = await withTimeout(server, 100).request("/x");
    const passed = deferred();
    setTimeout(passed.resolve, 150);
    await passed.promise;
    expectTimeout(await reasonOf(response.text()));
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  test("null for a signal is none", async () => {
    const server = await serve(silence);
    expectTimeout(await reasonOf(withTimeout(server, 100).request("/x", { signal: null })));
  });
});

describe("with a signal", () => {
  test("that signal alone bounds a request: the configured timeout ends neither wait nor body", async () => {
    const goOn = deferred();
    const server = await serve(async (_, res) => {
      await goOn.promise;
      res.writeHead(200);
      res.write("one");
      await new Promise((resolve) => setTimeout(resolve, 250));
      res.end("two");
    });
    const { signal } = new AbortController();
    const call = clientOf(server.origin, { timeoutMs: 50 }).request("/x", { signal });
    await server.requests.at(0);
    expect(await settlesWithin(call, 250)).toBe(false);
    goOn.resolve();
    expect(await (await within(call, "the head")).text()).toBe("onetwo");
  });
});

describe("a client after the abort of its call", () => {
  test("stays usable: clean-up runs on it", async () => {
    const server = await serve((req, res) => {
      if (req.url === "/v1/hang") return;
      answer(res, { done: req.url });
    });
    const config = { apiUrl: server.origin, apiKey: "key", shape: "s", timeoutMs: 5_000 };
    const owner = { companyId: "c", environmentId: "e", config };
    const metadata = { provider: "createos", companyId: "c", environmentId: "e", apiUrl: server.origin };
    const driver = new LeaseDriver();
    const cleaned: unknown[] = [];
    const tracked = driver.track({ ...owner, lease: { providerLeaseId: "sb-1", metadata } }, async (client, signal) => {
      try {
        await client.request("/hang", { signal });
      } catch (reason) {
        expect(reason).toBe(signal.reason);
        // With a bound of its own, and with none.
        cleaned.push(await client.json("/cleanup/1", "DELETE", undefined, AbortSignal.timeout(5_000)));
        cleaned.push(await (await client.request("/cleanup/2", { method: "DELETE" })).json());
        throw reason;
      }
    });
    const outcome = reasonOf(tracked);
    await server.requests.at(0);
    await within(driver.release({ ...owner, providerLeaseId: "sb-1", leaseMetadata: metadata }), "the release");
    expect(await outcome).toMatchObject({ name: "AbortError" });
    expect(cleaned).toEqual([{ done: "/v1/cleanup/1" }, { status: "success", data: { done: "/v1/cleanup/2" } }]);
    expect(server.requests.all.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "GET /v1/hang",
      "DELETE /v1/cleanup/1",
      "DELETE /v1/cleanup/2",
      "DELETE /v1/sandboxes/sb-1",
    ]);
  });
});
