// Where the workspace of a lease is: only its owner is told (specification, sections 3 and 8).
import { describe, expect, test } from "vitest";
import { configFaults, sound } from "./support/config_faults.js";
import { expectCreateosError, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { provide } from "./support/providers.js";
import { rejection, watch, within } from "./support/waiting.js";

const ANSWER = {
  cwd: "/paperclip-workspace",
  metadata: { provider: "createos", remoteCwd: "/paperclip-workspace" },
};

const foreign = (...mismatches: string[]) => ({
  code: "ERR_CREATEOS_LEASE_MISMATCH",
  message: "CreateOS workspace requires a lease from this environment.",
  extra: { mismatches },
});

const realize = (params: unknown, driver = looseDriver()) => within(driver.realizeWorkspace(params));
const refusal = (params: unknown) => rejection(looseDriver().realizeWorkspace(params));

describe("of a lease of one's own", () => {
  test("exactly this, whatever the lease's metadata and the workspace say", async () => {
    const metadata = { remoteCwd: "/elsewhere", shellCommand: "sh", cwd: "/tmp", resumedLease: true };
    const workspace = { localPath: "/home/me", remotePath: "/tmp", mode: "git", metadata: { provider: "other" } };
    expect(await realize({ ...leaseParams({ metadata }), workspace })).toEqual(ANSWER);
  });

  test("an answer of its own each time", async () => {
    const first = (await realize(leaseParams())) as typeof ANSWER;
    Object.assign(first.metadata, { provider: "changed" });
    expect(await realize(leaseParams())).toEqual(ANSWER);
  });

  test("without a request, and without a key", async () => {
    const provider = await provide();
    const params = leaseParams({ provider, id: "sb-none" });
    expect(await realize(params)).toEqual(ANSWER);
    for (const apiKey of [null, undefined, "no\nkey"])
      expect(await realize({ ...params, config: { ...params.config, apiKey } })).toEqual(ANSWER);
    expect(provider.requests).toEqual([]);
  });

  test("whatever the lease's state is: only ownership counts", async () => {
    const driver = looseDriver();
    const params = leaseParams();
    const call = hold(driver, params);
    const released = watch(driver.release(params));
    expect(driver.leaseState(params, "sb-1")).toBe("closing");
    expect(await realize(params, driver)).toEqual(ANSWER);
    expect(released.state).toBe("pending");
    call.reject(new lease.CreateosCleanupError());
    expectCreateosError(await rejection(released.promise), UNCONFIRMED);
    expect(driver.leaseState(params, "sb-1")).toBe("unconfirmed");
    expect(await realize(params, driver)).toEqual(ANSWER);
    await driver.shutdown();
    expect(driver.leaseState(params, "sb-1")).toBe("shutdown");
    expect(await realize(params, driver)).toEqual(ANSWER);
  });

  test("it is no call of the lease: no release waits for it", async () => {
    const driver = looseDriver();
    const realized = driver.realizeWorkspace(leaseParams());
    expect(await within(driver.release(leaseParams()))).toBeUndefined();
    expect(await within(realized)).toEqual(ANSWER);
  });

  test("an id that no provider gives is none of its business", async () => {
    expect(await realize(leaseParams({ id: "../sb 1" }))).toEqual(ANSWER);
  });

  test("a URL that means the same origin", async () => {
    const { config, ...params } = leaseParams();
    const apiUrl = " HTTPS://CreateOS.example:443/v1/ ";
    expect(await realize({ ...params, config: { ...config, apiUrl } })).toEqual(ANSWER);
  });
});

describe("of a lease of somebody else's", () => {
  const changed: [string, object, string[]][] = [
    ["another provider's", { provider: "other" }, ["provider"]],
    ["another company's", { companyId: "theirs" }, ["companyId"]],
    ["another environment's", { environmentId: "theirs" }, ["environmentId"]],
    ["another API's", { apiUrl: "https://other.example" }, ["apiUrl"]],
    ["of another case", { companyId: "Company" }, ["companyId"]],
    ["of an origin that only means the same", { apiUrl: "https://createos.example/" }, ["apiUrl"]],
    ["nobody's", { provider: 1, companyId: null, environmentId: {} }, ["provider", "companyId", "environmentId"]],
  ];
  test.each(changed)("%s", async (_name, metadata, mismatches) => {
    expectCreateosError(await refusal(leaseParams({ metadata: { ...metadata } })), foreign(...mismatches));
  });

  test("an id that is none", async () => {
    for (const providerLeaseId of [null, undefined, "", 1, {}, ["sb-1"]]) {
      const params = leaseParams();
      const held = { ...params.lease, providerLeaseId };
      expectCreateosError(await refusal({ ...params, lease: held }), foreign("providerLeaseId"));
    }
  });

  test("ids that are missing on both sides, or empty, do not match", async () => {
    for (const id of [undefined, null, "", 7]) {
      const params = leaseParams({ metadata: { companyId: id, environmentId: id } });
      const ids = { companyId: id, environmentId: id };
      expectCreateosError(await refusal({ ...params, ...ids }), foreign("companyId", "environmentId"));
    }
  });

  test("an expired lease, as a resume answers it", async () => {
    const expired = { providerLeaseId: null, metadata: { expired: true } };
    const all = ["providerLeaseId", "provider", "companyId", "environmentId"];
    expectCreateosError(await refusal({ ...leaseParams(), lease: expired }), foreign(...all));
  });

  test("ownership comes before the configuration, and that before its origin", async () => {
    const params = leaseParams({ metadata: { companyId: "theirs", apiUrl: "https://other.example" } });
    const config = { ...params.config, shape: " " };
    expectCreateosError(await refusal({ ...params, config }), foreign("companyId"));
    const { metadata } = leaseParams({ metadata: { apiUrl: "https://other.example" } }).lease;
    const own = { ...params, config, lease: { ...params.lease, metadata } };
    expect(await refusal(own)).toMatchObject({ message: "shape must be a non-empty string." });
    expectCreateosError(await refusal({ ...own, config: params.config }), foreign("apiUrl"));
  });
});

describe("with a configuration that is none", () => {
  test.each(configFaults)("$field: $message", async ({ field, message, values }) => {
    const params = leaseParams();
    for (const value of values) {
      const reason = await refusal({ ...params, config: { ...sound, [field]: value } });
      expectCreateosError(reason, { code: "ERR_CREATEOS_CONFIG", message, extra: { field } });
    }
  });
});

describe("parameters that are anything", () => {
  const nothings = [undefined, null, true, 1, 1n, "text", "", Symbol("s"), {}, [], Object.create(null), () => {}];
  const all = foreign("providerLeaseId", "provider", "companyId", "environmentId");

  test("nothing at all, or no lease", async () => {
    for (const nothing of nothings) {
      expectCreateosError(await refusal(nothing), all);
      expectCreateosError(await refusal({ ...leaseParams(), lease: nothing }), all);
    }
  });

  test("no metadata", async () => {
    for (const metadata of nothings) {
      const params = leaseParams();
      const held = { ...params.lease, metadata };
      expectCreateosError(await refusal({ ...params, lease: held }), foreign("provider", "companyId", "environmentId"));
    }
  });

  test("no configuration", async () => {
    for (const config of nothings)
      expect(await refusal({ ...leaseParams(), config })).toMatchObject({ message: "CreateOS requires an API URL." });
  });

  test("what a getter throws is the rejection", async () => {
    const own = new Error("own");
    const throwing = (target: object, name: string) =>
      Object.defineProperty({ ...target }, name, {
        enumerable: true,
        get() {
          throw own;
        },
      });
    const params = leaseParams();
    const { lease: held, config } = params;
    const given = [
      ...["lease", "companyId", "environmentId", "config"].map((name) => throwing(params, name)),
      { ...params, lease: throwing(held, "providerLeaseId") },
      { ...params, lease: throwing(held, "metadata") },
      { ...params, lease: { ...held, metadata: throwing(held.metadata, "apiUrl") } },
      { ...params, config: throwing(config, "shape") },
    ];
    for (const one of given) expect(await refusal(one)).toBe(own);
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
    expect(await realize(watched(leaseParams()))).toEqual(ANSWER);
    expect(reads).toContain("lease.metadata.apiUrl");
    expect(reads.toSorted()).toEqual([...new Set(reads)].toSorted());
  });
});
