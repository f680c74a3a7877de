// What an acquisition asks the provider for, and what it refuses to ask (specification, section 8).
import { describe, expect, test } from "vitest";
import { acquire, acquireParams, asked } from "./support/acquisitions.js";
import { expectCreateosError } from "./support/errors.js";
import { looseDriver } from "./support/package.js";
import { provide } from "./support/providers.js";
import { rejection } from "./support/waiting.js";

describe("the request says", () => {
  test("no more than it has to", async () => {
    expect(await asked()).toEqual({ shape: "s-1vcpu-1gb", ingress_enabled: false });
  });

  test("shape, image and region", async () => {
    expect(await asked({ shape: " s-2vcpu-4gb ", rootfs: "debian:13", region: "us" })).toEqual({
      shape: "s-2vcpu-4gb",
      rootfs: "debian:13",
      region: "us",
      ingress_enabled: false,
    });
  });

  const images: [string, object, unknown, unknown][] = [
    ["the adapter's", { rootfsByAdapter: { coder: "a" }, rootfs: "b" }, "coder", "a"],
    ["the default for another adapter", { rootfsByAdapter: { coder: "a" }, rootfs: "b" }, "writer", "b"],
    ["the default without an adapter", { rootfsByAdapter: { coder: "a" }, rootfs: "b" }, undefined, "b"],
    ["the default for an empty one", { rootfsByAdapter: { coder: "a" }, rootfs: "b" }, "", "b"],
    ["the default for what is no text", { rootfsByAdapter: { "1": "a" }, rootfs: "b" }, 1, "b"],
    ["the provider's own", { rootfsByAdapter: { coder: "a" } }, "writer", undefined],
    ["the adapter's without a default", { rootfsByAdapter: { coder: "a" } }, "coder", "a"],
    ["not what objects inherit", { rootfsByAdapter: {}, rootfs: "b" }, "constructor", "b"],
    ["an adapter named like a prototype", JSON.parse('{"rootfsByAdapter":{"__proto__":"a"}}'), "__proto__", "a"],
  ];
  test.each(images)("the image: %s", async (_name, config, adapterType, rootfs) => {
    expect((await asked(config, { adapterType })).rootfs).toBe(rootfs);
  });

  const rules: [string, unknown, unknown, string[] | undefined][] = [
    ["none: the field is left out", undefined, undefined, undefined],
    ["empty lists: the field is left out", [], { allowFqdns: [], allowCidrs: [] }, undefined],
    ["null lists", null, { allowFqdns: null, allowCidrs: undefined }, undefined],
    ["no networkEgress", ["a"], null, ["a"]],
    ["the configuration's, then hosts, then CIDRs", ["a", "b"], { allowCidrs: ["10/8"], allowFqdns: ["c"] }, ["a", "b", "c", "10/8"]],
    ["the run's alone", undefined, { allowFqdns: ["c"] }, ["c"]],
    ["the run's CIDRs alone", [], { allowCidrs: ["10/8"] }, ["10/8"]],
    ["duplicates dropped, the first place kept", ["a", "b"], { allowFqdns: ["b", "c", "a"], allowCidrs: ["c"] }, ["a", "b", "c"]],
    ["trimmed before they are compared", [" a "], { allowFqdns: ["\ta", "b\n".trimEnd()] }, ["a", "b"]],
    ["* alone", ["*"], undefined, ["*"]],
    ["* twice", ["*"], { allowFqdns: ["*"] }, ["*"]],
    ["* with another", ["*", "a"], undefined, ["a"]],
    ["* in the configuration, a host in the run", ["*"], { allowFqdns: ["c"] }, ["c"]],
    ["a host in the configuration, * in the run", ["a"], { allowFqdns: ["*"] }, ["a"]],
    ["a wildcard host is not *", ["*.example"], { allowFqdns: ["*"] }, ["*.example"]],
  ];
  test.each(rules)("egress: %s", async (_name, egressAllowlist, networkEgress, egress) => {
    const body = await asked({ egressAllowlist }, { executionWorkspaceSettings: { networkEgress } });
    expect(body.egress).toEqual(egress);
    expect(Object.hasOwn(body, "egress")).toBe(egress !== undefined);
  });

  const timers: [string, object, object, number | undefined][] = [
    ["a reusable lease with an issue", { reuseLease: true }, { issueId: "i" }, 90],
    ["a reusable lease with a workspace", { reuseLease: true }, { executionWorkspaceId: "w" }, 90],
    ["a reusable lease with both", { reuseLease: true }, { issueId: "i", executionWorkspaceId: "w" }, 90],
    ["a reusable lease with neither", { reuseLease: true }, {}, undefined],
    ["a reusable lease with nulls", { reuseLease: true }, { issueId: null, executionWorkspaceId: null }, undefined],
    ["a reusable lease with empty ones", { reuseLease: true }, { issueId: "", executionWorkspaceId: "" }, undefined],
    ["a lease that is not reused", {}, { issueId: "i", executionWorkspaceId: "w" }, undefined],
    ["no timer configured", { reuseLease: true, autoPauseAfterSeconds: null }, { issueId: "i" }, undefined],
  ];
  test.each(timers)("the idle timer: %s", async (_name, config, more, seconds) => {
    const body = await asked({ autoPauseAfterSeconds: 90, ...config }, more);
    expect(body.auto_pause_after_seconds).toBe(seconds);
    expect(Object.hasOwn(body, "auto_pause_after_seconds")).toBe(seconds !== undefined);
  });

  test("the timer is recorded as it was asked for, so that the release knows", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const params = acquireParams(provider, { reuseLease: true, autoPauseAfterSeconds: 90 });
    for (const [more, recorded, left] of [
      [{ issueId: "i" }, 90, "running"],
      [{}, null, "destroyed"],
    ] as const) {
      const { providerLeaseId, metadata } = await acquire({ ...params, ...more }, driver);
      expect(metadata.autoPauseAfterSeconds).toBe(recorded);
      await driver.release({ ...params, providerLeaseId, leaseMetadata: metadata });
      await provider.waitForState(providerLeaseId, left);
    }
  });
});

