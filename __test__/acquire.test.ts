// Getting a lease: what is asked of the provider, what is in the sandbox, and what is left when it fails (specification,
// section 8).
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { expectCreateosError, expectTimedOut } from "./support/errors.js";
import { leaseParams } from "./support/leases.js";
import { lease, looseDriver, type LooseDriver } from "./support/package.js";
import { nothingAlive, provide, routesSince } from "./support/providers.js";
import { deferred, rejection, turns, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface Acquired {
  providerLeaseId: string;
  metadata: Record<string, any>;
}

/** Parameters of an acquisition, without a lease's. */
function acquireParams(provider: Provider, config: object = {}, more: object = {}) {
  const { companyId, environmentId, config: basic } = leaseParams({ provider });
  return { companyId, environmentId, config: { ...basic, ...config }, ...more };
}

const acquire = (params: unknown, driver = looseDriver()) => driver.acquire(params) as Promise<Acquired>;

const createRequest = (provider: Provider) =>
  provider.requests.filter((request) => request.route === "sandbox.create").at(-1);

/** The body of the creation that an acquisition asks for, whatever becomes of it. */
async function asked(config: object = {}, more: object = {}) {
  const provider = await provide();
  provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "status", status: 400 } });
  await rejection(acquire(acquireParams(provider, config, more)));
  const body = createRequest(provider)?.body as Record<string, unknown>;
  const { name, ...rest } = body;
  expect(name).toMatch(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?$/);
  return rest;
}

