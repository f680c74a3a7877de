// What a resume refuses before it asks the provider, and in which order (specification, sections 1, 3 and 8).
import { describe, expect, test } from "vitest";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import { hold, leaseParams, ORIGIN } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { runProgram, said } from "./support/programs.js";
import { provide, routesSince } from "./support/providers.js";
import { CLEANUP_FIRST, EXPIRED, expectResumed, NOT_OWNED, persist, resume } from "./support/resumes.js";
import { rejection, within } from "./support/waiting.js";

const notOwned = (...mismatches: string[]) => ({
  code: "ERR_CREATEOS_LEASE_MISMATCH",
  message: NOT_OWNED,
  extra: { mismatches },
});

const noKey = { code: "ERR_CREATEOS_API_KEY", message: MESSAGES.keyForCustomOrigin };

/** Parameters of a lease that is the caller's own, of a provider that is never asked: it has no marker. */
const unmarked = (changes: object = {}) => leaseParams({ ...changes });

describe("the first thing wrong is the one that is told", () => {
  test("one repair after another", async () => {
    const driver = looseDriver();
    const own = new Error("the caller's own reason");
    const params = unmarked();
    const { config, leaseMetadata } = params;
    Object.assign(leaseMetadata, { provider: "x", companyId: "x", environmentId: "x", apiUrl: "https://x.example" });
    config.apiUrl = "no URL";
    delete config.apiKey;
    let options: unknown = "none";
    const held = hold(driver, unmarked());
    const releasing = driver.release(unmarked());
    const refused = () => rejection(driver.resume(params, options));

    expectCreateosError(await refused(), notOwned("provider", "companyId", "environmentId"));
    leaseMetadata.provider = "createos";
    expectCreateosError(await refused(), notOwned("companyId", "environmentId"));
    leaseMetadata.companyId = "company";
    expectCreateosError(await refused(), notOwned("environmentId"));
    leaseMetadata.environmentId = "environment";
    const badUrl = "CreateOS API URL is invalid.";
    expectCreateosError(await refused(), { code: "ERR_CREATEOS_CONFIG", message: badUrl, extra: { field: "apiUrl" } });
    config.apiUrl = ORIGIN;
    expectCreateosError(await refused(), notOwned("apiUrl"));
    leaseMetadata.apiUrl = ORIGIN;
    expectCreateosError(await refused(), noKey);
    config.apiKey = "key";
    expect((await refused()).constructor).toBe(TypeError);
    options = { signal: AbortSignal.abort(own) };
    expectCreateosError(await refused(), CLEANUP_FIRST);
    held.resolve();
    await releasing;
    // It has no marker, so it has expired, which is told before the signal is looked at.
    expect(await driver.resume(params, options)).toEqual(EXPIRED);
    Object.assign(leaseMetadata, { marker: "0".repeat(36), shape: "s-1vcpu-1gb" });
    params.providerLeaseId = "sb/1";
    expect(await refused()).toMatchObject({ message: "CreateOS returned an invalid resource ID." });
    params.providerLeaseId = "sb-1";
    expect(await refused()).toBe(own);
  });

  test("a lease without an id is nobody's", async () => {
    for (const id of ["", undefined, null, 7, {}, ["sb-1"], new String("sb-1")]) {
      const params = { ...unmarked({ metadata: { provider: "x" }, config: { shape: "" } }), providerLeaseId: id };
      expectCreateosError(await rejection(resume(params)), notOwned("providerLeaseId", "provider"));
    }
  });

  test.each(["provider", "companyId", "environmentId", "apiUrl"])("%s is compared strictly", async (field) => {
    const right = unmarked().leaseMetadata[field] as string;
    for (const wrong of [undefined, null, "", 7, `${right} `, right.toUpperCase(), `${right}/`, [right], { right }]) {
      const params = unmarked({ metadata: { [field]: wrong, marker: "0".repeat(36) } });
      expectCreateosError(await rejection(resume(params)), notOwned(field));
    }
  });

  test("ids missing on both sides do not match", async () => {
    for (const nothing of [undefined, ""]) {
      const params = { ...unmarked({ metadata: { companyId: nothing } }), companyId: nothing };
      expectCreateosError(await rejection(resume(params)), notOwned("companyId"));
    }
  });
});

describe("a lease that may not be used is refused before it is found expired", () => {
  test("closing, until the release has ended, whatever it was", async () => {
    for (const destroy of [true, false]) {
      const driver = looseDriver();
      const call = hold(driver, unmarked());
      const released = destroy ? rejection(driver.destroy(unmarked({ id: "sb-1" }))) : driver.release(unmarked());
      expectCreateosError(await rejection(resume(unmarked(), driver)), CLEANUP_FIRST);
      call.resolve();
      await released;
      expect(await resume(unmarked(), driver)).toEqual(EXPIRED);
    }
  });

  test("unconfirmed", async () => {
    const driver = looseDriver();
    await rejection(driver.track(unmarked(), () => Promise.reject(new lease.CreateosCleanupError())));
    expectCreateosError(await rejection(resume(unmarked(), driver)), CLEANUP_FIRST);
    expect(driver.leaseState(unmarked(), "sb-1")).toBe("unconfirmed");
    // Another lease's state is nothing to this one.
    expect(await resume(unmarked({ id: "sb-2" }), driver)).toEqual(EXPIRED);
  });

  test("shut down", async () => {
    const driver = looseDriver();
    const down = driver.shutdown();
    expectCreateosError(await rejection(resume(unmarked(), driver)), CLEANUP_FIRST);
    await down;
    expectCreateosError(await rejection(resume(unmarked(), driver)), CLEANUP_FIRST);
  });
});

