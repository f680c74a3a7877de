// What a resume answers, and what it asks for on the way (specification, section 8).
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { acquire, acquireParams } from "./support/acquisitions.js";
import type { LeaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { EFFECTIVE, EXPIRED, expectResumed, pause, persist, resume } from "./support/resumes.js";
import { rejection, within } from "./support/waiting.js";

describe("asks for what it needs, in this order", () => {
  test("of a paused sandbox: a look, the rules, the resume, the marker, the processes", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const start = provider.requests.length;
    expectResumed(await resume(kept.params()), kept.params());
    const routes = routesSince(provider, start);
    // How often it looks until the sandbox runs is the provider's speed.
    const settled = routes.filter((route, at) => route !== "sandbox.get" || at < 1);
    expect(settled).toEqual(["sandbox.get", "egress.put", "sandbox.resume", "exec", "process.list"]);
    expect(routes.at(-3)).toBe("sandbox.get");
    expect(provider.sandbox(kept.id)?.status).toBe("running");
    const [set, run, marker] = ["egress.put", "sandbox.resume", "exec"].map((route) =>
      provider.requests.slice(start).find((request) => request.route === route),
    );
    expect(set?.body).toEqual({ egress: EFFECTIVE });
    expect(run).toMatchObject({ body: {}, contentType: "application/json" });
    const file = "/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease";
    expect(marker?.body).toEqual({ cmd: "/bin/cat", args: [file] });
    for (const { path } of provider.requests.slice(start)) expect(path).toContain(`/v1/sandboxes/${kept.id}`);
  });

  test("of a running one the same without the resume", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const start = provider.requests.length;
    expectResumed(await resume(kept.params()), kept.params());
    const expected = ["sandbox.get", "egress.put", "sandbox.get", "exec", "process.list"];
    expect(routesSince(provider, start)).toEqual(expected);
  });

  test("of one in error the same as of a paused one", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    provider.guest.crash(kept.id);
    expect(provider.sandbox(kept.id)?.status).toBe("error");
    expectResumed(await resume(kept.params()), kept.params());
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });
});

describe("the answer", () => {
  test("is the lease's own metadata with a mark, the caller's further fields kept", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const nested = { list: [1, { two: 2 }], none: null };
    const own = { runId: "run-1", nested, "with space": true, resumedLease: false };
    const params = kept.params({ metadata: own });
    const before = structuredClone(params);
    const answer = await resume(params);
    expect(answer).toEqual({ providerLeaseId: kept.id, metadata: { ...before.leaseMetadata, resumedLease: true } });
    // Values that nobody here knows go through as they are.
    expect(answer.metadata.nested).toBe(params.leaseMetadata.nested);
    expect(params).toEqual(before);
    expect(answer.metadata).not.toBe(params.leaseMetadata);
  });

  test("comes from a frozen input as well", async () => {
    const kept = await persist(await provide());
    const params = kept.params();
    Object.freeze(params.leaseMetadata);
    Object.freeze(params.config);
    Object.freeze(params);
    expectResumed(await resume(params), kept.params());
  });

  test("is what the metadata was when the resume began", async () => {
    const kept = await persist(await provide());
    const params = kept.params();
    const resumed = resume(params);
    params.leaseMetadata.marker = "another";
    params.leaseMetadata.later = true;
    delete params.leaseMetadata.shape;
    params.providerLeaseId = "sb-another";
    expectResumed(await resumed, kept.params());
  });

  test("survives JSON, and can be resumed, tracked under, released and destroyed", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const driver = looseDriver();
    const stored = async (from: LeaseParams): Promise<LeaseParams> => {
      const { providerLeaseId, metadata } = JSON.parse(JSON.stringify(await resume(from, driver)));
      const { companyId, environmentId, config } = kept.params();
      return {
        companyId,
        environmentId,
        config,
        providerLeaseId,
        leaseMetadata: metadata,
        lease: { providerLeaseId, metadata },
      };
    };
    const first = await stored(kept.params());
    const second = await stored(first);
    expect(second).toEqual(first);
    expect(await driver.track(second, () => "worked")).toBe("worked");
    await within(driver.release(second));
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
    const third = await stored(second);
    expect(provider.sandbox(kept.id)?.status).toBe("running");
    await within(driver.destroy(third));
    await provider.waitForState(kept.id, "destroyed");
    expect(await resume(third, driver)).toEqual(EXPIRED);
  });

  test("is the same from a lease that was acquired, released and stored", async () => {
    const provider = await provide();
    const config = { reuseLease: true, egressAllowlist: ["base.example"], rootfsByAdapter: { "adapter-a": "tpl-a" } };
    const params = acquireParams(provider, config, { adapterType: "adapter-a", issueId: "issue" });
    const { providerLeaseId, metadata } = await acquire(params);
    const persisted = { ...params, providerLeaseId, leaseMetadata: JSON.parse(JSON.stringify(metadata)) };
    await looseDriver().release(persisted);
    expect(await resume(persisted)).toEqual({ providerLeaseId, metadata: { ...metadata, resumedLease: true } });
  });

  test("leaves the lease open, and nothing behind on the caller's signal", async () => {
    const kept = await persist(await provide(), { state: "running" });
    const driver = looseDriver();
    const controller = new AbortController();
    await resume(kept.params(), driver, { signal: controller.signal });
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
    controller.abort();
    expect(await driver.track(kept.params(), () => "worked")).toBe("worked");
    await within(driver.shutdown(), 2000);
  });
});

