// The example plugin, hook by hook, through the plugin SDK's own harness and validators (specification, section 8).
import { readFileSync } from "node:fs";
import path from "node:path";
import {
  assertEnvironmentError,
  assertEnvironmentEventOrder,
  assertLeaseLifecycle,
  assertWorkspaceRealizationLifecycle,
  filterEnvironmentEvents,
  z,
} from "@paperclipai/plugin-sdk";
import { pluginManifestV1Schema, resolveDeclaredSandboxCapabilities } from "@paperclipai/shared";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAborted, expectCreateosError, MESSAGES } from "./support/errors.js";
import { harnessed as harness, hook } from "./support/paperclip_harness.js";
import { installPlugin, type InstalledPlugin, leaseOf, persist, tenant } from "./support/paperclip_plugin.js";
import { nothingAlive, provide, routesSince } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

let installed: InstalledPlugin;
beforeAll(async () => {
  installed = await installPlugin();
});
afterAll(() => installed.remove());

const RUN = { runId: "run" };

const harnessed = () => harness(installed);

/** The one environment driver that the manifest declares. */
function declared() {
  const [driver, ...others] = installed.manifest.environmentDrivers ?? [];
  if (driver === undefined) throw new Error("The manifest declares no environment driver.");
  expect(others).toEqual([]);
  return driver;
}

describe("the package", () => {
  test("compiles in a project of its own, with every check, against the types that the package exports", async () => {
    await installed.build();
  });

  test("names the files that its build makes, and the manifest's worker is the package's", () => {
    const { paperclipPlugin } = JSON.parse(readFileSync(path.join(installed.directory, "package.json"), "utf8"));
    expect(installed.manifest.entrypoints).toEqual({ worker: paperclipPlugin.worker });
    expect(readFileSync(installed.worker, "utf8")).toContain("runWorker(");
  });

  test("exports one plugin for the worker, and a factory for more", () => {
    const { createPlugin, default: plugin } = installed.plugin;
    expect(plugin.definition.setup).toBeTypeOf("function");
    expect(createPlugin()).not.toBe(plugin);
  });
});

describe("the manifest", () => {
  test("passes the host's validator, which changes nothing in it", () => {
    expect(pluginManifestV1Schema.parse(installed.manifest)).toEqual(installed.manifest);
  });

  test("declares reusable leases, commands side by side with live output, and nothing that the worker can't do", () => {
    const driver = declared();
    expect(driver).toMatchObject({ driverKey: "createos", kind: "sandbox_provider", supportsReusableLeases: true });
    expect(resolveDeclaredSandboxCapabilities(driver)).toEqual({
      reusableLeases: true,
      nativeSyncIn: false,
      nativeSyncOut: false,
      persistentProcessSessions: false,
      independentControlCommands: true,
      incrementalSessionOutput: true,
    });
    // The host reads them off the worker, whatever is declared: all three, or it reuses no lease.
    const { definition } = installed.plugin.default;
    expect(definition.onEnvironmentResumeLease).toBeTypeOf("function");
    expect(definition.onEnvironmentReleaseLease).toBeTypeOf("function");
    expect(definition.onEnvironmentDestroyLease).toBeTypeOf("function");
    expect(definition.onEnvironmentExecute).toBeTypeOf("function");
    for (const name of ["onEnvironmentSyncIn", "onEnvironmentSyncOut"] as const) expect(definition[name]).toBeUndefined();
  });

  test("asks for no capability but that of having a driver", () => {
    expect(installed.manifest.capabilities).toEqual(["environment.drivers.register"]);
  });

  test("marks the key, and nothing else, as a secret", () => {
    const { properties } = declared().configSchema as { properties: Record<string, { format?: string }> };
    const secrets = Object.keys(properties).filter((name) => properties[name]?.format === "secret-ref");
    expect(secrets).toEqual(["apiKey"]);
  });
});

