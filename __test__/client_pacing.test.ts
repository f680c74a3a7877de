// Section 6, pacing: the short side of it. A burst goes out at once, the 301st request waits, and who shares the budget.
// The whole window is in client_pacing_window.test.ts.
import { once } from "node:events";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import { expectConnectionFailed, expectRejection, expectTimeout } from "./support/http_errors.js";
import { clientOf, KEY, LeaseDriver } from "./support/http_package.js";
import { answer, deferred, freePort, type HttpServer, reasonOf, serve, settlesWithin, within } from "./support/http_server.js";

const LIMIT = 300;

const server = () => serve((_, res) => answer(res));

/** Uses up the budget but for so many. */
async function spend({ origin, requests }: HttpServer, left = 0): Promise<void> {
  const before = requests.length;
  const client = clientOf(origin);
  await within(Promise.all(Array.from({ length: LIMIT - left - before }, () => client.json("/spent"))), "the burst", 15_000);
}

test("300 requests go out at once; the 301st has not arrived 5 s later", async () => {
  const one = await server();
  const client = clientOf(one.origin);
  const began = performance.now();
  const burst = Promise.all(Array.from({ length: LIMIT }, () => client.json("/x")));
  const controller = new AbortController();
  const next = client.json("/next", "GET", undefined, controller.signal);
  const outcome = reasonOf(next, 15_000);
  await within(burst, "the burst", 10_000);
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(await settlesWithin(one.requests.count(LIMIT + 1, "the 301st", 20_000), 5_000)).toBe(false);
  // An aborted waiter ends at once, unsent.
  const aborted = performance.now();
  controller.abort("enough");
  expect(await outcome).toBe("enough");
  expect(performance.now() - aborted).toBeLessThan(200);
  expect(one.requests.length).toBe(LIMIT);
});

describe("the budget is shared", () => {
  /** That one more request does not arrive, whoever makes it. */
  async function expectSpent(one: HttpServer) {
    const { length } = one.requests;
    expectTimeout(await reasonOf(clientOf(one.origin, { timeoutMs: 700 }).json("/over")));
    expect(one.requests.length).toBe(length);
  }

  test("by two clients of one origin, with keys of their own", async () => {
    const one = await server();
    const clients = [clientOf(one.origin), clientOf(`${one.origin}/v1/`, { apiKey: "another" })];
    for (const client of clients) await Promise.all(Array.from({ length: LIMIT / 2 }, () => client.json("/x")));
    await expectSpent(one);
  });

  test("by two drivers", async () => {
    const one = await server();
    const config = { apiUrl: one.origin, apiKey: KEY, shape: "s" };
    const metadata = { provider: "createos", companyId: "c", environmentId: "e", apiUrl: one.origin };
    const params = { companyId: "c", environmentId: "e", config, lease: { providerLeaseId: "sb-1", metadata } };
    for (const driver of [new LeaseDriver(), new LeaseDriver()]) {
      await driver.track(params, async (client, signal) => {
        await Promise.all(Array.from({ length: LIMIT / 2 }, () => client.json("/x", "GET", undefined, signal)));
      });
    }
    await expectSpent(one);
  });

  test("by the Workers of the process", async () => {
    const one = await server();
    const workerData = { apiUrl: one.origin, apiKey: KEY, shape: "s", timeoutMs: 20_000 };
    const worker = new Worker(path.join(__dirname, "support/http_worker.cjs"), { workerData });
    onTestFinished(() => void worker.terminate());
    await within(once(worker, "message"), "the Worker");
    await spend(one, LIMIT / 2);
    worker.postMessage(Array.from({ length: LIMIT / 2 }, (_, index) => `/worker/${index}`));
    await one.requests.count(LIMIT, "the Worker's requests");
    await expectSpent(one);
  });

  test("not by another origin", async () => {
    const [one, other] = await Promise.all([server(), server()]);
    await spend(one);
    const waiting = reasonOf(clientOf(one.origin, { timeoutMs: 2_000 }).json("/over"));
    await within(Promise.all(Array.from({ length: 50 }, () => clientOf(other.origin).json("/x"))), "the others", 1_500);
    expectTimeout(await waiting);
    expect(one.requests.length).toBe(LIMIT);
  });

  test("by answers of every kind: failures, redirects, refusals and broken ones count", async () => {
    const one = await serve(({ url }, res) => {
      if (url === "/v1/error") return res.writeHead(500).end();
      if (url === "/v1/moved") return res.writeHead(302).end();
      if (url === "/v1/break") return res.destroy();
      answer(res);
    });
    const client = clientOf(one.origin);
    for (const kind of ["/error", "/moved", "/break"]) {
      await Promise.allSettled(Array.from({ length: 10 }, () => client.json(kind)));
    }
    await spend(one);
    await expectSpent(one);
  });
});

test("what never left does not count: hundreds of refused connections do not make the next wait", async () => {
  const client = clientOf(`http://127.0.0.1:${await freePort()}`);
  const calls = Array.from({ length: LIMIT + 50 }, () => reasonOf(client.json("/x"), 15_000));
  for (const error of await Promise.all(calls)) expectConnectionFailed(error);
});

test("illegal requests do not count either", async () => {
  const one = await server();
  const client = clientOf(one.origin);
  await Promise.all(Array.from({ length: LIMIT }, () => reasonOf(client.json("/../x"))));
  await Promise.all(Array.from({ length: LIMIT }, () => reasonOf(client.getSandbox("no/id"))));
  await within(client.json("/x"), "the request", 2_000);
});

describe("a request that waits for its turn", () => {
  test("ends with the configured timeout, unsent", async () => {
    const one = await server();
    await spend(one);
    const began = performance.now();
    expectTimeout(await reasonOf(clientOf(one.origin, { timeoutMs: 300 }).createSandbox()));
    expect(performance.now() - began).toBeLessThan(1_500);
    expect(one.requests.length).toBe(LIMIT);
  });

  test("is ended by its signal in every kind of call, with any reason", async () => {
    const one = await server();
    await spend(one);
    const client = clientOf(one.origin);
    const controller = new AbortController();
    const { signal } = controller;
    const cancelled = deferred<unknown>();
    const source = new ReadableStream({ start: (given) => given.enqueue(Buffer.from("x")), cancel: cancelled.resolve });
    const calls = [
      client.request("/x", { method: "PUT", body: source, signal }),
      client.json("/x", "POST", {}, signal),
      client.getSandbox("sb-1", signal),
      client.createSandbox(signal),
      client.destroySandbox("sb-1", signal),
      client.transition("sb-1", "running", signal),
      client.upload("sb-1", "/x", "x", signal),
    ];
    const outcomes = calls.map((call) => expectRejection(call, null));
    controller.abort(null);
    await Promise.all(outcomes);
    expect(await within(cancelled.promise, "the source's cancellation")).toBe(null);
    expect(one.requests.length).toBe(LIMIT);
  });

  test("was not sent: an acquisition that ends there is no sandbox that may have been made", async () => {
    const one = await server();
    await spend(one);
    const config = { apiUrl: one.origin, apiKey: KEY, shape: "s", timeoutMs: 300 };
    expectTimeout(await reasonOf(new LeaseDriver().acquire({ companyId: "c", environmentId: "e", config })));
    expect(one.requests.length).toBe(LIMIT);
  });
});
