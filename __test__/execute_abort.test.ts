// Whatever a command waits for, a release, a destroy, the caller's signal, the deadline or a shutdown ends it, with all that
// runs of it (specification, section 9): each of its waits, against each of them, while what it has asked for is never
// answered and while it is answered too late.
import { describe, expect, test, vi } from "vitest";
import { PIECES, SILENT, STAYS, executor, expectAccountedFor, place, sh, withInput } from "./support/executes.js";
import { ENDS, OWN, play, type Answer } from "./support/executes_abort.js";
import { CREATE, DELETE, on, status, tooMany } from "./support/executes_faults.js";
import { SCENES } from "./support/executes_scenes.js";
import { expectCreateosError } from "./support/errors.js";
import { lease } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { alive } from "./support/resumes.js";
import { deferred, rejection, turns, within } from "./support/waiting.js";

// All at once: each waits for a pause or a bound and does nothing meanwhile. On a busy machine a deadline may have to be
// played again, and longer.
vi.setConfig({ maxConcurrency: 40, testTimeout: 60_000 });

const ANSWERS: Answer[] = ["never", "late"];

const MEETINGS = SCENES.flatMap((scene) =>
  ENDS.flatMap((end) =>
    ANSWERS.filter((answer) => answer === "never" || !scene.isPause).map(
      (answer) => [`${scene.name}: ${end.name}${scene.isPause ? "" : `, answered ${answer}`}`, scene, end, answer] as const,
    ),
  ),
);

test.concurrent.for(MEETINGS)("%s", ([, scene, end, answer], context) => play(scene, end, answer, context));

const CANCELLED = { code: "ERR_CREATEOS_CANCELLED", message: "CreateOS command was cancelled." };

describe.concurrent("a command that has asked for nothing yet", () => {
  /** Less than any answer would be waited for. */
  const AT_ONCE_MS = 3000;

  test.concurrent("asks for nothing when its signal is aborted already", async (context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const start = at.provider.requests.length;
    const reason = await rejection(driver.execute(at.params(SILENT), null, { signal: AbortSignal.abort(OWN) }));
    expect(reason).toBe(OWN);
    expect(routesSince(at.provider, start)).toEqual([]);
    expectAccountedFor(at, driver, reason);
  });

  test.concurrent.for([
    ["with input", withInput(SILENT)],
    ["without input", SILENT],
  ] as const)("is given up at once while it waits for its turn, %s", async ([, command], context) => {
    const at = await place(await provide({}, context));
    const client = new lease.CreateosClient(at.params().config as never);
    // The whole budget of a minute, so that the command has to wait for nearly as long.
    await Promise.all(Array.from({ length: 300 }, () => client.destroySandbox("sb-none")));
    const start = at.provider.requests.length;
    const driver = executor();
    const controller = new AbortController();
    const params = at.params(command);
    const executed = [driver.execute(params), driver.execute(params, null, { signal: controller.signal })];
    const reasons = executed.map((one) => rejection(one));
    await turns();
    const began = performance.now();
    controller.abort(OWN);
    const down = driver.shutdown();
    expect(await reasons[1]).toBe(OWN);
    expectCreateosError(await reasons[0], CANCELLED);
    await within(down);
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
    expect(routesSince(at.provider, start)).toEqual([]);
  });

  test.concurrent("is given up at once while it has to wait before it may ask again (429)", async (context) => {
    const at = await place(await provide({}, context));
    const rule = at.provider.faults.add(on(CREATE, tooMany(30)));
    const driver = executor();
    const controller = new AbortController();
    const reason = rejection(driver.execute(at.params(SILENT), null, { signal: controller.signal }));
    const { id } = await within(rule.hit);
    await at.provider.waitFor((event) => event.type === "request:finish" && event.request.id === id);
    await turns();
    const began = performance.now();
    controller.abort(OWN);
    expect(await reason).toBe(OWN);
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS);
    expectAccountedFor(at, driver, OWN);
  });
});

