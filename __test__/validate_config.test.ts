// Checking a configuration without asking anybody (specification, sections 2 and 8).
import { describe, expect, test } from "vitest";
import { acquireParams, type Acquired } from "./support/acquisitions.js";
import { configFaults, faultyFrom, sound } from "./support/config_faults.js";
import { leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { provide } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

const validate = (params: unknown) => within(looseDriver().validateConfig(params)) as Promise<any>;
const refused = (message: string) => ({ ok: false, errors: [message] });

describe("a configuration with a fault is told of it in the check's own words", () => {
  test.each(configFaults)("$field: $message", async ({ field, message, values }) => {
    for (const value of values) {
      const config = { ...sound, [field]: value };
      expect(await validate({ config }), String(value)).toEqual(refused(message));
      // The same words that the check itself throws.
      expect(() => lease.parseConfig(config)).toThrow(message);
    }
  });

  test("of several faults the first is told, in the order of the checks", async () => {
    const told: unknown[] = [];
    for (const place of configFaults.keys()) told.push(await validate({ config: faultyFrom(place) }));
    expect(told).toEqual(configFaults.map(({ message }) => refused(message)));
  });

  test("with exactly these fields, and never more than one message", async () => {
    const answer = await validate({ config: faultyFrom(0) });
    expect(Object.keys(answer)).toEqual(["ok", "errors"]);
    expect(answer.errors).toHaveLength(1);
  });
});

describe("a configuration without a fault is answered as it is understood", () => {
  const configs: [string, Record<string, unknown>][] = [
    ["the least", { apiUrl: "https://createos.example", shape: "s" }],
    ["one with a key", sound],
    ["loopback, trimmed, with /v1/", { ...sound, apiUrl: " http://LOCALHOST:80/v1/ ", shape: "\ts\n" }],
    [
      "everything",
      {
        ...sound,
        apiUrl: "https://CreateOS.example:443/v1",
        rootfs: " debian:13 ",
        rootfsByAdapter: { " adapter-a ": " debian:13 " },
        egressAllowlist: [" a.example ", "10.0.0.0/8", "a.example"],
        region: " eu ",
        timeoutMs: 1000,
        reuseLease: true,
        autoPauseAfterSeconds: 60,
      },
    ],
    ["nulls for what may be absent", { ...sound, apiKey: null, rootfs: null, rootfsByAdapter: null, timeoutMs: null }],
    ["fields that nobody knows", { ...sound, provider: "createos", extra: { nested: [] } }],
    ["an adapter named like a prototype", { ...sound, rootfsByAdapter: JSON.parse('{"__proto__":"a"}') }],
  ];
  test.each(configs)("%s", async (_name, config) => {
    const before = structuredClone(config);
    const answer = await validate({ config });
    expect(answer).toEqual({ ok: true, normalizedConfig: lease.parseConfig(config) });
    expect(config).toEqual(before);
    // Hosts store it in place of the first one.
    const again = await validate({ config: JSON.parse(JSON.stringify(answer.normalizedConfig)) });
    expect(again).toEqual(answer);
    expect(lease.parseConfig(answer.normalizedConfig)).toEqual(answer.normalizedConfig);
  });

  test("it is the caller's own: changing one answer changes no other", async () => {
    const config = { ...sound, egressAllowlist: ["a.example"], rootfsByAdapter: { "adapter-a": "b" } };
    const first = await validate({ config });
    first.normalizedConfig.egressAllowlist.push("b.example");
    first.normalizedConfig.rootfsByAdapter.other = "c";
    first.normalizedConfig.shape = "other";
    const second = await validate({ config });
    expect(second.normalizedConfig).toEqual(lease.parseConfig(config));
    expect(second.normalizedConfig).toMatchObject({ shape: sound.shape, egressAllowlist: ["a.example"] });
  });

  test("it serves every other method as the first one does", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const raw = acquireParams(provider, {
      apiUrl: `${provider.url}/v1/`,
      egressAllowlist: ["*", "a.example"],
      reuseLease: true,
    });
    const { normalizedConfig: config } = await validate(raw);
    const params = { ...raw, config };
    expect(await within(driver.probe(params))).toMatchObject({ ok: true });
    const { providerLeaseId, metadata } = (await driver.acquire(params)) as Acquired;
    expect(metadata.baseEgressAllowlist).toEqual(["*", "a.example"]);
    const held = { providerLeaseId, metadata };
    // A lease is the same under both.
    for (const given of [raw, params]) {
      const owner = { ...given, lease: held, providerLeaseId, leaseMetadata: metadata };
      expect(driver.leaseState(owner, providerLeaseId)).toBe("open");
      expect(await driver.track(owner, () => "runs")).toBe("runs");
      expect(await driver.realizeWorkspace(owner)).toMatchObject({ cwd: "/paperclip-workspace" });
      expect(await within(driver.release(owner))).toBeUndefined();
      expect(await within(driver.resume(owner))).toMatchObject({ providerLeaseId });
    }
    expect(lease.scopeKey(params, providerLeaseId)).toBe(lease.scopeKey(raw, providerLeaseId));
    expect(new lease.CreateosClient(config).config).toEqual(new lease.CreateosClient(raw.config as never).config);
    await within(driver.destroy({ ...params, providerLeaseId, leaseMetadata: metadata }));
  });
});

