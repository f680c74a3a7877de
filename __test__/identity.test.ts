// What work gives is what the caller gets: the very same value or reason (specification, section 4).
/* oxlint-disable unicorn/no-thenable -- work may return any thenable, not promises alone. */
import { describe, expect, test } from "vitest";
import { expectAborted } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { rejection, turns, watch, within } from "./support/waiting.js";

class OwnError extends Error {}

const values: [string, unknown][] = [
  ["undefined", undefined],
  ["null", null],
  ["false", false],
  ["negative zero", -0],
  ["NaN", Number.NaN],
  ["a bigint", 2n ** 70n],
  ["an empty string", ""],
  ["a lone surrogate", "\ud800"],
  ["a symbol", Symbol("value")],
  ["an object", { a: 1 }],
  ["a frozen object", Object.freeze({})],
  ["an object without a prototype", Object.create(null)],
  ["a function", () => {}],
  ["an Error subclass", new OwnError("own")],
  ["a proxy", new Proxy({}, {})],
  ["a DOMException", new DOMException("late", "AbortError")],
  ["an error of the package", new lease.CreateosApiError(500)],
];

describe("a value comes back as it is", () => {
  test.each(values)("%s", async (_name, value) => {
    const driver = looseDriver();
    expect(await driver.track(leaseParams(), () => value)).toBe(value);
    expect(await driver.track(leaseParams(), async () => value)).toBe(value);
    // A thenable that is no promise.
    const thenable = { then: (onValue: (value: unknown) => void) => onValue(value) };
    expect(await driver.track(leaseParams(), () => thenable)).toBe(value);
  });
});

describe("a reason comes back as it is", () => {
  test.each(values)("%s", async (_name, reason) => {
    const driver = looseDriver();
    const thrower = () => {
      throw reason;
    };
    let synchronous: Promise<unknown> | undefined;
    expect(() => (synchronous = driver.track(leaseParams(), thrower))).not.toThrow();
    expect(await rejection(synchronous as Promise<unknown>)).toBe(reason);
    expect(await rejection(driver.track(leaseParams(), () => Promise.reject(reason)))).toBe(reason);
    const thenable = { then: (_: unknown, onReason: (reason: unknown) => void) => onReason(reason) };
    expect(await rejection(driver.track(leaseParams(), () => thenable))).toBe(reason);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("open");
  });
});

test("a thenable whose then throws rejects with that", async () => {
  const reason = new OwnError("then");
  const driver = looseDriver();
  const broken = {
    get then() {
      throw reason;
    },
  };
  expect(await rejection(driver.track(leaseParams(), () => broken))).toBe(reason);
  await within(driver.release(leaseParams()));
});

describe("a result after an abort is delivered as it is", () => {
  test("a value", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams());
    const released = driver.release(leaseParams());
    expectAborted(call.signal.reason);
    const value = { late: true };
    call.resolve(value);
    expect(await call.promise).toBe(value);
    await released;
  });

  test("a reason, the signal's own or another", async () => {
    const driver = looseDriver();
    const [own, other] = [hold(driver, leaseParams()), hold(driver, leaseParams())];
    const released = driver.release(leaseParams());
    const reason = new OwnError("late");
    own.reject(own.signal.reason);
    other.reject(reason);
    expect(await rejection(own.promise)).toBe(own.signal.reason);
    expect(await rejection(other.promise)).toBe(reason);
    await released;
  });

  test("an aborted call is not settled for its work: it stays pending until that has ended", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams(), 5);
    const watched = watch(call.promise);
    await new Promise((resolve) => call.signal.addEventListener("abort", resolve, { once: true }));
    await turns();
    expect(watched.state).toBe("pending");
    call.resolve("after all");
    expect(await call.promise).toBe("after all");
  });
});

test("a call is gone before whoever waits on track goes on", async () => {
  const driver = looseDriver();
  for (const end of ["resolve", "reject"] as const) {
    const call = hold(driver, leaseParams());
    // A release begun by the very first continuation has no call to abort.
    const released = () => driver.release(leaseParams());
    const after = call.promise.then(released, released);
    call[end](undefined);
    await within(after);
    expect(call.signal.aborted).toBe(false);
  }
});

test("settling removes the call itself and no other, however alike they are", async () => {
  const driver = looseDriver();
  const params = leaseParams();
  const work = () => shared;
  let end!: (value: unknown) => void;
  const shared = new Promise((resolve) => (end = resolve));
  const alike = [driver.track(params, work), driver.track(params, work)];
  // Same parameters, same work function: but this one ends.
  const third = hold(driver, params);
  third.resolve();
  await third.promise;
  const released = watch(driver.release(params) as Promise<void>);
  await turns();
  expect(released.state).toBe("pending");
  end("both");
  expect(await Promise.all(alike)).toEqual(["both", "both"]);
  await within(released.promise);
});

test("a thenable that settles twice removes one call only", async () => {
  const driver = looseDriver();
  const other = hold(driver, leaseParams());
  const twice = {
    then(onValue: (value: unknown) => void, onReason: (reason: unknown) => void) {
      onValue("first");
      onValue("second");
      onReason(new OwnError("third"));
    },
  };
  expect(await driver.track(leaseParams(), () => twice)).toBe("first");
  const released = watch(driver.release(leaseParams()) as Promise<void>);
  expect(other.signal.aborted).toBe(true);
  await turns();
  expect(released.state).toBe("pending");
  other.resolve();
  await within(released.promise);
});
