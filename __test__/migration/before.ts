// A plugin of the old shape: it keeps its calls, closing and unconfirmed leases in maps and sets of its own.
import { createHash, randomUUID } from "node:crypto";
import type {
  PluginEnvironmentAcquireLeaseParams,
  PluginEnvironmentLease,
  PluginEnvironmentProbeParams,
  PluginEnvironmentProbeResult,
  PluginEnvironmentRealizeWorkspaceParams,
  PluginEnvironmentReleaseLeaseParams,
  PluginEnvironmentResumeLeaseParams,
  PluginEnvironmentValidateConfigParams,
  PluginEnvironmentValidationResult,
} from "@paperclipai/plugin-sdk";
import { CreateosClient, unlessGone } from "./before_client.js";
import { type Config, isLine, isRecord, parseConfig } from "./before_config.js";
import { CreateosCleanupError, execute, type LeaseHooks, WORKSPACE } from "./shared.js";
import { syncIn, syncOut } from "./sync.js";

interface Owner {
  companyId: string;
  environmentId: string;
  config: Record<string, unknown>;
}

type Metadata = Record<string, unknown>;
type Work<T> = (client: CreateosClient, signal: AbortSignal) => Promise<T>;

interface Call {
  controller: AbortController;
  settled: Promise<void>;
}

const MARKER = `${WORKSPACE}/.paperclip-runtime/.paperclip-createos-lease`;
const EXPIRED = { providerLeaseId: null, metadata: { expired: true } };

const active = new Map<string, Set<Call>>();
const closing = new Set<string>();
const unconfirmed = new Set<string>();
let shuttingDown = false;

/** The configuration, where the lease is this environment's. */
function ownConfig(owner: Owner, metadata: Metadata | undefined): Config | undefined {
  if (metadata?.provider !== "createos" || metadata.companyId !== owner.companyId) return undefined;
  if (metadata.environmentId !== owner.environmentId) return undefined;
  const config = parseConfig(owner.config);
  return metadata.apiUrl === config.apiUrl ? config : undefined;
}

function scopeOf({ companyId, environmentId }: Owner, { config, apiKey }: CreateosClient, id: string): string {
  const account = createHash("sha256").update(apiKey).digest("hex");
  return JSON.stringify([companyId, environmentId, config.apiUrl, account, id]);
}

async function track<T>(
  params: Owner & { lease: PluginEnvironmentLease },
  work: Work<T>,
  timeoutMs?: number,
): Promise<T> {
  const { providerLeaseId: id, metadata } = params.lease;
  const config = id ? ownConfig(params, metadata) : undefined;
  if (!id || !config) throw new Error("CreateOS execution requires a lease from this environment.");
  const client = new CreateosClient(config);
  const scope = scopeOf(params, client, id);
  if (shuttingDown || closing.has(scope) || unconfirmed.has(scope)) {
    throw new Error("CreateOS lease is closing or requires cleanup.");
  }
  const timeout = timeoutMs ?? config.timeoutMs;
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > 86_400_000) {
    throw new Error("Invalid CreateOS command timeout.");
  }
  return run(scope, client, work, timeout);
}

/** Runs work so that a release can abort it and wait for it. */
async function run<T>(scope: string, client: CreateosClient, work: Work<T>, timeoutMs: number): Promise<T> {
  const controller = new AbortController();
  let settle = () => {};
  const call: Call = { controller, settled: new Promise((resolve) => (settle = resolve)) };
  const calls = active.get(scope) ?? new Set();
  active.set(scope, calls.add(call));
  const late = new DOMException("The operation was aborted due to timeout", "TimeoutError");
  const timer = setTimeout(() => controller.abort(late), timeoutMs);
  try {
    return await work(client, controller.signal);
  } catch (error) {
    if (error instanceof CreateosCleanupError) unconfirmed.add(scope);
    throw error;
  } finally {
    clearTimeout(timer);
    calls.delete(call);
    if (calls.size === 0) active.delete(scope);
    settle();
  }
}

async function stopActive(scope: string): Promise<void> {
  const calls = [...(active.get(scope) ?? [])];
  for (const { controller } of calls) controller.abort();
  await Promise.all(calls.map(({ settled }) => settled));
}

