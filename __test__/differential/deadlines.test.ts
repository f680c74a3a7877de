// What depends on time, as directed tests with small timeouts: deadlines, and the bounds of section 5. Each runs on the
// reference and on the package at once and states what the specification says about both.
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { describeError, type Description, eventual } from "./describe.js";
import { CountingProvider, type Course } from "./provider.js";
import { type Driver, loadSubject, reference, type Subject } from "./subject.js";

const SUBJECTS: [string, Subject][] = [
  ["reference", reference],
  ["package", loadSubject()],
];
const COURSE: Course = { initial: "running", oldReads: 0, passingReads: 0, gone: 404, deletes: [], reads: [], pauses: [] };
const ID = "sb-0";
const UNCONFIRMED = "CreateOS process cleanup is unconfirmed; destroy this lease before reusing it.";
/** Twice the smallest config timeout, and the slack. */
const SHORTEST_BOUND_MS = 5_002;
const TIMEOUT = { dom: "TimeoutError", message: "The operation was aborted due to timeout", code: 23 };
const ABORT = { dom: "AbortError", message: "This operation was aborted", code: 20 };

interface Fixture {
  subject: Subject;
  driver: Driver;
  provider: CountingProvider;
  params(config?: object, companyId?: string): object;
  state(config?: object): string;
  reason(signal: AbortSignal): Description;
}

async function fixture(subject: Subject): Promise<Fixture> {
  const provider = new CountingProvider(new Map([[ID, COURSE]]));
  const apiUrl = await provider.start();
  const driver = new subject.LeaseDriver();
  const params = (config: object = {}, companyId = "company") => {
    const ids = { companyId, environmentId: "environment" };
    const metadata = { provider: "createos", ...ids, apiUrl };
    return {
      ...ids,
      config: { apiUrl, shape: "s", apiKey: "key", reuseLease: true, ...config },
      lease: { providerLeaseId: ID, metadata },
      providerLeaseId: ID,
      leaseMetadata: metadata,
    };
  };
  return {
    subject,
    driver,
    provider,
    params,
    state: (config) => driver.leaseState(params(config), ID),
    reason: (signal) => describeError(subject, signal.reason),
  };
}