describe("a configuration", () => {
  const least = { apiUrl: "https://createos.example", shape: "s-1vcpu-1gb" };
  const full = {
    apiUrl: "http://127.0.0.1:8080",
    apiKey: "key",
    shape: "s-1vcpu-1gb",
    rootfs: "debian:13",
    rootfsByAdapter: { "adapter-a": "alpine:3.20" },
    egressAllowlist: ["a.example", "10.0.0.0/8"],
    region: "eu",
    timeoutMs: 1,
    reuseLease: true,
    autoPauseAfterSeconds: 86_400,
  };

  /** What the schema lets through. A default is what a form begins with; it does not replace what is missing. */
  const fits = (config: unknown) => {
    const schema = JSON.stringify(declared().configSchema, (name, value) => (name === "default" ? undefined : value));
    return z.fromJSONSchema(JSON.parse(schema)).safeParse(config).success;
  };
  const validate = async (config: Record<string, unknown>) =>
    (await harnessed()).validateConfig({ driverKey: "createos", config });

  test("comes back with its defaults, and what is absent stays absent", async () => {
    expect(await validate(least)).toEqual({
      ok: true,
      normalizedConfig: {
        ...least,
        rootfsByAdapter: {},
        egressAllowlist: [],
        timeoutMs: 300_000,
        reuseLease: false,
      },
    });
  });

  test("comes back trimmed, its API's path dropped, and without fields that are the host's own", async () => {
    const raw = { ...full, apiUrl: ` ${full.apiUrl}/v1/ `, region: " eu ", runnerLifecycleMode: "warm" };
    expect(await validate(raw)).toEqual({ ok: true, normalizedConfig: full });
  });

  test("may hold a secret's id in the key's place, which comes back as it is", async () => {
    const apiKey = "6f1c1c4e-2a57-4a2b-9d8f-0c8d1a7f3b52";
    expect(await validate({ ...least, apiKey })).toMatchObject({ ok: true, normalizedConfig: { apiKey } });
  });

  test.each([
    ["the least", least],
    ["every field", full],
  ])("of %s fits the schema, and so does what comes back, which is normal already", async (_name, config) => {
    expect(fits(config)).toBe(true);
    const { normalizedConfig = {} } = await validate(config);
    expect(fits(normalizedConfig)).toBe(true);
    expect(await validate(normalizedConfig)).toEqual({ ok: true, normalizedConfig });
  });

  const adapters = "rootfsByAdapter must contain non-empty adapter and root filesystem strings.";
  const refused: [string, Record<string, unknown>, string][] = [
    ["apiUrl", { shape: least.shape }, "CreateOS requires an API URL."],
    ["shape", { apiUrl: least.apiUrl }, "CreateOS requires a shape from its shape catalog."],
    ["apiUrl", { ...least, apiUrl: " " }, "apiUrl must be a non-empty string."],
    ["apiKey", { ...least, apiKey: 1 }, "apiKey must be a non-empty string."],
    ["timeoutMs", { ...least, timeoutMs: 0 }, "timeoutMs must be an integer between 1 and 86400000."],
    ["timeoutMs", { ...least, timeoutMs: 1.5 }, "timeoutMs must be an integer between 1 and 86400000."],
    ["reuseLease", { ...least, reuseLease: "yes" }, "reuseLease must be a boolean."],
    ["rootfsByAdapter", { ...least, rootfsByAdapter: { "adapter-a": "" } }, adapters],
    [
      "autoPauseAfterSeconds",
      { ...least, autoPauseAfterSeconds: 59 },
      "autoPauseAfterSeconds must be an integer between 60 and 86400.",
    ],
    [
      "egressAllowlist",
      { ...least, egressAllowlist: "a.example" },
      "egressAllowlist must be an array of non-empty host or CIDR strings.",
    ],
  ];
  test.each(refused)("with a wrong %s is refused by schema and worker: %o", async (_field, config, message) => {
    expect(fits(config)).toBe(false);
    expect(await validate(config)).toEqual({ ok: false, errors: [message] });
  });

  test("is what the worker says even where a schema can't tell", async () => {
    const config = { ...least, apiUrl: "http://createos.example" };
    expect(fits(config)).toBe(true);
    expect(await validate(config)).toEqual({
      ok: false,
      errors: [
        "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
      ],
    });
  });
});

