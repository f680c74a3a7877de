// What a release does, and in which order (specification, section 5, steps 1 to 5 and 7).
import { describe, expect, test, vi } from "vitest";
import { CLOSING, expectAborted, expectCreateosError, IN_PROGRESS, MESSAGES, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams, type Client } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { makeSandbox, provide, routesSince } from "./support/providers.js";
import { abortion, deferred, rejection, turn, turns, watch, within } from "./support/waiting.js";

const FOREIGN = { code: "ERR_CREATEOS_LEASE_MISMATCH", message: MESSAGES.notForRelease };

describe("checks", () => {
  test("without an id there is nothing to release, and nothing is looked at", async () => {
    const untouched = () => expect.fail("looked at");
    for (const providerLeaseId of [null, undefined, ""]) {
      const params = Object.defineProperties(
        { providerLeaseId },
        Object.fromEntries(
          ["leaseMetadata", "companyId", "environmentId", "config"].map((name) => [name, { get: untouched }]),
        ),
      );
      const driver = looseDriver();
      expect(await driver.release(params)).toBeUndefined();
      expect(await driver.release(params, true)).toBeUndefined();
      expect(await driver.destroy(params)).toBeUndefined();
    }
    expect(await looseDriver().release({})).toBeUndefined();
  });

  test("a foreign lease is refused before the configuration, the key and a release under way", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams());
    const released = driver.release(leaseParams());
    const foreign = leaseParams({ metadata: { companyId: "theirs" } });
    expect(await rejection(driver.release({ ...foreign, config: null }))).toMatchObject(FOREIGN);
    expect(await rejection(driver.release(leaseParams({ config: { shape: "" } })))).toMatchObject({
      message: "shape must be a non-empty string.",
    });
    const elsewhere = leaseParams({ metadata: { apiUrl: "https://other.example" }, config: { apiKey: undefined } });
    expect(await rejection(driver.release(elsewhere))).toMatchObject(FOREIGN);
    expect(await rejection(driver.release(leaseParams({ config: { apiKey: undefined } })))).toMatchObject({
      code: "ERR_CREATEOS_API_KEY",
    });
    expectCreateosError(await rejection(driver.release(leaseParams())), IN_PROGRESS);
    call.resolve();
    await released;
  });

  test("a second release rejects rather than joins, of either kind after either kind", async () => {
    const provider = await provide();
    for (const first of [false, true]) {
      for (const second of [false, true]) {
        const id = await makeSandbox(provider);
        const params = leaseParams({ provider, id, config: { reuseLease: true } });
        const driver = looseDriver();
        const call = hold(driver, params);
        const released = driver.release(params, first);
        expectCreateosError(await rejection(driver.release(params, second)), IN_PROGRESS);
        expect(driver.leaseState(params, id)).toBe("closing");
        call.resolve();
        await within(released);
        await driver.destroy(params);
      }
    }
  });

  test("an id that no provider gives fails without a request, after the calls were stopped", async () => {
    const provider = await provide();
    for (const id of ["../whoami", "sb 1", "sb/1", "é", "x".repeat(201), "sb-1\n"]) {
      const params = leaseParams({ provider, id });
      const driver = looseDriver();
      const call = hold(driver, params);
      const released = watch(driver.release(params) as Promise<void>);
      expectAborted(call.signal.reason);
      await turns();
      expect(released.state).toBe("pending");
      call.resolve();
      expectCreateosError(await rejection(released.promise), {
        code: "ERR_CREATEOS_RESPONSE",
        message: "CreateOS returned an invalid resource ID.",
      });
      expect(driver.leaseState(params, id)).toBe("open");
    }
    expect(provider.requests).toEqual([]);
  });
});

