// A release with `confirm` resolves when the provider shows what has become of the sandbox, and not before
// (specification, sections 5 and 8).
import { describe, expect, test } from "vitest";
import { expectCreateosError, expectTimedOut, UNCONFIRMED, type Expected } from "./support/errors.js";
import { arrange, destroyed, destroyers } from "./support/confirmed_releases.js";
import { NO_CONNECTION, NO_IDENTITY, NO_JSON, api, type Effect } from "./support/failed_requests.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease } from "./support/package.js";
import { routesSince } from "./support/providers.js";
import { abortion, rejection, turns, watch, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

const DESTROY = "sandbox.destroy";
const GET = "sandbox.get";
const show = (status: string): Effect => ({ type: "patch", set: { status } });

/** Waits until so many looks have been answered since a mark. */
async function looked(provider: Provider, looks: number, since: number): Promise<void> {
  let mark = since;
  for (let left = looks; left > 0; left -= 1) {
    await provider.waitFor((event) => event.type === "request:finish" && event.request.route === GET, { since: mark });
    mark = provider.mark();
  }
}

const count = (provider: Provider, start: number, route: string) =>
  routesSince(provider, start).filter((one) => one === route).length;

describe.each(destroyers)("%s", (_name, ask) => {
  test.concurrent.for([false, true])(
    "is pending as long as the sandbox is being destroyed; a gone one answers 404: %s",
    async (destroyedIs404, context) => {
      const { provider, id, params, driver, start } = await arrange(context, { switches: { destroyedIs404 } });
      provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
      const mark = provider.mark();
      const released = watch(ask(driver, params));
      await looked(provider, 4, mark);
      await turns();
      expect([released.state, provider.sandbox(id)?.status]).toEqual(["pending", "destroying"]);
      provider.faults.clear();
      provider.guest.unstick(id);
      expect(await within(released.promise)).toEqual(destroyed(id));
      expect(provider.sandbox(id)?.status).toBe("destroyed");
      expect(count(provider, start, DESTROY)).toBe(1);
      expect(routesSince(provider, start).at(-1)).toBe(GET);
    },
  );

  test.concurrent("a sandbox that is not there: no receipt, since it may be another account's", async (context) => {
    const { provider, id, params, driver, start } = await arrange(context);
    expect(await within(ask(driver, leaseParams({ provider, id: "sb-none" })))).toBeUndefined();
    provider.faults.add({ match: { path: DESTROY }, times: 1, effect: { type: "status", status: 404 } });
    expect(await within(ask(driver, params))).toBeUndefined();
    expect(routesSince(provider, start)).toEqual([DESTROY, DESTROY]);
    // A later one may show it.
    expect(await within(ask(driver, params))).toEqual(destroyed(id));
  });

  test.concurrent("a removed one: its removal may be repeated, and shows it destroyed", async (context) => {
    const { provider, id, params, driver } = await arrange(context);
    expect(await within(ask(driver, params))).toEqual(destroyed(id));
    const start = provider.requests.length;
    expect(await within(ask(driver, params))).toEqual(destroyed(id));
    expect(routesSince(provider, start)).toEqual([DESTROY]);
  });

  test.concurrent("what is destroyed as it answers is not looked at", async (context) => {
    const { provider, id, params, driver } = await arrange(context, { switches: { inlineDestroy: true } });
    provider.guest.pause(id);
    await provider.waitForState(id, "paused");
    const start = provider.requests.length;
    expect(await within(ask(driver, params))).toEqual(destroyed(id));
    expect(routesSince(provider, start)).toEqual([DESTROY]);
  });

  test.concurrent("an answer without a state is looked behind", async (context) => {
    for (const effect of [
      { type: "patch", omit: ["status"] },
      { type: "envelope", variant: "noContent" },
      { type: "patch", set: { status: 7 } },
      // Only what names this very sandbox proves anything.
      { type: "patch", set: { id: "sb-other", status: "destroyed" } },
      { type: "patch", set: { status: "destroyed" }, omit: ["id"] },
    ] as Effect[]) {
      const { provider, id, params, driver, start } = await arrange(context);
      provider.faults.add({ match: { path: DESTROY }, effect });
      expect(await within(ask(driver, params))).toEqual(destroyed(id));
      expect(routesSince(provider, start).slice(0, 2)).toEqual([DESTROY, GET]);
    }
  });

  test.concurrent("without confirm: nothing, after one DELETE and no look", async (context) => {
    const none = [null, {}, { confirm: undefined }, { confirm: null }, { confirm: false }, { confirmed: true }];
    for (const options of none) {
      const { provider, params, driver, start } = await arrange(context);
      const rule = provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
      expect(await within(ask(driver, params, options))).toBeUndefined();
      expect(routesSince(provider, start)).toEqual([DESTROY]);
      rule.remove();
    }
  });
});

describe("a look", () => {
  const passed: [string, Effect][] = [
    ["HTTP 500", { type: "status", status: 500 }],
    ["HTTP 502 in HTML", { type: "status", status: 502, body: "<html>Bad Gateway</html>" }],
    ["HTTP 503", { type: "status", status: 503 }],
    ["a lost request", { type: "lostRequest" }],
    ["a lost reply", { type: "lostReply" }],
    ["a redirect", { type: "redirect", location: "/elsewhere" }],
  ];
  test.concurrent.for(passed)("that fails for a moment is passed over: %s", async ([_name, effect], context) => {
    const { provider, id, params, driver, start } = await arrange(context);
    const rule = provider.faults.add({ match: { path: GET }, times: 2, effect });
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
    expect([rule.hits, count(provider, start, GET), count(provider, start, DESTROY)]).toEqual([2, 3, 1]);
  });

  // Half an answer reads as "invalid JSON", but the connection has broken, a little later than with a lost reply.
  test("that fails for a moment is passed over: a connection that breaks in the body", async (context) => {
    const { provider, id, params, driver } = await arrange(context);
    provider.faults.add({ match: { path: GET }, times: 1, effect: { type: "cutBody", after: 10 } });
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
  });

  const surfacing: [string, Effect, Expected][] = [
    ...[400, 401, 403, 409].map((status): [string, Effect, ReturnType<typeof api>] => [
      `HTTP ${status}`,
      { type: "status", status },
      api(status, "sandbox lifecycle"),
    ]),
    ["no JSON", { type: "invalidJson" }, NO_JSON],
    ["another sandbox's", { type: "wrongId" }, NO_IDENTITY],
    ["no state", { type: "patch", omit: ["status"] }, NO_IDENTITY],
  ];
  test.concurrent.for(surfacing)("that fails for good surfaces: %s", async ([_name, effect, expected], context) => {
    const { provider, id, params, driver } = await arrange(context, { config: { reuseLease: true } });
    await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
    const rule = provider.faults.add({ match: { path: GET }, effect });
    expectCreateosError(await rejection(driver.destroy(params, { confirm: true })), expected);
    expect(rule.hits).toBe(1);
    // Nobody has seen it gone, so the mark stays; the release can be tried again.
    expect(driver.leaseState(params, id)).toBe("unconfirmed");
    expectCreateosError(await rejection(driver.release(params, false, { confirm: true })), UNCONFIRMED);
    rule.remove();
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
    expect(driver.leaseState(params, id)).toBe("open");
  });

  test.concurrent.for(["error", "failed"])("that shows `%s` has it removed again", async (status, context) => {
    const { provider, id, params, driver, start } = await arrange(context);
    provider.faults.add({ match: { path: DESTROY }, times: 1, effect: { type: "stuck" } });
    provider.faults.add({ match: { path: GET }, times: 2, effect: show(status) });
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
    expect(routesSince(provider, start).slice(0, 5)).toEqual([DESTROY, GET, DESTROY, GET, DESTROY]);
  });

  // Its own removal was accepted before, so there HTTP 404 is a proof.
  test.concurrent("that shows it failed, where the removal then says that it is gone", async (context) => {
    const gone: Effect[] = [{ type: "status", status: 404 }, show("destroyed")];
    for (const effect of gone) {
      const { provider, id, params, driver, start } = await arrange(context);
      provider.faults.add({ match: { path: GET }, effect: show("failed") });
      provider.faults.add({ match: { path: DESTROY }, skip: 1, effect });
      expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
      expect(routesSince(provider, start)).toEqual([DESTROY, GET, DESTROY]);
    }
  });

  test.concurrent.for(["running", "paused", "resuming", "hibernating"])(
    "may show an old state for a while (`%s`): the removal is not repeated for that",
    async (status, context) => {
      const { provider, id, params, driver, start } = await arrange(context);
      provider.faults.add({ match: { path: GET }, times: 4, effect: show(status) });
      expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
      expect(routesSince(provider, start)).toEqual([DESTROY, GET, GET, GET, GET, GET]);
    },
  );

  test.concurrent("that shows the old state long after has it removed again", async (context) => {
    const { provider, id, params, driver, start } = await arrange(context);
    // The first removal was accepted and forgotten.
    const effect: Effect = { type: "status", status: 200, body: { status: "success", data: {} } };
    provider.faults.add({ match: { path: DESTROY }, times: 1, effect });
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
    expect(count(provider, start, DESTROY)).toBe(2);
    expect(count(provider, start, GET)).toBeGreaterThan(4);
  });
});

describe("a removal", () => {
  const effects: [string, Effect, Expected][] = [
    ...[400, 401, 403, 409, 500, 503].map((status): [string, Effect, ReturnType<typeof api>] => [
      `HTTP ${status}`,
      { type: "status", status },
      api(status, "sandbox lifecycle"),
    ]),
    ["a lost request", { type: "lostRequest" }, NO_CONNECTION],
    ["a lost reply", { type: "lostReply" }, NO_CONNECTION],
    ["no JSON", { type: "invalidJson" }, NO_JSON],
  ];
  test.concurrent.for(effects)(
    "that is not accepted surfaces, without a look, and can be tried again: %s",
    async ([_name, effect, expected], context) => {
      const { provider, id, params, driver, start } = await arrange(context, { config: { reuseLease: true } });
      await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
      const rule = provider.faults.add({ match: { path: DESTROY }, effect });
      expectCreateosError(await rejection(driver.destroy(params, { confirm: true })), expected);
      expect(routesSince(provider, start)).toEqual([DESTROY]);
      expect(driver.leaseState(params, id)).toBe("unconfirmed");
      rule.remove();
      expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
      expect(driver.leaseState(params, id)).toBe("open");
    },
  );

  // The provider has accepted the first one, and its next look tells.
  test.for([500, 409])("that fails for a moment when it is repeated: HTTP %i", async (status, context) => {
    const { provider, id, params, driver } = await arrange(context);
    provider.faults.add({ match: { path: GET }, times: 1, effect: show("error") });
    provider.faults.add({ match: { path: DESTROY }, skip: 1, times: 1, effect: { type: "status", status } });
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
  });
});

describe("the deadline of the configuration", () => {
  const held: [string, string, Effect][] = [
    ["the removal is not answered", DESTROY, { type: "hold" }],
    ["the removal does not end", GET, show("destroying")],
    ["no look is answered", GET, { type: "hold" }],
    ["every look fails for a moment", GET, { type: "status", status: 503 }],
    ["the old state is read for ever", GET, show("running")],
    ["the removals lead nowhere", GET, show("failed")],
  ];
  test.concurrent.for(held)("%s: a TimeoutError, and it can be tried again", async ([_name, path, effect], context) => {
    const { provider, id, params, driver } = await arrange(context, { config: { timeoutMs: 900 } });
    provider.faults.add({ match: { path: DESTROY }, effect: { type: "stuck" } });
    provider.faults.add({ match: { path }, effect });
    const began = performance.now();
    expectTimedOut(await rejection(driver.destroy(params, { confirm: true })));
    expect(performance.now() - began).toBeGreaterThan(850);
    expect(driver.leaseState(params, id)).toBe("open");
    provider.faults.clear();
    // Only a further removal restarts one that hangs, or one that was never accepted.
    expect(await within(driver.destroy(params, { confirm: true }))).toEqual(destroyed(id));
  });

  test.concurrent("begins when the calls have settled", async (context) => {
    const { provider, id, params, driver, start } = await arrange(context, { config: { timeoutMs: 900 } });
    const call = hold(driver, params, 60_000);
    const released = watch(driver.destroy(params, { confirm: true }));
    const marker = hold(driver, leaseParams({ id: "other" }), 1000);
    await abortion(marker.signal);
    expect([released.state, provider.requests.length]).toEqual(["pending", start]);
    marker.resolve();
    call.resolve();
    expect(await within(released.promise)).toEqual(destroyed(id));
  });
});
