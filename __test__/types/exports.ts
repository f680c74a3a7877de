// Checked by the compiler alone (`npm run check:types`): what the types promise, and what they refuse.
import type {
  PluginContext,
  PluginEnvironmentAcquireLeaseParams,
  PluginEnvironmentDestroyLeaseParams,
  PluginEnvironmentExecuteParams,
  PluginEnvironmentExecuteResult,
  PluginEnvironmentLease,
  PluginEnvironmentProbeParams,
  PluginEnvironmentProbeResult,
  PluginEnvironmentRealizeWorkspaceParams,
  PluginEnvironmentRealizeWorkspaceResult,
  PluginEnvironmentReleaseLeaseParams,
  PluginEnvironmentResumeLeaseParams,
  PluginEnvironmentSyncInParams,
  PluginEnvironmentTerminationReceipt,
  PluginEnvironmentValidateConfigParams,
  PluginEnvironmentValidationResult,
} from "@paperclipai/plugin-sdk";
import {
  type AcquiredLease,
  type ConfigValidation,
  type CreateosClient,
  type CreateosConfig,
  type CreateosErrorCode,
  type ExecuteResult,
  CreateosApiError,
  CreateosCleanupError,
  CreateosError,
  LeaseDriver,
  type LeaseField,
  type LeaseState,
  type LifecycleOptions,
  type ProbeResult,
  type RealizedWorkspace,
  type ResumeResult,
  type TerminationReceipt,
  canRelease,
  canUseLease,
  execute,
  explainLease,
  isUsableCreateosLease,
  leaseState,
  parseConfig,
  release,
  resolveApiKey,
  scopeKey,
  shutdown,
  track,
} from "../../index.js";

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function same<A, B>(proof: Equal<A, B>): void;

declare const executeParams: PluginEnvironmentExecuteParams;
declare const syncIn: PluginEnvironmentSyncInParams;
declare const releaseParams: PluginEnvironmentReleaseLeaseParams;
declare const destroyParams: PluginEnvironmentDestroyLeaseParams;
declare const acquireParams: PluginEnvironmentAcquireLeaseParams;
declare const validateParams: PluginEnvironmentValidateConfigParams;
declare const probeParams: PluginEnvironmentProbeParams;
declare const resumeParams: PluginEnvironmentResumeLeaseParams;
declare const workspaceParams: PluginEnvironmentRealizeWorkspaceParams;
declare const undecided: boolean;

// The plugin contract's parameters are ours without a cast, and our results theirs.
export const hooks = {
  track: () => track(executeParams, async () => 1, executeParams.timeoutMs),
  execute: (): Promise<PluginEnvironmentExecuteResult> => new LeaseDriver().execute(executeParams),
  tracked: (): Promise<PluginEnvironmentExecuteResult> =>
    track(executeParams, (client, signal) => execute(client, executeParams, signal)),
  log: (context: PluginContext): Promise<PluginEnvironmentExecuteResult> =>
    new LeaseDriver().execute(executeParams, (stream, text) => context.execution.log(stream, text)),
  sync: () => track(syncIn, (client, signal) => [client, signal] as const),
  release: (): Promise<void> => release(releaseParams),
  destroy: (): Promise<void> => release(destroyParams, true),
  acquire: (): Promise<PluginEnvironmentLease> => new LeaseDriver().acquire(acquireParams),
  driver: (): Promise<void> => new LeaseDriver().destroy(destroyParams),
  validate: (): Promise<PluginEnvironmentValidationResult> => new LeaseDriver().validateConfig(validateParams),
  probe: (): Promise<PluginEnvironmentProbeResult> => new LeaseDriver().probe(probeParams),
  resume: (): Promise<PluginEnvironmentLease> => new LeaseDriver().resume(resumeParams),
  workspace: (): Promise<PluginEnvironmentRealizeWorkspaceResult> =>
    new LeaseDriver().realizeWorkspace(workspaceParams),
  receipt: (): Promise<PluginEnvironmentTerminationReceipt | undefined> =>
    release(releaseParams, false, { confirm: true }),
  confirmed: (): Promise<PluginEnvironmentTerminationReceipt | void> =>
    new LeaseDriver().destroy(destroyParams, { confirm: true }),
};

// A receipt is the same on both sides.
same<TerminationReceipt, PluginEnvironmentTerminationReceipt>(true);

// track gives what work gives.
const number = track(executeParams, () => 1);
same<typeof number, Promise<number>>(true);
const promised = track(executeParams, async () => "text" as const);
same<typeof promised, Promise<"text">>(true);
const nothing = track(executeParams, () => undefined, { timeoutMs: null, signal: null });
same<typeof nothing, Promise<undefined>>(true);
track(executeParams, (client, signal) => {
  same<typeof client, CreateosClient>(true);
  same<typeof signal, AbortSignal>(true);
});
const viaDriver = new LeaseDriver().track(executeParams, async () => new Map<string, number>());
same<typeof viaDriver, Promise<Map<string, number>>>(true);