describe("the life of a lease", () => {
  test("from validateConfig to destroy", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const { environmentEvents: events } = harness;
    const raw = tenant(provider);
    const { normalizedConfig = {} } = await harness.validateConfig(raw);
    const owner = { ...raw, config: normalizedConfig };

    const probed = await harness.probe(owner);
    expect(probed).toMatchObject({ ok: true });
    await nothingAlive(provider);

    const acquired = await harness.acquireLease({ ...owner, ...RUN });
    const lease = persist(acquired);
    expect(lease.leaseMetadata).toMatchObject({ provider: "createos", remoteCwd: "/paperclip-workspace" });
    expect(await harness.realizeWorkspace({ ...owner, ...leaseOf(lease) })).toEqual({
      cwd: "/paperclip-workspace",
      metadata: { provider: "createos", remoteCwd: "/paperclip-workspace" },
    });
    expect(await harness.releaseLease({ ...owner, ...lease })).toEqual({
      providerLeaseId: lease.providerLeaseId,
      state: "stopped",
    });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("paused");

    const resumed = persist(await harness.resumeLease({ ...owner, ...lease }));
    expect(resumed).toEqual({ ...lease, leaseMetadata: { ...lease.leaseMetadata, resumedLease: true } });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("running");
    expect(await harness.destroyLease({ ...owner, ...resumed })).toEqual({
      providerLeaseId: lease.providerLeaseId,
      state: "destroyed",
    });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("destroyed");
    await nothingAlive(provider);

    assertEnvironmentEventOrder(events, [
      "validateConfig",
      "probe",
      "acquireLease",
      "realizeWorkspace",
      "releaseLease",
      "resumeLease",
      "destroyLease",
    ]);
    const { acquire, release } = assertLeaseLifecycle(events, owner.environmentId);
    expect(acquire.result).toEqual(acquired);
    expect(release.type).toBe("releaseLease");
    assertWorkspaceRealizationLifecycle(events, owner.environmentId);
    expect(events.filter(({ error }) => error !== undefined)).toEqual([]);
  });

  test("ends with its first release where leases are not reused, and with a receipt for it", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider, {}, { reuseLease: false });
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    expect(await harness.releaseLease({ ...owner, ...lease })).toEqual({
      providerLeaseId: lease.providerLeaseId,
      state: "destroyed",
    });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("destroyed");
    // The host may ask again, and for what never was.
    expect(await harness.destroyLease({ ...owner, ...lease })).toMatchObject({ state: "destroyed" });
    expect(await harness.destroyLease({ ...owner, providerLeaseId: null })).toBeUndefined();
    assertLeaseLifecycle(harness.environmentEvents, owner.environmentId);
  });

  test("a receipt is given only once the provider shows the sandbox destroyed", async () => {
    const provider = await provide({ delays: { destroy: 300 } });
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    const receipt = await harness.destroyLease({ ...owner, ...lease });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("destroyed");
    expect(receipt).toEqual({ providerLeaseId: lease.providerLeaseId, state: "destroyed" });
  });

  test("a lease that is left for the provider to pause has no receipt: something may still run", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider, {}, { autoPauseAfterSeconds: 60 });
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    expect(await harness.releaseLease({ ...owner, ...lease })).toBeUndefined();
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("running");
    await harness.destroyLease({ ...owner, ...lease });
    await nothingAlive(provider);
  });

  test("a lease whose sandbox is gone comes back without an id, and is destroyed all the same", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    await harness.releaseLease({ ...owner, ...lease });
    provider.guest.delete(lease.providerLeaseId);
    await provider.waitForState(lease.providerLeaseId, "destroyed");
    const gone = { providerLeaseId: null, metadata: { expired: true } };
    expect(await harness.resumeLease({ ...owner, ...lease })).toEqual(gone);
    expect(await harness.destroyLease({ ...owner, ...lease })).toMatchObject({ state: "destroyed" });
    assertEnvironmentEventOrder(harness.environmentEvents, ["releaseLease", "resumeLease", "destroyLease"]);
  });

  test("a lease that no longer fits its environment comes back without an id, and can be destroyed", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    await harness.releaseLease({ ...owner, ...lease });
    const changed = tenant(provider, {}, { shape: "s-2vcpu-2gb" });
    expect(await harness.resumeLease({ ...changed, ...lease })).toMatchObject({ providerLeaseId: null });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("paused");
    await harness.destroyLease({ ...changed, ...lease });
    await nothingAlive(provider);
  });
});