async function release(params: PluginEnvironmentReleaseLeaseParams, destroy: boolean): Promise<void> {
  const { providerLeaseId: id, leaseMetadata } = params;
  if (!id) return;
  const config = ownConfig(params, leaseMetadata);
  if (!config) throw new Error("CreateOS lease does not belong to this environment.");
  const client = new CreateosClient(config);
  const scope = scopeOf(params, client, id);
  if (closing.has(scope)) throw new Error("CreateOS lease cleanup is already in progress.");
  closing.add(scope);
  try {
    await stopActive(scope);
    const { reuseLease, autoPauseAfterSeconds: seconds } = config;
    // The provider would not pause a sandbox that was created with another setting.
    const isStranded = seconds !== null && seconds !== leaseMetadata?.autoPauseAfterSeconds;
    if (destroy || !reuseLease || isStranded) {
      await client.destroySandbox(id);
      unconfirmed.delete(scope);
      return;
    }
    if (unconfirmed.has(scope)) {
      throw new Error("CreateOS process cleanup is unconfirmed; destroy this lease before reusing it.");
    }
    if (seconds !== null) return;
    await client.transition(id, "paused", AbortSignal.timeout(config.timeoutMs)).catch(unlessGone);
  } finally {
    closing.delete(scope);
  }
}

async function acquire(params: PluginEnvironmentAcquireLeaseParams) {
  if (params.requestedExpiresAt) {
    throw new Error("CreateOS does not yet support leases with a guaranteed expiration deadline.");
  }
  const config = parseConfig(params.config);
  const adapterType = params.adapterType ?? null;
  const rootfs = rootfsFor(config, adapterType);
  const egress = egressFor(config, params.executionWorkspaceSettings);
  const isReusable = config.reuseLease && Boolean(params.issueId || params.executionWorkspaceId);
  const seconds = isReusable ? config.autoPauseAfterSeconds : null;

  const client = new CreateosClient(config);
  const signal = AbortSignal.timeout(config.timeoutMs);
  const id = await client.createSandbox(
    {
      shape: config.shape,
      ingress_enabled: false,
      ...(rootfs !== null && { rootfs }),
      ...(config.region !== null && { region: config.region }),
      ...(egress.length > 0 && { egress }),
      ...(seconds !== null && { auto_pause_after_seconds: seconds }),
    },
    signal,
  );
  const marker = randomUUID();
  try {
    await client.transition(id, "running", signal);
    const script = `mkdir -p ${WORKSPACE}/.paperclip-runtime`;
    const message = "CreateOS workspace preparation failed; the image must provide Bash.";
    await exec(client, id, { cmd: "/bin/bash", args: ["-lc", script] }, message, signal);
    await client.upload(id, MARKER, marker, signal);
  } catch (error) {
    await client.destroySandbox(id).catch(() => {
      throw new Error(`CreateOS setup failed and cleanup is unconfirmed for sandbox ${id}.`);
    });
    throw error;
  }
  const { apiUrl, shape, region, reuseLease, egressAllowlist } = config;
  const metadata = {
    provider: "createos",
    apiUrl,
    companyId: params.companyId,
    environmentId: params.environmentId,
    remoteCwd: WORKSPACE,
    shellCommand: "bash",
    marker,
    shape,
    rootfs,
    region,
    reuseLease,
    adapterType,
    baseEgressAllowlist: egressAllowlist,
    effectiveEgressAllowlist: egress,
    autoPauseAfterSeconds: seconds,
  };
  return { providerLeaseId: id, metadata };
}

async function resume(params: PluginEnvironmentResumeLeaseParams): Promise<PluginEnvironmentLease> {
  const { providerLeaseId: id, leaseMetadata: metadata } = params;
  const config = ownConfig(params, metadata);
  if (!id || !metadata || !config) throw new Error("CreateOS lease does not belong to this environment.");
  const client = new CreateosClient(config);
  const scope = scopeOf(params, client, id);
  if (shuttingDown || closing.has(scope) || unconfirmed.has(scope)) {
    throw new Error("CreateOS lease cleanup must finish before resume.");
  }
  if (!fits(metadata, config)) return EXPIRED;
  return run(scope, client, (_client, signal) => revive(client, id, metadata, signal), config.timeoutMs);
}

/** Whether a lease was acquired with the configuration as it is now. */
function fits(metadata: Metadata, config: Config): boolean {
  const seconds = config.reuseLease ? config.autoPauseAfterSeconds : null;
  return (
    /^[0-9a-f-]{36}$/.test(String(metadata.marker)) &&
    metadata.shape === config.shape &&
    (metadata.rootfs ?? null) === rootfsFor(config, metadata.adapterType) &&
    (metadata.region ?? null) === config.region &&
    (metadata.autoPauseAfterSeconds ?? null) === seconds &&
    JSON.stringify(metadata.baseEgressAllowlist ?? []) === JSON.stringify(config.egressAllowlist)
  );
}

