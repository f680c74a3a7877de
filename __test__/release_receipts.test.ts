// What a release with `confirm` answers, and the lease meanwhile (specification, sections 5 and 8).
import { describe, expect, test } from "vitest";
import { arrange, destroyed, destroyers, stopped, type Ask } from "./support/confirmed_releases.js";
import { CLOSING, IN_PROGRESS, UNCONFIRMED } from "./support/errors.js";
import { expectAborted, expectCreateosError, expectTimedOut, type Expected } from "./support/errors.js";
import { api, type Effect } from "./support/failed_requests.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver, type LooseDriver } from "./support/package.js";
import { makeSandbox, provide, routesSince } from "./support/providers.js";
import { rejection, turns, watch, within } from "./support/waiting.js";

const CONFIRM = { confirm: true };
const REUSE = { config: { reuseLease: true } };
const DESTROY = "sandbox.destroy";
const GET = "sandbox.get";

describe.each(destroyers)("%s: the lease meanwhile", (_name, ask) => {
  test.concurrent("its calls are aborted at once and settle before anything is sent", async (context) => {
    const { provider, id, params, driver, start } = await arrange(context);
    const owner = ask === destroyers[3]?.[1] ? (lease as unknown as LooseDriver) : driver;
    const call = hold(owner, params);
    const released = watch(ask(driver, params));
    expectAborted(call.signal.reason);
    await turns();
    expect([released.state, provider.requests.length]).toEqual(["pending", start]);
    call.resolve();
    expect(await within(released.promise)).toEqual(destroyed(id));
  });

  test.concurrent("it is closing until the receipt, for every other call", async (context) => {
    const { provider, id, params, driver } = await arrange(context);
    const owner = ask === destroyers[3]?.[1] ? (lease as unknown as LooseDriver) : driver;
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
    const released = watch(ask(driver, params));
    for (let looks = 2; looks > 0; looks -= 1) {
      await provider.waitForRequest(GET, { since: provider.mark() });
      expect(owner.leaseState(params, id)).toBe("closing");
      expectCreateosError(await rejection(owner.track(params, () => expect.fail("called"))), CLOSING);
      expectCreateosError(await rejection(ask(driver, params)), IN_PROGRESS);
      expectCreateosError(await rejection(owner.release(params, false)), IN_PROGRESS);
    }
    expect(released.state).toBe("pending");
    provider.faults.clear();
    provider.guest.unstick(id);
    expect(await within(released.promise)).toEqual(destroyed(id));
    expect(owner.leaseState(params, id)).toBe("open");
  });

  test.concurrent("its unconfirmed mark goes with the receipt, not with the accepted removal", async (context) => {
    const { provider, id, params, driver } = await arrange(context, { config: { timeoutMs: 800 } });
    const owner = ask === destroyers[3]?.[1] ? (lease as unknown as LooseDriver) : driver;
    await rejection(owner.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
    expectTimedOut(await rejection(ask(driver, params)));
    expect(owner.leaseState(params, id)).toBe("unconfirmed");
    provider.faults.clear();
    expect(await within(ask(driver, params))).toEqual(destroyed(id));
    expect(owner.leaseState(params, id)).toBe("open");
  });

  test.concurrent("no lease id: nothing, and nothing is asked", async (context) => {
    const { provider, params, driver, start } = await arrange(context);
    for (const providerLeaseId of [null, undefined, ""])
      expect(await within(ask(driver, { ...params, providerLeaseId, config: null }))).toBeUndefined();
    expect(provider.requests).toHaveLength(start);
  });

  test.concurrent("a foreign lease is refused as ever", async (context) => {
    const { provider, params, driver, start } = await arrange(context);
    const foreign = { ...params, companyId: "another" };
    expect(await rejection(ask(driver, foreign))).toMatchObject({ code: "ERR_CREATEOS_LEASE_MISMATCH" });
    expect(provider.requests).toHaveLength(start);
  });
});

const NOT_PAUSED = { code: "ERR_CREATEOS_STATE", message: "CreateOS sandbox did not reach paused." };

describe("options that are none are TypeErrors, before anything is closed or sent", () => {
  const wrong: [string, unknown][] = [
    ...[1, 0, "true", "", {}, [], Symbol("s"), 1n, () => true, new Boolean(true)].map((confirm): [string, unknown] => [
      `confirm: ${typeof confirm} ${String(confirm)}`,
      { confirm },
    ]),
    ...[true, false, 1, "confirm", "", [], [true], Symbol("s"), 1n, () => {}].map((options): [string, unknown] => [
      `${typeof options} ${String(options)}`,
      options,
    ]),
  ];
  test.each(destroyers)("%s", async (_name, ask) => {
    const { provider, id, params, driver, start } = await arrange(undefined);
    const owner = ask === destroyers[3]?.[1] ? (lease as unknown as LooseDriver) : driver;
    const call = hold(owner, params);
    for (const [what, options] of wrong) {
      expect((await rejection(ask(driver, params, options))).constructor, what).toBe(TypeError);
      expect([call.signal.aborted, owner.leaseState(params, id)], what).toEqual([false, "open"]);
    }
    expect(provider.requests).toHaveLength(start);
    call.resolve();
    await call.promise;
  });

  test("ownership, configuration and key are looked at before", async () => {
    const driver = looseDriver();
    const destroy = (params: unknown) => rejection(driver.destroy(params, "no options"));
    expect(await destroy(null)).toMatchObject({ code: "ERR_CREATEOS_LEASE_MISMATCH" });
    expect(await destroy({ ...leaseParams(), companyId: 1 })).toMatchObject({ code: "ERR_CREATEOS_LEASE_MISMATCH" });
    expect(await destroy(leaseParams({ config: { shape: 1 } }))).toMatchObject({ code: "ERR_CREATEOS_CONFIG" });
    expect(await destroy(leaseParams({ config: { apiKey: null } }))).toMatchObject({ code: "ERR_CREATEOS_API_KEY" });
    expect((await destroy(leaseParams())).constructor).toBe(TypeError);
    expect(await within(driver.destroy({ providerLeaseId: null }, "no options"))).toBeUndefined();
  });

  test("what a getter of theirs throws is the rejection, and the lease stays open; it is read once", async () => {
    const own = new Error("own");
    let reads = 0;
    const throwing = {
      get confirm() {
        reads += 1;
        throw own;
      },
    };
    const driver = looseDriver();
    for (const released of [driver.release(leaseParams(), false, throwing), driver.destroy(leaseParams(), throwing)])
      expect(await rejection(released)).toBe(own);
    expect([reads, driver.leaseState(leaseParams(), "sb-1")]).toEqual([2, "open"]);
  });
});

describe("a lease that is reused", () => {
  const releases: [string, Ask][] = [
    ["driver.release", (driver, params) => driver.release(params, false, CONFIRM)],
    ["the package's release", (_driver, params) => (lease as unknown as LooseDriver).release(params, null, CONFIRM)],
  ];
  test.concurrent.for(releases)("%s: stopped, once it is paused", async ([_name, ask], context) => {
    const { provider, id, params, driver, start } = await arrange(context, REUSE);
    provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "stuck" } });
    const mark = provider.mark();
    const released = watch(ask(driver, params));
    await provider.waitForState(id, "pausing", { since: mark });
    for (let looks = 2; looks > 0; looks -= 1) await provider.waitForRequest(GET, { since: provider.mark() });
    await turns();
    expect(released.state).toBe("pending");
    provider.faults.clear();
    provider.guest.unstick(id);
    expect(await within(released.promise)).toEqual(stopped(id));
    expect([provider.sandbox(id)?.status, routesSince(provider, start).includes(DESTROY)]).toEqual(["paused", false]);
  });

  test.concurrent("paused already: stopped, after one look", async (context) => {
    const { provider, id, params, driver } = await arrange(context, REUSE);
    provider.guest.pause(id);
    await provider.waitForState(id, "paused");
    const start = provider.requests.length;
    expect(await within(driver.release(params, false, CONFIRM))).toEqual(stopped(id));
    expect(routesSince(provider, start)).toEqual([GET]);
  });

  test.concurrent("the old state read for a while after the accepted pause", async (context) => {
    const { id, params, driver } = await arrange(context, { ...REUSE, switches: { oldStateReads: 3 } });
    expect(await within(driver.release(params, false, CONFIRM))).toEqual(stopped(id));
  });

  const gone = [["at first", true], ["at first", false], ["meanwhile", true], ["meanwhile", false]] as const;
  test.concurrent.for(gone)("gone %s, and HTTP 404 for that: %s", async ([when, destroyedIs404], context) => {
    const { provider, id, params, driver } = await arrange(context, { ...REUSE, switches: { destroyedIs404 } });
    const remove = async () => {
      provider.guest.delete(id);
      await provider.waitForState(id, "destroyed");
    };
    if (when === "at first") await remove();
    else provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "call", run: remove } });
    const start = provider.requests.length;
    for (const options of [CONFIRM, undefined]) {
      const released = driver.release(params, false, options);
      // HTTP 404 is tolerated, and proves nothing: it may as well be another account's sandbox. One that shows as
      // destroyed can't be paused.
      if (destroyedIs404) expect(await within(released)).toBeUndefined();
      else expectCreateosError(await rejection(released), NOT_PAUSED);
    }
    expect(routesSince(provider, start)).not.toContain(DESTROY);
    expect(driver.leaseState(params, id)).toBe("open");
  });

  const failures: [string, string, Effect, Expected][] = [
    ["the look fails", GET, { type: "status", status: 500 }, api(500, "sandbox lifecycle")],
    ["the pause is refused", "sandbox.pause", { type: "status", status: 403 }, api(403, "sandbox lifecycle")],
    [
      "it is in error",
      GET,
      { type: "patch", set: { status: "error" } },
      NOT_PAUSED,
    ],
  ];
  test.concurrent.for(failures)("%s: no receipt, and again", async ([_name, path, effect, expected], context) => {
    const { provider, id, params, driver } = await arrange(context, REUSE);
    const rule = provider.faults.add({ match: { path }, effect });
    expectCreateosError(await rejection(driver.release(params, false, CONFIRM)), expected);
    expect(driver.leaseState(params, id)).toBe("open");
    rule.remove();
    expect(await within(driver.release(params, false, CONFIRM))).toEqual(stopped(id));
  });

  test.concurrent("the deadline: a TimeoutError, and again", async (context) => {
    const { provider, id, params, driver } = await arrange(context, { config: { reuseLease: true, timeoutMs: 800 } });
    provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "stuck" } });
    expectTimedOut(await rejection(driver.release(params, false, CONFIRM)));
    provider.guest.unstick(id);
    expect(await within(driver.release(params, false, CONFIRM))).toEqual(stopped(id));
  });

  test.concurrent("an unconfirmed one is refused", async (context) => {
    const { provider, params, driver, start } = await arrange(context, REUSE);
    await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
    expectCreateosError(await rejection(driver.release(params, false, CONFIRM)), UNCONFIRMED);
    expect(provider.requests).toHaveLength(start);
  });

  test.concurrent("one that is left warm: nothing has ended, so there is no receipt", async (context) => {
    const idle = { autoPauseAfterSeconds: 600 };
    const { provider, id, params, driver, start } = await arrange(context, {
      config: { reuseLease: true, ...idle },
      metadata: idle,
    });
    const call = hold(driver, params);
    const released = watch(driver.release(params, false, CONFIRM));
    expect(call.signal.aborted).toBe(true);
    call.resolve();
    expect(await within(released.promise)).toBeUndefined();
    expect([provider.requests.length, provider.sandbox(id)?.status]).toEqual([start, "running"]);
    // One whose timer the provider does not know is destroyed, which is shown.
    const other = { ...params, leaseMetadata: { ...params.leaseMetadata, autoPauseAfterSeconds: 60 } };
    expect(await within(driver.release(other, false, CONFIRM))).toEqual(destroyed(id));
  });
});