describe("what a hook fails with", () => {
  test("another environment's lease, in every hook that takes one, with no request", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const { environmentEvents: events } = harness;
    const [mine, theirs] = [tenant(provider), tenant(provider, { environmentId: "other" })];
    const lease = persist(await harness.acquireLease({ ...mine, ...RUN }));
    const start = provider.requests.length;
    await rejection(harness.resumeLease({ ...theirs, ...lease }));
    await rejection(harness.releaseLease({ ...theirs, ...lease }));
    await rejection(harness.destroyLease({ ...theirs, ...lease }));
    await rejection(harness.realizeWorkspace({ ...theirs, ...leaseOf(lease) }));
    expect(provider.requests.length).toBe(start);
    for (const type of ["resumeLease", "releaseLease", "destroyLease"] as const) {
      expect(assertEnvironmentError(events, type, "other").error).toBe(MESSAGES.notForRelease);
    }
    expect(assertEnvironmentError(events, "realizeWorkspace", "other").error).toBe(
      "CreateOS workspace requires a lease from this environment.",
    );
    await harness.destroyLease({ ...mine, ...lease });
    await nothingAlive(provider);
  });

  test("a lease that must end by itself, without a request", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const requestedExpiresAt = "2031-01-01T00:00:00.000Z";
    const error = await rejection(harness.acquireLease({ ...tenant(provider), ...RUN, requestedExpiresAt }));
    expectCreateosError(error, {
      code: "ERR_CREATEOS_UNSUPPORTED",
      message: "CreateOS does not yet support leases with a guaranteed expiration deadline.",
    });
    assertEnvironmentError(harness.environmentEvents, "acquireLease");
    expect(provider.requests).toEqual([]);
  });

  test("a transient error of a resume is one, and proves no sandbox lost: the next succeeds", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    await harness.releaseLease({ ...owner, ...lease });
    provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "status", status: 503 } });
    await rejection(harness.resumeLease({ ...owner, ...lease }));
    expect(assertEnvironmentError(harness.environmentEvents, "resumeLease").error).toBe(
      "CreateOS request failed (HTTP 503) during sandbox lifecycle.",
    );
    expect(await harness.resumeLease({ ...owner, ...lease })).toMatchObject({ metadata: { resumedLease: true } });
    await harness.destroyLease({ ...owner, ...lease });
    await nothingAlive(provider);
  });

  test("a failed acquisition leaves no sandbox", async () => {
    const provider = await provide();
    const harness = await harnessed();
    provider.faults.add({ match: { path: "files.put" }, times: 1, effect: { type: "status", status: 500 } });
    await rejection(harness.acquireLease({ ...tenant(provider), ...RUN }));
    assertEnvironmentError(harness.environmentEvents, "acquireLease", "environment");
    await nothingAlive(provider);
  });

  test("a probe tells what is wrong, instead of failing, and leaves no sandbox", async () => {
    const provider = await provide();
    const harness = await harnessed();
    provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "status", status: 402 } });
    expect(await harness.probe(tenant(provider))).toEqual({
      ok: false,
      summary: "CreateOS request failed (HTTP 402) during sandbox lifecycle.",
    });
    expect(await harness.probe(tenant(provider, {}, { shape: null }))).toEqual({
      ok: false,
      summary: "CreateOS requires a shape from its shape catalog.",
    });
    expect(filterEnvironmentEvents(harness.environmentEvents, "probe").map(({ error }) => error)).toEqual([
      undefined,
      undefined,
    ]);
    await nothingAlive(provider);
  });
});