describe("a lease", () => {
  test("is a running sandbox with its workspace and marker", async () => {
    const provider = await provide();
    const { providerLeaseId, ...rest } = await acquire(acquireParams(provider));
    expect(Object.keys(rest)).toEqual(["metadata"]);
    expect(provider.sandboxes).toMatchObject([{ id: providerLeaseId, status: "running" }]);
    const root = provider.sandbox(providerLeaseId)?.directory as string;
    const runtime = path.join(root, "paperclip-workspace", ".paperclip-runtime");
    const marker = readFileSync(path.join(runtime, ".paperclip-createos-lease"), "utf8");
    expect(marker).toBe(rest.metadata.marker);
    expect(marker).toMatch(UUID);
  });

  test("has exactly the metadata that is specified, and serves track and release as it is", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const params = acquireParams(provider);
    const { providerLeaseId, metadata } = await acquire(params, driver);
    expect(metadata).toEqual({
      provider: "createos",
      apiUrl: provider.url,
      companyId: "company",
      environmentId: "environment",
      remoteCwd: "/paperclip-workspace",
      shellCommand: "bash",
      marker: metadata.marker,
      shape: "s-1vcpu-1gb",
      rootfs: null,
      region: null,
      reuseLease: false,
      adapterType: null,
      baseEgressAllowlist: [],
      effectiveEgressAllowlist: [],
      autoPauseAfterSeconds: null,
    });
    const kept = JSON.parse(JSON.stringify({ providerLeaseId, metadata }));
    expect(kept).toEqual({ providerLeaseId, metadata });
    expect(lease.isUsableCreateosLease(kept)).toBe(true);
    expect(lease.canUseLease(kept, params)).toBe(true);
    expect(await driver.track({ ...params, lease: kept }, () => "runs")).toBe("runs");
    await driver.release({ ...params, providerLeaseId, leaseMetadata: kept.metadata });
    await nothingAlive(provider);
  });

  test("records what it was made with", async () => {
    const provider = await provide({ region: "eu" });
    const config = {
      apiUrl: `${provider.url}/v1/`,
      rootfs: " debian:13 ",
      rootfsByAdapter: { " coder ": " alpine:3.20 " },
      region: "eu",
      egressAllowlist: ["*", "a.example"],
      reuseLease: true,
      autoPauseAfterSeconds: 90,
      timeoutMs: 20_000,
    };
    const { metadata } = await acquire(
      acquireParams(provider, config, {
        adapterType: "coder",
        issueId: "issue",
        executionWorkspaceSettings: { networkEgress: { allowFqdns: ["b.example"], allowCidrs: ["10.0.0.0/8"] } },
      }),
    );
    expect(metadata).toMatchObject({
      apiUrl: provider.url,
      rootfs: "alpine:3.20",
      region: "eu",
      reuseLease: true,
      adapterType: "coder",
      baseEgressAllowlist: ["*", "a.example"],
      effectiveEgressAllowlist: ["a.example", "b.example", "10.0.0.0/8"],
      autoPauseAfterSeconds: 90,
    });
  });

  test("has a marker and a name of its own, each time", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const leases = await Promise.all(Array.from({ length: 5 }, () => acquire(acquireParams(provider), driver)));
    const distinct = (values: unknown[]) => new Set(values).size;
    expect(distinct(leases.map(({ providerLeaseId }) => providerLeaseId))).toBe(5);
    expect(distinct(leases.map(({ metadata }) => metadata.marker))).toBe(5);
    expect(distinct(provider.sandboxes.map(({ name }) => name))).toBe(5);
  });

  test("comes in the order: create, running, folders, marker", async () => {
    const provider = await provide();
    await acquire(acquireParams(provider));
    const routes = routesSince(provider, 0).filter((route) => route !== "sandbox.get");
    expect(routes).toEqual(["sandbox.create", "exec", "files.put"]);
    expect(routesSince(provider, 0).indexOf("sandbox.get")).toBe(1);
    const put = provider.requests.find(({ route }) => route === "files.put");
    expect(new URL(put?.url ?? "", provider.url).searchParams.get("path")).toBe(
      "/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease",
    );
  });

  test("is waited for while its sandbox is being created", async () => {
    const provider = await provide({ switches: { createStatus: false } });
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "stuck" } });
    const acquired = acquire(acquireParams(provider));
    const looks = await provider.waitForRequest("sandbox.get");
    const mark = provider.mark();
    await provider.waitForRequest("sandbox.get", { since: mark });
    provider.guest.unstick(looks.sandboxId as string);
    expect((await within(acquired)).providerLeaseId).toBe(looks.sandboxId);
  });

  test("is a new one where the folders exist already", async () => {
    const provider = await provide();
    provider.faults.add({
      match: { path: "exec" },
      effect: {
        type: "call",
        run: ({ sandboxId }) => {
          const root = provider.sandbox(sandboxId as string)?.directory as string;
          execFileSync("mkdir", ["-p", path.join(root, "paperclip-workspace", ".paperclip-runtime")]);
        },
      },
    });
    const { providerLeaseId } = await acquire(acquireParams(provider));
    expect(existsSync(path.join(provider.sandbox(providerLeaseId)?.directory as string, "paperclip-workspace"))).toBe(
      true,
    );
  });
});

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
  async function refused(config: object, more: object, driver: LooseDriver = looseDriver()) {
    const provider = await provide();
    const reason = await rejection(acquire(acquireParams(provider, config, more), driver));
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

describe("a failure after the creation removes the sandbox, and is what surfaces", () => {
  type Effect = Parameters<Provider["faults"]["add"]>[0]["effect"];
  const api = (status: number, operation: string) => ({
    name: "CreateosApiError" as const,
    code: "ERR_CREATEOS_API",
    message: `CreateOS request failed (HTTP ${status}) during ${operation}.`,
    extra: { status, operation },
  });
  const unprepared = {
    code: "ERR_CREATEOS_SETUP",
    message: "CreateOS workspace preparation failed; the image must provide Bash.",
  };
  const noJson = { code: "ERR_CREATEOS_RESPONSE", message: "CreateOS returned invalid JSON." };
  const noConnection = { code: "ERR_CREATEOS_CONNECTION", message: "CreateOS connection failed." };
  const result = (fields: object): Effect => ({ type: "patch", set: { result: fields } });
  const failures: [string, string, Effect, Parameters<typeof expectCreateosError>[1]][] = [
    ["looking at it fails", "sandbox.get", { type: "status", status: 500 }, api(500, "sandbox lifecycle")],
    [
      "it is another one",
      "sandbox.get",
      { type: "wrongId" },
      { code: "ERR_CREATEOS_RESPONSE", message: "CreateOS sandbox identity or state is invalid." },
    ],
    [
      "it does not run",
      "sandbox.get",
      { type: "patch", set: { status: "failed" } },
      { code: "ERR_CREATEOS_STATE", message: "CreateOS sandbox did not reach running." },
    ],
    ["the command is refused", "exec", { type: "status", status: 404 }, api(404, "workspace command")],
    ["the command is cut off", "exec", { type: "lostReply" }, noConnection],
    ["the command's answer is unreadable", "exec", { type: "invalidJson" }, noJson],
    ["the command exits with a code", "exec", result({ exit_code: 1, stdout: "", stderr: "" }), unprepared],
    ["the command exits by a signal", "exec", result({ exit_code: 137, stdout: "", stderr: "" }), unprepared],
    ["the command does not start", "exec", result({ exit_code: 0, error: "no such file" }), unprepared],
    ["the command has no exit code", "exec", result({ stdout: "", stderr: "" }), unprepared],
    ["the command's code is text", "exec", result({ exit_code: "0" }), unprepared],
    ["the marker is refused", "files.put", { type: "status", status: 507 }, api(507, "file transfer")],
    ["the marker is cut off", "files.put", { type: "lostRequest" }, noConnection],
    ["the marker is redirected", "files.put", { type: "redirect", location: "/x" }, noConnection],
  ];
  test.each(failures)("%s", async (_name, route, effect, expected) => {
    const provider = await provide();
    provider.faults.add({ match: { path: route }, effect });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), expected);
    expect(routesSince(provider, 0).filter((one) => one === "sandbox.destroy")).toHaveLength(1);
    await nothingAlive(provider);
  });

  test("an image without Bash", async () => {
    const provider = await provide();
    provider.faults.add({
      match: { path: "exec" },
      effect: [
        {
          type: "call",
          run: ({ body }) => {
            expect(body.cmd).toBe("/bin/bash");
            body.cmd = "/no/bash/here";
          },
        },
      ],
    });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), unprepared);
    await nothingAlive(provider);
  });

  test("a creation that fails has nothing to remove", async () => {
    const provider = await provide({ switches: { credit: false } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), api(402, "sandbox lifecycle"));
    expect(routesSince(provider, 0)).toEqual(["sandbox.create"]);
  });

  test("a creation that answers with an id that none can have is not followed up", async () => {
    const provider = await provide();
    for (const id of ["../x", "", 7, null]) {
      const rule = provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "patch", set: { id } } });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), {
        code: "ERR_CREATEOS_RESPONSE",
        message: "CreateOS returned an invalid resource ID.",
      });
      rule.remove();
    }
    expect(new Set(routesSince(provider, 0))).toEqual(new Set(["sandbox.create"]));
  });

  test("the deadline: the removal has a fresh one", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    // The removal takes nearly as long as the timeout, so what is left of the first deadline would not do.
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "delay", ms: 250 } });
    expectTimedOut(await rejection(acquire(acquireParams(provider, { timeoutMs: 500 }))));
    await nothingAlive(provider);
  });

  test("a sandbox that has gone meanwhile counts as removed", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "exec" }, effect: [{ type: "guestDelete" }, { type: "status", status: 500 }] });
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 404 } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), api(500, "workspace command"));
    await nothingAlive(provider);
  });
});

