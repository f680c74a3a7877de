// An acquisition that is given up, by its deadline, a shutdown, its caller's signal or the end of its Worker, leaves
// nothing behind, wherever it was (specification, section 8).
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { acquireParams, type Acquired } from "./support/acquisitions.js";
import { CLOSING, expectAborted, expectCreateosError, expectTimedOut } from "./support/errors.js";
import { expectReady, left, nothingLeft, type Effect } from "./support/failed_requests.js";
import { looseDriver } from "./support/package.js";
import { runProgram, said } from "./support/programs.js";
import { provide, routesSince } from "./support/providers.js";
import { rejection, turns, watch, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

interface Place {
  path: string;
  when: "before" | "after";
  /** Looks that show the sandbox being created before this one. */
  looks: number;
}

const places: [string, Place][] = [
  ["the creation, before it took effect", { path: "sandbox.create", when: "before", looks: 0 }],
  ["the creation, after it took effect", { path: "sandbox.create", when: "after", looks: 0 }],
  ["the first look", { path: "sandbox.get", when: "before", looks: 0 }],
  ["a later look, while it is created", { path: "sandbox.get", when: "after", looks: 3 }],
  ["making the folders", { path: "exec", when: "before", looks: 0 }],
  ["making the folders, once made", { path: "exec", when: "after", looks: 0 }],
  ["writing the marker", { path: "files.put", when: "before", looks: 0 }],
  ["writing the marker, once written", { path: "files.put", when: "after", looks: 0 }],
];

const REMOVAL: Place = { path: "sandbox.destroy", when: "after", looks: 0 };

function holdAt(provider: Provider, { path, when, looks }: Place) {
  const creating: Effect = { type: "patch", set: { status: "creating" } };
  if (looks > 0) provider.faults.add({ match: { path: "sandbox.get" }, times: looks, effect: creating });
  return provider.faults.add({ match: { path }, skip: looks, times: 1, effect: { type: "hold", when } });
}

const removals = (provider: Provider) => routesSince(provider, 0).filter((route) => route === "sandbox.destroy").length;
const isCreation = ({ path }: Place) => path === "sandbox.create";

describe.each(places)("held at %s", (_name, place) => {
  test.concurrent("the deadline: a TimeoutError", async (context) => {
    const provider = await provide({}, context);
    const rule = holdAt(provider, place);
    const acquired = rejection(looseDriver().acquire(acquireParams(provider, { timeoutMs: 400 })));
    // Nobody reads the creation's answer any more, so it is looked for; it may only take effect now.
    if (isCreation(place)) void provider.waitForRequest("sandbox.list").then(() => rule.release());
    expectTimedOut(await acquired);
    expect([provider.sandboxes.length, removals(provider)]).toEqual([1, 1]);
    await nothingLeft(provider);
  });

  test.concurrent("a shutdown: an AbortError, and the shutdown waits for the removal", async (context) => {
    const provider = await provide({}, context);
    const driver = looseDriver();
    const rule = holdAt(provider, place);
    const removal = holdAt(provider, REMOVAL);
    const acquired = rejection(driver.acquire(acquireParams(provider)));
    await within(rule.hit);
    const down = watch(driver.shutdown());
    // A creation that is under way is waited for: only its answer tells what there is to be removed.
    if (isCreation(place)) rule.release();
    await within(removal.hit);
    await turns();
    expect(down.state).toBe("pending");
    removal.release();
    expectAborted(await acquired);
    await within(down.promise);
    expect([provider.sandboxes.length, removals(provider)]).toEqual([1, 1]);
    await nothingLeft(provider);
  });

  test.concurrent("the caller's own signal: its reason, once the removal is accepted", async (context) => {
    const provider = await provide({}, context);
    const rule = holdAt(provider, place);
    const removal = holdAt(provider, REMOVAL);
    const controller = new AbortController();
    const acquired = watch(looseDriver().acquire(acquireParams(provider), { signal: controller.signal }));
    await within(rule.hit);
    const reason = { given: "up" };
    controller.abort(reason);
    if (isCreation(place)) rule.release();
    await within(removal.hit);
    await turns();
    expect(acquired.state).toBe("pending");
    removal.release();
    expect(await rejection(acquired.promise)).toBe(reason);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    expect([provider.sandboxes.length, removals(provider)]).toEqual([1, 1]);
    await nothingLeft(provider);
  });

  test.concurrent("a removal that fails as well: the error names the sandbox", async (context) => {
    const provider = await provide({}, context);
    const rule = holdAt(provider, place);
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 403 } });
    const controller = new AbortController();
    const acquired = rejection(looseDriver().acquire(acquireParams(provider), { signal: controller.signal }));
    await within(rule.hit);
    controller.abort();
    if (isCreation(place)) rule.release();
    expectCreateosError(await acquired, left(provider.sandboxes[0]?.id ?? ""));
  });
});