describe("waits for its calls before the provider hears of it", () => {
  test("each call's own clean-up, on its own client, comes first", async () => {
    const provider = await provide();
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id });
    const driver = looseDriver();
    const goOn = deferred();
    const start = provider.requests.length;
    const tracked = driver.track(params, async (client: Client, signal: AbortSignal) => {
      await abortion(signal);
      await goOn.promise;
      // The client works after the abort of the call that it was made for.
      await client.getSandbox(id);
      return "cleaned";
    });
    const other = hold(driver, params);
    const released = watch(driver.release(params) as Promise<void>);
    await turns();
    expect(provider.requests).toHaveLength(start);
    goOn.resolve();
    expect(await tracked).toBe("cleaned");
    await turns();
    expect(routesSince(provider, start)).toEqual(["sandbox.get"]);
    expect(released.state).toBe("pending");
    other.resolve();
    await within(released.promise);
    expect(routesSince(provider, start)).toEqual(["sandbox.get", "sandbox.destroy"]);
    await provider.waitForState(id, "destroyed");
  });

  test("a call that rejects has settled as well, and its reason is not the release's", async () => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams());
    const released = driver.release(leaseParams());
    call.reject(new Error("the call's own"));
    expect(await within(released)).toBeUndefined();
  });

  test("calls in other scopes go on", async () => {
    const driver = looseDriver();
    const others = [
      hold(driver, leaseParams({ id: "sb-2" })),
      hold(driver, leaseParams({ companyId: "other" })),
      hold(driver, leaseParams({ environmentId: "other" })),
      hold(driver, leaseParams({ config: { apiKey: "other" } })),
      hold(looseDriver(), leaseParams()),
      hold(lease as never, leaseParams()),
    ];
    await within(driver.release(leaseParams()));
    expect(others.map(({ signal }) => signal.aborted)).toEqual(others.map(() => false));
    for (const call of others) call.resolve();
    await Promise.all(others.map(({ promise }) => promise));
  });
});

describe("destroy", () => {
  const asks: [string, boolean | undefined, object][] = [
    ["a configuration that does not reuse leases", undefined, {}],
    ["reuseLease false", false, { reuseLease: false }],
    ["destroy, where leases are reused", true, { reuseLease: true }],
    ["destroy, where the provider would pause it", true, { reuseLease: true, autoPauseAfterSeconds: 60 }],
    ["an idle timer without reuse", undefined, { autoPauseAfterSeconds: 60 }],
  ];
  test.each(asks)("%s", async (_name, destroy, config) => {
    const provider = await provide();
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config: { ...config }, metadata: { autoPauseAfterSeconds: 60 } });
    const start = provider.requests.length;
    expect(await looseDriver().release(params, destroy)).toBeUndefined();
    expect(provider.requests.slice(start)).toMatchObject([{ method: "DELETE", path: `/v1/sandboxes/${id}` }]);
    await provider.waitForState(id, "destroyed");
  });

  test("the default driver's release takes the flag too", async () => {
    const provider = await provide();
    const id = await makeSandbox(provider);
    await lease.release(leaseParams({ provider, id, config: { reuseLease: true } }), true);
    await provider.waitForState(id, "destroyed");
  });

  test("a sandbox that is not there is gone: by the HTTP status, whatever the body says", async () => {
    const provider = await provide();
    const driver = looseDriver();
    expect(await driver.release(leaseParams({ provider, id: "sb-none" }))).toBeUndefined();
    const match = { path: "sandbox.destroy" };
    for (const body of ['{"status":"error"}', "<html>500 internal error</html>", ""]) {
      const rule = provider.faults.add({ match, effect: { type: "status", status: 404, body } });
      expect(await driver.release(leaseParams({ provider, id: "sb-1" }))).toBeUndefined();
      rule.remove();
    }
    for (const status of [400, 403, 409, 410, 500, 502]) {
      const body = { status: "fail", code: 404, data: { reason: "HTTP 404: sandbox not found", status: 404 } };
      const rule = provider.faults.add({ match, effect: { type: "status", status, body } });
      expectCreateosError(await rejection(driver.release(leaseParams({ provider, id: "sb-1" }))), {
        name: "CreateosApiError",
        code: "ERR_CREATEOS_API",
        message: `CreateOS request failed (HTTP ${status}) during sandbox lifecycle.`,
        extra: { status, operation: "sandbox lifecycle" },
      });
      rule.remove();
    }
  });

  test("success clears the unconfirmed mark; failure leaves it, and the next try may succeed", async () => {
    const provider = await provide();
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config: { reuseLease: true } });
    const driver = looseDriver();
    await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
    const failing: Parameters<typeof provider.faults.add>[0]["effect"][] = [
      { type: "status", status: 500 },
      { type: "lostRequest" },
      { type: "redirect", location: "/elsewhere" },
    ];
    for (const effect of failing) {
      const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect });
      expect(await rejection(driver.destroy(params))).toBeInstanceOf(lease.CreateosError);
      rule.remove();
      expect(driver.leaseState(params, id)).toBe("unconfirmed");
      expectCreateosError(await rejection(driver.track(params, () => {})), CLOSING);
      expectCreateosError(await rejection(driver.release(params)), UNCONFIRMED);
    }
    expect(provider.sandbox(id)?.status).toBe("running");
    await within(driver.destroy(params));
    expect(driver.leaseState(params, id)).toBe("open");
    expect(await driver.track(params, () => "again")).toBe("again");
  });

  test("a sandbox that was gone already clears the mark as well", async () => {
    const provider = await provide();
    const params = leaseParams({ provider, id: "sb-gone" });
    const driver = looseDriver();
    await rejection(driver.track(params, () => Promise.reject(new lease.CreateosCleanupError())));
    await within(driver.release(params));
    expect(driver.leaseState(params, "sb-gone")).toBe("open");
  });

  test("a failed cleanup of a call that the destroy aborted does not stop it, and its mark is cleared", async () => {
    const provider = await provide();
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id });
    const driver = looseDriver();
    const call = hold(driver, params);
    const destroyed = driver.destroy(params);
    call.reject(new lease.CreateosCleanupError());
    await within(destroyed);
    expect(driver.leaseState(params, id)).toBe("open");
  });

  test("is bounded by the configuration's timeout, with a fresh deadline", async () => {
    const provider = await provide();
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config: { timeoutMs: 150 } });
    const driver = looseDriver();
    const call = hold(driver, params, 60_000);
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "hold" } });
    const destroyed = driver.destroy(params);
    const marker = hold(driver, leaseParams({ id: "sb-2" }), 200);
    await abortion(marker.signal);
    expect(rule.hits).toBe(0);
    call.resolve();
    const reason = await rejection(destroyed);
    expect(rule.hits).toBe(1);
    expect([reason instanceof DOMException, reason.name]).toEqual([true, "TimeoutError"]);
    expect(driver.leaseState(params, id)).toBe("open");
    marker.resolve();
  });
});