describe("nobody is asked", () => {
  test("no request is made, for a configuration of either kind", async () => {
    const provider = await provide();
    for (const config of [{}, { shape: "" }]) expect(await validate(acquireParams(provider, config))).toBeDefined();
    expect(provider.requests).toEqual([]);
  });

  test("no key is needed, and the environment's is not looked at", async () => {
    const { CREATEOS_API_KEY } = process.env;
    try {
      for (const key of [undefined, "from the environment", "no\nkey"]) {
        if (key === undefined) delete process.env.CREATEOS_API_KEY;
        else process.env.CREATEOS_API_KEY = key;
        for (const apiUrl of ["https://api.sb.createos.sh", "https://createos.example"]) {
          const { ok, normalizedConfig } = await validate({ config: { apiUrl, shape: "s" } });
          expect([ok, normalizedConfig.apiKey]).toEqual([true, null]);
        }
      }
    } finally {
      if (CREATEOS_API_KEY === undefined) delete process.env.CREATEOS_API_KEY;
      else process.env.CREATEOS_API_KEY = CREATEOS_API_KEY;
    }
  });

  test("a key that no header takes is no fault of the configuration's form", async () => {
    for (const apiKey of ["no\nkey", "ключ"])
      expect(await validate({ config: { ...sound, apiKey } })).toMatchObject({ ok: true });
  });

  test("a driver that is shut down answers all the same", async () => {
    const driver = looseDriver();
    await driver.shutdown();
    expect(await within(driver.validateConfig({ config: sound }))).toMatchObject({ ok: true });
  });
});

describe("parameters of any type", () => {
  const nothings = [undefined, null, true, 1, 1n, "text", "", Symbol("s"), {}, [], Object.create(null), () => {}];

  test("are a configuration without fields, and so is its own value", async () => {
    for (const nothing of nothings) {
      expect(await validate(nothing)).toEqual(refused("CreateOS requires an API URL."));
      expect(await validate({ config: nothing })).toEqual(refused("CreateOS requires an API URL."));
    }
  });

  test("what a getter throws is the rejection", async () => {
    const own = new Error("own");
    const throwing = (name: string) =>
      Object.defineProperty({ ...sound }, name, {
        enumerable: true,
        get() {
          throw own;
        },
      });
    const driver = looseDriver();
    const fields = new Set(configFaults.map(({ field }) => field));
    for (const field of fields) expect(await rejection(driver.validateConfig({ config: throwing(field) }))).toBe(own);
    expect(await rejection(driver.validateConfig(throwing("config")))).toBe(own);
    const nested = { config: { ...sound, rootfsByAdapter: throwing("adapter-a") } };
    expect(await rejection(driver.validateConfig(nested))).toBe(own);
  });

  test("each property is read once", async () => {
    const reads: string[] = [];
    const watched = (target: object, path = ""): object =>
      new Proxy(target, {
        get(object, name, receiver) {
          const value: unknown = Reflect.get(object, name, receiver);
          reads.push(`${path}${String(name)}`);
          return typeof value === "object" && value !== null ? watched(value, `${path}${String(name)}.`) : value;
        },
      });
    const config = { ...sound, rootfsByAdapter: { "adapter-a": "b" }, egressAllowlist: ["a.example"] };
    expect(await validate(watched({ config }))).toMatchObject({ ok: true });
    expect(reads).toContain("config.rootfsByAdapter.adapter-a");
    expect(reads.toSorted()).toEqual([...new Set(reads)].toSorted());
  });
});

test("the parameters of other hooks will do", async () => {
  expect(await validate(leaseParams())).toMatchObject({ ok: true });
});
