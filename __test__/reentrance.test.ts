// track and release from inside work and from abort listeners, and the context that these run in (specification, section 4).
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { CLOSING, expectAborted, expectCreateosError, IN_PROGRESS } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { abortion, deferred, rejection, turns, watch, within } from "./support/waiting.js";

describe("from inside work", () => {
  test("calls nest, and a release from outside stops them all", async () => {
    const driver = looseDriver();
    const signals: AbortSignal[] = [];
    const deepest = deferred();
    const nest = (left: number): unknown =>
      driver.track(leaseParams(), (_client: unknown, signal: AbortSignal) => {
        signals.push(signal);
        return left === 0 ? deepest.promise : nest(left - 1);
      });
    const outermost = nest(50) as Promise<unknown>;
    expect(signals).toHaveLength(51);
    const released = watch(driver.release(leaseParams()) as Promise<void>);
    expect(signals.every((signal) => signal.aborted)).toBe(true);
    await turns();
    expect(released.state).toBe("pending");
    deepest.resolve();
    await within(Promise.all([outermost, released.promise]));
  });

  test("a release that is not awaited aborts its own call, then waits for it", async () => {
    const driver = looseDriver();
    let released: ReturnType<typeof watch<unknown>> | undefined;
    const states: string[] = [];
    await driver.track(leaseParams(), async (_client: unknown, signal: AbortSignal) => {
      released = watch(driver.release(leaseParams()));
      expectAborted(signal.reason);
      await turns();
      states.push((released as { state: string }).state);
    });
    expect(states).toEqual(["pending"]);
    await within((released as { promise: Promise<unknown> }).promise);
  });

  test("the release of another lease may be awaited", async () => {
    const driver = looseDriver();
    const other = hold(driver, leaseParams({ id: "sb-2" }));
    other.signal.addEventListener("abort", () => other.resolve("stopped"));
    await within(driver.track(leaseParams(), () => driver.release(leaseParams({ id: "sb-2" }))));
    expect(await other.promise).toBe("stopped");
  });
});

describe("from an abort listener", () => {
  test("of a release: its lease takes no call and no release, another one does", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams());
    const attempts: Promise<unknown>[] = [];
    call.signal.addEventListener("abort", () => {
      attempts.push(
        driver.track(leaseParams(), () => "same"),
        driver.release(leaseParams()),
        driver.track(leaseParams({ id: "sb-2" }), () => "other"),
        driver.release(leaseParams({ id: "sb-2" })),
      );
    });
    const released = driver.release(leaseParams());
    expect(attempts).toHaveLength(4);
    const [same, second, other, releaseOther] = attempts as [
      Promise<unknown>,
      Promise<unknown>,
      Promise<unknown>,
      Promise<unknown>,
    ];
    expectCreateosError(await rejection(same), CLOSING);
    expectCreateosError(await rejection(second), IN_PROGRESS);
    expect(await other).toBe("other");
    await within(releaseOther);
    call.resolve();
    await within(released);
  });

  test("a release that covers two calls: one begun by the first one's listener elsewhere is not aborted", async () => {
    const driver = looseDriver();
    const calls = [hold(driver, leaseParams()), hold(driver, leaseParams())];
    let begun: ReturnType<typeof hold> | undefined;
    calls[0]?.signal.addEventListener("abort", () => (begun = hold(driver, leaseParams({ id: "sb-2" }))));
    const released = driver.release(leaseParams());
    expect(calls[1]?.signal.aborted).toBe(true);
    expect(begun?.signal.aborted).toBe(false);
    begun?.resolve();
    for (const call of calls) call.resolve();
    await within(released);
  });

  test("of a deadline: the lease is as open as before, and can be released there", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams(), 5);
    const inside: Promise<unknown>[] = [];
    call.signal.addEventListener("abort", () => {
      inside.push(
        driver.track(leaseParams(), () => "open"),
        driver.release(leaseParams()),
      );
      call.resolve("expired");
    });
    expect(await within(call.promise)).toBe("expired");
    const [tracked, released] = inside as [Promise<unknown>, Promise<unknown>];
    expect(await tracked).toBe("open");
    await within(released);
  });

  test("of a shutdown: nothing begins", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams());
    let refused: Promise<unknown> | undefined;
    let again: Promise<unknown> | undefined;
    call.signal.addEventListener("abort", () => {
      refused = rejection(driver.track(leaseParams({ id: "sb-2" }), () => {}));
      again = driver.shutdown();
      call.resolve();
    });
    await within(driver.shutdown());
    expectCreateosError(await refused, CLOSING);
    await within(again as Promise<unknown>);
  });
});

test("reading the options may release the lease: the checks before hold, and the call is refused", async () => {
  const driver = looseDriver();
  const running = hold(driver, leaseParams());
  const released: Promise<unknown>[] = [];
  const options = {
    get timeoutMs() {
      released.push(driver.release(leaseParams()));
      return 1000;
    },
  };
  const refused = rejection(driver.track(leaseParams(), () => "ran", options));
  running.resolve();
  expectCreateosError(await refused, CLOSING);
  await within(Promise.all(released));
});

describe("the caller's async context", () => {
  const storage = new AsyncLocalStorage<string>();

  test("is what work sees, at once and later, and what follows track sees", async () => {
    const driver = looseDriver();
    const seen: unknown[] = [];
    await storage.run("caller", async () => {
      await driver.track(leaseParams(), async () => {
        seen.push(storage.getStore());
        await turns(2);
        seen.push(storage.getStore());
      });
      seen.push(storage.getStore());
    });
    expect(seen).toEqual(["caller", "caller", "caller"]);
    expect(storage.getStore()).toBeUndefined();
  });

  test("the abort listeners of a release and a shutdown run in the releaser's", async () => {
    for (const end of ["release", "shutdown"] as const) {
      const driver = looseDriver();
      const seen: unknown[] = [];
      const call = storage.run("caller", () => hold(driver, leaseParams()));
      storage.run("listener", () => call.signal.addEventListener("abort", () => seen.push(storage.getStore())));
      const ended = storage.run("releaser", () => driver[end](leaseParams()).then(() => seen.push(storage.getStore())));
      expect(seen).toEqual(["releaser"]);
      call.resolve();
      await within(ended);
      expect(seen).toEqual(["releaser", "releaser"]);
    }
  });

  test("what follows a release, whose end comes from another thread, sees the releaser's", async () => {
    await storage.run("releaser", async () => {
      await looseDriver().release(leaseParams());
      expect(storage.getStore()).toBe("releaser");
    });
  });

  // AbortSignal.timeout runs its listeners in the context in which the timer was made; so should a deadline.
  test("the abort listeners of a deadline run in the caller's", async () => {
    const driver = looseDriver();
    const seen: unknown[] = [];
    const call = storage.run("caller", () => hold(driver, leaseParams(), 5));
    call.signal.addEventListener("abort", () => seen.push(storage.getStore()));
    const other = storage.run("another", () => hold(driver, leaseParams(), 20));
    other.signal.addEventListener("abort", () => seen.push(storage.getStore()));
    await abortion(other.signal);
    expect(seen).toEqual(["caller", "another"]);
    for (const one of [call, other]) one.resolve();
    await Promise.all([call.promise, other.promise]);
  });
});
