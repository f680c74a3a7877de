// A destroy ends the sandbox for every account, so it covers calls under an older key (specification, section 5).
import { describe, expect, test } from "vitest";
import { CLOSING, expectAborted, expectCreateosError, IN_PROGRESS, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { makeSandbox, provide, routesSince } from "./support/providers.js";
import { rejection, turns, watch, within } from "./support/waiting.js";

async function arrange(config: object = {}) {
  const provider = await provide({ apiKeys: { old: "owner", new: "owner", newest: "owner" } });
  const id = await makeSandbox(provider, "old");
  const under = (apiKey: string, changes: object = {}) =>
    leaseParams({ provider, id, ...changes, config: { reuseLease: true, ...config, apiKey } });
  return { provider, id, under, driver: looseDriver(), start: provider.requests.length };
}

const cleanupFailure = () => Promise.reject(new lease.CreateosCleanupError());

test("its calls are aborted in the same tick, awaited, and only then is the sandbox removed", async () => {
  const { provider, id, under, driver, start } = await arrange();
  const calls = [hold(driver, under("old")), hold(driver, under("new")), hold(driver, under("old"))];
  const destroyed = watch(driver.destroy(under("newest")) as Promise<void>);
  for (const { signal } of calls) expectAborted(signal.reason);
  expect(new Set(calls.map(({ signal }) => signal.reason)).size).toBe(1);
  for (const key of ["old", "new", "newest"]) expect(driver.leaseState(under(key), id)).toBe("closing");
  for (const call of calls.splice(0, 2)) call.resolve();
  await turns();
  expect(provider.requests).toHaveLength(start);
  expect(destroyed.state).toBe("pending");
  calls[0]?.resolve();
  await within(destroyed.promise);
  expect(routesSince(provider, start)).toEqual(["sandbox.destroy"]);
  for (const key of ["old", "new", "newest"]) expect(driver.leaseState(under(key), id)).toBe("open");
});

test("while it goes on, no call begins and no release does, under whichever key", async () => {
  const { under, driver } = await arrange();
  const call = hold(driver, under("old"));
  const destroyed = driver.destroy(under("new"));
  for (const key of ["old", "new", "newest"]) {
    expectCreateosError(await rejection(driver.track(under(key), () => {})), CLOSING);
    expectCreateosError(await rejection(driver.release(under(key))), IN_PROGRESS);
    expectCreateosError(await rejection(driver.destroy(under(key))), IN_PROGRESS);
  }
  call.resolve();
  await within(destroyed);
  expect(await driver.track(under("old"), () => "open")).toBe("open");
});

describe("an older key's unconfirmed mark", () => {
  test("is lifted on success", async () => {
    const { id, under, driver } = await arrange();
    await rejection(driver.track(under("old"), cleanupFailure));
    expect(driver.leaseState(under("old"), id)).toBe("unconfirmed");
    expect(driver.leaseState(under("new"), id)).toBe("open");
    await within(driver.destroy(under("new")));
    expect(driver.leaseState(under("old"), id)).toBe("open");
    expect(await driver.track(under("old"), () => "again")).toBe("again");
  });

  test("stays on failure", async () => {
    const { provider, id, under, driver } = await arrange();
    await rejection(driver.track(under("old"), cleanupFailure));
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 503 } });
    expect(await rejection(driver.destroy(under("new")))).toMatchObject({ status: 503 });
    rule.remove();
    expect(driver.leaseState(under("old"), id)).toBe("unconfirmed");
    expect(driver.leaseState(under("new"), id)).toBe("open");
  });

  test("is set by a call that the destroy itself aborted, and lifted by its success", async () => {
    const { id, under, driver } = await arrange();
    const call = hold(driver, under("old"));
    const destroyed = driver.destroy(under("new"));
    call.reject(new lease.CreateosCleanupError());
    await within(destroyed);
    expect(driver.leaseState(under("old"), id)).toBe("open");
  });

  test("does not keep a release for reuse under the new key", async () => {
    const { provider, id, under, driver } = await arrange();
    await rejection(driver.track(under("old"), cleanupFailure));
    await within(driver.release(under("new")));
    expect(provider.sandbox(id)?.status).toBe("paused");
    expectCreateosError(await rejection(driver.release(under("old"))), UNCONFIRMED);
  });
});

test("a release that destroys for its configuration's sake covers them, too", async () => {
  const { under, driver } = await arrange({ reuseLease: false });
  const call = hold(driver, under("old"));
  const released = driver.release(under("new"));
  expectAborted(call.signal.reason);
  call.resolve();
  await within(released);
});

test("a release for reuse leaves an older key's calls alone", async () => {
  const { id, under, driver } = await arrange();
  const call = hold(driver, under("old"));
  await within(driver.release(under("new")));
  expect(call.signal.aborted).toBe(false);
  expect(driver.leaseState(under("old"), id)).toBe("open");
  call.resolve();
  expect(await call.promise).toBeUndefined();
});

test("other leases, companies, environments, origins and drivers are not covered", async () => {
  const { id, under, driver, provider } = await arrange();
  const second = await provide();
  const others = [
    hold(driver, under("old", { id: `${id}x` })),
    hold(driver, under("old", { companyId: "other" })),
    hold(driver, under("old", { environmentId: "other" })),
    hold(driver, leaseParams({ provider: second, id })),
    hold(looseDriver(), under("old")),
  ];
  await within(driver.destroy(under("new")));
  expect(others.map(({ signal }) => signal.aborted)).toEqual(others.map(() => false));
  for (const call of others) call.resolve();
  await Promise.all(others.map(({ promise }) => promise));
  await provider.waitForState(id, "destroyed");
});

describe("a release for reuse under one key and a destroy under another", () => {
  test.each(["sandbox.pause", "sandbox.destroy"])("overlap; the scope opens with the later end, %s last", async (last) => {
    const { provider, id, under, driver } = await arrange();
    const hold = (path: string) => provider.faults.add({ match: { path }, effect: { type: "hold", when: "after" } });
    const pause = hold("sandbox.pause");
    const released = driver.release(under("old"));
    await within(pause.hit);
    const destroy = hold("sandbox.destroy");
    const destroyed = driver.destroy(under("new"));
    await within(destroy.hit);
    expect(driver.leaseState(under("old"), id)).toBe("closing");
    const ends = { "sandbox.pause": [pause, released], "sandbox.destroy": [destroy, destroyed] } as const;
    const first = last === "sandbox.pause" ? "sandbox.destroy" : "sandbox.pause";
    ends[first][0].remove();
    await within(ends[first][1].catch(() => {}));
    expect(driver.leaseState(under("old"), id)).toBe("closing");
    // The reuse under way was the old key's alone.
    expect(driver.leaseState(under("new"), id)).toBe(last === "sandbox.destroy" ? "closing" : "open");
    ends[last as keyof typeof ends][0].remove();
    await within(ends[last as keyof typeof ends][1].catch(() => {}));
    for (const key of ["old", "new"]) expect(driver.leaseState(under(key), id)).toBe("open");
  });
});