/** A call that takes no notice of its signal; it ends when the test says so. */
function hold(driver: Driver, params: object, options?: unknown): { promise: Promise<unknown>; signal: AbortSignal; end: (value: unknown) => void } {
  let signal!: AbortSignal;
  let end!: (value: unknown) => void;
  const promise = driver.track(
    params,
    (_client: unknown, given: AbortSignal) => {
      signal = given;
      return new Promise((resolve) => {
        end = resolve;
      });
    },
    options,
  );
  return { promise, signal, end };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

async function rejection(promise: Promise<unknown>): Promise<Record<string, unknown>> {
  return promise.then(
    () => ({ message: "It did not reject." }),
    (error: unknown) => (error instanceof Error ? { name: error.name, message: error.message, code: (error as Error & { code?: unknown }).code } : { error }),
  );
}

async function elapsed(promise: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await promise.catch(() => {});
  return performance.now() - began;
}

function onBoth(name: string, scenario: (fixture: Fixture) => Promise<void>): void {
  test.concurrent(name, { timeout: 30_000 }, async () => {
    await Promise.all(
      SUBJECTS.map(async ([which, subject]) => {
        const one = await fixture(subject);
        try {
          await scenario(one);
        } catch (error) {
          throw new Error(`On the ${which}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        } finally {
          one.provider.openGate(ID);
          one.provider.finish();
        }
      }),
    );
  });
}

describe("deadlines", () => {
  onBoth("the timeout of the options aborts with a TimeoutError, and a later result still comes", async ({ driver, params, reason }) => {
    const call = hold(driver, params(), 20);
    await aborted(call.signal);
    expect(reason(call.signal)).toEqual(TIMEOUT);
    call.end("late");
    expect(await call.promise).toBe("late");
  });

  onBoth("without one the timeout of the config does", async ({ driver, params, reason }) => {
    const calls = [undefined, null, {}, { timeoutMs: null }].map((options) => hold(driver, params({ timeoutMs: 20 }), options));
    await Promise.all(calls.map(({ signal }) => aborted(signal)));
    for (const { signal, end, promise } of calls) {
      expect(reason(signal)).toEqual(TIMEOUT);
      end(1);
      await promise;
    }
  });

  onBoth("the first reason stays", async ({ driver, params, reason, subject }) => {
    const caller = new AbortController();
    const byCaller = hold(driver, params(), { timeoutMs: 20, signal: caller.signal });
    const byDeadline = hold(driver, params(), 40);
    caller.abort("mine");
    await aborted(byDeadline.signal);
    const release = driver.release(params({ autoPauseAfterSeconds: 60 }));
    expect(byCaller.signal.reason).toBe("mine");
    expect(reason(byDeadline.signal)).toEqual(TIMEOUT);
    byCaller.end(1);
    byDeadline.end(1);
    expect(await eventual(subject, () => release)).toEqual({ resolved: undefined });
  });

  onBoth("a thousand deadlines beside callers' signals all pass", async ({ driver, params }) => {
    const calls = Array.from({ length: 1_000 }, () => hold(driver, params(), { timeoutMs: 30, signal: new AbortController().signal }));
    await Promise.all(calls.map(({ signal }) => signal.aborted || aborted(signal)));
    for (const { end } of calls) end(1);
    await Promise.all(calls.map(({ promise }) => promise));
  });

  onBoth("a settled call leaves no listener on the caller's signal", async ({ driver, params }) => {
    const { signal } = new AbortController();
    const call = hold(driver, params(), { signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    call.end(1);
    await call.promise;
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  onBoth("a request of a release ends with the config's timeout, and the release can be tried again", async ({ driver, params, provider, subject, state }) => {
    provider.closeGate(ID);
    for (const destroy of [false, true]) {
      expect(await eventual(subject, () => driver.release(params({ timeoutMs: 50 }), destroy))).toEqual({ rejected: TIMEOUT });
      expect(state()).toBe("open");
    }
    provider.openGate(ID);
    expect(await eventual(subject, () => driver.release(params({}), true))).toEqual({ resolved: undefined });
  });
});

describe("settlement", () => {
  onBoth("a call is removed, and its failure marked, before its promise settles", async ({ driver, params, state, subject }) => {
    await driver.track(params(), async () => 1);
    const warm = params({ autoPauseAfterSeconds: 60 });
    const leaseMetadata = { ...(warm as { leaseMetadata: object }).leaseMetadata, autoPauseAfterSeconds: 60 };
    await driver.release({ ...warm, leaseMetadata });
    const failing = driver.track(params(), async () => {
      throw new subject.CreateosCleanupError("left");
    });
    expect(await failing.catch(() => state())).toBe("unconfirmed");
  });

  onBoth("two companies do not share a lease of one name and key", async ({ driver, params, provider }) => {
    const mine = hold(driver, params());
    const theirs = hold(driver, params({}, "another"));
    const release = driver.destroy(params());
    expect([mine.signal.aborted, theirs.signal.aborted]).toEqual([true, false]);
    mine.end(1);
    await release;
    expect([...provider.requests.values()]).toEqual([[`DELETE /v1/sandboxes/${ID}`]]);
    theirs.end(1);
    expect(await theirs.promise).toBe(1);
  });
});

describe("two releases of one sandbox under two keys", () => {
  onBoth("the one that ends first does not open what the other is still destroying", async ({ driver, params, provider, state }) => {
    provider.closeGate(ID);
    const old = { apiKey: "old" };
    const warm = params({ ...old, autoPauseAfterSeconds: 60 });
    const leaseMetadata = { ...(warm as { leaseMetadata: object }).leaseMetadata, autoPauseAfterSeconds: 60 };
    const call = hold(driver, params(old));
    const reuse = driver.release({ ...warm, leaseMetadata });
    const destroy = driver.destroy(params());
    call.end(1);
    await reuse;
    expect([state(), state(old)]).toEqual(["closing", "closing"]);
    const refused = { code: "ERR_CREATEOS_LEASE_CLOSING" };
    expect(await rejection(driver.track(params(old), () => 1))).toMatchObject(refused);
    expect(await rejection(driver.release(params(old)))).toMatchObject({ code: "ERR_CREATEOS_RELEASE_IN_PROGRESS" });
    provider.openGate(ID);
    await destroy;
    expect([state(), state(old)]).toEqual(["open", "open"]);
  });

  onBoth("a failed destroy leaves the marks under both keys", async ({ driver, params, provider, state, subject }) => {
    const old = { apiKey: "old" };
    const fail = (config: object) =>
      driver.track(params(config), () => Promise.reject(new subject.CreateosCleanupError("left"))).catch(() => {});
    await Promise.all([fail({}), fail(old)]);
    provider.closeGate(ID);
    expect(await rejection(driver.destroy(params({ timeoutMs: 30 })))).toMatchObject({ name: "TimeoutError" });
    expect([state(), state(old)]).toEqual(["unconfirmed", "unconfirmed"]);
    provider.openGate(ID);
    await driver.destroy(params());
    expect([state(), state(old)]).toEqual(["open", "open"]);
  });
});

describe("bounds", () => {
  onBoth("a destroy goes on past its bound, and the late call settles as usual", async ({ driver, params, provider, reason, state }) => {
    // The call's own timeout is larger, but only that of its config counts.
    const call = hold(driver, params({ timeoutMs: 1 }), 60_000);
    const took = await elapsed(driver.destroy(params()));
    expect(took).toBeGreaterThan(SHORTEST_BOUND_MS - 50);
    expect(took).toBeLessThan(2 * SHORTEST_BOUND_MS);
    expect(provider.received).toBe(1);
    expect(reason(call.signal)).toEqual(ABORT);
    expect(state()).toBe("open");
    call.end("late");
    expect(await call.promise).toBe("late");
  });

  onBoth("a reuse past its bound marks the lease until it is destroyed", async ({ driver, params, provider, state }) => {
    const call = hold(driver, params({ timeoutMs: 1 }), 60_000);
    const refused = { message: UNCONFIRMED, code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" };
    const release = driver.release(params());
    expect(state()).toBe("closing");
    expect(await rejection(release)).toMatchObject(refused);
    expect(provider.received).toBe(0);
    call.end("late");
    expect(await call.promise).toBe("late");
    expect(state()).toBe("unconfirmed");
    expect(await rejection(driver.release(params()))).toMatchObject(refused);
    await driver.destroy(params());
    expect(state()).toBe("open");
  });

  onBoth("a call under another key holds a destroy up to its own bound", async ({ driver, params, state }) => {
    const call = hold(driver, params({ apiKey: "old", timeoutMs: 1 }), 60_000);
    const destroy = driver.destroy(params());
    expect([state(), state({ apiKey: "old" })]).toEqual(["closing", "closing"]);
    const took = await elapsed(destroy);
    expect(took).toBeGreaterThan(SHORTEST_BOUND_MS - 50);
    expect(state({ apiKey: "old" })).toBe("open");
    call.end(1);
    await call.promise;
  });

  onBoth("a call that awaits the release of its own lease is let go by the bound", async ({ driver, params, state }) => {
    const config = { timeoutMs: 1 };
    const call = driver.track(params(config), async () => rejection(driver.release(params(config))), 60_000);
    expect(await call).toMatchObject({ message: UNCONFIRMED });
    expect(state()).toBe("unconfirmed");
  });

  onBoth("the largest config timeout of a scope makes its bound, for a shutdown too", async ({ driver, params, state }) => {
    const calls = [1, 400, 1].map((timeoutMs) => hold(driver, params({ timeoutMs }), 60_000));
    const took = await elapsed(driver.shutdown());
    expect(took).toBeGreaterThan(5_750);
    expect(state()).toBe("shutdown");
    for (const { end, promise } of calls) {
      end(1);
      await promise;
    }
  });
});
