// The rules of a run are in force before anything of it runs (specification, section 8).
import { describe, expect, test } from "vitest";
import { lease, looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import {
  EFFECTIVE,
  EXPIRED,
  expectResumed,
  lookedAt,
  pause,
  persist,
  resume,
  type Persisted,
} from "./support/resumes.js";
import { rejection, turns, watch, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

type Status = NonNullable<ReturnType<Provider["sandbox"]>>["status"];

/** The state in which a sandbox was at each of a route's requests, as they come in. */
function statesAt(provider: Provider, route: string): Status[] {
  const states: Status[] = [];
  provider.on("request:start", ({ request }) => {
    const status = provider.sandbox(request.sandboxId ?? "")?.status;
    if (request.route === route && status !== undefined) states.push(status);
  });
  return states;
}

/** The rules that a sandbox has, asked of the provider. */
async function rulesOf({ id, params }: Persisted): Promise<string[]> {
  const client = new lease.CreateosClient(params().config as never);
  return (await client.json<{ egress: string[] }>(`/sandboxes/${id}/egress`)).egress;
}

describe("the recorded effective rules", () => {
  test("are set while the sandbox is paused, and the resume is asked for only when they are", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const states = statesAt(provider, "egress.put");
    // The answer is what counts, not that the request has left.
    const rule = provider.faults.add({ match: { path: "egress.put" }, effect: { type: "hold", when: "after" } });
    const start = provider.requests.length;
    const resumed = resume(kept.params());
    await within(rule.hit);
    await turns(50);
    expect(routesSince(provider, start)).toEqual(["sandbox.get", "egress.put"]);
    rule.release();
    expectResumed(await resumed, kept.params());
    expect(states).toEqual(["paused"]);
    expect(await rulesOf(kept)).toEqual(EFFECTIVE);
    const put = provider.requests.find(({ route }) => route === "egress.put");
    expect(put).toMatchObject({ method: "PUT", body: { egress: EFFECTIVE }, path: `/v1/sandboxes/${kept.id}/egress` });
  });

  test("are set in a running sandbox before the answer", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const states = statesAt(provider, "egress.put");
    const rule = provider.faults.add({ match: { path: "egress.put" }, effect: { type: "hold" } });
    const resumed = watch(resume(kept.params()));
    await within(rule.hit);
    await turns(50);
    expect(resumed.state).toBe("pending");
    expect(await rulesOf(kept)).toEqual(["*"]);
    rule.release();
    expectResumed(await within(resumed.promise), kept.params());
    expect(states).toEqual(["running"]);
    expect(await rulesOf(kept)).toEqual(EFFECTIVE);
  });

  test("are set as they were recorded, whatever the order and however often", async () => {
    const provider = await provide();
    const rules = ["z.example", "*.a.example", "10.0.0.0/8", "z.example"];
    const kept = await persist(provider, { metadata: { effectiveEgressAllowlist: rules } });
    expectResumed(await resume(kept.params()), kept.params());
    expect(provider.requests.find(({ route }) => route === "egress.put")?.body).toEqual({ egress: rules });
  });

  test("are set again by every resume: somebody may have changed them", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const client = new lease.CreateosClient(kept.params().config as never);
    for (let round = 0; round < 2; round += 1) {
      await client.setEgress(kept.id, ["another.example"]);
      await resume(kept.params());
      expect(await rulesOf(kept)).toEqual(EFFECTIVE);
    }
  });
});

describe("a state that passes is waited for, and no rule is set in it", () => {
  type Passing = "pausing" | "resuming" | "creating";
  const stick: Record<Passing, (provider: Provider, kept: Persisted) => Promise<void>> = {
    async pausing(provider, kept) {
      const rule = provider.faults.add({ match: { path: "sandbox.pause" }, times: 1, effect: { type: "stuck" } });
      const client = new lease.CreateosClient(kept.params().config as never);
      await client.json(`/sandboxes/${kept.id}/pause`, "POST");
      rule.remove();
    },
    async resuming(provider, kept) {
      await pause(provider, kept.id);
      const rule = provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "stuck" } });
      const client = new lease.CreateosClient(kept.params().config as never);
      await client.json(`/sandboxes/${kept.id}/resume`, "POST");
      rule.remove();
    },
    // A sandbox that is being created is shown so, since it has the marker of no lease yet.
    async creating(provider) {
      const effect = { type: "patch" as const, set: { status: "creating" } };
      provider.faults.add({ match: { path: "sandbox.get" }, times: 4, effect });
    },
  };
  const settles = { pausing: "paused", resuming: "running", creating: "running" } as const;

  test.each(Object.keys(stick) as Passing[])("%s", async (state) => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const states = statesAt(provider, "egress.put");
    await stick[state](provider, kept);
    if (state !== "creating") expect(provider.sandbox(kept.id)?.status).toBe(state);
    const start = provider.requests.length;
    const resumed = resume(kept.params());
    for (let looks = 0; looks < 3; looks += 1) await lookedAt(provider, kept.id, provider.mark());
    expect(new Set(routesSince(provider, start))).toEqual(new Set(["sandbox.get"]));
    provider.guest.unstick(kept.id);
    expectResumed(await within(resumed), kept.params());
    expect(states).toEqual([settles[state]]);
    const routes = routesSince(provider, start);
    expect(routes.includes("sandbox.resume")).toBe(state === "pausing");
    if (state === "pausing") expect(routes.indexOf("egress.put")).toBeLessThan(routes.indexOf("sandbox.resume"));
  });

  test("a pause of the provider's that takes its time", async () => {
    const provider = await provide({ delays: { pause: 150, resume: 150 } });
    const kept = await persist(provider, { state: "running" });
    const states = statesAt(provider, "egress.put");
    provider.guest.pause(kept.id);
    expectResumed(await resume(kept.params()), kept.params());
    expect(states).toEqual(["paused"]);
  });
});