describe("refused before any request", () => {
  async function refused(config: object, more: object) {
    const provider = await provide();
    const reason = await rejection(acquire(acquireParams(provider, config, more)));
    expect(provider.requests).toEqual([]);
    return reason;
  }

  test("a guaranteed expiry, before everything else", async () => {
    const expected = {
      code: "ERR_CREATEOS_UNSUPPORTED",
      message: "CreateOS does not yet support leases with a guaranteed expiration deadline.",
    };
    for (const requestedExpiresAt of ["2030-01-01T00:00:00Z", "soon", 1, {}]) {
      expectCreateosError(await refused({}, { requestedExpiresAt }), expected);
      expectCreateosError(await refused({ apiUrl: "no URL" }, { requestedExpiresAt, companyId: null }), expected);
    }
  });

  test("no expiry is none", async () => {
    for (const requestedExpiresAt of [null, undefined]) {
      expect(await asked({}, { requestedExpiresAt })).toEqual({ shape: "s-1vcpu-1gb", ingress_enabled: false });
    }
  });

  test("a networkEgress that is no object", async () => {
    for (const networkEgress of ["*", 1, true, ["a"], Symbol("x"), () => {}]) {
      expectCreateosError(await refused({}, { executionWorkspaceSettings: { networkEgress } }), {
        code: "ERR_CREATEOS_CONFIG",
        message: "networkEgress must be an object.",
        extra: { field: "networkEgress" },
      });
    }
  });

  test("an allowlist that holds what is no text, or is no list", async () => {
    const lists = [[""], [" "], [1], [null], [undefined], ["a", {}], ["a\0b"], ["a\nb"], ["a\rb"], "a", {}, 1, true];
    for (const list of lists) {
      for (const name of ["allowFqdns", "allowCidrs"]) {
        const settings = { executionWorkspaceSettings: { networkEgress: { [name]: list } } };
        expectCreateosError(await refused({}, settings), {
          code: "ERR_CREATEOS_CONFIG",
          message: "networkEgress allowlists must contain non-empty strings.",
          extra: { field: "networkEgress" },
        });
      }
    }
  });

  test("a configuration or key that will not do, and ids that are none", async () => {
    expect(await refused({ shape: null }, {})).toMatchObject({ code: "ERR_CREATEOS_CONFIG", field: "shape" });
    expect(await refused({ apiKey: undefined }, {})).toMatchObject({ code: "ERR_CREATEOS_API_KEY" });
    for (const id of ["", null, undefined, 7]) {
      expect((await refused({}, { companyId: id })).constructor).toBe(TypeError);
      expect((await refused({}, { environmentId: id })).constructor).toBe(TypeError);
    }
    for (const nothing of [undefined, null, 1, "text"])
      expect(await rejection(looseDriver().acquire(nothing))).toBeInstanceOf(Error);
  });
});
