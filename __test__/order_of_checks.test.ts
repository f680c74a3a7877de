// track's checks come in one order, whatever else is wrong (specification, sections 1, 3 and 4).
import { describe, expect, test, vi } from "vitest";
import { BAD_TIMEOUT, CLOSING, expectCreateosError, MESSAGES } from "./support/errors.js";
import { hold, leaseParams, type LeaseParams } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { rejection } from "./support/waiting.js";

const mismatch = (...mismatches: string[]) => ({
  code: "ERR_CREATEOS_LEASE_MISMATCH",
  message: MESSAGES.notForTrack,
  extra: { mismatches },
});

/** Everything that can be wrong with a call, in the order in which it must be noticed. */
function defects() {
  const reason = new Error("the caller's own reason");
  const controller = new AbortController();
  controller.abort(reason);
  const call = {
    params: leaseParams(),
    work: undefined as unknown,
    options: { timeoutMs: 0 as unknown, signal: controller.signal },
  };
  const { config, lease } = call.params;
  lease.metadata.provider = "another";
  lease.metadata.companyId = "another company";
  lease.metadata.environmentId = "another environment";
  lease.metadata.apiUrl = "https://another.example";
  config.apiUrl = "no URL";
  delete config.apiKey;
  return { call, reason };
}

type Call = ReturnType<typeof defects>["call"];

/** One repair after another; before each, the refusal that must be given. */
const steps: [string, (reason: unknown, own: unknown) => void, (call: Call) => void][] = [
  [
    "provider",
    (reason) => expectCreateosError(reason, mismatch("provider", "companyId", "environmentId")),
    ({ params }) => (params.lease.metadata.provider = "createos"),
  ],
  [
    "company",
    (reason) => expectCreateosError(reason, mismatch("companyId", "environmentId")),
    ({ params }) => (params.lease.metadata.companyId = "company"),
  ],
  [
    "environment, before the configuration is parsed",
    (reason) => expectCreateosError(reason, mismatch("environmentId")),
    ({ params }) => (params.lease.metadata.environmentId = "environment"),
  ],
  [
    "the configuration's own error",
    (reason) =>
      expectCreateosError(reason, {
        code: "ERR_CREATEOS_CONFIG",
        message: "CreateOS API URL is invalid.",
        extra: { field: "apiUrl" },
      }),
    ({ params }) => (params.config.apiUrl = "https://createos.example"),
  ],
  [
    "the API's origin",
    (reason) => expectCreateosError(reason, mismatch("apiUrl")),
    ({ params }) => (params.lease.metadata.apiUrl = "https://createos.example"),
  ],
  [
    "the key",
    (reason) => expectCreateosError(reason, { code: "ERR_CREATEOS_API_KEY", message: MESSAGES.keyForCustomOrigin }),
    ({ params }) => (params.config.apiKey = "key"),
  ],
  ["the scope's state", (reason) => expectCreateosError(reason, CLOSING), () => {}],
  [
    "the timeout",
    (reason) => expectCreateosError(reason, BAD_TIMEOUT),
    ({ options }) => (options.timeoutMs = 1000),
  ],
  [
    "the work",
    (reason) => {
      expect(reason).toBeInstanceOf(TypeError);
      expect((reason as TypeError).constructor).toBe(TypeError);
      expect(reason).not.toHaveProperty("code");
    },
    (call) => (call.work = vi.fn()),
  ],
  ["the caller's signal", (reason, own) => expect(reason).toBe(own), () => {}],
];