describe("a sandbox that begins to pause by itself between the look and the rules", () => {
  test("refuses them (409), is waited for, and gets them when it is paused", async () => {
    const provider = await provide({ delays: { pause: 100 } });
    const kept = await persist(provider, { state: "running" });
    // The provider contract leaves open in which states the rules are taken; some answer as this does.
    const states = statesAt(provider, "egress.put");
    const rule = provider.faults.add({
      match: { path: "egress.put" },
      times: 1,
      effect: [{ type: "guestPause" }, { type: "status", status: 409 }],
    });
    const start = provider.requests.length;
    expectResumed(await within(resume(kept.params())), kept.params());
    expect(rule.hits).toBe(1);
    expect(states).toEqual(["running", "paused"]);
    const routes = routesSince(provider, start);
    expect(routes.filter((route) => route === "sandbox.resume")).toHaveLength(1);
    expect(routes.lastIndexOf("egress.put")).toBeLessThan(routes.indexOf("sandbox.resume"));
    expect(await rulesOf(kept)).toEqual(EFFECTIVE);
  });

  test("a refusal that never ends surfaces", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const effect = { type: "status" as const, status: 409 };
    const rule = provider.faults.add({ match: { path: "egress.put" }, effect });
    expect(await rejection(resume(kept.params()))).toMatchObject({ code: "ERR_CREATEOS_API", status: 409 });
    expect(rule.hits).toBeGreaterThan(1);
    expect(rule.hits).toBeLessThan(10);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
    rule.remove();
    expectResumed(await resume(kept.params()), kept.params());
  });

  test("one that is destroyed then has expired", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const effect = [{ type: "guestDelete" as const }, { type: "status" as const, status: 409 }];
    provider.faults.add({ match: { path: "egress.put" }, times: 1, effect });
    expect(await within(resume(kept.params()))).toEqual(EXPIRED);
  });
});

describe("rules that are refused", () => {
  test("surface (400), and the sandbox is not resumed without them", async () => {
    const provider = await provide();
    const kept = await persist(provider, { metadata: { effectiveEgressAllowlist: ["no rule at all"] } });
    const start = provider.requests.length;
    const reason = await rejection(resume(kept.params()));
    expect(reason).toMatchObject({ code: "ERR_CREATEOS_API", status: 400 });
    expect(routesSince(provider, start)).toEqual(["sandbox.get", "egress.put"]);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
  });

  test("nor with an answer that no provider gives", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    for (const effect of [
      { type: "envelope", variant: "fail" },
      { type: "envelope", variant: "noStatus" },
      { type: "status", status: 200, body: "<html>a gateway's page</html>" },
    ] as const) {
      const rule = provider.faults.add({ match: { path: "egress.put" }, effect });
      expect(await rejection(resume(kept.params()))).toMatchObject({ code: "ERR_CREATEOS_RESPONSE" });
      expect(provider.sandbox(kept.id)?.status).toBe("paused");
      rule.remove();
    }
    const effect = { type: "envelope", variant: "noContent" } as const;
    const rule = provider.faults.add({ match: { path: "egress.put" }, effect });
    expectResumed(await resume(kept.params()), kept.params());
    expect(rule.hits).toBe(1);
  });
});

describe("the resume of the sandbox is asked for", () => {
  test("when a sandbox that was found running pauses by itself as soon as it has its rules", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const effect = { type: "guestPause", when: "after" } as const;
    const rule = provider.faults.add({ match: { path: "egress.put" }, times: 1, effect });
    expectResumed(await within(resume(kept.params())), kept.params());
    expect(rule.hits).toBe(1);
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });

  test("by the next resume, when it pauses by itself between the last look and what follows it", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const effect = { type: "guestPause", when: "after" } as const;
    provider.faults.add({ match: { path: "sandbox.get" }, skip: 1, times: 1, effect });
    expect(await rejection(resume(kept.params()))).toMatchObject({ code: "ERR_CREATEOS_API", status: 409 });
    expectResumed(await within(resume(kept.params())), kept.params());
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });

  test("once, though the next reads still show the old state", async () => {
    const provider = await provide({ switches: { oldStateReads: 3 } });
    const kept = await persist(provider);
    const start = provider.requests.length;
    expectResumed(await within(resume(kept.params())), kept.params());
    expect(routesSince(provider, start).filter((route) => route === "sandbox.resume")).toHaveLength(1);
  });

  test("again when it was refused because the sandbox had just changed (409)", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const effect = { type: "status" as const, status: 409 };
    provider.faults.add({ match: { path: "sandbox.resume" }, times: 2, effect });
    const start = provider.requests.length;
    expectResumed(await within(resume(kept.params())), kept.params());
    expect(routesSince(provider, start).filter((route) => route === "sandbox.resume")).toHaveLength(3);
    expect(routesSince(provider, start).filter((route) => route === "egress.put")).toHaveLength(1);
  });

  test("by the next resume, when it has ended in error", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "resumeError" } });
    const driver = looseDriver();
    expect(await rejection(resume(kept.params(), driver))).toMatchObject({
      code: "ERR_CREATEOS_STATE",
      message: "CreateOS sandbox did not reach running.",
    });
    expect(provider.sandbox(kept.id)?.status).toBe("error");
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });
});
