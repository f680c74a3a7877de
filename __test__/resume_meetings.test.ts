// A resume and what else a driver does with the lease at the same time (specification, sections 5 and 8).
import { describe, expect, test } from "vitest";
import { CLOSING, expectAborted, expectCreateosError } from "./support/errors.js";
import { hold } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { CLEANUP_FIRST, expectResumed, persist, resume } from "./support/resumes.js";
import { abortion, rejection, turns, watch, within } from "./support/waiting.js";

describe("two resumes at once", () => {
  test.each(["paused", "running"] as const)("of one driver both succeed, of a sandbox found %s", async (state) => {
    const provider = await provide();
    const kept = await persist(provider, { state });
    const driver = looseDriver();
    const answers = await within(Promise.all([resume(kept.params(), driver), resume(kept.params(), driver)]));
    for (const answer of answers) expectResumed(answer, kept.params());
    expect(answers[0]).not.toBe(answers[1]);
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });

  test("of two drivers both succeed", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    for (const answer of await within(Promise.all([resume(kept.params()), resume(kept.params())])))
      expectResumed(answer, kept.params());
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });

  test("of two leases are nothing to each other", async () => {
    const provider = await provide();
    const [one, two] = [await persist(provider), await persist(provider)];
    const driver = looseDriver();
    const rule = provider.faults.add({ match: { path: "exec", sandboxId: one.id }, effect: { type: "hold" } });
    const resumed = watch(resume(one.params(), driver));
    await within(rule.hit);
    expectResumed(await resume(two.params(), driver), two.params());
    await within(driver.destroy(two.params()));
    expect(resumed.state).toBe("pending");
    rule.release();
    expectResumed(await within(resumed.promise), one.params());
  });

  test("are both aborted by one release, with one reason", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const rule = provider.faults.add({ match: { path: "sandbox.get" }, times: 2, effect: { type: "hold" } });
    const resumed = [resume(kept.params(), driver), resume(kept.params(), driver)];
    await provider.waitFor(() => rule.hits === 2);
    const released = driver.release(kept.params());
    const reasons = await Promise.all(resumed.map((one) => rejection(one)));
    for (const reason of reasons) expectAborted(reason);
    expect(reasons[0]).toBe(reasons[1]);
    await within(released);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
  });
});

describe("in the same tick", () => {
  test("a resume and then a release: the resume is aborted, and the sandbox ends paused", async () => {
    const provider = await provide();
    for (let round = 0; round < 5; round += 1) {
      const kept = await persist(provider);
      const driver = looseDriver();
      const resumed = rejection(resume(kept.params(), driver));
      const released = driver.release(kept.params());
      expect(driver.leaseState(kept.params(), kept.id)).toBe("closing");
      expectAborted(await resumed);
      await within(released);
      await turns();
      expect(provider.sandbox(kept.id)?.status).toBe("paused");
      expectResumed(await resume(kept.params(), driver), kept.params());
    }
  });

  test("a resume and then a destroy", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const resumed = rejection(resume(kept.params(), driver));
    const destroyed = driver.destroy(kept.params());
    expectAborted(await resumed);
    await within(destroyed);
    await provider.waitForState(kept.id, "destroyed");
  });

  test("a release and then a resume: the resume is refused, and the release goes on", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const driver = looseDriver();
    const released = driver.release(kept.params());
    expectCreateosError(await rejection(resume(kept.params(), driver)), CLEANUP_FIRST);
    await within(released);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
    expectResumed(await resume(kept.params(), driver), kept.params());
  });

  test("a resume and then a shutdown, which waits for it", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const order: string[] = [];
    const resumed = rejection(resume(kept.params(), driver)).then((reason) => {
      order.push("resume");
      return reason;
    });
    const down = driver.shutdown().then(() => order.push("shutdown"));
    expectAborted(await within(resumed));
    await within(down);
    expect(order).toEqual(["resume", "shutdown"]);
    expect(driver.leaseState(kept.params(), kept.id)).toBe("shutdown");
  });

  test("a shutdown and then a resume: refused without a request", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const start = provider.requests.length;
    const down = driver.shutdown();
    expectCreateosError(await rejection(resume(kept.params(), driver)), CLEANUP_FIRST);
    await down;
    expect(routesSince(provider, start)).toEqual([]);
  });

  test("a resume and the abort of the caller's own signal", async () => {
    const kept = await persist(await provide());
    const controller = new AbortController();
    const resumed = resume(kept.params(), looseDriver(), { signal: controller.signal });
    const own = { own: true };
    controller.abort(own);
    expect(await rejection(resumed)).toBe(own);
  });
});

describe("a call during a resume", () => {
  test("is admitted, and both are aborted and awaited by a release", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const rule = provider.faults.add({ match: { path: "exec" }, times: 1, effect: { type: "hold" } });
    const resumed = resume(kept.params(), driver);
    await within(rule.hit);
    const call = hold(driver, kept.params());
    const start = provider.requests.length;
    const released = watch(driver.release(kept.params()));
    const [reason, own] = [await rejection(resumed), await abortion(call.signal)];
    expectAborted(reason);
    expect(reason).toBe(own);
    await turns();
    expect(released.state).toBe("pending");
    expect(routesSince(provider, start)).toEqual([]);
    expectCreateosError(await rejection(driver.track(kept.params(), () => {})), CLOSING);
    call.resolve();
    await within(released.promise);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
  });

  test("goes on when the resume fails, and when it is given up by its caller", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const call = hold(driver, kept.params());
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "status", status: 500 } });
    expect(await rejection(resume(kept.params(), driver))).toMatchObject({ status: 500 });
    rule.remove();
    const controller = new AbortController();
    const resumed = resume(kept.params(), driver, { signal: controller.signal });
    controller.abort();
    await rejection(resumed);
    expect(call.signal.aborted).toBe(false);
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
    call.resolve("done");
    expect(await call.promise).toBe("done");
  });

  test("that fails in its clean-up leaves the lease unconfirmed, whatever the resume answers", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const driver = looseDriver();
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    const resumed = resume(kept.params(), driver);
    await within(rule.hit);
    const call = hold(driver, kept.params());
    call.reject(Object.assign(new Error("left something"), { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }));
    await rejection(call.promise);
    rule.release();
    await within(resumed.catch(() => {}));
    expect(driver.leaseState(kept.params(), kept.id)).toBe("unconfirmed");
    expectCreateosError(await rejection(resume(kept.params(), driver)), CLEANUP_FIRST);
    await within(driver.destroy(kept.params()));
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  });
});

test("a release for reuse under another key does not abort a resume", async () => {
  const provider = await provide({ apiKeys: { old: "owner", new: "owner" } });
  const kept = await persist(provider, { key: "old" });
  const driver = looseDriver();
  const rule = provider.faults.add({ match: { path: "sandbox.get" }, times: 1, effect: { type: "hold" } });
  const resumed = watch(resume(kept.params(), driver));
  await within(rule.hit);
  await within(driver.release(kept.params({ config: { apiKey: "new" } })));
  expect(resumed.state).toBe("pending");
  rule.release();
  expectResumed(await within(resumed.promise), kept.params());
});