test("the closing mark lasts until the provider has answered, and is lifted then, whatever the answer", async () => {
  const provider = await provide();
  for (const status of [undefined, 500]) {
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id });
    const driver = looseDriver();
    const rule = provider.faults.add({
      match: { path: "sandbox.destroy" },
      effect: [{ type: "hold" }, ...(status === undefined ? [] : [{ type: "status" as const, status }])],
    });
    const released = driver.release(params);
    const settled = released.then(() => "resolved", () => "rejected");
    await within(rule.hit);
    expect(driver.leaseState(params, id)).toBe("closing");
    const work = vi.fn();
    expectCreateosError(await rejection(driver.track(params, work)), CLOSING);
    expectCreateosError(await rejection(driver.release(params)), IN_PROGRESS);
    rule.remove();
    expect(await within(settled)).toBe(status === undefined ? "resolved" : "rejected");
    expect(driver.leaseState(params, id)).toBe("open");
    expect(work).not.toHaveBeenCalled();
    await within(driver.release(params));
  }
});

test("at no moment is the lease open while the release is pending, or closing once it is over", async () => {
  const provider = await provide();
  const driver = looseDriver();
  for (const [destroy, config] of [
    [true, {}],
    [false, { reuseLease: true }],
    [false, { reuseLease: true, autoPauseAfterSeconds: 60 }],
  ] as const) {
    const id = await makeSandbox(provider);
    const params = leaseParams({ provider, id, config, metadata: { autoPauseAfterSeconds: 60 } });
    const released = watch(driver.release(params, destroy));
    const wrong: string[] = [];
    const look = () => {
      const state = driver.leaseState(params, id);
      if (state !== (released.state === "pending" ? "closing" : "open")) wrong.push(`${released.state}: ${state}`);
    };
    const bound = performance.now() + 10_000;
    while (released.state === "pending" && performance.now() < bound) {
      look();
      await turn();
    }
    look();
    expect(wrong).toEqual([]);
    expect(released.state).toBe("resolved");
  }
});
