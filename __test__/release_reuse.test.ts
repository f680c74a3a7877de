// Giving back a lease that is to be used again: it is paused (specification, section 5, step 6).
import { describe, expect, test } from "vitest";
import { CLOSING, expectCreateosError, expectTimedOut, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { makeSandbox, provide, routesSince } from "./support/providers.js";
import { rejection, turns, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

async function arrange(options?: Parameters<typeof provide>[0], config: object = {}) {
  const provider = await provide(options);
  const id = await makeSandbox(provider);
  const params = leaseParams({ provider, id, config: { reuseLease: true, ...config } });
  return { provider, id, params, driver: looseDriver(), start: provider.requests.length };
}

/** The requests that a release made, reads of the state folded to one. */
const asked = (provider: Provider, start: number) =>
  routesSince(provider, start).filter((route, index, all) => route !== all[index - 1]);

test("the sandbox is brought to paused, and only then does the release resolve", async () => {
  const { provider, id, params, driver, start } = await arrange({ delays: { pause: 60 } });
  expect(await driver.release(params)).toBeUndefined();
  expect(provider.sandbox(id)?.status).toBe("paused");
  expect(asked(provider, start)).toEqual(["sandbox.get", "sandbox.pause", "sandbox.get"]);
  expect(provider.requests.filter(({ route }) => route === "sandbox.pause")).toHaveLength(1);
  // The lease is free for the next call.
  expect(driver.leaseState(params, id)).toBe("open");
});

test("nothing is asked before the last call has settled", async () => {
  const { provider, id, params, driver, start } = await arrange();
  const call = hold(driver, params);
  const released = driver.release(params);
  await turns();
  expect(provider.requests).toHaveLength(start);
  call.resolve();
  await within(released);
  expect(provider.sandbox(id)?.status).toBe("paused");
});

test("one that is paused already is left so", async () => {
  const { provider, id, params, driver } = await arrange();
  await driver.release(params);
  const start = provider.requests.length;
  await driver.release(params);
  expect(routesSince(provider, start)).toEqual(["sandbox.get"]);
  expect(provider.sandbox(id)?.status).toBe("paused");
});

describe("a sandbox that is gone is tolerated", () => {
  test("when it is looked at", async () => {
    const { provider, id, params, driver } = await arrange({ switches: { destroyedIs404: true } });
    provider.guest.delete(id);
    await provider.waitForState(id, "destroyed");
    expect(await driver.release(params)).toBeUndefined();
    expect(await driver.release({ ...params, ...leaseParams({ provider, id: "sb-none" }), config: params.config })).toBe(
      undefined,
    );
  });

  test("when it is to be paused, or while it pauses", async () => {
    for (const path of ["sandbox.pause", "sandbox.get"]) {
      const { provider, params, driver } = await arrange();
      provider.faults.add({
        match: { path },
        skip: path === "sandbox.get" ? 1 : 0,
        effect: { type: "status", status: 404 },
      });
      expect(await driver.release(params)).toBeUndefined();
    }
  });
});

test("any other failure rejects, marks nothing, and can be tried again", async () => {
  const { provider, id, params, driver } = await arrange();
  for (const path of ["sandbox.get", "sandbox.pause"]) {
    const rule = provider.faults.add({ match: { path }, effect: { type: "status", status: 500 } });
    expect(await rejection(driver.release(params))).toMatchObject({ code: "ERR_CREATEOS_API", status: 500 });
    rule.remove();
    expect(driver.leaseState(params, id)).toBe("open");
  }
  await within(driver.release(params));
  expect(provider.sandbox(id)?.status).toBe("paused");
});

test("a sandbox that can't be paused is an error of its state", async () => {
  const { provider, id, params, driver } = await arrange();
  provider.guest.crash(id);
  const { status } = provider.sandbox(id) ?? {};
  expect(status).not.toBe("running");
  expectCreateosError(await rejection(driver.release(params)), {
    code: "ERR_CREATEOS_STATE",
    message: "CreateOS sandbox did not reach paused.",
  });
});

test("the configuration's timeout bounds the pause", async () => {
  const { provider, id, params, driver } = await arrange({}, { timeoutMs: 200 });
  provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "stuck" } });
  expectTimedOut(await rejection(driver.release(params)));
  expect(provider.sandbox(id)?.status).toBe("pausing");
  expect(driver.leaseState(params, id)).toBe("open");
});

test("an unconfirmed scope is refused without a request", async () => {
  const { provider, id, params, driver, start } = await arrange();
  await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
  expectCreateosError(await rejection(driver.release(params)), UNCONFIRMED);
  expectCreateosError(await rejection(driver.release(params, false)), UNCONFIRMED);
  expect(provider.requests).toHaveLength(start);
  expect(driver.leaseState(params, id)).toBe("unconfirmed");
  expectCreateosError(await rejection(driver.track(params, () => {})), CLOSING);
});

test("a cleanup that fails under the release keeps the sandbox from being paused", async () => {
  const { provider, id, params, driver, start } = await arrange();
  const call = hold(driver, params);
  const released = driver.release(params);
  call.reject(new Error("outer", { cause: new lease.CreateosCleanupError() }));
  expectCreateosError(await rejection(released), UNCONFIRMED);
  expect(provider.requests).toHaveLength(start);
  expect(provider.sandbox(id)?.status).toBe("running");
});