// Lifecycle results.
const acquired = new LeaseDriver().acquire(acquireParams);
same<typeof acquired, Promise<AcquiredLease>>(true);
const validated = new LeaseDriver().validateConfig(validateParams);
same<typeof validated, Promise<ConfigValidation>>(true);
const probed = new LeaseDriver().probe(probeParams, { signal: AbortSignal.timeout(1) });
same<typeof probed, Promise<ProbeResult>>(true);
const resumed = new LeaseDriver().resume(resumeParams, null);
same<typeof resumed, Promise<ResumeResult>>(true);
const realized = new LeaseDriver().realizeWorkspace(workspaceParams);
same<typeof realized, Promise<RealizedWorkspace>>(true);
const stopped = shutdown();
same<typeof stopped, Promise<void>>(true);
const state = leaseState(executeParams, "sb-1");
same<typeof state, LeaseState>(true);
const key = scopeKey(executeParams, "sb-1");
same<typeof key, string>(true);
const config = parseConfig(executeParams.config);
same<typeof config, CreateosConfig>(true);
const apiKey = resolveApiKey(config);
same<typeof apiKey, string>(true);

// A release gives a receipt where one is asked for, and nothing else ever.
const confirm = { confirm: true } as const;
export const receipts = [
  release(releaseParams, false, confirm),
  release(releaseParams, null, { confirm: undecided }),
  release(releaseParams, undefined, { confirm: true }),
  new LeaseDriver().release(releaseParams, true, confirm),
  new LeaseDriver().release(releaseParams, true, { confirm: undecided }),
  new LeaseDriver().destroy(destroyParams, confirm),
  new LeaseDriver().destroy(destroyParams, { confirm: undecided }),
];
same<(typeof receipts)[number], Promise<TerminationReceipt | undefined>>(true);
const undecidedRelease = release(releaseParams, true, { confirm: undecided });
same<typeof undecidedRelease, Promise<TerminationReceipt | undefined>>(true);
export const silent = [
  release(releaseParams),
  release(releaseParams, true),
  release(releaseParams, null, null),
  release(releaseParams, true, {}),
  release(releaseParams, true, { confirm: false }),
  release(releaseParams, true, { confirm: null }),
  new LeaseDriver().release(releaseParams),
  new LeaseDriver().release(releaseParams, true, { confirm: undefined }),
  new LeaseDriver().destroy(destroyParams),
  new LeaseDriver().destroy(destroyParams, { confirm: false }),
];
same<(typeof silent)[number], Promise<void>>(true);

// A command gives the plugin contract's result; what its output is handed to may give anything back.
const pieces: string[] = [];
const ran = new LeaseDriver().execute(executeParams, (stream, text) => pieces.push(stream, text), {
  signal: AbortSignal.timeout(1),
});
same<typeof ran, Promise<ExecuteResult>>(true);
void [
  new LeaseDriver().execute({ ...executeParams, args: ["a"] as const, stdin: null, env: null }, null, null),
  // @ts-expect-error a command is a string
  new LeaseDriver().execute({ ...executeParams, command: ["ls"] }),
  // @ts-expect-error there are two streams
  new LeaseDriver().execute(executeParams, (stream: "stdin") => stream),
];

// Answers narrow.
export function use(answer: ResumeResult): string {
  if (answer.providerLeaseId === null) {
    same<typeof answer.metadata, { expired: true }>(true);
    return "expired";
  }
  same<typeof answer.providerLeaseId, string>(true);
  same<typeof answer.metadata.resumedLease, true>(true);
  const marker: unknown = answer.metadata["marker"];
  return `${answer.providerLeaseId} ${String(marker)}`;
}
export function read(answer: ConfigValidation): string {
  if (answer.ok) {
    same<typeof answer.normalizedConfig.apiKey, string | null>(true);
    // What one method gives, the others take.
    void new LeaseDriver().probe({ config: answer.normalizedConfig });
    return answer.normalizedConfig.apiUrl;
  }
  same<typeof answer.errors, [string]>(true);
  return answer.errors[0];
}
export async function persist(): Promise<string> {
  const { providerLeaseId, metadata } = await acquired;
  const again = await new LeaseDriver().resume({ ...acquireParams, providerLeaseId, leaseMetadata: metadata });
  const { cwd } = await new LeaseDriver().realizeWorkspace({ ...acquireParams, lease: again });
  same<typeof cwd, "/paperclip-workspace">(true);
  const receipt = await new LeaseDriver().destroy({ ...acquireParams, ...again, leaseMetadata: metadata }, confirm);
  same<NonNullable<typeof receipt>["state"], "stopped" | "destroyed">(true);
  return receipt === undefined ? "" : receipt.providerLeaseId;
}
const options: LifecycleOptions = { signal: null };
void [new LeaseDriver().acquire(acquireParams, options), new LeaseDriver().validateConfig({ config: null })];