describe("leases of an older plugin", () => {
  const older = ["provider", "apiUrl", "companyId", "environmentId", "remoteCwd", "shellCommand", "marker", "shape"];
  const records: [string, string[]][] = [
    ["with rootfs, region and reuseLease", [...older, "rootfs", "region", "reuseLease"]],
    ["without rootfs and region", [...older, "reuseLease"]],
    ["with as little as can be", ["provider", "apiUrl", "companyId", "environmentId", "marker", "shape"]],
  ];
  test.each(records)("%s resume, and no egress is set for them", async (_name, names) => {
    const provider = await provide();
    const kept = await persist(provider, { config: { egressAllowlist: undefined } });
    const params = kept.params();
    const recorded = Object.fromEntries(names.map((name) => [name, params.leaseMetadata[name]]));
    const start = provider.requests.length;
    const answer = await resume({ ...params, leaseMetadata: recorded });
    expect(answer).toEqual({ providerLeaseId: kept.id, metadata: { ...recorded, resumedLease: true } });
    expect(routesSince(provider, start)).not.toContain("egress.put");
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });

  test("fields that are null or undefined count as not recorded", async () => {
    const names = ["rootfs", "region", "adapterType", "autoPauseAfterSeconds", "baseEgressAllowlist"];
    const provider = await provide();
    const kept = await persist(provider, { config: { egressAllowlist: [] }, state: "running" });
    for (const nothing of [null, undefined]) {
      const fields = [...names, "effectiveEgressAllowlist"].map((name) => [name, nothing]);
      const params = kept.params({ metadata: Object.fromEntries(fields) });
      const start = provider.requests.length;
      expectResumed(await resume(params), params);
      expect(routesSince(provider, start)).not.toContain("egress.put");
    }
  });

  test("a recorded list of no rules sets none either", async () => {
    const provider = await provide();
    const kept = await persist(provider, { metadata: { effectiveEgressAllowlist: [] } });
    const start = provider.requests.length;
    expectResumed(await resume(kept.params()), kept.params());
    expect(routesSince(provider, start)).not.toContain("egress.put");
  });
});

describe("what a configuration that fits is", () => {
  const fitting: [string, object, object][] = [
    ["a root filesystem", { rootfs: "tpl-a" }, { rootfs: "tpl-a" }],
    [
      "a root filesystem by adapter",
      { rootfsByAdapter: { "adapter-a": "tpl-a" } },
      { adapterType: "adapter-a", rootfs: "tpl-a" },
    ],
    [
      "the configuration's own, for an adapter without one",
      { rootfs: "tpl", rootfsByAdapter: { "adapter-b": "tpl-b" } },
      { adapterType: "adapter-a", rootfs: "tpl" },
    ],
    ["a region", { region: "eu" }, { region: "eu" }],
    ["an idle timer", { autoPauseAfterSeconds: 90 }, { autoPauseAfterSeconds: 90 }],
    ["an idle timer without reuse", { reuseLease: false, autoPauseAfterSeconds: 90 }, { autoPauseAfterSeconds: null }],
    [
      "no rules of its own",
      { egressAllowlist: [] },
      { baseEgressAllowlist: [], effectiveEgressAllowlist: ["run.example"] },
    ],
    [
      "rules that are listed twice",
      { egressAllowlist: [" a.example ", "b.example", "a.example"] },
      { baseEgressAllowlist: ["a.example", "b.example"] },
    ],
    ["another timeout and key fields nobody records", { timeoutMs: 20_000 }, { reuseLease: false, remoteCwd: 7 }],
  ];
  test.each(fitting)("%s", async (_name, config, metadata) => {
    const kept = await persist(await provide(), { state: "running", config, metadata });
    expectResumed(await resume(kept.params()), kept.params());
  });
});

test("no key, host, marker or rule is in any error of a resume", async () => {
  const canary = "skp_canary_resume_41";
  const provider = await provide({ apiKeys: [canary] });
  const { host } = new URL(provider.url);
  const effects = [
    { type: "echoError", status: 400 },
    { type: "echoError", status: 500 },
    { type: "invalidJson", body: `{"${canary}":"` },
    { type: "redirect", location: `http://${canary}.example/` },
    { type: "lostReply" },
  ] as const;
  const kept = await persist(provider);
  for (const route of ["sandbox.get", "egress.put", "sandbox.resume", "exec", "process.list"]) {
    for (const effect of effects) {
      const rule = provider.faults.add({ match: { path: route }, effect });
      const reason = await rejection(resume(kept.params()));
      rule.remove();
      expect(reason, `${route}: ${effect.type}`).toBeInstanceOf(lease.CreateosError);
      const shown = [inspect(reason, { depth: Infinity, showHidden: true }), JSON.stringify({ ...reason })];
      for (const secret of [canary, host, kept.marker, "run.example"]) expect(shown.join("\n")).not.toContain(secret);
      await pause(provider, kept.id);
    }
  }
});
