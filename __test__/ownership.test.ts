// Whose lease it is, by track, by release and by the host's own guards (specification, section 3).
import { describe, expect, test, vi } from "vitest";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import { leaseParams, ORIGIN, type LeaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { rejection } from "./support/waiting.js";

type Guards = {
  isUsableCreateosLease(lease?: unknown): boolean;
  canUseLease(lease?: unknown, params?: unknown, apiUrl?: unknown): boolean;
  canRelease(params?: unknown, apiUrl?: unknown): boolean;
  explainLease(params?: unknown): { usable: boolean; mismatches: any[]; config?: string };
};
const { isUsableCreateosLease, canUseLease, canRelease, explainLease } = lease as unknown as Guards;

/** What track, release and the three guards make of the same parameters. */
async function verdicts(params: LeaseParams) {
  const driver = looseDriver();
  const work = vi.fn();
  const outcome = (promise: Promise<unknown>) => promise.then(() => true, () => false);
  return {
    track: await outcome(driver.track(params, work)),
    worked: work.mock.calls.length === 1,
    release: await outcome(driver.release(params)),
    canUseLease: canUseLease(params.lease, params),
    canRelease: canRelease(params),
    explained: explainLease(params).usable,
  };
}

const allOf = (owned: boolean) => ({
  track: owned,
  worked: owned,
  release: owned,
  canUseLease: owned,
  canRelease: owned,
  explained: owned,
});

describe("owned", () => {
  const owned: [string, LeaseParams][] = [
    ["equal in all four", leaseParams()],
    ["ids of any text", leaseParams({ companyId: " ", environmentId: "\0\u2028é" })],
    ["the same lone surrogate", leaseParams({ companyId: "\ud800" })],
    ["further metadata", leaseParams({ metadata: { more: [1], marker: null } })],
    ["a configured /v1", leaseParams({ config: { apiUrl: `${ORIGIN}/v1/` } })],
    ["a configured URL that is normalised", leaseParams({ config: { apiUrl: " HTTPS://CreateOS.example:443 " } })],
    ["an id no provider gives, which only a request would refuse", leaseParams({ id: "../sb 1" })],
  ];
  test.each(owned)("%s", async (_name, params) => expect(await verdicts(params)).toEqual(allOf(true)));
});

/** Field by field, what must not be taken for equal. The params' side is as `leaseParams` gives it. */
const foreign: [string, string, unknown][] = [
  ["another provider", "provider", "another"],
  ["the provider in capitals", "provider", "CreateOS"],
  ["the provider with a blank", "provider", "createos "],
  ["a provider that prints alike", "provider", ["createos"]],
  ["a boxed provider", "provider", new String("createos")],
  ["no provider", "provider", undefined],
  ["another company", "companyId", "company2"],
  ["the company in capitals", "companyId", "COMPANY"],
  ["the company with a blank", "companyId", " company"],
  ["a company that prints alike", "companyId", ["company"]],
  ["a boxed company", "companyId", new String("company")],
  ["no company", "companyId", null],
  ["another environment", "environmentId", "environment2"],
  ["the environment in another case", "environmentId", "Environment"],
  ["the environment with a line feed", "environmentId", "environment\n"],
  ["an environment that prints alike", "environmentId", { toString: () => "environment" }],
  ["no environment", "environmentId", undefined],
  ["another origin", "apiUrl", "https://other.example"],
  ["the origin with a slash", "apiUrl", `${ORIGIN}/`],
  ["the origin with /v1", "apiUrl", `${ORIGIN}/v1`],
  ["the origin with its default port", "apiUrl", `${ORIGIN}:443`],
  ["the origin in capitals", "apiUrl", ORIGIN.toUpperCase()],
  ["the origin with a blank", "apiUrl", `${ORIGIN} `],
  ["a URL object", "apiUrl", new URL(ORIGIN)],
  ["no origin", "apiUrl", undefined],
];

describe("not owned", () => {
  test.each(foreign)("%s", async (_name, field, value) => {
    const params = leaseParams({ metadata: { [field]: value } });
    expect(await verdicts(params)).toEqual(allOf(false));
    const extra = { mismatches: [field] };
    const code = "ERR_CREATEOS_LEASE_MISMATCH";
    const driver = looseDriver();
    expectCreateosError(await rejection(driver.track(params, () => {})), { code, message: MESSAGES.notForTrack, extra });
    expectCreateosError(await rejection(driver.release(params)), { code, message: MESSAGES.notForRelease, extra });
    expectCreateosError(await rejection(driver.destroy(params)), { code, message: MESSAGES.notForRelease, extra });
  });

  const sides: [string, unknown, unknown][] = [
    ["missing on both sides", undefined, undefined],
    ["null on both sides", null, null],
    ["empty on both sides", "", ""],
    ["the same number on both sides", 7, 7],
    ["the same object on both sides", Object, Object],
    ["a number and its text", 7, "7"],
    ["two lone surrogates", "\ud800", "\ud801"],
    ["a lone surrogate and the replacement character", "\ud800", "\ufffd"],
    ["two lone surrogates that UTF-8 would make alike", "a\udc00", "a\udfff"],
    ["text in two normal forms", "\u00e9", "e\u0301"],
    ["text cut at a NUL", "a\0b", "a\0c"],
    ["a prefix", "company", "compan"],
  ];
  test.each(sides)("ids: %s", async (_name, ours, theirs) => {
    for (const field of ["companyId", "environmentId"] as const) {
      const params = leaseParams({ metadata: { [field]: theirs } });
      (params as unknown as Record<string, unknown>)[field] = ours;
      expect(await verdicts(params)).toEqual(allOf(false));
    }
  });

  test("a lease without metadata, or with metadata that is no object", async () => {
    const text = Object.assign("text", {});
    for (const metadata of [undefined, null, "createos", text, 1, true, 1n, Symbol("m"), [], () => {}]) {
      const params = { ...leaseParams(), leaseMetadata: metadata } as unknown as LeaseParams;
      params.lease = { providerLeaseId: "sb-1", metadata } as unknown as LeaseParams["lease"];
      expect(await verdicts(params)).toEqual(allOf(false));
    }
  });

  test("strings find nothing through String.prototype", async () => {
    const fields = { provider: "createos", companyId: "company", environmentId: "environment", apiUrl: ORIGIN };
    const prototype = String.prototype as unknown as Record<string, unknown>;
    try {
      Object.assign(prototype, fields);
      expect(canUseLease({ providerLeaseId: "sb-1", metadata: "text" }, leaseParams())).toBe(false);
      expect(isUsableCreateosLease({ providerLeaseId: "sb-1", metadata: "text" })).toBe(false);
    } finally {
      for (const field of Object.keys(fields)) delete prototype[field];
    }
  });

  test("an id that is no string: track and release refuse it", async () => {
    for (const id of [7, {}, ["sb-1"], true, 1n, new String("sb-1"), Symbol("sb-1")]) {
      const params = leaseParams({ id: id as string });
      expect(await verdicts(params)).toEqual(allOf(false));
      const extra = { mismatches: ["providerLeaseId"] };
      const message = MESSAGES.notForRelease;
      expectCreateosError(await rejection(looseDriver().release(params)), {
        code: "ERR_CREATEOS_LEASE_MISMATCH",
        message,
        extra,
      });
    }
  });
});

describe("a foreign lease with a broken configuration gives the ownership error", () => {
  const configs = [undefined, null, {}, { apiUrl: 1 }, { apiUrl: ORIGIN, shape: "s", timeoutMs: "soon" }, "text", []];
  test.each(["provider", "companyId", "environmentId"])("%s", async (field) => {
    for (const config of configs) {
      const params = { ...leaseParams({ metadata: { [field]: "foreign" } }), config };
      const driver = looseDriver();
      expect(await rejection(driver.track(params, () => {}))).toMatchObject({ message: MESSAGES.notForTrack });
      expect(await rejection(driver.release(params))).toMatchObject({ message: MESSAGES.notForRelease });
    }
  });

  test("an own one gives the configuration's", async () => {
    const driver = looseDriver();
    for (const config of [undefined, null, {}, "text", []]) {
      const params = { ...leaseParams(), config };
      const expected = { code: "ERR_CREATEOS_CONFIG", message: MESSAGES.noUrl, extra: { field: "apiUrl" } };
      expectCreateosError(await rejection(driver.track(params, () => {})), expected);
      expectCreateosError(await rejection(driver.release(params)), expected);
      expect(canRelease(params)).toBe(false);
      expect(canUseLease(params.lease, params)).toBe(false);
      expect(explainLease(params)).toMatchObject({ usable: false, config: MESSAGES.noUrl, mismatches: [] });
    }
  });
});

describe("guards", () => {
  const junk = [undefined, null, true, 0, 1n, "text", "", Symbol("s"), [], {}, () => {}, new Date(Number.NaN)];
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error("a getter's own");
      },
      getPrototypeOf() {
        throw new Error("a trap's own");
      },
      ownKeys() {
        throw new Error("a trap's own");
      },
    },
  );
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();

  test("are total: whatever they are given, they answer", () => {
    for (const first of [...junk, hostile, revoked]) {
      expect(isUsableCreateosLease(first)).toBe(false);
      expect(canRelease(first)).toBe(false);
      expect(explainLease(first).usable).toBe(false);
      for (const second of [...junk, hostile, revoked]) {
        expect(canUseLease(first, second)).toBe(false);
        expect(canUseLease(first, second, ORIGIN)).toBe(false);
        expect(canRelease(first, second)).toBe(false);
      }
    }
    for (const broken of [hostile, revoked]) {
      const own = leaseParams();
      for (const params of [{ ...own, config: broken }, { ...own, leaseMetadata: broken }]) {
        expect(canRelease(params)).toBe(false);
        expect(explainLease({ ...params, lease: undefined }).usable).toBe(false);
      }
      expect(canUseLease({ providerLeaseId: "sb-1", metadata: broken }, own)).toBe(false);
      expect(canUseLease(own.lease, { ...own, config: broken })).toBe(false);
      expect(isUsableCreateosLease({ providerLeaseId: "sb-1", metadata: broken })).toBe(false);
    }
  });

  const fieldsOf = (metadata: object) => ({ ...leaseParams(), lease: { providerLeaseId: "sb-1", metadata } });
  const names = ["provider", "companyId", "environmentId", "apiUrl"];

  test.each(names)("answer where %s is something that can't be looked at", (name) => {
    const { metadata } = leaseParams().lease;
    const params = fieldsOf({ ...metadata, [name]: revoked });
    expect(canUseLease(params.lease, params)).toBe(false);
    expect(canRelease({ ...params, leaseMetadata: params.lease.metadata })).toBe(false);
    expect(isUsableCreateosLease(params.lease)).toBe(name !== "provider");
  });

  test.each(names)("explain it, too: %s", (name) => {
    const { metadata } = leaseParams().lease;
    expect(explainLease(fieldsOf({ ...metadata, [name]: revoked })).mismatches).toMatchObject([{ field: name }]);
  });

  test("isUsableCreateosLease asks for a non-empty string id and the provider, nothing more", () => {
    const metadata = { provider: "createos" };
    expect(isUsableCreateosLease({ providerLeaseId: "x", metadata })).toBe(true);
    for (const providerLeaseId of ["", null, undefined, 1, ["x"], new String("x")])
      expect(isUsableCreateosLease({ providerLeaseId, metadata })).toBe(false);
    for (const provider of ["e2b", "CREATEOS", " createos", null, undefined, ["createos"]])
      expect(isUsableCreateosLease({ providerLeaseId: "x", metadata: { provider } })).toBe(false);
    expect(isUsableCreateosLease({ providerLeaseId: "x" })).toBe(false);
  });

  test("with an origin given, the configuration is not looked at", () => {
    const config = new Proxy({}, { get: () => expect.fail("read the configuration") });
    const params = { ...leaseParams(), config };
    expect(canUseLease(params.lease, params, ORIGIN)).toBe(true);
    expect(canRelease(params, ORIGIN)).toBe(true);
    expect(canUseLease(params.lease, params, "https://other.example")).toBe(false);
    expect(canRelease(params, `${ORIGIN}/`)).toBe(false);
    expect(canRelease({ ...params, providerLeaseId: "" }, ORIGIN)).toBe(false);
    expect(canUseLease({ ...params.lease, providerLeaseId: 1 }, params, ORIGIN)).toBe(false);
  });

  test("canUseLease reads the lease it is given, canRelease the params' own fields", () => {
    const params = leaseParams();
    const other = leaseParams({ companyId: "other" });
    expect(canUseLease(other.lease, params)).toBe(false);
    expect(canUseLease(params.lease, { ...params, lease: other.lease })).toBe(true);
    expect(canRelease({ ...params, leaseMetadata: other.leaseMetadata })).toBe(false);
    expect(canRelease({ ...params, lease: other.lease })).toBe(true);
  });
});

