// Which rejections mean that a cleanup failed, and what that does to the scope (specification, section 4).
import { describe, expect, test } from "vitest";
import { CLOSING, expectCreateosError, UNCONFIRMED } from "./support/errors.js";
import { leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { rejection, within } from "./support/waiting.js";

const own = () => new lease.CreateosCleanupError();

/** An error that has `end` so many causes down. */
function chain(depth: number, end: unknown): unknown {
  let error = end;
  for (let left = depth; left > 0; left -= 1) error = new Error("outer", { cause: error });
  return error;
}

/** A cycle of causes, with more along the way. */
function cycle(extra: Record<string, unknown> = {}): Error {
  const [first, second] = [new Error("first"), new Error("second")];
  first.cause = second;
  second.cause = first;
  return Object.assign(first, extra);
}

/** A plugin's own class, as bundles have it; its name as an instance's is just "Error". */
const plugins = (() => {
  class CreateosCleanupError extends Error {}
  return { CreateosCleanupError };
})();
class Derived extends plugins.CreateosCleanupError {}
class OurDerived extends lease.CreateosCleanupError {}
class Renamed extends Error {}
class Other extends Error {}

async function stateAfter(reason: unknown, options?: unknown): Promise<string> {
  const driver = looseDriver(options);
  let same = false;
  // Not by `rejection`: a reason whose properties throw can't be what a promise resolves with.
  await within(driver.track(leaseParams(), () => Promise.reject(reason)).catch((got: unknown) => (same = got === reason)));
  expect(same).toBe(true);
  return driver.leaseState(leaseParams(), "sb-1");
}

describe("marks the scope unconfirmed", () => {
  const marking: [string, unknown][] = [
    ["ours", own()],
    ["a class derived from ours", new OurDerived()],
    ["ours with another code", Object.assign(own(), { code: "OTHER" })],
    ["an error with our code", Object.assign(new Error("x"), { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" })],
    ["any object with our code", { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }],
    ["a plugin's own class of that name", new plugins.CreateosCleanupError("x")],
    ["a class derived from a plugin's", new Derived("x")],
    ["a cause", new Error("x", { cause: own() })],
    ["a cause of a plugin's class", new Error("x", { cause: new Derived() })],
    ["a cause that is no Error, eight deep", chain(8, { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" })],
    ["eight causes deep", chain(8, own())],
    ["in an AggregateError", new AggregateError([new Error("x"), own()])],
    ["a cause of one in an AggregateError", new AggregateError([chain(2, own())])],
    ["in an AggregateError that is a cause", chain(2, new AggregateError([1, null, own()]))],
    ["the AggregateError's own cause", Object.assign(new AggregateError([]), { cause: own() })],
    ["beside a cycle", new AggregateError([cycle(), own()])],
    ["in a list that holds itself", aggregateOfItself(own())],
    ["a cause that only the getter gives", { get cause() { return own(); } }],
  ];
  test.each(marking)("%s", async (_name, reason) => expect(await stateAfter(reason)).toBe("unconfirmed"));

  test("thrown at once, too", async () => {
    const driver = looseDriver();
    const error = own();
    const work = () => {
      throw error;
    };
    expect(await rejection(driver.track(leaseParams(), work))).toBe(error);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("unconfirmed");
  });
});

function aggregateOfItself(...more: unknown[]): AggregateError {
  const error = new AggregateError([]);
  error.errors = [error, ...more];
  return error;
}

describe("does not mark it", () => {
  const harmless: [string, unknown][] = [
    ["an error", new Error("CreateosCleanupError")],
    ["another error of ours", new lease.CreateosApiError(500)],
    ["a mere name", Object.assign(new Error("x"), { name: "CreateosCleanupError" })],
    ["another code", Object.assign(new Error("x"), { code: "ERR_CREATEOS_CLEANUP" })],
    ["the code as a boxed string", { code: new String("ERR_CREATEOS_CLEANUP_UNCONFIRMED") }],
    ["the code as the reason", "ERR_CREATEOS_CLEANUP_UNCONFIRMED"],
    ["undefined", undefined],
    ["null", null],
    ["a symbol", Symbol("cleanup")],
    ["nine causes deep", chain(9, own())],
    ["a cycle", cycle()],
    ["a cause that is itself", selfCaused()],
    ["an errors field of what is no AggregateError", Object.assign(new Error("x"), { errors: [own()] })],
    ["an AggregateError whose list is none", Object.assign(new AggregateError([]), { errors: own() })],
    ["a list that holds itself only", aggregateOfItself()],
    ["an object whose properties throw", new Proxy({}, { get: raise })],
    ["a class not given", new Renamed("x")],
    ["the class itself", lease.CreateosCleanupError],
  ];
  test.each(harmless)("%s", async (_name, reason) => expect(await stateAfter(reason)).toBe("open"));

  test("a cleanup error that is the value, not the reason", async () => {
    const driver = looseDriver();
    const value = own();
    expect(await driver.track(leaseParams(), () => value)).toBe(value);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("open");
  });

  test("a very wide and deep tangle, in good time", async () => {
    const errors = Array.from({ length: 300 }, () => new AggregateError([]));
    for (const error of errors) error.errors = errors;
    const start = performance.now();
    expect(await stateAfter(errors[0])).toBe("open");
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

function raise(): never {
  throw new Error("a trap's own");
}

describe("a reason that throws while it is looked at still comes back as it is, and marks nothing", () => {
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const hostile: [string, unknown][] = [
    ["a proxy whose traps throw", new Proxy({}, { get: raise, getPrototypeOf: raise })],
    ["a revoked proxy", revoked],
    ["an AggregateError whose list is a revoked proxy", Object.assign(new AggregateError([]), { errors: revoked })],
    [
      "an AggregateError whose list throws when it is walked",
      Object.assign(new AggregateError([]), { errors: Object.assign([], { [Symbol.iterator]: raise }) }),
    ],
  ];
  test.each(hostile)("%s", async (_name, reason) => expect(await stateAfter(reason)).toBe("open"));
});

function selfCaused(): Error {
  const error = new Error("x");
  error.cause = error;
  return error;
}

describe("classes given to the driver", () => {
  const options = { cleanupErrors: [Renamed, Other] };

  test("count, derived and as causes as well", async () => {
    class Below extends Renamed {}
    for (const reason of [new Renamed("x"), new Other("x"), new Below("x"), chain(3, new Renamed("x"))])
      expect(await stateAfter(reason, options)).toBe("unconfirmed");
    expect(await stateAfter(new Error("x"), options)).toBe("open");
    expect(await stateAfter(own(), options)).toBe("unconfirmed");
  });

  test("are read when the driver is made, and are that driver's own", async () => {
    const classes: unknown[] = [Renamed];
    const driver = looseDriver({ cleanupErrors: classes });
    classes[0] = Other;
    await rejection(driver.track(leaseParams(), () => Promise.reject(new Renamed("x"))));
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("unconfirmed");
    expect(await stateAfter(new Renamed("x"))).toBe("open");
  });

  test("must be an array of classes", () => {
    for (const cleanupErrors of [Renamed, {}, "Renamed", [1], [null], [Renamed, "x"], 1, true])
      expect(() => looseDriver({ cleanupErrors })).toThrow(TypeError);
    for (const given of [undefined, null, {}, { cleanupErrors: null }, { cleanupErrors: [] }])
      expect(() => looseDriver(given)).not.toThrow();
  });
});

describe("an unconfirmed scope", () => {
  test("takes no call, is not released for reuse, and leaves all others alone", async () => {
    const driver = looseDriver();
    await rejection(driver.track(leaseParams(), () => Promise.reject(own())));
    expectCreateosError(await rejection(driver.track(leaseParams(), () => {})), CLOSING);
    expectCreateosError(await rejection(driver.release(leaseParams())), UNCONFIRMED);
    // The mark stays, and a second refusal is the same: the closing mark was lifted.
    expectCreateosError(await rejection(driver.release(leaseParams())), UNCONFIRMED);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("unconfirmed");
    const others = [
      leaseParams({ id: "sb-2" }),
      leaseParams({ companyId: "another" }),
      leaseParams({ environmentId: "another" }),
      leaseParams({ config: { apiUrl: "https://other.example" }, metadata: { apiUrl: "https://other.example" } }),
      leaseParams({ config: { apiKey: "another" } }),
    ];
    for (const params of others) expect(await driver.track(params, () => "runs")).toBe("runs");
    expect(await looseDriver().track(leaseParams(), () => "runs")).toBe("runs");
  });

  test("stays so when calls that ran beside the failed one end well", async () => {
    const driver = looseDriver();
    let end!: () => void;
    const beside = driver.track(leaseParams(), () => new Promise<void>((resolve) => (end = resolve)));
    await rejection(driver.track(leaseParams(), () => Promise.reject(own())));
    end();
    await beside;
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("unconfirmed");
  });

  test("is so when the failed call was aborted by the release itself, which then refuses reuse", async () => {
    const driver = looseDriver();
    const tracked = driver.track(
      leaseParams(),
      (_client: unknown, signal: AbortSignal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(own()))),
    );
    tracked.catch(() => {});
    expectCreateosError(await rejection(driver.release(leaseParams())), UNCONFIRMED);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("unconfirmed");
  });
});
