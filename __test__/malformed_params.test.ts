// Parameters come from persisted JSON and may be anything (specification, section 1).
import { describe, expect, test, vi } from "vitest";
import { counting } from "./support/counting.js";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import { leaseParams, type LeaseParams } from "./support/leases.js";
import { lease, looseDriver, type LooseDriver } from "./support/package.js";
import { provide } from "./support/providers.js";
import { rejection, thrown, within } from "./support/waiting.js";

const MISMATCH = "ERR_CREATEOS_LEASE_MISMATCH";

/** Values of every type that are no parameter object. */
const nothings: [string, unknown][] = [
  ["undefined", undefined],
  ["null", null],
  ["true", true],
  ["a number", 1],
  ["a bigint", 1n],
  ["text", "text"],
  ["an empty string", ""],
  ["a symbol", Symbol("s")],
];

/** Values that are objects, but without any field that would do. */
const objects: [string, unknown][] = [
  ["an empty object", {}],
  ["an array", []],
  ["an object without a prototype", Object.create(null)],
  ["a date", new Date(0)],
];

/** A function is no object to the checks: `typeof` says so. */
const callables: [string, unknown][] = [["a function", () => {}]];

const drivers: [string, () => LooseDriver][] = [
  ["a driver", () => looseDriver()],
  ["the package", () => lease as unknown as LooseDriver],
];

describe.each(drivers)("%s", (_driver, make) => {
  test.each([...nothings, ...objects, ...callables])("track of %s is not owned", async (_name, params) => {
    const work = vi.fn();
    const reason = await rejection(make().track(params, work));
    expectCreateosError(reason, {
      code: MISMATCH,
      message: MESSAGES.notForTrack,
      extra: { mismatches: ["providerLeaseId", "provider", "companyId", "environmentId"] },
    });
    expect(work).not.toHaveBeenCalled();
  });

  test.each([...nothings, ...callables])("release of %s is not owned", async (_name, params) => {
    const expected = { code: MISMATCH, message: MESSAGES.notForRelease };
    expect(await rejection(make().release(params))).toMatchObject(expected);
    expect(await rejection(make().release(params, true))).toMatchObject(expected);
    expect(await rejection(looseDriver().destroy(params))).toMatchObject(expected);
  });

  test.each(objects)("release of %s has nothing to release", async (_name, params) => {
    expect(await within(make().release(params))).toBeUndefined();
  });
});

describe("a part that is anything", () => {
  test.each([...nothings, ...objects, ...callables])("the lease is %s", async (_name, value) => {
    const params = { ...leaseParams(), lease: value };
    expect(await rejection(looseDriver().track(params, () => {}))).toMatchObject({ code: MISMATCH });
  });

  test.each([...nothings, ...objects, ...callables])("the metadata is %s", async (_name, metadata) => {
    const params = { ...leaseParams(), lease: { providerLeaseId: "sb-1", metadata }, leaseMetadata: metadata };
    const driver = looseDriver();
    expect(await rejection(driver.track(params, () => {}))).toMatchObject({ code: MISMATCH });
    expect(await rejection(driver.release(params))).toMatchObject({ code: MISMATCH });
  });

  test.each([...nothings, ...objects, ...callables])("the configuration is %s", async (_name, config) => {
    const params = { ...leaseParams(), config };
    const driver = looseDriver();
    const expected = { code: "ERR_CREATEOS_CONFIG", message: MESSAGES.noUrl };
    expect(await rejection(driver.track(params, () => {}))).toMatchObject(expected);
    expect(await rejection(driver.release(params))).toMatchObject(expected);
    expect(await rejection(driver.acquire(params))).toMatchObject(expected);
  });

  test.each([...nothings, ...objects, ...callables])("a field of the configuration is %s", async (_name, value) => {
    const fields = [
      "apiUrl",
      "shape",
      "timeoutMs",
      "reuseLease",
      "autoPauseAfterSeconds",
      "rootfsByAdapter",
      "egressAllowlist",
      "apiKey",
      "rootfs",
      "region",
    ];
    for (const field of fields) {
      const params = leaseParams({ config: { [field]: value } });
      // Some of these are valid; none may crash, throw at once or hang.
      const tracked = looseDriver().track(params, () => "done");
      const outcome = await within(tracked.catch((reason: unknown) => reason));
      if (outcome !== "done") expect(outcome).toBeInstanceOf(lease.CreateosError);
    }
  });
});

test("fields that nobody knows are ignored", async () => {
  const params = { ...leaseParams(), later: 1, run: { id: "r" }, command: "ls", timeoutMs: 0 };
  const driver = looseDriver();
  expect(await driver.track(params, () => "done", { timeoutMs: 100, retries: 3 })).toBe("done");
  expect(await driver.release({ ...params, reason: "over" })).toBeUndefined();
});