async function revive(client: CreateosClient, id: string, metadata: Metadata, signal: AbortSignal) {
  try {
    const { status } = await client.settled(id, signal);
    if (["destroying", "destroyed", "failed"].includes(status)) return EXPIRED;
    const { effectiveEgressAllowlist: egress } = metadata;
    if (Array.isArray(egress) && egress.length > 0) await client.setEgress(id, egress, signal);
    await client.transition(id, "running", signal);
    const file = await client.request(`/sandboxes/${id}/files?path=${encodeURIComponent(MARKER)}`, { signal });
    if ((await file.text()) !== metadata.marker) return EXPIRED;
  } catch (error) {
    unlessGone(error);
    return EXPIRED;
  }
  return { providerLeaseId: id, metadata: { ...metadata, resumedLease: true } };
}

function rootfsFor(config: Config, adapter: unknown): string | null {
  const own = typeof adapter === "string" && Object.hasOwn(config.rootfsByAdapter, adapter);
  return (own ? config.rootfsByAdapter[adapter] : config.rootfs) ?? null;
}

function egressFor(config: Config, settings: Record<string, unknown> | null | undefined): string[] {
  const granted = settings?.networkEgress ?? {};
  if (!isRecord(granted)) throw new Error("networkEgress must be an object.");
  const rules = [granted.allowFqdns ?? [], granted.allowCidrs ?? []].flat();
  if (!rules.every(isLine)) throw new Error("networkEgress allowlists must contain non-empty strings.");
  const egress = [...new Set([...config.egressAllowlist, ...rules.map((rule) => rule.trim())])];
  return egress.length > 1 ? egress.filter((rule) => rule !== "*") : egress;
}

async function exec(client: CreateosClient, id: string, command: object, failure: string, signal: AbortSignal) {
  const { result } = await client.json(`/sandboxes/${id}/exec`, "POST", command, signal);
  if (!isRecord(result) || result.exit_code !== 0 || result.error) throw new Error(failure);
}

async function probe(params: PluginEnvironmentProbeParams): Promise<PluginEnvironmentProbeResult> {
  let acquired: Awaited<ReturnType<typeof acquire>> | undefined;
  try {
    acquired = await acquire({ ...params, runId: "probe" });
    const client = new CreateosClient(parseConfig(params.config));
    const signal = AbortSignal.timeout(client.config.timeoutMs);
    const command = { cmd: "/bin/echo", args: ["ready"] };
    await exec(client, acquired.providerLeaseId, command, "CreateOS command probe failed.", signal);
    return { ok: true, summary: "CreateOS created a sandbox and ran a command in it." };
  } catch (error) {
    return { ok: false, summary: error instanceof Error ? error.message : String(error) };
  } finally {
    if (acquired) {
      const { providerLeaseId, metadata } = acquired;
      await release({ ...params, providerLeaseId, leaseMetadata: metadata }, true);
    }
  }
}

async function validateConfig({
  config,
}: PluginEnvironmentValidateConfigParams): Promise<PluginEnvironmentValidationResult> {
  try {
    return { ok: true, normalizedConfig: { ...parseConfig(config) } };
  } catch (error) {
    return { ok: false, errors: [error instanceof Error ? error.message : String(error)] };
  }
}

async function realizeWorkspace(params: PluginEnvironmentRealizeWorkspaceParams) {
  const { providerLeaseId, metadata } = params.lease;
  if (!providerLeaseId || !ownConfig(params, metadata)) {
    throw new Error("CreateOS workspace requires a lease from this environment.");
  }
  return { cwd: WORKSPACE, metadata: { provider: "createos", remoteCwd: WORKSPACE } };
}

// readme:before
export const hooks: LeaseHooks = {
  onEnvironmentValidateConfig: validateConfig,
  onEnvironmentProbe: probe,
  onEnvironmentAcquireLease: acquire,
  onEnvironmentResumeLease: resume,
  onEnvironmentReleaseLease: (params) => release(params, false),
  onEnvironmentDestroyLease: (params) => release(params, true),
  onEnvironmentRealizeWorkspace: realizeWorkspace,
  onEnvironmentExecute: (params) =>
    track(params, (client, signal) => execute(client, params, signal), params.timeoutMs),
  onEnvironmentSyncIn: (params) =>
    track(params, (client, signal) => syncIn(client, params, signal)),
  onEnvironmentSyncOut: (params) =>
    track(params, (client, signal) => syncOut(client, params, signal)),
  async onShutdown() {
    shuttingDown = true;
    await Promise.all([...active.keys()].map(stopActive));
  },
};
// readme:end
