// Releases of calls that never stop, or stop too late: the bounds of section 5. The least bound is twice 1 ms and 5 s, so
// these run side by side.
import { describe, expect, test, vi } from "vitest";
import { CLOSING, expectCreateosError, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams, type LeaseParams } from "./support/leases.js";
import { looseDriver, type LooseDriver } from "./support/package.js";
import { makeSandbox, provide } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

// All at once: each waits out a bound and does nothing meanwhile.
vi.setConfig({ maxConcurrency: 20 });

const LEAST_MS = 5002;
/** How much later than its bound a release may end on a busy machine. */
const SLACK_MS = 2500;

/** How long a promise takes to settle, and what came of it. */
async function timed(promise: Promise<unknown>) {
  const start = performance.now();
  const outcome = await within(
    promise.then(
      (value) => ({ value, reason: undefined }),
      (reason: unknown) => ({ value: undefined, reason }),
    ),
    20_000,
  );
  return { ...outcome, ms: performance.now() - start };
}

function expectBound(ms: number, bound = LEAST_MS) {
  expect(ms).toBeGreaterThanOrEqual(bound - 1);
  expect(ms).toBeLessThan(bound + SLACK_MS);
}

const quick = (id: string): LeaseParams => leaseParams({ id, config: { timeoutMs: 1 } });

/** A call that has its deadline far away, under a configuration with the least timeout. */
const stubborn = (driver: LooseDriver, params: LeaseParams) => hold(driver, params, 60_000);