describe("each property is read once", () => {
  const full = () => ({
    ...leaseParams({ config: { rootfsByAdapter: { a: "x" }, egressAllowlist: ["h"], rootfs: "r", region: "eu" } }),
  });
  const known = ["apiUrl", "shape", "timeoutMs", "reuseLease", "autoPauseAfterSeconds", "apiKey", "rootfs", "region"];

  test("by track", async () => {
    const counts = new Map<string, number>();
    const options = { timeoutMs: 1000, signal: null };
    await looseDriver().track(counting(full(), counts), () => {}, counting(options, counts, "options."));
    const expected = [
      "companyId",
      "environmentId",
      "config",
      "lease",
      "lease.providerLeaseId",
      ...["provider", "companyId", "environmentId", "apiUrl"].map((name) => `lease.metadata.${name}`),
      ...known.map((name) => `config.${name}`),
      "config.rootfsByAdapter.a",
      "config.egressAllowlist.0",
      "options.timeoutMs",
      "options.signal",
    ];
    for (const place of expected) expect.soft([place, counts.get(place)]).toEqual([place, 1]);
    expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
  });

  test("by release", async () => {
    const counts = new Map<string, number>();
    await looseDriver().release(counting(full(), counts));
    for (const place of ["providerLeaseId", "leaseMetadata", "leaseMetadata.apiUrl", "config.apiKey"])
      expect.soft([place, counts.get(place)]).toEqual([place, 1]);
    expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
  });

  test("by acquire, which then is refused by nobody", async () => {
    const counts = new Map<string, number>();
    const provider = await provide();
    const { lease: _lease, ...params } = leaseParams({ provider });
    const more = {
      requestedExpiresAt: null,
      adapterType: "coder",
      issueId: "issue",
      executionWorkspaceId: "workspace",
      executionWorkspaceSettings: { networkEgress: { allowFqdns: ["a.example"], allowCidrs: ["10.0.0.0/8"] } },
    };
    await looseDriver().acquire(counting({ ...params, ...more }, counts));
    const egress = "executionWorkspaceSettings.networkEgress";
    for (const place of [...Object.keys(more), egress, `${egress}.allowFqdns`, `${egress}.allowCidrs.0`, "config.apiKey"])
      expect.soft([place, counts.get(place)]).toEqual([place, 1]);
    expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
  });

  const pure: [string, (params: LeaseParams) => unknown][] = [
    ["leaseState", (params) => lease.leaseState(params, "sb-1")],
    ["scopeKey", (params) => lease.scopeKey(params, "sb-1")],
    ["canUseLease", (params) => lease.canUseLease(params.lease, params)],
    ["canRelease", (params) => lease.canRelease(params)],
    ["isUsableCreateosLease", (params) => lease.isUsableCreateosLease(params.lease)],
    ["parseConfig", (params) => lease.parseConfig(params.config)],
    ["resolveApiKey", (params) => lease.resolveApiKey(params.config)],
    ["new CreateosClient", (params) => new lease.CreateosClient(params.config as never).config],
  ];
  const once = (ask: (params: LeaseParams) => unknown) => {
    const counts = new Map<string, number>();
    ask(counting(full(), counts));
    expect(counts.size).toBeGreaterThan(0);
    // A container is read again by whoever asks for it again here; what it holds is not.
    const fields = [...counts].filter(([place]) => !["config", "lease"].includes(place));
    expect(fields.filter(([, count]) => count > 1)).toEqual([]);
  };
  test.each(pure)("by %s", (_name, ask) => once(ask));
  test("by explainLease", () => once((params) => lease.explainLease(params)));

  test("by parseConfig, with values that change between two reads", () => {
    let reads = 0;
    const config = {
      shape: "s",
      get apiUrl() {
        reads += 1;
        return reads === 1 ? "https://first.example" : "https://second.example";
      },
    };
    expect(lease.parseConfig(config).apiUrl).toBe("https://first.example");
    expect(reads).toBe(1);
  });
});

