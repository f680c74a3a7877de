// A probe that ends early, or cannot remove its sandbox: none is left that nobody hears of (specification, section 8).
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { acquireParams } from "./support/acquisitions.js";
import { expectAborted, expectCreateosError, MESSAGES } from "./support/errors.js";
import { left, nothingLeft, type Effect } from "./support/failed_requests.js";
import { looseDriver } from "./support/package.js";
import { runProgram, said } from "./support/programs.js";
import { provide, routesSince } from "./support/providers.js";
import { rejection, turns, watch, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

const OK = { ok: true, summary: "CreateOS created a sandbox and ran a command in it." };
const TIMED_OUT = { ok: false, summary: "The operation was aborted due to timeout" };
const DESTROY = "sandbox.destroy";
/** A command that does not print the word. */
const SILENT: Effect = { type: "patch", set: { result: { exit_code: 0, stdout: "" } } };

const steps: [string, string, number][] = [
  ["the creation", "sandbox.create", 0],
  ["the look", "sandbox.get", 0],
  ["making the folders", "exec", 0],
  ["writing the marker", "files.put", 0],
  ["the command", "exec", 1],
];

const holdAt = (provider: Provider, path: string, skip: number) =>
  provider.faults.add({ match: { path }, skip, times: 1, effect: { type: "hold", when: "after" } });
const removals = (provider: Provider) => routesSince(provider, 0).filter((route) => route === DESTROY).length;

describe.each(steps)("held at %s", (_step, path, skip) => {
  test.concurrent("the deadline: told of, and the sandbox is removed", async (context) => {
    const provider = await provide({}, context);
    holdAt(provider, path, skip);
    expect(await within(looseDriver().probe(acquireParams(provider, { timeoutMs: 400 })))).toEqual(TIMED_OUT);
    expect([provider.sandboxes.length, removals(provider)]).toEqual([1, 1]);
    await nothingLeft(provider);
  });

  test.concurrent("a shutdown: an AbortError, and the shutdown waits for the removal", async (context) => {
    const provider = await provide({}, context);
    const driver = looseDriver();
    const rule = holdAt(provider, path, skip);
    const removal = holdAt(provider, DESTROY, 0);
    const probed = watch(driver.probe(acquireParams(provider)));
    await within(rule.hit);
    const down = watch(driver.shutdown());
    if (path === "sandbox.create") rule.release();
    await within(removal.hit);
    await turns();
    expect([probed.state, down.state]).toEqual(["pending", "pending"]);
    removal.release();
    expectAborted(await rejection(probed.promise));
    await within(down.promise);
    expect([provider.sandboxes.length, removals(provider)]).toEqual([1, 1]);
    await nothingLeft(provider);
  });

  test.concurrent("the caller's own signal: its reason, once the removal is accepted", async (context) => {
    const provider = await provide({}, context);
    const rule = holdAt(provider, path, skip);
    const removal = holdAt(provider, DESTROY, 0);
    const { signal, abort } = abortable();
    const probed = watch(looseDriver().probe(acquireParams(provider), { signal }));
    await within(rule.hit);
    const reason = { given: "up" };
    abort(reason);
    if (path === "sandbox.create") rule.release();
    await within(removal.hit);
    await turns();
    expect(probed.state).toBe("pending");
    removal.release();
    expect(await rejection(probed.promise)).toBe(reason);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect([provider.sandboxes.length, removals(provider)]).toEqual([1, 1]);
    await nothingLeft(provider);
  });

  test.concurrent("given up, and the removal fails: the error names the sandbox", async (context) => {
    const provider = await provide({}, context);
    const rule = holdAt(provider, path, skip);
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "status", status: 403 } });
    const { signal, abort } = abortable();
    const probed = rejection(looseDriver().probe(acquireParams(provider), { signal }));
    await within(rule.hit);
    abort("own");
    if (path === "sandbox.create") rule.release();
    expectCreateosError(await probed, left(provider.sandboxes[0]?.id ?? ""));
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason?: unknown) => controller.abort(reason) };
}