describe("an id that no provider gives", () => {
  test.each(["../whoami", "sb 1", "sb/1", "é", "x".repeat(201), "sb-1\n", "sb?x", "."])("%j", async (id) => {
    const provider = await provide();
    const kept = await persist(provider);
    const start = provider.requests.length;
    const driver = looseDriver();
    expectCreateosError(await rejection(resume(kept.params({ id }), driver)), {
      code: "ERR_CREATEOS_RESPONSE",
      message: "CreateOS returned an invalid resource ID.",
    });
    expect(routesSince(provider, start)).toEqual([]);
    expect(driver.leaseState(kept.params({ id }), id)).toBe("open");
  });
});

describe("options", () => {
  const none: [string, unknown][] = [
    ["a number", 5],
    ["text", "options"],
    ["an empty string", ""],
    ["a boolean", false],
    ["a bigint", 1n],
    ["a symbol", Symbol("options")],
    ["a function", () => {}],
    ["an array", []],
    ["a signal that is an object", { signal: {} }],
    ["a signal that is true", { signal: true }],
    ["a signal that is a controller", { signal: new AbortController() }],
  ];
  test.each(none)("%s: a TypeError, without a request", async (_name, options) => {
    const provider = await provide();
    const kept = await persist(provider);
    const start = provider.requests.length;
    const driver = looseDriver();
    const reason = await rejection(resume(kept.params(), driver, options));
    expect(reason.constructor).toBe(TypeError);
    expect(routesSince(provider, start)).toEqual([]);
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  });

  test("nothing, and nothing in them, are fine", async () => {
    const kept = await persist(await provide(), { state: "running" });
    for (const options of [undefined, null, {}, { signal: undefined }, { signal: null }, { later: 1 }])
      expectResumed(await resume(kept.params(), looseDriver(), options), kept.params());
  });

  test("a signal that is aborted already: its own reason, whatever that is, and no request", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const start = provider.requests.length;
    for (const reason of [new Error("own"), "text", null, 0, { own: 1 }]) {
      const driver = looseDriver();
      const signal = AbortSignal.abort(reason);
      expect(await rejection(resume(kept.params(), driver, { signal }))).toBe(signal.reason);
      expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
      await within(driver.shutdown(), 2000);
    }
    expect(routesSince(provider, start)).toEqual([]);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
  });
});

test("a signal that takes no listener refuses the resume, of which nothing goes on unseen", async () => {
  // In a process of its own: what goes on there fails later, with a rejection that nobody handles.
  const provider = await provide();
  const kept = await persist(provider);
  const { leaseMetadata, config, providerLeaseId } = kept.params();
  const start = provider.requests.length;
  const outcome = await runProgram(`
    const lease = require(packagePath);
    const own = new Error("no listeners");
    const addEventListener = () => { throw own; };
    const signal = { aborted: false, reason: undefined, addEventListener, removeEventListener() {} };
    const given = ${JSON.stringify({ leaseMetadata, config, providerLeaseId })};
    const driver = new lease.LeaseDriver();
    (async () => {
      const resumed = driver.resume({ companyId: "company", environmentId: "environment", ...given }, { signal });
      say(await resumed.catch((reason) => reason === own));
      await driver.shutdown();
      say("down");
      // Whatever still goes on has this long to fail.
      await new Promise((resolve) => setTimeout(resolve, 500));
    })();
  `);
  expect(said(outcome)).toEqual([true, "down"]);
  // A look may have left before; it changes nothing.
  expect(routesSince(provider, start).filter((route) => route !== "sandbox.get")).toEqual([]);
});

describe("stack shows the caller's frames for every check that fails in the calling tick", () => {
  const driver = looseDriver();
  const down = looseDriver();
  void down.shutdown();
  const marked = { marker: "0".repeat(36), shape: "s-1vcpu-1gb" };
  const cases: [string, () => Promise<unknown>][] = [
    ["not owned", () => driver.resume(leaseParams({ metadata: { provider: "x" } }))],
    ["origin", () => driver.resume(leaseParams({ metadata: { apiUrl: 1 } }))],
    ["configuration", () => driver.resume(leaseParams({ config: { timeoutMs: 0 } }))],
    ["key", () => driver.resume(leaseParams({ config: { apiKey: undefined } }))],
    ["closing", () => down.resume(leaseParams())],
    ["id", () => driver.resume(leaseParams({ id: "sb/1", metadata: marked }))],
    ["options", () => driver.resume(leaseParams({ metadata: marked }), 5)],
    ["signal", () => driver.resume(leaseParams({ metadata: marked }), { signal: 5 })],
  ];
  test.each(cases)("%s", async (_name, run) => {
    function theCaller() {
      return run();
    }
    const { stack } = (await rejection(theCaller())) as Error;
    expect(stack).toContain("theCaller");
    expect(stack).toContain("resume_checks.test.ts");
  });
});
