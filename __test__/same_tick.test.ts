// track and release do all that can be done at once before they return (specification, sections 4 and 5).
import { expect, test } from "vitest";
import { CLOSING, expectAborted, expectCreateosError, IN_PROGRESS } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { rejection, turns, watch, within } from "./support/waiting.js";

test("work is called before track returns, once, with a client and a signal", async () => {
  const driver = looseDriver();
  const calls: unknown[][] = [];
  const tracked = driver.track(leaseParams(), (...given: unknown[]) => calls.push(given));
  expect(calls).toHaveLength(1);
  expect(tracked).toBeInstanceOf(Promise);
  await tracked;
  expect(calls).toHaveLength(1);
  const [client, signal, ...more] = calls[0] as unknown[];
  expect(client).toBeInstanceOf(lease.CreateosClient);
  expect(signal).toBeInstanceOf(AbortSignal);
  expect((signal as AbortSignal).aborted).toBe(false);
  expect(more).toEqual([]);
});

test("the client is that of the call's configuration", async () => {
  const [one, two] = ["one", "two"].map((apiKey) => leaseParams({ config: { apiKey, timeoutMs: 1234 } }));
  const driver = looseDriver();
  const calls = [one, two].map((params) => hold(driver, params));
  expect(calls.map(({ client }) => client.apiKey)).toEqual(["one", "two"]);
  expect(calls[0]?.client.config).toMatchObject({ apiUrl: "https://createos.example", timeoutMs: 1234 });
  for (const call of calls) call.resolve();
  await Promise.all(calls.map(({ promise }) => promise));
});

test("two calls and a release in one tick: the release has seen and aborted both", async () => {
  const driver = looseDriver();
  const [first, second] = [hold(driver, leaseParams()), hold(driver, leaseParams())];
  const released = watch(driver.release(leaseParams()) as Promise<void>);
  expect([first.signal.aborted, second.signal.aborted]).toEqual([true, true]);
  first.resolve();
  await first.promise;
  await turns();
  expect(released.state).toBe("pending");
  second.resolve();
  await within(released.promise);
});

test("the call is registered before work runs: a release from inside it, in the same tick, aborts it", async () => {
  const driver = looseDriver();
  const seen: boolean[] = [];
  let releasing: Promise<unknown> | undefined;
  await driver.track(leaseParams(), (_client: unknown, signal: AbortSignal) => {
    seen.push(signal.aborted);
    releasing = driver.release(leaseParams());
    seen.push(signal.aborted);
    expectAborted(signal.reason);
  });
  expect(seen).toEqual([false, true]);
  await within(releasing as Promise<unknown>);
});

test("after a release in the same tick, neither a call nor a second release gets in", async () => {
  const driver = looseDriver();
  const call = hold(driver, leaseParams());
  const released = driver.release(leaseParams());
  expect(driver.leaseState(leaseParams(), "sb-1")).toBe("closing");
  const [late, second] = [driver.track(leaseParams(), () => "late"), driver.release(leaseParams())];
  call.resolve();
  expectCreateosError(await rejection(late), CLOSING);
  expectCreateosError(await rejection(second), IN_PROGRESS);
  await released;
  expect(driver.leaseState(leaseParams(), "sb-1")).toBe("open");
});

// The mark must be lifted on this thread, and not before the promise settles, however fast the other threads are.
test("that holds, too, where the release has nothing to wait for, as long as its promise is pending", async () => {
  const driver = looseDriver();
  const params = leaseParams();
  for (let round = 0; round < 500; round += 1) {
    const released = driver.release(params);
    const attempts = [driver.track(params, () => "late"), driver.release(params)];
    const state = driver.leaseState(params, "sb-1");
    const outcomes = await Promise.allSettled(attempts);
    await released;
    expect([state, ...outcomes.map(({ status }) => status)]).toEqual(["closing", "rejected", "rejected"]);
  }
});

test("all calls of a release are aborted in the order in which they began, and share one reason", async () => {
  const driver = looseDriver();
  const order: number[] = [];
  const calls = Array.from({ length: 20 }, (_, index) => {
    const call = hold(driver, leaseParams());
    call.signal.addEventListener("abort", () => order.push(index));
    return call;
  });
  // One of them has settled: it is not aborted, and the order of the others stays.
  calls[3]?.resolve();
  await calls[3]?.promise;
  const released = driver.release(leaseParams());
  expect(order).toEqual(calls.map((_, index) => index).filter((index) => index !== 3));
  expect(calls[3]?.signal.aborted).toBe(false);
  for (const call of calls) call.resolve();
  await released;
});

test("shutdown aborts in the same tick, too", async () => {
  const driver = looseDriver();
  const call = hold(driver, leaseParams());
  const down = driver.shutdown();
  expectAborted(call.signal.reason);
  expect(driver.leaseState(leaseParams(), "sb-1")).toBe("shutdown");
  call.resolve();
  await within(down);
});

test("2,000 calls in flight are released", async () => {
  const driver = looseDriver();
  const calls = Array.from({ length: 2000 }, () => hold(driver, leaseParams()));
  const released = watch(driver.release(leaseParams()) as Promise<void>);
  expect(calls.filter(({ signal }) => signal.aborted)).toHaveLength(2000);
  // The last to end is one from the middle.
  const last = calls.splice(1000, 1)[0];
  for (const call of calls) call.resolve();
  await Promise.all(calls.map(({ promise }) => promise));
  await turns();
  expect(released.state).toBe("pending");
  last?.resolve();
  await within(released.promise);
  expect(await driver.track(leaseParams(), () => "again")).toBe("again");
});