describe("a sandbox that could not be removed is heard of: the probe rejects", () => {
  const causes: [string, { path: string; skip: number; effect: Effect } | undefined][] = [
    ["all else went well", undefined],
    ["the command failed", { path: "exec", skip: 1, effect: SILENT }],
    ["the command was refused", { path: "exec", skip: 1, effect: { type: "status", status: 500 } }],
    ["the acquisition failed", { path: "files.put", skip: 0, effect: { type: "status", status: 500 } }],
    ["the look failed", { path: "sandbox.get", skip: 0, effect: { type: "status", status: 500 } }],
  ];
  test.concurrent.for(causes)("%s", async ([_name, cause], context) => {
    const provider = await provide({}, context);
    const { path = "", skip = 0, effect = SILENT } = cause ?? {};
    if (cause !== undefined) provider.faults.add({ match: { path }, skip, effect });
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "status", status: 401 } });
    const reason = await rejection(looseDriver().probe(acquireParams(provider)));
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
    expect(removals(provider)).toBe(1);
  });

  test.concurrent("after three tries where it fails for a moment each time", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "lostRequest" } });
    const reason = await rejection(looseDriver().probe(acquireParams(provider)));
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
    expect(removals(provider)).toBe(3);
  });

  test.concurrent("after the timeout where it is not answered", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "hold" } });
    const reason = await rejection(looseDriver().probe(acquireParams(provider, { timeoutMs: 500 })));
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
  });

  test.concurrent("by its unique name, where the creation was lost and no look succeeds", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostReply" } });
    provider.faults.add({ match: { path: "sandbox.list" }, effect: { type: "status", status: 403 } });
    const reason = await rejection(looseDriver().probe(acquireParams(provider)));
    expectCreateosError(reason, left(provider.sandboxes[0]?.name ?? ""));
  });
});

describe("while the sandbox is being removed the outcome is known already", () => {
  const ends: [string, (driver: ReturnType<typeof looseDriver>, abort: () => void) => void][] = [
    ["a shutdown", (driver) => void driver.shutdown()],
    ["the caller's signal", (_driver, abort) => abort()],
  ];
  const during = async (context: Parameters<typeof provide>[1], end: (typeof ends)[number][1], effect?: Effect) => {
    const provider = await provide({}, context);
    if (effect !== undefined) provider.faults.add({ match: { path: "exec" }, skip: 1, effect });
    const removal = holdAt(provider, DESTROY, 0);
    const driver = looseDriver();
    const { signal, abort } = abortable();
    const probed = driver.probe(acquireParams(provider), { signal });
    await within(removal.hit);
    end(driver, () => abort("own"));
    await turns();
    removal.release();
    return { provider, probed };
  };

  test.concurrent.for(ends)("%s changes nothing about a success", async ([_name, end], context) => {
    const { provider, probed } = await during(context, end);
    expect(await within(probed)).toEqual(OK);
    await nothingLeft(provider);
  });

  test.concurrent.for(ends)("%s changes nothing about a failure", async ([_name, end], context) => {
    const { probed } = await during(context, end, SILENT);
    expect(await within(probed)).toEqual({ ok: false, summary: "CreateOS command probe failed." });
  });

});

describe("the caller's signal", () => {
  const reasons: [string, unknown][] = [
    ["an error", new Error("own")],
    ["text", "enough"],
    ["null", null],
    ["an error with a code of the package's", Object.assign(new Error("own"), { code: "ERR_CREATEOS_CONFIG" })],
  ];
  test.concurrent.for(reasons)("aborted already: its reason, and no request: %s", async ([_name, reason], context) => {
    const provider = await provide({}, context);
    const signal = AbortSignal.abort(reason);
    expect(await rejection(looseDriver().probe(acquireParams(provider), { signal }))).toBe(reason);
    expect(provider.requests).toEqual([]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test.concurrent("a TimeoutError of its own is its reason, not the probe's deadline", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    const signal = AbortSignal.timeout(300);
    expect(await rejection(looseDriver().probe(acquireParams(provider), { signal }))).toBe(signal.reason);
    await nothingLeft(provider);
  });

  test("aborted already, and a configuration that will not do: told of, as without a signal", async () => {
    const probed = looseDriver().probe({ config: {} }, { signal: AbortSignal.abort("own") });
    expect(await within(probed)).toEqual({ ok: false, summary: MESSAGES.noUrl });
  });
});

test.concurrent("after a shutdown: told of, and nothing is asked", async (context) => {
  const provider = await provide({}, context);
  const driver = looseDriver();
  await driver.shutdown();
  expect(await within(driver.probe(acquireParams(provider)))).toEqual({ ok: false, summary: MESSAGES.closing });
  expect(provider.requests).toEqual([]);
});

test.concurrent("a Worker that is terminated, held at any step: the sandbox is removed", async (context) => {
  const held = await Promise.all(
    steps.map(async ([, path, skip]) => {
      const provider = await provide({}, context);
      return { provider, rule: holdAt(provider, path, skip) };
    }),
  );
  let child: { kill(signal: NodeJS.Signals): unknown } | undefined;
  const running = runProgram(
    `
    const { Worker } = require("node:worker_threads");
    const source = prelude + \`
      const lease = require(packagePath);
      const { apiUrl, apiKey } = require("node:worker_threads").workerData;
      new lease.LeaseDriver().probe(params("", { apiUrl, apiKey }));
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
  for (const { rule } of held) rule.release();
  for (const { provider } of held) {
    await provider.waitForRequest(DESTROY);
    await nothingLeft(provider);
  }
  child?.kill("SIGUSR2");
  expect(said(await running)).toEqual(["terminated"]);
});