describe("explainLease", () => {
  test("names every field that does not match, with both sides", () => {
    const params = leaseParams({
      id: "",
      metadata: { provider: "e2b", companyId: "theirs", environmentId: 7, apiUrl: null },
    });
    const mismatches = [
      { field: "providerLeaseId", expected: "a non-empty string", actual: "" },
      { field: "provider", expected: "createos", actual: "e2b" },
      { field: "companyId", expected: "company", actual: "theirs" },
      { field: "environmentId", expected: "environment", actual: 7 },
      { field: "apiUrl", expected: ORIGIN, actual: null },
    ];
    expect(explainLease(params)).toEqual({ usable: false, mismatches });
    expect(explainLease({ ...params, lease: undefined })).toEqual({ usable: false, mismatches });
  });

  test.each(foreign)("one field: %s", (_name, field, value) => {
    const { usable, mismatches, ...rest } = explainLease(leaseParams({ metadata: { [field]: value } }));
    expect(usable).toBe(false);
    expect(mismatches.map((one) => one.field)).toEqual([field]);
    expect(rest).toEqual({});
  });

  test("says nothing against a lease that is owned", () => {
    expect(explainLease(leaseParams())).toEqual({ usable: true, mismatches: [] });
    expect(explainLease({ ...leaseParams(), lease: undefined })).toEqual({ usable: true, mismatches: [] });
  });

  test("tells what is wrong with the configuration, or that there is no key", () => {
    const invalid = leaseParams({ config: { timeoutMs: 0 } });
    expect(explainLease(invalid)).toEqual({
      usable: false,
      mismatches: [],
      config: "timeoutMs must be an integer between 1 and 86400000.",
    });
    const keyless = leaseParams({ config: { apiKey: undefined } });
    expect(explainLease(keyless)).toEqual({ usable: false, mismatches: [], config: MESSAGES.keyForCustomOrigin });
  });

  test("never holds a key, wherever one has strayed to", () => {
    const key = "skp_canary_0123456789";
    const places = ["provider", "companyId", "environmentId", "apiUrl"];
    for (const value of [key, `x${key}x`, `https://user:${key}@other.example/`, [key], { key }]) {
      for (const place of places) {
        const params = leaseParams({ config: { apiKey: ` ${key} ` }, metadata: { [place]: value } });
        expect(JSON.stringify(explainLease(params))).not.toContain(key);
        expect(JSON.stringify(explainLease({ ...params, lease: undefined }))).not.toContain(key);
      }
    }
    // A password that no configuration knows, in a URL that was recorded.
    const recorded = leaseParams({ metadata: { apiUrl: `https://user:${key}@other.example/v1` } });
    expect(JSON.stringify(explainLease(recorded))).not.toContain(key);
    const asUrl = leaseParams({ config: { apiUrl: `https://user:${key}@createos.example`, apiKey: undefined } });
    expect(JSON.stringify(explainLease(asUrl))).not.toContain(key);
    const asId = leaseParams({ id: key, companyId: key, config: { apiKey: key } });
    expect(JSON.stringify(explainLease({ ...asId, companyId: `${key}!` }))).not.toContain(key);
  });

  test("does not hold the environment's key either", () => {
    const key = "skp_environment_canary";
    const before = process.env.CREATEOS_API_KEY;
    process.env.CREATEOS_API_KEY = key;
    try {
      const official = { apiUrl: "https://api.sb.createos.sh", apiKey: undefined };
      const params = leaseParams({ config: official, metadata: { apiUrl: key, provider: key } });
      expect(JSON.stringify(explainLease(params))).not.toContain(key);
    } finally {
      if (before === undefined) delete process.env.CREATEOS_API_KEY;
      else process.env.CREATEOS_API_KEY = before;
    }
  });
});