describe("what a getter throws is the rejection", () => {
  const own = new Error("the getter's own");
  const throwing = <T extends object>(target: T, name: string): T =>
    Object.defineProperty({ ...target }, name, {
      enumerable: true,
      get() {
        throw own;
      },
    });

  test("of track", async () => {
    const params = leaseParams();
    const { config, lease: held } = params;
    const cases = [
      ...["companyId", "environmentId", "config", "lease"].map((name) => throwing(params, name)),
      { ...params, lease: throwing(held, "providerLeaseId") },
      { ...params, lease: throwing(held, "metadata") },
      ...["provider", "companyId", "environmentId", "apiUrl"].map((name) => ({
        ...params,
        lease: { ...held, metadata: throwing(held.metadata, name) },
      })),
      ...["apiUrl", "shape", "timeoutMs", "rootfsByAdapter", "region"].map((name) => ({
        ...params,
        config: throwing(config, name),
      })),
      { ...params, config: { ...config, rootfsByAdapter: throwing({}, "adapter") } },
      new Proxy(
        {},
        {
          get() {
            throw own;
          },
        },
      ),
    ];
    const driver = looseDriver();
    for (const [place, given] of cases.entries()) {
      let tracked: Promise<unknown> | undefined;
      expect(() => (tracked = driver.track(given, () => {})), String(place)).not.toThrow();
      expect(await rejection(tracked as Promise<unknown>), String(place)).toBe(own);
    }
    for (const name of ["timeoutMs", "signal"])
      expect(await rejection(driver.track(params, () => {}, throwing({}, name)))).toBe(own);
    expect(driver.leaseState(params, "sb-1")).toBe("open");
  });

  test("of release, which then leaves the lease open", async () => {
    const params = leaseParams();
    const driver = looseDriver();
    const cases = [
      ...["providerLeaseId", "leaseMetadata", "companyId", "environmentId", "config"].map((name) =>
        throwing(params, name),
      ),
      { ...params, leaseMetadata: throwing(params.leaseMetadata, "apiUrl") },
      { ...params, leaseMetadata: throwing(params.leaseMetadata, "autoPauseAfterSeconds") },
      { ...params, config: throwing(params.config, "reuseLease") },
    ];
    for (const given of cases) expect(await rejection(driver.release(given))).toBe(own);
    expect(driver.leaseState(params, "sb-1")).toBe("open");
  });

  test("of acquire, before any request", async () => {
    const { lease: _, ...params } = leaseParams();
    const names = ["companyId", "environmentId", "config", "requestedExpiresAt", "adapterType", "issueId"];
    for (const name of names) expect(await rejection(looseDriver().acquire(throwing(params, name)))).toBe(own);
    const settings = throwing({}, "networkEgress");
    const given = { ...params, executionWorkspaceSettings: settings };
    expect(await rejection(looseDriver().acquire(given))).toBe(own);
  });
});

test("an async function never throws at once, not even without its driver", async () => {
  const driver = looseDriver();
  const names = ["track", "release", "destroy", "shutdown", "acquire"] as const;
  for (const name of names) {
    for (const self of [undefined, {}, Object.create(driver)]) {
      let promise: Promise<unknown> | undefined;
      const method = driver[name] as (this: unknown) => Promise<unknown>;
      expect(() => (promise = method.call(self)), name).not.toThrow();
      expect(promise).toBeInstanceOf(Promise);
      expect((await rejection(promise as Promise<unknown>)).constructor).toBe(TypeError);
    }
  }
});

test("a destroy flag that is no boolean is a TypeError, and the lease stays open", async () => {
  const driver = looseDriver();
  for (const destroy of [1, "true", {}, 0, ""]) {
    expect((await rejection(driver.release(leaseParams(), destroy))).constructor).toBe(TypeError);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("open");
  }
  for (const destroy of [undefined, null, false]) await driver.release(leaseParams(), destroy);
});

describe("an array that claims four billion elements", () => {
  const endless = (): unknown[] => {
    const list: unknown[] = [];
    list.length = 2 ** 32 - 1;
    return list;
  };

  test("is no list of the configuration's", () => {
    const { config } = leaseParams({ config: { egressAllowlist: endless() } });
    expect(thrown(() => lease.parseConfig(config))).toMatchObject({ field: "egressAllowlist" });
  });

  test("is no grant of a run's", async () => {
    const executionWorkspaceSettings = { networkEgress: { allowFqdns: endless() } };
    const reason = await rejection(looseDriver().acquire({ ...leaseParams(), executionWorkspaceSettings }));
    expect(reason).toMatchObject({ message: "networkEgress allowlists must contain non-empty strings." });
  });

  test.each(["baseEgressAllowlist", "effectiveEgressAllowlist"])("is no %s of a lease's", async (field) => {
    const { metadata } = leaseParams().lease;
    const recorded = { ...metadata, marker: "-".repeat(36), shape: "s-1vcpu-1gb", [field]: endless() };
    const resumed = await looseDriver().resume({ ...leaseParams(), leaseMetadata: recorded });
    expect(resumed).toEqual({ providerLeaseId: null, metadata: { expired: true } });
  });

  test("names no classes", () => {
    expect(thrown(() => looseDriver({ cleanupErrors: endless() }))).toBeInstanceOf(TypeError);
  });
});