describe.concurrent("a command", () => {
  test.concurrent.for([
    ["in the tick in which it was called", 0],
    ["a turn later", 1],
    ["some turns later", 8],
  ] as const)("that is released %s leaves nothing behind", async ([, count], context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const reason = rejection(driver.execute(at.params(STAYS)));
    if (count > 0) await turns(count);
    await within(driver.release(at.params()));
    expectCreateosError(await reason, CANCELLED);
    expectAccountedFor(at, driver, await reason);
    expect(at.provider.sandbox(at.id)?.status).toBe("paused");
  });

  test.concurrent.for([1, 5, 20, 60])("whose deadline is %i ms leaves nothing behind", async (timeoutMs, context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const result = await within(driver.execute(at.params({ ...STAYS, timeoutMs })));
    expect(result).toMatchObject({ timedOut: true, exitCode: null, signal: null });
    expectAccountedFor(at, driver, undefined);
  });

  test.concurrent("that takes no notice of SIGTERM is ended all the same", async (context) => {
    const at = await place(await provide(PIECES, context));
    const driver = executor();
    const begun = deferred();
    const stubborn = sh("trap '' TERM; (trap '' TERM; sleep 1000) & printf begun; while :; do sleep 0.1; done");
    const reason = rejection(driver.execute(at.params(stubborn), () => begun.resolve()));
    await within(begun.promise);
    await within(driver.release(at.params()));
    expectCreateosError(await reason, CANCELLED);
    expectAccountedFor(at, driver, await reason);
  });

  test.concurrent("is ended by a release from within its own onOutput", async (context) => {
    const at = await place(await provide(PIECES, context));
    const driver = executor();
    const released = deferred<unknown>();
    let calls = 0;
    const reason = await rejection(
      driver.execute(at.params(STAYS), () => {
        calls += 1;
        released.resolve(driver.release(at.params()));
      }),
    );
    expectCreateosError(reason, CANCELLED);
    await within(released.promise);
    expect(calls).toBe(1);
    expectAccountedFor(at, driver, reason);
  });

  // Neither is taken for an abort of the lease's own, which looks the same.
  test.concurrent.for([
    ["without a reason", () => AbortSignal.abort()],
    ["of a timer", () => AbortSignal.timeout(1)],
  ] as const)("is ended by a signal %s with that signal's reason", async ([, make], context) => {
    const at = await place(await provide(PIECES, context));
    const driver = executor();
    const controller = new AbortController();
    const begun = deferred();
    const reason = rejection(driver.execute(at.params(STAYS), () => begun.resolve(), { signal: controller.signal }));
    await within(begun.promise);
    const other = make();
    if (!other.aborted) await new Promise((resolve) => other.addEventListener("abort", resolve, { once: true }));
    controller.abort(other.reason);
    expect(await reason).toBe(other.reason);
    expectAccountedFor(at, driver, undefined);
  });

  test.concurrent("is ended by the first of two ends", async (context) => {
    const at = await place(await provide(PIECES, context));
    const driver = executor();
    const controller = new AbortController();
    const begun = deferred();
    const reason = rejection(driver.execute(at.params(STAYS), () => begun.resolve(), { signal: controller.signal }));
    await within(begun.promise);
    controller.abort(OWN);
    await within(driver.release(at.params()));
    expect(await reason).toBe(OWN);
    expectAccountedFor(at, driver, OWN);
  });
});

describe.concurrent("several commands of a lease", () => {
  test.concurrent("are all ended by its release", async (context) => {
    const at = await place(await provide(PIECES, context));
    const driver = executor();
    const begun = Array.from({ length: 8 }, () => deferred());
    const reasons = begun.map((one) => rejection(driver.execute(at.params(STAYS), () => one.resolve())));
    await within(Promise.all(begun.map((one) => one.promise)));
    expect(alive(at.provider, at.id)).toHaveLength(8);
    await within(driver.release(at.params()));
    for (const reason of await Promise.all(reasons)) expectCreateosError(reason, CANCELLED);
    expectAccountedFor(at, driver, undefined);
    expect(at.provider.sandbox(at.id)?.status).toBe("paused");
  });

  test.concurrent("one that cannot be ended keeps the lease from being reused", async (context) => {
    const at = await place(await provide(PIECES, context));
    const driver = executor();
    const begun = [deferred(), deferred()];
    const reasons = begun.map((one) => rejection(driver.execute(at.params(STAYS), () => one.resolve())));
    await within(Promise.all(begun.map((one) => one.promise)));
    const [stubborn] = alive(at.provider, at.id);
    const isStubborn = ({ path }: { path: string }) => path.endsWith(`/${stubborn}`);
    at.provider.faults.add({ match: { path: DELETE, when: isStubborn }, effect: status(500) });
    const refused = await rejection(driver.release(at.params()));
    expect(refused).toMatchObject({ code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" });
    const codes = (await Promise.all(reasons)).map((reason) => reason.code).toSorted();
    expect(codes).toEqual(["ERR_CREATEOS_CANCELLED", "ERR_CREATEOS_CLEANUP_UNCONFIRMED"]);
    expect(driver.leaseState(at.params(), at.id)).toBe("unconfirmed");
    expect(alive(at.provider, at.id)).toEqual([stubborn]);
    await within(driver.destroy(at.params()));
    expect(driver.leaseState(at.params(), at.id)).toBe("open");
    await at.provider.waitForState(at.id, "destroyed");
  });
});