describe("a removal that fails as well names the sandbox", () => {
  const effects: Parameters<Provider["faults"]["add"]>[0]["effect"][] = [
    { type: "status", status: 500 },
    { type: "status", status: 403 },
    { type: "lostRequest" },
    { type: "lostReply" },
    { type: "redirect", location: "/x" },
  ];
  test.each(effects)("%j", async (effect) => {
    const provider = await provide();
    provider.faults.add({ match: { path: "files.put" }, effect: { type: "status", status: 500 } });
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect });
    const reason = await rejection(acquire(acquireParams(provider)));
    const [{ id } = { id: "" }] = provider.sandboxes;
    expectCreateosError(reason, {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: `CreateOS setup failed and cleanup is unconfirmed for sandbox ${id}.`,
      extra: { sandboxId: id },
    });
    provider.faults.clear();
    // The name is good for a later removal.
    const { config } = acquireParams(provider);
    await new lease.CreateosClient(config as never).destroySandbox(reason.sandboxId);
    await nothingAlive(provider);
  });

  test("when the removal takes longer than the timeout", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "exec" }, effect: { type: "status", status: 500 } });
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "hold" } });
    const reason = await rejection(acquire(acquireParams(provider, { timeoutMs: 400 })));
    expect(reason).toMatchObject({ sandboxId: provider.sandboxes[0]?.id });
    rule.remove();
    await nothingAlive(provider);
  });
});

test("acquisitions do not wait for each other, and one's failure is nothing to the others", async () => {
  const provider = await provide();
  const driver = looseDriver();
  const held = provider.faults.add({ match: { path: "exec" }, times: 1, effect: { type: "hold" } });
  const first = acquire(acquireParams(provider), driver);
  await within(held.hit);
  provider.faults.add({ match: { path: "files.put" }, times: 1, effect: { type: "status", status: 500 } });
  await rejection(acquire(acquireParams(provider), driver));
  const third = await within(acquire(acquireParams(provider), driver));
  held.release();
  const { providerLeaseId } = await within(first);
  expect(provider.sandboxes.filter(({ status }) => status === "running").map(({ id }) => id).toSorted()).toEqual(
    [providerLeaseId, third.providerLeaseId].toSorted(),
  );
});

test("the parameters are read at once: what the host changes later changes nothing", async () => {
  const provider = await provide();
  const params = acquireParams(provider, { rootfs: "debian:13", egressAllowlist: ["a.example"] });
  const hold = deferred();
  provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "call", run: () => hold.promise } });
  const acquired = acquire(params);
  Object.assign(params.config, { rootfs: "alpine:3.20", shape: "other" });
  (params.config as unknown as { egressAllowlist: string[] }).egressAllowlist.push("b.example");
  params.companyId = "other";
  await turns(2);
  hold.resolve();
  const { metadata } = await within(acquired);
  expect(metadata).toMatchObject({
    companyId: "company",
    rootfs: "debian:13",
    shape: "s-1vcpu-1gb",
    baseEgressAllowlist: ["a.example"],
    effectiveEgressAllowlist: ["a.example"],
  });
});

test("every kind of sandbox of the provider will do: inside a namespace, too", async () => {
  const provider = await provide({ isolation: "auto" });
  const driver = looseDriver();
  const params = acquireParams(provider);
  const { providerLeaseId, metadata } = await acquire(params, driver);
  const answer = (await new lease.CreateosClient(params.config as never).json(
    `/sandboxes/${providerLeaseId}/exec`,
    "POST",
    { cmd: "/bin/cat", args: ["/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease"] },
  )) as { result: { stdout: string } };
  expect(answer.result.stdout).toBe(metadata.marker);
  await driver.destroy({ ...params, providerLeaseId, leaseMetadata: metadata });
  await nothingAlive(provider);
});