// Codes narrow.
export function react(error: unknown): string {
  if (error instanceof CreateosApiError) {
    same<typeof error.status, number>(true);
    same<typeof error.code, "ERR_CREATEOS_API">(true);
    return String(error.status);
  }
  if (error instanceof CreateosCleanupError) {
    same<typeof error.code, "ERR_CREATEOS_CLEANUP_UNCONFIRMED">(true);
    same<typeof error.sandboxId, string | undefined>(true);
    return error.sandboxId ?? "";
  }
  if (error instanceof CreateosError) {
    same<typeof error.code, CreateosErrorCode>(true);
    same<typeof error.mismatches, LeaseField[] | undefined>(true);
    switch (error.code) {
      case "ERR_CREATEOS_LEASE_CLOSING":
        return "later";
      // @ts-expect-error no such code
      case "ERR_CREATEOS_NO_SUCH_CODE":
        return "never";
      default:
        return error.message;
    }
  }
  return "";
}

// The guard narrows.
export function narrow(lease: PluginEnvironmentLease): string {
  if (isUsableCreateosLease(lease)) {
    same<typeof lease.providerLeaseId, string>(true);
    return lease.providerLeaseId;
  }
  return "";
}
const usable: boolean = canUseLease(executeParams.lease, executeParams) && canRelease(releaseParams, "https://x");
const { mismatches } = explainLease(executeParams);
same<(typeof mismatches)[number]["field"], LeaseField>(true);

// Misuse is refused.
// @ts-expect-error work is missing
track(executeParams);
// @ts-expect-error work is no function
track(executeParams, 1);
// @ts-expect-error a timeout is a number
track(executeParams, () => 1, "5");
// @ts-expect-error no such option
track(executeParams, () => 1, { timeout: 5 });
// @ts-expect-error a company is missing
track({ environmentId: "e", config: {}, lease: executeParams.lease }, () => 1);
// @ts-expect-error destroy is a boolean
release(releaseParams, 1);
// @ts-expect-error a lease id is missing
release({ companyId: "c", environmentId: "e", config: {} });
// @ts-expect-error confirm is a boolean
release(releaseParams, true, { confirm: 1 });
// @ts-expect-error no such option
release(releaseParams, true, { confirmed: true });
// @ts-expect-error options are an object
release(releaseParams, true, true);
// @ts-expect-error destroy takes its options in the second place
new LeaseDriver().destroy(destroyParams, true, { confirm: true });
// @ts-expect-error without confirm there is no receipt
void release(releaseParams, true).then((receipt) => receipt.state);
// @ts-expect-error even with confirm there may be none
void release(releaseParams, true, { confirm: true }).then((receipt) => receipt.state);
// @ts-expect-error a lease id is missing
void new LeaseDriver().resume({ companyId: "c", environmentId: "e", config: {} });
// @ts-expect-error an expired lease cannot be resumed
void new LeaseDriver().resume({ companyId: "c", environmentId: "e", config: {}, providerLeaseId: null });
// @ts-expect-error a lease is missing
void new LeaseDriver().realizeWorkspace({ companyId: "c", environmentId: "e", config: {} });
// @ts-expect-error a configuration is missing
void new LeaseDriver().validateConfig({});
// @ts-expect-error a signal is no controller
void new LeaseDriver().probe(probeParams, { signal: new AbortController() });
// @ts-expect-error no such option
void new LeaseDriver().acquire(acquireParams, { timeoutMs: 1 });
// @ts-expect-error a company is missing
void new LeaseDriver().acquire({ environmentId: "e", config: {} });
// @ts-expect-error one of the two has no such field
void new LeaseDriver().validateConfig(validateParams).then(({ normalizedConfig }) => normalizedConfig);
// @ts-expect-error only a resumed lease has an id
void new LeaseDriver().resume(resumeParams).then(({ providerLeaseId }) => providerLeaseId.length);
// @ts-expect-error classes, not names
new LeaseDriver({ cleanupErrors: ["CreateosCleanupError"] });
// @ts-expect-error no such code
new CreateosError("message", "ERR_OTHER");

class OwnCleanupError extends Error {
  constructor(readonly processId: string) {
    super("still running");
  }
}
export const renamed = new LeaseDriver({ cleanupErrors: [OwnCleanupError] });
export const unused = [
  [usable, number, promised, nothing, viaDriver, acquired, stopped, state, key, apiKey],
  [validated, probed, resumed, realized, undecidedRelease],
];

export async function client(given: CreateosClient): Promise<void> {
  const response = await given.request("/sandboxes", { method: "GET", signal: null });
  same<typeof response, Response>(true);
  const data = await given.json("/sandboxes");
  same<typeof data, Record<string, unknown>>(true);
  // @ts-expect-error the configuration is frozen
  given.config.timeoutMs = 1;
  // @ts-expect-error only these two states can be asked for
  await given.transition("sb-1", "destroyed");
}
