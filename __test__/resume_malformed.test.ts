// A resume's parameters come from persisted JSON and may be anything (specification, section 1).
import { describe, expect, test } from "vitest";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import { leaseParams } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { expectResumed, NOT_OWNED, persist, resume } from "./support/resumes.js";
import { rejection } from "./support/waiting.js";

const notOwned = (...mismatches: string[]) => ({
  code: "ERR_CREATEOS_LEASE_MISMATCH",
  message: NOT_OWNED,
  extra: { mismatches },
});

describe("parameters come from persisted JSON and may be anything", () => {
  const anything: [string, unknown][] = [
    ["undefined", undefined],
    ["null", null],
    ["true", true],
    ["a number", 1],
    ["a bigint", 1n],
    ["text", "text"],
    ["an empty string", ""],
    ["a symbol", Symbol("s")],
    ["an empty object", {}],
    ["an array", []],
    ["an object without a prototype", Object.create(null)],
    ["a date", new Date(0)],
    ["a function", () => {}],
  ];
  const ids = ["providerLeaseId", "provider", "companyId", "environmentId"];

  test.each(anything)("the parameters are %s", async (_name, params) => {
    expectCreateosError(await rejection(resume(params)), notOwned(...ids));
  });

  test.each(anything)("the metadata is %s", async (_name, leaseMetadata) => {
    const params = { ...leaseParams(), leaseMetadata };
    expectCreateosError(await rejection(resume(params)), notOwned("provider", "companyId", "environmentId"));
  });

  test.each(anything)("the configuration is %s", async (_name, config) => {
    expect(await rejection(resume({ ...leaseParams(), config }))).toMatchObject({ message: MESSAGES.noUrl });
  });

  test("fields that nobody knows are ignored", async () => {
    const kept = await persist(await provide(), { state: "running" });
    const params = { ...kept.params(), run: { id: "r" }, timeoutMs: 0, signal: "none" };
    expectResumed(await resume(params), kept.params());
  });

  test("never throws at once, not even without its driver", async () => {
    const driver = looseDriver();
    for (const self of [undefined, {}, Object.create(driver)]) {
      let promise: Promise<unknown> | undefined;
      const method = driver.resume as (this: unknown) => Promise<unknown>;
      expect(() => (promise = method.call(self))).not.toThrow();
      expect((await rejection(promise as Promise<unknown>)).constructor).toBe(TypeError);
    }
  });
});

describe("each property is read once", () => {
  test("of the parameters, the metadata with what nobody knows in it, the configuration, the options", async () => {
    const counts = new Map<string, number>();
    const counting = <T extends object>(target: T, at: string): T =>
      new Proxy(target, {
        get(object, name, receiver) {
          const value = Reflect.get(object, name, receiver);
          if (typeof name === "symbol") return value;
          counts.set(at + name, (counts.get(at + name) ?? 0) + 1);
          const isPlain = typeof value === "object" && value !== null && !(value instanceof AbortSignal);
          return isPlain ? counting(value, `${at}${name}.`) : value;
        },
      });
    const kept = await persist(await provide(), {
      state: "running",
      config: { rootfsByAdapter: { "adapter-a": "tpl-a" } },
      metadata: { adapterType: "adapter-a", rootfs: "tpl-a", further: 7 },
    });
    const { lease: _lease, ...params } = kept.params();
    const options = { signal: new AbortController().signal };
    await resume(counting(params, ""), looseDriver(), counting(options, "options."));
    const metadata = Object.keys(params.leaseMetadata).map((name) => `leaseMetadata.${name}`);
    const lists = ["base", "effective"].map((name) => `leaseMetadata.${name}EgressAllowlist.0`);
    for (const place of [...Object.keys(params), ...metadata, ...lists, "config.apiKey", "options.signal"])
      expect.soft([place, counts.get(place)]).toEqual([place, 1]);
    expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
  });

  test("what a getter throws is the rejection, before any request", async () => {
    const own = new Error("the getter's own");
    const throwing = <T extends object>(target: T, name: string): T =>
      Object.defineProperty({ ...target }, name, {
        enumerable: true,
        get() {
          throw own;
        },
      });
    const provider = await provide();
    const kept = await persist(provider);
    const params = kept.params();
    const start = provider.requests.length;
    const driver = looseDriver();
    const { config, leaseMetadata } = params;
    const names = ["providerLeaseId", "leaseMetadata", "companyId", "environmentId", "config"];
    const list = Object.defineProperty(["x"], 0, {
      get() {
        throw own;
      },
    });
    const cases: unknown[] = [
      ...names.map((name) => throwing(params, name)),
      ...[...Object.keys(leaseMetadata), "unknown"].map((name) => ({
        ...params,
        leaseMetadata: throwing(leaseMetadata, name),
      })),
      ...["apiUrl", "shape", "region"].map((name) => ({ ...params, config: throwing(config, name) })),
      ...["baseEgressAllowlist", "effectiveEgressAllowlist"].map((name) => ({
        ...params,
        leaseMetadata: { ...leaseMetadata, [name]: list },
      })),
    ];
    for (const given of cases) {
      let resumed: Promise<unknown> | undefined;
      expect(() => (resumed = driver.resume(given))).not.toThrow();
      expect(await rejection(resumed as Promise<unknown>)).toBe(own);
    }
    expect(await rejection(driver.resume(params, throwing({}, "signal")))).toBe(own);
    expect(routesSince(provider, start)).toEqual([]);
    expect(driver.leaseState(params, kept.id)).toBe("open");
    expectResumed(await resume(params, driver), params);
  });
});

test("what a lease's metadata inherits counts, as it does for every other call", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const { leaseMetadata } = kept.params();
  const inheriting = Object.assign(Object.create(leaseMetadata), { note: "own" });
  const answer = await resume({ ...kept.params(), leaseMetadata: inheriting });
  const { shellCommand: _command, remoteCwd: _cwd, reuseLease: _reuse, ...recorded } = leaseMetadata;
  expect(answer.metadata).toEqual({ ...recorded, note: "own", resumedLease: true });
});