describe("the caller's signal", () => {
  const reasons: [string, unknown][] = [
    ["an error", new Error("own")],
    ["text", "enough"],
    ["null", null],
    ["zero", 0],
    ["a cleanup error of its own", Object.assign(new Error("own"), { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" })],
  ];

  test.concurrent.for(reasons)("aborted already: its reason, and no request: %s", async ([_name, reason], context) => {
    const provider = await provide({}, context);
    const signal = AbortSignal.abort(reason);
    expect(await rejection(looseDriver().acquire(acquireParams(provider), { signal }))).toBe(reason);
    expect(provider.requests).toEqual([]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test.concurrent.for(reasons)("aborted meanwhile: its reason: %s", async ([_name, reason], context) => {
    const provider = await provide({}, context);
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    const controller = new AbortController();
    const acquired = rejection(looseDriver().acquire(acquireParams(provider), { signal: controller.signal }));
    await within(rule.hit);
    controller.abort(reason);
    expect(await acquired).toBe(reason);
    await nothingLeft(provider);
  });

  test.concurrent("aborted without a reason: the very object that the platform made", async (context) => {
    const provider = await provide({}, context);
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    const controller = new AbortController();
    const acquired = rejection(looseDriver().acquire(acquireParams(provider), { signal: controller.signal }));
    await within(rule.hit);
    controller.abort();
    expectAborted(await acquired);
    expect(await acquired).toBe(controller.signal.reason);
  });

  test.concurrent("AbortSignal.timeout and AbortSignal.any do as well", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    for (const signal of [AbortSignal.timeout(300), AbortSignal.any([AbortSignal.timeout(300)])]) {
      const reason = await rejection(looseDriver().acquire(acquireParams(provider), { signal }));
      expectTimedOut(reason);
      expect(reason).toBe(signal.reason);
    }
    await nothingLeft(provider);
  });

  test.concurrent("aborted in the tick of the call: nothing was created, or it is removed", async (context) => {
    const provider = await provide({}, context);
    const controller = new AbortController();
    const acquired = rejection(looseDriver().acquire(acquireParams(provider), { signal: controller.signal }));
    controller.abort("at once");
    expect(await acquired).toBe("at once");
    await nothingLeft(provider);
  });

  test.concurrent("never aborted, or only later, changes nothing and keeps no listener", async (context) => {
    const provider = await provide({}, context);
    const controller = new AbortController();
    const { signal } = controller;
    const lease = (await looseDriver().acquire(acquireParams(provider), { signal })) as Acquired;
    expect(getEventListeners(signal, "abort")).toEqual([]);
    controller.abort();
    await turns();
    expectReady(provider, lease);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "status", status: 400 } });
    const other = new AbortController().signal;
    await rejection(looseDriver().acquire(acquireParams(provider), { signal: other }));
    expect(getEventListeners(other, "abort")).toEqual([]);
  });

  test.concurrent("comes after every other check", async (context) => {
    const provider = await provide({}, context);
    const options = { signal: AbortSignal.abort("own") };
    const acquire = (config: object, more: object = {}) =>
      rejection(looseDriver().acquire(acquireParams(provider, config, more), options));
    expect(await acquire({ shape: "" })).toMatchObject({ code: "ERR_CREATEOS_CONFIG" });
    expect(await acquire({ apiKey: undefined })).toMatchObject({ code: "ERR_CREATEOS_API_KEY" });
    expect(await acquire({}, { requestedExpiresAt: "2030" })).toMatchObject({ code: "ERR_CREATEOS_UNSUPPORTED" });
    expect((await acquire({}, { companyId: "" })).constructor).toBe(TypeError);
    expect(provider.requests).toEqual([]);
  });

  test.concurrent("one acquisition's is nothing to another's", async (context) => {
    const provider = await provide({}, context);
    const driver = looseDriver();
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    const controller = new AbortController();
    const given = rejection(driver.acquire(acquireParams(provider), { signal: controller.signal }));
    const kept = driver.acquire(acquireParams(provider)) as Promise<Acquired>;
    while (rule.hits < 2) await turns(1);
    controller.abort("mine");
    expect(await given).toBe("mine");
    rule.release();
    expectReady(provider, await within(kept));
  });

  // The caller has given the acquisition up and only waits for its end, whatever became of the creation: one who
  // compares with `signal.reason`, as after fetch, takes anything else for a fault of the provider.
  const surprises: [string, Effect[]][] = [
    ["is under way, which then is lost", [{ type: "hold", when: "after" }, { type: "lostReply" }]],
    ["waits out a 429", [{ type: "status", status: 429, headers: { "retry-after": "30" } }]],
  ];
  test.for(surprises)("aborted while the creation %s: its reason", async ([_name, effect], context) => {
    const provider = await provide({}, context);
    const rule = provider.faults.add({ match: { path: "sandbox.create" }, effect });
    const controller = new AbortController();
    const acquired = rejection(looseDriver().acquire(acquireParams(provider), { signal: controller.signal }));
    await within(rule.hit);
    // Until the 429 has arrived, its request counts as sent.
    await turns();
    controller.abort("own");
    rule.release();
    const reason = await acquired;
    await nothingLeft(provider);
    expect(reason).toBe("own");
  });
});

describe("options that are none are TypeErrors, and nothing is asked", () => {
  const wrong: [string, unknown][] = [
    ["a number", 1000],
    ["text", "signal"],
    ["true", true],
    ["a list", []],
    ["a symbol", Symbol("s")],
    ["a bigint", 1n],
    ["a function", () => {}],
    ["a signal that is text", { signal: "abort" }],
    ["a signal that is a controller", { signal: new AbortController() }],
    ["a signal that only looks aborted", { signal: { aborted: true } }],
    ["a signal that is false", { signal: false }],
    ["a signal that is 0", { signal: 0 }],
  ];
  test.concurrent.for(wrong)("%s", async ([_name, options], context) => {
    const provider = await provide({}, context);
    const acquired = looseDriver().acquire(acquireParams(provider), options);
    expect((await rejection(acquired)).constructor).toBe(TypeError);
    expect(provider.requests).toEqual([]);
  });

  test.concurrent("nothing, and what is not known, is fine", async (context) => {
    const provider = await provide({}, context);
    const fine = [undefined, null, {}, { signal: undefined }, { signal: null }, { signals: 1, timeoutMs: 1 }];
    for (const options of fine)
      expectReady(provider, (await looseDriver().acquire(acquireParams(provider), options)) as Acquired);
  });

  test.concurrent("what a getter of theirs throws is the rejection", async (context) => {
    const provider = await provide({}, context);
    const own = new Error("own");
    const options = {
      get signal() {
        throw own;
      },
    };
    expect(await rejection(looseDriver().acquire(acquireParams(provider), options))).toBe(own);
    expect(provider.requests).toEqual([]);
  });
});

test.concurrent("after a shutdown, and in the tick of one, nothing is acquired", async (context) => {
  const provider = await provide({}, context);
  const driver = looseDriver();
  const acquired = rejection(driver.acquire(acquireParams(provider)));
  const down = driver.shutdown();
  const { signal } = new AbortController();
  expectCreateosError(await rejection(driver.acquire(acquireParams(provider), { signal })), CLOSING);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  const reason = await acquired;
  // Whether the first had begun by then is a matter of the moment.
  if (reason instanceof DOMException) expectAborted(reason);
  else expectCreateosError(reason, CLOSING);
  await within(down);
  await nothingLeft(provider);
});

test.concurrent("a Worker that is terminated, held at any step: the sandbox is removed", async (context) => {
  const held = await Promise.all(
    places.map(async ([, place]) => {
      const provider = await provide({}, context);
      return { provider, rule: holdAt(provider, place) };
    }),
  );
  let child: { kill(signal: NodeJS.Signals): unknown } | undefined;
  const running = runProgram(
    `
    const { Worker } = require("node:worker_threads");
    const source = prelude + \`
      const lease = require(packagePath);
      const { apiUrl, apiKey } = require("node:worker_threads").workerData;
      new lease.LeaseDriver().acquire(params("", { apiUrl, apiKey }));
      require("node:worker_threads").parentPort.on("message", () => {});
    \`;
    const start = (workerData) => new Worker(source, { eval: true, workerData });
    const workers = JSON.parse(process.env.PROVIDERS).map(start);
    const alive = setInterval(() => {}, 1000);
    process.once("SIGUSR2", async () => {
      process.once("SIGUSR2", () => clearInterval(alive));
      await Promise.all(workers.map((worker) => worker.terminate()));
      say("terminated");
    });
  `,
    {
      env: { PROVIDERS: JSON.stringify(held.map(({ provider: { url, apiKey } }) => ({ apiUrl: url, apiKey }))) },
      began: (one) => (child = one),
    },
  );
  await within(Promise.all(held.map(({ rule }) => rule.hit)));
  child?.kill("SIGUSR2");
  // The acquisition does not hear of its Worker's end, so it goes on; what comes of it has nobody to go to.
  for (const { rule } of held) rule.release();
  for (const { provider } of held) {
    await provider.waitForRequest("sandbox.destroy");
    await nothingLeft(provider);
  }
  child?.kill("SIGUSR2");
  expect(said(await running)).toEqual(["terminated"]);
});