describe("under another key", () => {
  const twoKeys = async (context: Parameters<typeof provide>[1]) => {
    const provider = await provide({ apiKeys: { old: "owner", new: "owner" } }, context);
    const id = await makeSandbox(provider, "old");
    const config = { reuseLease: true, timeoutMs: 900 };
    const under = (apiKey: string) => leaseParams({ provider, id, config: { ...config, apiKey } });
    return { provider, id, under, driver: looseDriver() };
  };

  test.concurrent("both scopes are closing until the receipt, and neither is unconfirmed after", async (context) => {
    const { provider, id, under, driver } = await twoKeys(context);
    await rejection(driver.track(under("old"), () => Promise.reject(new lease.CreateosCleanupError())));
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
    expectTimedOut(await rejection(driver.destroy(under("new"), CONFIRM)));
    expect([driver.leaseState(under("old"), id), driver.leaseState(under("new"), id)]).toEqual(["unconfirmed", "open"]);
    const released = watch(driver.destroy(under("new"), CONFIRM));
    await provider.waitForRequest(GET, { since: provider.mark() });
    expect([driver.leaseState(under("old"), id), driver.leaseState(under("new"), id)]).toEqual(["closing", "closing"]);
    expectCreateosError(await rejection(driver.release(under("old"), false, CONFIRM)), IN_PROGRESS);
    provider.faults.clear();
    provider.guest.unstick(id);
    expect(await within(released.promise)).toEqual(destroyed(id));
    expect([driver.leaseState(under("old"), id), driver.leaseState(under("new"), id)]).toEqual(["open", "open"]);
  });

  test.concurrent("the older key's calls settle first", async (context) => {
    const { provider, id, under, driver } = await twoKeys(context);
    const start = provider.requests.length;
    const call = hold(driver, under("old"));
    const released = watch(driver.destroy(under("new"), CONFIRM));
    expectAborted(call.signal.reason);
    await turns();
    expect([released.state, provider.requests.length]).toEqual(["pending", start]);
    call.resolve();
    expect(await within(released.promise)).toEqual(destroyed(id));
  });
});

describe("shutdown", () => {
  test.concurrent("waits for a confirmed release, which goes on to its receipt", async (context) => {
    const { provider, id, params, driver } = await arrange(context);
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
    const released = driver.destroy(params, CONFIRM);
    await provider.waitForRequest(GET);
    const down = watch(driver.shutdown());
    await provider.waitForRequest(GET, { since: provider.mark() });
    expect(down.state).toBe("pending");
    provider.guest.unstick(id);
    expect(await within(released)).toEqual(destroyed(id));
    await within(down.promise);
  });

  test.concurrent("after it, receipts are still given", async (context) => {
    const { id, params, driver } = await arrange(context);
    await driver.shutdown();
    expect(await within(driver.release(params, true, CONFIRM))).toEqual(destroyed(id));
  });
});
