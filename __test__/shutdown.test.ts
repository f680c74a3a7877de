// Shutting a driver down (specification, section 5).
import { describe, expect, test, vi } from "vitest";
import { CLOSING, expectAborted, expectCreateosError } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver, type LooseDriver } from "./support/package.js";
import { makeSandbox, nothingAlive, provide, routesSince } from "./support/providers.js";
import { rejection, turns, watch, within } from "./support/waiting.js";

test("aborts every call of every scope, waits for each, and resolves with nothing", async () => {
  const driver = looseDriver();
  const params = [leaseParams(), leaseParams(), leaseParams({ id: "sb-2" }), leaseParams({ companyId: "other" })];
  const calls = params.map((one) => hold(driver, one));
  const down = watch(driver.shutdown());
  for (const { signal } of calls) expectAborted(signal.reason);
  for (const call of calls) {
    await turns(3);
    expect(down.state).toBe("pending");
    call.resolve();
  }
  expect(await within(down.promise)).toBeUndefined();
});

test("refuses new calls at once and for good, in every scope", async () => {
  const driver = looseDriver();
  const call = hold(driver, leaseParams());
  const work = vi.fn();
  const down = driver.shutdown();
  expectCreateosError(await rejection(driver.track(leaseParams({ id: "sb-2" }), work)), CLOSING);
  call.resolve();
  await down;
  expectCreateosError(await rejection(driver.track(leaseParams(), work)), CLOSING);
  expect(work).not.toHaveBeenCalled();
  for (const id of ["sb-1", "sb-2"]) expect(driver.leaseState(leaseParams(), id)).toBe("shutdown");
});

test("without a call it resolves, and it may be repeated, during the first and after", async () => {
  const driver = looseDriver();
  await within(driver.shutdown());
  const busy = looseDriver();
  const call = hold(busy, leaseParams());
  const [first, second] = [watch(busy.shutdown()), watch(busy.shutdown())];
  await turns();
  expect([first.state, second.state]).toEqual(["pending", "pending"]);
  call.resolve();
  await within(Promise.all([first.promise, second.promise]));
  await within(busy.shutdown());
});

test("calls that fail under it, even in their cleanup, do not make it fail", async () => {
  const driver = looseDriver();
  const calls = [hold(driver, leaseParams()), hold(driver, leaseParams())];
  const down = driver.shutdown();
  calls[0]?.reject(new lease.CreateosCleanupError());
  calls[1]?.reject(new Error("late"));
  expect(await within(down)).toBeUndefined();
});

test("releases under way finish, and shutdown waits for them", async () => {
  const provider = await provide();
  const [id, other] = [await makeSandbox(provider), await makeSandbox(provider)];
  const driver = looseDriver();
  const paths = { "sandbox.destroy": id, "sandbox.pause": other };
  const rules = Object.keys(paths).map((path) => provider.faults.add({ match: { path }, effect: { type: "hold" } }));
  const releases = [
    driver.release(leaseParams({ provider, id })),
    driver.release(leaseParams({ provider, id: other, config: { reuseLease: true } })),
  ];
  await within(Promise.all(rules.map(({ hit }) => hit)));
  const down = watch(driver.shutdown());
  await turns();
  expect(down.state).toBe("pending");
  for (const rule of rules) rule.release();
  await within(Promise.all([...releases, down.promise]));
  await provider.waitForState(id, "destroyed");
  expect(provider.sandbox(other)?.status).toBe("paused");
});

test("a release that still waits for its calls when the shutdown comes finishes as well", async () => {
  const provider = await provide();
  const id = await makeSandbox(provider);
  const driver = looseDriver();
  const params = leaseParams({ provider, id });
  const call = hold(driver, params);
  const released = driver.release(params);
  const reason = call.signal.reason;
  const down = watch(driver.shutdown());
  expect(call.signal.reason).toBe(reason);
  await turns();
  expect(down.state).toBe("pending");
  call.resolve();
  await within(Promise.all([released, down.promise]));
  await provider.waitForState(id, "destroyed");
});

test("release and destroy still work after it", async () => {
  const provider = await provide();
  const [paused, removed, destroyed] = [
    await makeSandbox(provider),
    await makeSandbox(provider),
    await makeSandbox(provider),
  ];
  const driver = looseDriver();
  await driver.shutdown();
  await driver.release(leaseParams({ provider, id: paused, config: { reuseLease: true } }));
  await driver.release(leaseParams({ provider, id: removed }));
  await driver.destroy(leaseParams({ provider, id: destroyed, config: { reuseLease: true } }));
  expect(provider.sandbox(paused)?.status).toBe("paused");
  for (const id of [removed, destroyed]) await provider.waitForState(id, "destroyed");
  // The lease stays closed for calls.
  expectCreateosError(await rejection(driver.track(leaseParams({ provider, id: paused }), () => {})), CLOSING);
});

test("other drivers go on", async () => {
  const [one, two] = [looseDriver(), looseDriver()];
  const calls = [hold(two, leaseParams()), hold(lease as unknown as LooseDriver, leaseParams())];
  await within(one.shutdown());
  expect(calls.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  expect(await two.track(leaseParams(), () => "runs")).toBe("runs");
  for (const call of calls) call.resolve();
  await Promise.all(calls.map(({ promise }) => promise));
});

describe("during an acquisition", () => {
  const steps = ["sandbox.create", "sandbox.get", "exec", "files.put"];
  test.each(steps)("held at %s: it is given up, its sandbox removed, and shutdown waits for that", async (path) => {
    const provider = await provide();
    const driver = looseDriver();
    const { lease: _lease, ...params } = leaseParams({ provider });
    const rule = provider.faults.add({ match: { path }, times: 1, effect: { type: "hold" } });
    const acquired = watch(driver.acquire(params));
    await within(rule.hit);
    const down = driver.shutdown();
    // A creation that is under way is waited for: only its answer tells what there is to be removed.
    if (path === "sandbox.create") rule.release();
    await rejection(acquired.promise);
    await within(down);
    rule.remove();
    expect(routesSince(provider, 0).filter((route) => route === "sandbox.destroy")).toEqual(["sandbox.destroy"]);
    await nothingAlive(provider);
  });

  test("the rejection is the shutdown's own reason", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const { lease: _lease, ...params } = leaseParams({ provider });
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    const acquired = rejection(driver.acquire(params));
    await within(rule.hit);
    const down = driver.shutdown();
    expectAborted(await acquired);
    await within(down);
  });

  test("after it, nothing is acquired and nothing is asked", async () => {
    const provider = await provide();
    const driver = looseDriver();
    await driver.shutdown();
    const { lease: _lease, ...params } = leaseParams({ provider });
    expectCreateosError(await rejection(driver.acquire(params)), CLOSING);
    expect(provider.requests).toEqual([]);
  });
});

// The last test of this file: the default driver does not open again.
test("the default driver is shut down for this environment", async () => {
  const call = hold(lease as unknown as LooseDriver, leaseParams());
  expect(lease.leaseState(leaseParams(), "sb-1")).toBe("open");
  const down = lease.shutdown();
  expectAborted(call.signal.reason);
  call.resolve();
  await within(down);
  expect(lease.leaseState(leaseParams(), "sb-1")).toBe("shutdown");
  expectCreateosError(await rejection(lease.track(leaseParams(), () => 1)), CLOSING);
  expect(await lease.release(leaseParams())).toBeUndefined();
  expect(await looseDriver().track(leaseParams(), () => "runs")).toBe("runs");
});
