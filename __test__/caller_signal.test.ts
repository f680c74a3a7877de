// A caller's own signal on a tracked call (specification, sections 1 and 4).
import { getEventListeners, setMaxListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { expectAborted, expectTimedOut } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { abortion, rejection, within } from "./support/waiting.js";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

const reasons: [string, unknown][] = [
  ["an error", new Error("own")],
  ["text", "enough"],
  ["null", null],
  ["zero", 0],
  ["an object", { why: 1 }],
];

describe("aborts the call, in the same tick, with its own reason", () => {
  test.each(reasons)("%s", async (_name, reason) => {
    const controller = new AbortController();
    const call = hold(looseDriver(), leaseParams(), { signal: controller.signal });
    expect(call.signal).not.toBe(controller.signal);
    controller.abort(reason);
    expect(call.signal.aborted).toBe(true);
    expect(call.signal.reason).toBe(reason);
    call.resolve("after all");
    expect(await call.promise).toBe("after all");
  });

  test("the platform's default reason is the very same object, too", async () => {
    const controller = new AbortController();
    const call = hold(looseDriver(), leaseParams(), { signal: controller.signal });
    controller.abort();
    expect(call.signal.reason).toBe(controller.signal.reason);
    call.resolve();
    await call.promise;
  });

  test("of AbortSignal.timeout and AbortSignal.any as well", async () => {
    const controller = new AbortController();
    const signals = [AbortSignal.timeout(5), AbortSignal.any([controller.signal])];
    const calls = signals.map((signal) => hold(looseDriver(), leaseParams(), { signal }));
    controller.abort("any");
    for (const [index, call] of calls.entries()) {
      expect(await abortion(call.signal)).toBe(signals[index]?.reason);
      call.resolve();
      await call.promise;
    }
  });
});

describe("aborted already", () => {
  test.each(reasons)("work is not called and the reason is the rejection: %s", async (_name, reason) => {
    const work = vi.fn();
    const driver = looseDriver();
    const signal = AbortSignal.abort(reason);
    expect(await rejection(driver.track(leaseParams(), work, { signal }))).toBe(reason);
    expect(work).not.toHaveBeenCalled();
    expect(listeners(signal)).toBe(0);
    // Nothing was registered.
    await within(driver.release(leaseParams()));
    await within(driver.shutdown());
  });
});

describe("the first abort wins", () => {
  test("the caller's, then a release", async () => {
    const driver = looseDriver();
    const controller = new AbortController();
    const call = hold(driver, leaseParams(), { signal: controller.signal });
    const reason = new Error("first");
    controller.abort(reason);
    const released = driver.release(leaseParams());
    expect(call.signal.reason).toBe(reason);
    call.resolve();
    await released;
  });

  test("a release, then the caller's", async () => {
    const driver = looseDriver();
    const controller = new AbortController();
    const call = hold(driver, leaseParams(), { signal: controller.signal });
    const released = driver.release(leaseParams());
    controller.abort(new Error("second"));
    expectAborted(call.signal.reason);
    call.resolve();
    await released;
  });

  test("the caller's before the deadline, and the deadline before the caller's", async () => {
    const controller = new AbortController();
    const driver = looseDriver();
    const early = hold(driver, leaseParams(), { signal: controller.signal, timeoutMs: 20 });
    controller.abort("first");
    const second = new AbortController();
    const late = hold(driver, leaseParams(), { signal: second.signal, timeoutMs: 40 });
    expectTimedOut(await abortion(late.signal));
    second.abort("late");
    expectTimedOut(late.signal.reason);
    expect(early.signal.reason).toBe("first");
    for (const call of [early, late]) call.resolve();
    await Promise.all([early.promise, late.promise]);
  });
});

describe("no listener is left on the caller's signal", () => {
  test("whatever becomes of the call", async () => {
    const { signal } = new AbortController();
    const driver = looseDriver();
    const options = { signal, timeoutMs: 10 };
    await driver.track(leaseParams(), () => "value", options);
    await rejection(driver.track(leaseParams(), () => Promise.reject(new Error("no")), options));
    await rejection(
      driver.track(
        leaseParams(),
        () => {
          throw new Error("at once");
        },
        options,
      ),
    );
    await rejection(driver.track(leaseParams(), undefined, options));
    await rejection(driver.track(leaseParams(), () => {}, { signal, timeoutMs: 0 }));
    await rejection(driver.track(leaseParams({ metadata: { provider: "e2b" } }), () => {}, options));
    const expired = hold(driver, leaseParams(), options);
    await abortion(expired.signal);
    expired.resolve();
    await expired.promise;
    const released = hold(driver, leaseParams(), { signal });
    const releasing = driver.release(leaseParams());
    released.resolve();
    await releasing;
    expect(listeners(signal)).toBe(0);
  });

  test("after a thousand calls at once on one signal", async () => {
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    const driver = looseDriver();
    const calls = Array.from({ length: 1000 }, () => hold(driver, leaseParams(), { signal: controller.signal }));
    for (const call of calls.slice(0, 500)) call.resolve();
    await Promise.all(calls.slice(0, 500).map(({ promise }) => promise));
    controller.abort("the rest");
    expect(calls.map(({ signal }) => signal.aborted)).toEqual(calls.map((_, index) => index >= 500));
    for (const call of calls) call.resolve();
    await Promise.all(calls.map(({ promise }) => promise));
    expect(listeners(controller.signal)).toBe(0);
  });

  test("an abort after the call has settled reaches nothing", async () => {
    const controller = new AbortController();
    const driver = looseDriver();
    const settled = hold(driver, leaseParams(), { signal: controller.signal });
    settled.resolve();
    await settled.promise;
    const next = hold(driver, leaseParams());
    controller.abort("late");
    expect([settled.signal.aborted, next.signal.aborted]).toEqual([false, false]);
    next.resolve();
    await next.promise;
  });
});

describe("a signal that only looks like one", () => {
  test("works as far as it goes", async () => {
    const listening = new Set<() => void>();
    const signal = {
      aborted: false,
      reason: "own",
      addEventListener: (_type: string, listener: () => void) => listening.add(listener),
      removeEventListener: (_type: string, listener: () => void) => listening.delete(listener),
    };
    const call = hold(looseDriver(), leaseParams(), { signal });
    for (const listener of listening) listener();
    expect(call.signal.reason).toBe("own");
    call.resolve();
    await call.promise;
    expect(listening.size).toBe(0);
  });

  test("one that takes no listener refuses the call, which then is nowhere", async () => {
    const own = new Error("no listeners");
    const signal = Object.create(AbortSignal.abort(), {
      aborted: { value: false },
      addEventListener: {
        value() {
          throw own;
        },
      },
    });
    const driver = looseDriver();
    const work = vi.fn();
    expect(await rejection(driver.track(leaseParams(), work, { signal }))).toBe(own);
    expect(work).not.toHaveBeenCalled();
    await within(driver.shutdown(), 2000);
  });
});