describe.concurrent("past the bound", () => {
  test("a release for reuse gives up: unconfirmed, though all is quiet, until a destroy", async (context) => {
    const provider = await provide({}, context);
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config: { timeoutMs: 1, reuseLease: true } });
    const driver = looseDriver();
    const call = stubborn(driver, params);
    const seen = provider.requests.length;
    const { reason, ms } = await timed(driver.release(params));
    expectBound(ms);
    expectCreateosError(reason, UNCONFIRMED);
    expect(driver.leaseState(params, id)).toBe("unconfirmed");
    expectCreateosError(await rejection(driver.track(params, () => {})), CLOSING);
    // The call that settles after all settles normally, and heals nothing.
    const value = { late: true };
    call.resolve(value);
    expect(await call.promise).toBe(value);
    expect(driver.leaseState(params, id)).toBe("unconfirmed");
    expectCreateosError(await rejection(driver.release(params)), UNCONFIRMED);
    expect(provider.requests).toHaveLength(seen);
    await within(driver.destroy(leaseParams({ provider, id, config: { reuseLease: true } })));
    expect(driver.leaseState(params, id)).toBe("open");
    await provider.waitForState(id, "destroyed");
  });

  test("a lease that would be left warm is not, either", async () => {
    const driver = looseDriver();
    const params = quick("sb-warm");
    const call = stubborn(driver, params);
    const { reason, ms } = await timed(driver.release(params));
    expectBound(ms);
    expectCreateosError(reason, UNCONFIRMED);
    expect(driver.leaseState(params, "sb-warm")).toBe("unconfirmed");
    call.resolve();
  });

  test("a destroy goes on: the sandbox is removed, the scope opens, the old call stays itself", async (context) => {
    const provider = await provide({}, context);
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config: { timeoutMs: 1, reuseLease: true } });
    // The request after the bound has a deadline of its own, which must not be the least.
    const patient = leaseParams({ provider, id, config: { timeoutMs: 30_000, reuseLease: true } });
    const driver = looseDriver();
    const call = stubborn(driver, params);
    const seen = provider.requests.length;
    const { reason, ms } = await timed(driver.destroy(patient));
    expectBound(ms);
    expect(reason).toBeUndefined();
    expect(provider.requests.slice(seen).map((request) => request.route)).toEqual(["sandbox.destroy"]);
    expect(driver.leaseState(params, id)).toBe("open");

    // Removal is by identity: the old call's end is not the new one's.
    const next = stubborn(driver, params);
    call.resolve("late");
    expect(await call.promise).toBe("late");
    const [second, waited] = [driver.destroy(patient), timed(driver.track(params, () => {}))];
    expect(next.signal.aborted).toBe(true);
    expectCreateosError((await waited).reason, CLOSING);
    next.resolve();
    await within(second);
  });

  test("a failed destroy leaves no mark that was not there, and can be tried again", async (context) => {
    const provider = await provide({}, context);
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config: { timeoutMs: 1 } });
    const patient = leaseParams({ provider, id });
    const driver = looseDriver();
    const call = stubborn(driver, params);
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 500 } });
    const { reason, ms } = await timed(driver.destroy(patient));
    expectBound(ms);
    expect(reason).toMatchObject({ code: "ERR_CREATEOS_API", status: 500 });
    rule.remove();
    call.resolve();
    await within(driver.destroy(patient));
    await provider.waitForState(id, "destroyed");
    expect(driver.leaseState(params, id)).toBe("open");
  });

  test("the bound is twice the largest configured timeout among the scope's calls, not the calls' own", async () => {
    const driver = looseDriver();
    const [short, long] = [1, 700].map((timeoutMs) => leaseParams({ id: "sb-largest", config: { timeoutMs } })) as [
      LeaseParams,
      LeaseParams,
    ];
    const calls = [stubborn(driver, long), stubborn(driver, short), hold(driver, short, 1)];
    // A call in another scope, with a longer one, does not count.
    const elsewhere = hold(driver, leaseParams({ id: "sb-elsewhere", config: { timeoutMs: 60_000 } }));
    const { reason, ms } = await timed(driver.release(short));
    expectBound(ms, 5000 + 2 * 700);
    expectCreateosError(reason, UNCONFIRMED);
    for (const call of [...calls, elsewhere]) call.resolve();
  });

  test("a call that ends within the bound is waited for, long after its abort", async () => {
    const driver = looseDriver();
    const params = quick("sb-slow");
    const call = stubborn(driver, params);
    const released = timed(driver.release(params));
    const marker = hold(driver, quick("sb-marker"), 2000);
    await new Promise((resolve) => marker.signal.addEventListener("abort", resolve, { once: true }));
    call.resolve("slow");
    const { reason, ms } = await released;
    expect(reason).toBeUndefined();
    expect(ms).toBeGreaterThanOrEqual(1990);
    expect(ms).toBeLessThan(LEAST_MS);
    expect(driver.leaseState(params, "sb-slow")).toBe("open");
    marker.resolve();
  });

  test("a call that awaits the release of its own lease waits for itself, and the bound ends that", async () => {
    const driver = looseDriver();
    const params = quick("sb-self");
    const tracked = driver.track(params, () => driver.release(params), 60_000);
    const { reason, ms } = await timed(tracked);
    expectBound(ms);
    expectCreateosError(reason, UNCONFIRMED);
    expect(driver.leaseState(params, "sb-self")).toBe("unconfirmed");
  });

  test("shutdown resolves, with each scope's own bound", async () => {
    const driver = looseDriver();
    const calls = [stubborn(driver, quick("sb-one")), stubborn(driver, quick("sb-two"))];
    const { reason, value, ms } = await timed(driver.shutdown());
    // Both bounds run at once.
    expectBound(ms);
    expect([reason, value]).toEqual([undefined, undefined]);
    for (const call of calls) call.resolve("late");
    expect(await Promise.all(calls.map(({ promise }) => promise))).toEqual(["late", "late"]);
  });

  test("shutdown waits longer where one scope's bound is longer", async () => {
    const driver = looseDriver();
    const calls = [
      stubborn(driver, quick("sb-one")),
      stubborn(driver, leaseParams({ id: "sb-two", config: { timeoutMs: 600 } })),
    ];
    expectBound((await timed(driver.shutdown())).ms, 5000 + 2 * 600);
    for (const call of calls) call.resolve();
  });

  test("a destroy covers another account's call with the same bound, then cuts it off", async (context) => {
    const provider = await provide({ apiKeys: { old: "owner", new: "owner" } }, context);
    const id = await makeSandbox(provider, "old");
    const before = leaseParams({ provider, id, config: { apiKey: "old", timeoutMs: 1 } });
    const after = leaseParams({ provider, id, config: { apiKey: "new" } });
    const driver = looseDriver();
    const call = stubborn(driver, before);
    const { reason, ms } = await timed(driver.destroy(after));
    expectBound(ms);
    expect(reason).toBeUndefined();
    await provider.waitForState(id, "destroyed");
    expect(call.signal.aborted).toBe(true);
    call.resolve();
  });
});
