// Deadlines of tracked calls (specification, section 4).
import { describe, expect, test, vi } from "vitest";
import { expectAborted, expectTimedOut } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { abortion, turns } from "./support/waiting.js";

/** Long enough that it never passes in a test. */
const LONG = 60_000;

describe("the deadline aborts with a TimeoutError", () => {
  const ways: [string, Record<string, unknown>, unknown][] = [
    ["a number", {}, 30],
    ["an option", {}, { timeoutMs: 30 }],
    ["the configuration's", { timeoutMs: 30 }, undefined],
    ["the configuration's, with null", { timeoutMs: 30 }, null],
    ["the configuration's, with options that have none", { timeoutMs: 30 }, {}],
    ["a shorter one than the configuration's", { timeoutMs: LONG }, 30],
  ];
  test.concurrent.each(ways)("%s", async (_name, config, options) => {
    const start = performance.now();
    const call = hold(looseDriver(), leaseParams({ config }), options);
    expectTimedOut(await abortion(call.signal));
    // Never early. Node's clock and the deadline's are the same, but for the rounding to microseconds.
    expect(performance.now() - start).toBeGreaterThanOrEqual(29.9);
    call.resolve("late");
    expect(await call.promise).toBe("late");
  });

  test("a longer one than the configuration's holds", async () => {
    const driver = looseDriver();
    const [longer, asConfigured] = [LONG, undefined].map((options) =>
      hold(driver, leaseParams({ config: { timeoutMs: 20 } }), options),
    ) as [ReturnType<typeof hold>, ReturnType<typeof hold>];
    await abortion(asConfigured.signal);
    await turns();
    expect(longer.signal.aborted).toBe(false);
    for (const call of [longer, asConfigured]) call.resolve();
    await Promise.all([longer.promise, asConfigured.promise]);
  });
});

test("deadlines pass in their own order, not in that of the calls", async () => {
  const driver = looseDriver();
  const order: number[] = [];
  const timeouts = [LONG, 90, 30, 60, 1];
  const calls = timeouts.map((timeout) => {
    const call = hold(driver, leaseParams(), timeout);
    call.signal.addEventListener("abort", () => order.push(timeout));
    return call;
  });
  await abortion((calls[1] as ReturnType<typeof hold>).signal);
  expect(order).toEqual([1, 30, 60, 90]);
  for (const call of calls) call.resolve();
  await Promise.all(calls.map(({ promise }) => promise));
});

test("the deadline of a call that has settled passes without a trace", async () => {
  const driver = looseDriver();
  const settled = hold(driver, leaseParams(), 10);
  settled.resolve();
  await settled.promise;
  // The next call takes the settled one's place, and must not get its deadline.
  const next = hold(driver, leaseParams(), LONG);
  const later = hold(driver, leaseParams(), 40);
  await abortion(later.signal);
  expect([settled.signal.aborted, next.signal.aborted]).toEqual([false, false]);
  for (const call of [next, later]) call.resolve();
  await Promise.all([next.promise, later.promise]);
});

describe("a deadline that passes while the thread is busy", () => {
  /** Keeps the thread busy until the clock says so: what other threads do meanwhile waits for it. */
  function busyFor(ms: number) {
    const end = performance.now() + ms;
    while (performance.now() < end);
  }

  test("is not another call's, which has the place of the settled one by then", async () => {
    const driver = looseDriver();
    const late = hold(driver, leaseParams(), 10);
    let next: ReturnType<typeof hold> | undefined;
    const continued = late.promise.then(() => (next = hold(driver, leaseParams(), LONG)));
    late.resolve("in time, by this thread's reckoning");
    busyFor(40);
    await continued;
    await turns();
    expect(next?.signal.aborted).toBe(false);
    next?.resolve();
    await next?.promise;
  });

  test("together with another: whose listener ends that, and begins a third in its place", async () => {
    const driver = looseDriver();
    const calls = [hold(driver, leaseParams(), 10), hold(driver, leaseParams(), 10)];
    let third: ReturnType<typeof hold> | undefined;
    for (const call of calls) {
      call.signal.addEventListener("abort", () => {
        for (const one of calls) one.resolve();
      });
      void call.promise.then(() => (third ??= hold(driver, leaseParams(), LONG)));
    }
    busyFor(40);
    await Promise.all(calls.map(({ promise }) => promise));
    await turns();
    expect(third?.signal.aborted).toBe(false);
    third?.resolve();
    await third?.promise;
  });
});

describe("the first abort wins", () => {
  test("the deadline, then a release and a caller's signal", async () => {
    const driver = looseDriver();
    const controller = new AbortController();
    const call = hold(driver, leaseParams(), { timeoutMs: 5, signal: controller.signal });
    let aborts = 0;
    call.signal.addEventListener("abort", () => (aborts += 1));
    const reason = await abortion(call.signal);
    const released = driver.release(leaseParams());
    controller.abort("too late");
    expect(call.signal.reason).toBe(reason);
    expectTimedOut(reason);
    call.resolve();
    await released;
    expect(aborts).toBe(1);
  });

  test("a release, then the deadline", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams(), 10);
    const released = driver.release(leaseParams());
    const reason = call.signal.reason;
    expectAborted(reason);
    const other = hold(driver, leaseParams({ id: "sb-2" }), 40);
    await abortion(other.signal);
    expect(call.signal.reason).toBe(reason);
    for (const one of [call, other]) one.resolve();
    await released;
  });
});

test("a wall clock that jumps moves no deadline", async () => {
  const driver = looseDriver();
  const clock = vi.spyOn(Date, "now");
  try {
    const long = hold(driver, leaseParams(), LONG);
    const short = hold(driver, leaseParams(), 30);
    clock.mockImplementation(() => 0);
    await abortion(short.signal);
    clock.mockImplementation(() => 8.64e15);
    const next = hold(driver, leaseParams(), 30);
    await abortion(next.signal);
    expect(long.signal.aborted).toBe(false);
    for (const call of [long, short, next]) call.resolve();
    await Promise.all([long.promise, short.promise, next.promise]);
  } finally {
    clock.mockRestore();
  }
});

test("replaced timers of the platform change nothing: deadlines are not theirs", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "Date", "performance"] });
  let call: ReturnType<typeof hold>;
  let reason: unknown;
  try {
    call = hold(looseDriver(), leaseParams(), 20);
    reason = await new Promise((resolve) => {
      call.signal.addEventListener("abort", () => resolve(call.signal.reason), { once: true });
    });
  } finally {
    vi.useRealTimers();
  }
  expectTimedOut(reason);
  call.resolve();
  await call.promise;
});

test("a thousand calls with one deadline are all aborted", async () => {
  const driver = looseDriver();
  const calls = Array.from({ length: 1000 }, () => hold(driver, leaseParams(), 50));
  await Promise.all(calls.map(({ signal }) => abortion(signal)));
  for (const call of calls) {
    expectTimedOut(call.signal.reason);
    call.resolve();
  }
  await Promise.all(calls.map(({ promise }) => promise));
});
