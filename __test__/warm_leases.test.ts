// Leases that the provider pauses by its own idle timer (specification, section 5, steps 5 and 6).
import { describe, expect, test } from "vitest";
import { expectCreateosError, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { makeSandbox, provide, routesSince } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

const NONE = Symbol("no such field");

async function arrange(recorded: unknown, config: object = {}) {
  const provider = await provide();
  const id = await makeSandbox(provider);
  const params = leaseParams({
    provider,
    id,
    config: { reuseLease: true, autoPauseAfterSeconds: 600, ...config },
    metadata: recorded === NONE ? {} : { autoPauseAfterSeconds: recorded },
  });
  return { provider, id, params, driver: looseDriver(), start: provider.requests.length };
}

test("the same timer recorded: left warm, without a request, once its calls have ended", async () => {
  const { provider, id, params, driver, start } = await arrange(600);
  const call = hold(driver, params);
  const released = driver.release(params);
  expect(call.signal.aborted).toBe(true);
  expect(driver.leaseState(params, id)).toBe("closing");
  call.resolve();
  expect(await within(released)).toBeUndefined();
  expect(provider.requests).toHaveLength(start);
  expect(provider.sandbox(id)?.status).toBe("running");
  expect(driver.leaseState(params, id)).toBe("open");
  expect(await driver.track(params, () => "again")).toBe("again");
});

describe("another timer or none recorded: the provider would not pause it, so it is destroyed", () => {
  const recorded: [string, unknown][] = [
    ["another value", 60],
    ["no field", NONE],
    ["null", null],
    ["the value as text", "600"],
    ["a boxed number", new Number(600)],
    ["a list of it", [600]],
    ["a bigint", 600n],
    ["true", true],
  ];
  test.each(recorded)("%s", async (_name, value) => {
    const { provider, id, params, driver, start } = await arrange(value);
    expect(await driver.release(params)).toBeUndefined();
    expect(routesSince(provider, start)).toEqual(["sandbox.destroy"]);
    await provider.waitForState(id, "destroyed");
  });

  test("an unconfirmed one, too, whose mark is cleared by that", async () => {
    const { provider, id, params, driver } = await arrange(60);
    await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
    expect(driver.leaseState(params, id)).toBe("unconfirmed");
    expect(await within(driver.release(params))).toBeUndefined();
    await provider.waitForState(id, "destroyed");
    expect(driver.leaseState(params, id)).toBe("open");
  });
});

test("an unconfirmed scope is not left warm", async () => {
  const { provider, id, params, driver, start } = await arrange(600);
  await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
  expectCreateosError(await rejection(driver.release(params)), UNCONFIRMED);
  expect(provider.requests).toHaveLength(start);
  await within(driver.destroy(params));
  await provider.waitForState(id, "destroyed");
});

test("no timer in the configuration: paused, whatever was recorded", async () => {
  for (const recorded of [600, NONE]) {
    for (const none of [null, undefined]) {
      const { provider, id, params, driver } = await arrange(recorded, { autoPauseAfterSeconds: none });
      await driver.release(params);
      expect(provider.sandbox(id)?.status).toBe("paused");
    }
  }
});

test("a configuration that does not reuse leases destroys, the same timer or not", async () => {
  for (const recorded of [600, 60]) {
    const { provider, id, params, driver, start } = await arrange(recorded, { reuseLease: false });
    await driver.release(params);
    expect(routesSince(provider, start)).toEqual(["sandbox.destroy"]);
    await provider.waitForState(id, "destroyed");
  }
});