describe("a shutdown", () => {
  test("ends an acquisition that is under way and removes its sandbox; other leases can be released", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    const held = provider.faults.add({ match: { path: "exec" }, times: 1, effect: { type: "hold" } });
    const acquired = rejection(harness.acquireLease({ ...owner, ...RUN }));
    await within(held.hit);
    await within(hook(harness.plugin, "onShutdown")());
    expectAborted(await acquired);
    expect(provider.sandboxes.filter(({ status }) => status === "running").map(({ id }) => id)).toEqual([
      lease.providerLeaseId,
    ]);
    expect(await harness.releaseLease({ ...owner, ...lease })).toMatchObject({ state: "stopped" });
    await harness.destroyLease({ ...owner, ...lease });
    await nothingAlive(provider);
  });

  test("of one plugin is nothing to another", async () => {
    const provider = await provide();
    const [one, other] = [await harnessed(), await harnessed()];
    await hook(one.plugin, "onShutdown")();
    const owner = tenant(provider);
    const refused = await rejection(one.acquireLease({ ...owner, ...RUN }));
    expectCreateosError(refused, { code: "ERR_CREATEOS_LEASE_CLOSING", message: MESSAGES.closing });
    const lease = persist(await other.acquireLease({ ...owner, ...RUN }));
    await other.destroyLease({ ...owner, ...lease });
    await nothingAlive(provider);
  });
});

describe("hooks called at once", () => {
  test("a destroy ends a resume that is under way, and the resume says so", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    await harness.releaseLease({ ...owner, ...lease });
    const held = provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "hold" } });
    const resumed = rejection(harness.resumeLease({ ...owner, ...lease }));
    await within(held.hit);
    expect(await harness.destroyLease({ ...owner, ...lease })).toMatchObject({ state: "destroyed" });
    expectAborted(await resumed);
    held.remove();
    await nothingAlive(provider);
  });

  test("two releases and a resume of a lease: the first does it, the others are told so", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    const outcomes = await Promise.allSettled([
      harness.releaseLease({ ...owner, ...lease }),
      harness.releaseLease({ ...owner, ...lease }),
      harness.resumeLease({ ...owner, ...lease }),
    ]);
    expect(outcomes[0]).toMatchObject({ status: "fulfilled", value: { state: "stopped" } });
    expect(outcomes[1]).toMatchObject({ status: "rejected", reason: { message: MESSAGES.inProgress } });
    const message = "CreateOS lease cleanup must finish before resume.";
    expect(outcomes[2]).toMatchObject({ status: "rejected", reason: { message } });
    await harness.destroyLease({ ...owner, ...lease });
    await nothingAlive(provider);
  });

  test("two resumes of a lease both give it, and it runs once they have", async () => {
    const provider = await provide({ delays: { resume: 50 } });
    const harness = await harnessed();
    const owner = tenant(provider);
    const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
    await harness.releaseLease({ ...owner, ...lease });
    const resumed = await Promise.all([1, 2].map(() => harness.resumeLease({ ...owner, ...lease })));
    for (const one of resumed) expect(one).toMatchObject({ providerLeaseId: lease.providerLeaseId });
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("running");
    await harness.destroyLease({ ...owner, ...lease });
    await nothingAlive(provider);
  });

  test("the leases of many environments go through their lives side by side", async () => {
    const provider = await provide();
    const harness = await harnessed();
    const owners = Array.from({ length: 6 }, (_, index) =>
      tenant(provider, { companyId: `company ${index % 2}`, environmentId: `environment ${index}` }),
    );
    const lives = owners.map(async (owner) => {
      const lease = persist(await harness.acquireLease({ ...owner, ...RUN }));
      await harness.realizeWorkspace({ ...owner, ...leaseOf(lease) });
      await harness.releaseLease({ ...owner, ...lease });
      const resumed = persist(await harness.resumeLease({ ...owner, ...lease }));
      expect(resumed.providerLeaseId).toBe(lease.providerLeaseId);
      await harness.destroyLease({ ...owner, ...resumed });
      return lease.providerLeaseId;
    });
    expect(new Set(await Promise.all(lives)).size).toBe(owners.length);
    for (const { environmentId } of owners) {
      assertLeaseLifecycle(harness.environmentEvents, environmentId);
      assertWorkspaceRealizationLifecycle(harness.environmentEvents, environmentId);
    }
    expect(routesSince(provider, 0).filter((route) => route === "sandbox.destroy").length).toBe(owners.length);
    await nothingAlive(provider);
  });
});
