// Whatever a resume waits for, a release, a destroy, a shutdown, the deadline or the caller's signal ends it
// (specification, section 8): each of its waits, against each of them, while what it has asked for is never answered.
import { describe, expect, test } from "vitest";
import { expectAborted } from "./support/errors.js";
import { lease, looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { ENDS, SCENES, play } from "./support/resume_abort.js";
import { commandMarker, persist, resume, sleeping, startProcess } from "./support/resumes.js";
import { rejection, turns, within } from "./support/waiting.js";

/** A second for the answer of a request that has left, and what a busy machine needs. */
const MOST_MS = 4000;

describe.each(SCENES)("$name", (scene) => {
  test.concurrent.for(ENDS)("$name", async (end, context) => {
    const { waitedMs } = await play(scene, end, "never", context);
    expect(waitedMs).toBeLessThan(MOST_MS);
  });
});

describe("a request that has not left yet is given up at once", () => {
  /** Less than the second that an answer would be waited for. */
  const AT_ONCE_MS = 700;

  test.concurrent("while it waits for its turn", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider);
    const client = new lease.CreateosClient(kept.params().config as never);
    // The whole budget of a minute, so that the resume has to wait for nearly as long.
    await Promise.all(Array.from({ length: 300 }, () => client.destroySandbox("sb-none")));
    const start = provider.requests.length;
    const driver = looseDriver();
    const controller = new AbortController();
    const resumed = [resume(kept.params(), driver), resume(kept.params(), driver, { signal: controller.signal })];
    const reasons = resumed.map((one) => rejection(one));
    await turns();
    const began = performance.now();
    controller.abort("own");
    const down = driver.shutdown();
    expectAborted(await reasons[0]);
    expect(await reasons[1]).toBe("own");
    await within(down);
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
    expect(routesSince(provider, start)).toEqual([]);
  });

  test.concurrent("while it waits to be sent again (429)", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider);
    const headers = { "retry-after": "30" };
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "status", status: 429, headers } });
    const controller = new AbortController();
    const resumed = rejection(resume(kept.params(), looseDriver(), { signal: controller.signal }));
    const { id } = await within(rule.hit);
    await provider.waitFor((event) => event.type === "request:finish" && event.request.id === id);
    await turns();
    const began = performance.now();
    controller.abort("own");
    expect(await resumed).toBe("own");
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
  });
});

describe("an answer that has begun", () => {
  test.concurrent("and trickles on and on is not waited for either", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider);
    // Each piece comes within the second.
    const effect = [
      { type: "patch", set: { result: { exit_code: 0, stdout: kept.marker + "0".repeat(2000) } } },
      { type: "slowBody", bytes: 1, everyMs: 50 },
    ] as const;
    const rule = provider.faults.add({ match: { path: "exec" }, effect: [...effect] });
    const driver = looseDriver();
    const resumed = resume(kept.params(), driver);
    await within(rule.hit);
    const began = performance.now();
    const released = driver.release(kept.params());
    released.catch(() => {});
    expectAborted(await rejection(resumed));
    await within(released);
    expect(performance.now() - began).toBeLessThan(MOST_MS);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
  });
});

describe("the destroy of a sandbox in which a command could not be ended", () => {
  // The destroy has a deadline of its own, so it is not given up with the resume: a release would have to do it again.
  test.concurrent("goes on to its end, and what has aborted the resume comes after it", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider, { state: "running" });
    await startProcess(kept, sleeping(commandMarker()));
    provider.faults.add({ match: { path: "process.delete" }, effect: { type: "treeAlive" } });
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "hold" } });
    const driver = looseDriver();
    const resumed = resume(kept.params(), driver);
    resumed.catch(() => {});
    await within(rule.hit);
    const start = provider.requests.length;
    const destroyed = driver.destroy(kept.params());
    rule.release();
    await within(destroyed);
    expect(routesSince(provider, start).filter((route) => route !== "sandbox.get")).toEqual(["sandbox.destroy"]);
    await provider.waitForState(kept.id, "destroyed");
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  });

  test.concurrent("that is never answered holds no release for longer than a few seconds", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider, { state: "running" });
    await startProcess(kept, sleeping(commandMarker()));
    provider.faults.add({ match: { path: "process.delete" }, effect: { type: "treeAlive" } });
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "hold" } });
    const driver = looseDriver();
    const resumed = resume(kept.params(), driver);
    resumed.catch(() => {});
    await within(rule.hit);
    await within(driver.destroy(kept.params()), MOST_MS, "The destroy");
    await provider.waitForState(kept.id, "destroyed");
  });
});