describe("the first thing wrong is the one that is told", () => {
  test("one repair after another", async () => {
    const driver = looseDriver();
    const { call, reason } = defects();
    const held = hold(driver, leaseParams());
    const releasing = driver.release(leaseParams());
    for (const [name, check, repair] of steps) {
      const refused = await rejection(driver.track(call.params, call.work, call.options));
      expect.soft(() => check(refused, reason), name).not.toThrow();
      repair(call);
      if (name === "the scope's state") {
        held.resolve();
        await releasing;
      }
    }
    expect(call.work).not.toHaveBeenCalled();
  });

  test("no lease id comes before everything", async () => {
    const { call } = defects();
    for (const id of ["", undefined, null, 7, {}, ["sb-1"], new String("sb-1")]) {
      const params = { ...call.params, lease: { ...call.params.lease, providerLeaseId: id } };
      expectCreateosError(
        await rejection(looseDriver().track(params, call.work, call.options)),
        mismatch("providerLeaseId", "provider", "companyId", "environmentId"),
      );
    }
  });

  test("a shut down driver and an unconfirmed scope are looked at where a closing scope is", async () => {
    const down = looseDriver();
    await down.shutdown();
    const unconfirmed = looseDriver();
    const failed = hold(unconfirmed, leaseParams());
    failed.reject(Object.assign(new Error("left something"), { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }));
    await rejection(failed.promise);
    for (const driver of [down, unconfirmed]) {
      expectCreateosError(await rejection(driver.track(leaseParams(), undefined, "no timeout")), CLOSING);
      const keyless: LeaseParams = leaseParams({ config: { apiKey: undefined } });
      expect(await rejection(driver.track(keyless, undefined, "no timeout"))).toMatchObject({
        code: "ERR_CREATEOS_API_KEY",
      });
    }
  });
});

test("options are not even read before the checks that come first have passed", async () => {
  const options = new Proxy({}, { get: () => expect.fail("read the options") });
  const closing = looseDriver();
  const held = hold(closing, leaseParams());
  const released = closing.release(leaseParams());
  expectCreateosError(await rejection(closing.track(leaseParams(), () => {}, options)), CLOSING);
  held.resolve();
  await released;
  const driver = looseDriver();
  const foreign = leaseParams({ metadata: { provider: "another" } });
  expectCreateosError(await rejection(driver.track(foreign, () => {}, options)), mismatch("provider"));
  const keyless = leaseParams({ config: { apiKey: undefined } });
  expect(await rejection(driver.track(keyless, () => {}, options))).toMatchObject({ code: "ERR_CREATEOS_API_KEY" });
});

describe("the timeout", () => {
  const invalid: [string, unknown][] = [
    ["zero", 0],
    ["a negative number", -1],
    ["a fraction", 1.5],
    ["more than a day", 86_400_001],
    ["NaN", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["a string", "1000"],
    ["an empty string", ""],
    ["true", true],
    ["false", false],
    ["a bigint", 1000n],
    ["a symbol", Symbol("1000")],
    ["a function", () => 1000],
    ["a Number object's value in a field", { timeoutMs: new Number(1000) }],
    ["an array", [1000]],
    ["an empty array", []],
    ["a bad field", { timeoutMs: "1000" }],
    ["an array in a field", { timeoutMs: [1000] }],
    ["zero in a field", { timeoutMs: 0 }],
  ];
  test.each(invalid)("%s is invalid", async (_name, options) => {
    const work = vi.fn();
    expectCreateosError(await rejection(looseDriver().track(leaseParams(), work, options)), BAD_TIMEOUT);
    expect(work).not.toHaveBeenCalled();
  });

  const valid: [string, unknown][] = [
    ["null", null],
    ["undefined", undefined],
    ["the least", 1],
    ["the most", 86_400_000],
    ["no fields", {}],
    ["null in a field", { timeoutMs: null, signal: null }],
    ["undefined in a field", { timeoutMs: undefined, signal: undefined }],
    ["a whole number written as a float", 1000.0],
  ];
  test.each(valid)("%s is valid", async (_name, options) => {
    expect(await looseDriver().track(leaseParams(), () => "done", options)).toBe("done");
  });
});

test("a signal that is none is a TypeError, and the work is not called", async () => {
  const work = vi.fn();
  for (const signal of [{}, true, "signal", 1, () => {}]) {
    const reason = await rejection(looseDriver().track(leaseParams(), work, { signal }));
    expect(reason.constructor).toBe(TypeError);
  }
  expect(work).not.toHaveBeenCalled();
});
