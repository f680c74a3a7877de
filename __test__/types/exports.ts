// Checked by the compiler alone (`npm run check:types`): what the types promise, and what they refuse.
import type {
  PluginEnvironmentAcquireLeaseParams,
  PluginEnvironmentDestroyLeaseParams,
  PluginEnvironmentExecuteParams,
  PluginEnvironmentLease,
  PluginEnvironmentReleaseLeaseParams,
  PluginEnvironmentSyncInParams,
} from "@paperclipai/plugin-sdk";
import {
  type AcquiredLease,
  type CreateosClient,
  type CreateosConfig,
  type CreateosErrorCode,
  CreateosApiError,
  CreateosCleanupError,
  CreateosError,
  LeaseDriver,
  type LeaseField,
  type LeaseState,
  canRelease,
  canUseLease,
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

declare const execute: PluginEnvironmentExecuteParams;
declare const syncIn: PluginEnvironmentSyncInParams;
declare const releaseParams: PluginEnvironmentReleaseLeaseParams;
declare const destroyParams: PluginEnvironmentDestroyLeaseParams;
declare const acquireParams: PluginEnvironmentAcquireLeaseParams;

// The plugin contract's parameters are ours without a cast, and our results theirs.
export const hooks = {
  execute: () => track(execute, async () => 1, execute.timeoutMs),
  sync: () => track(syncIn, (client, signal) => [client, signal] as const),
  release: (): Promise<void> => release(releaseParams),
  destroy: (): Promise<void> => release(destroyParams, true),
  acquire: (): Promise<PluginEnvironmentLease> => new LeaseDriver().acquire(acquireParams),
  driver: (): Promise<void> => new LeaseDriver().destroy(destroyParams),
};

// track gives what work gives.
const number = track(execute, () => 1);
same<typeof number, Promise<number>>(true);
const promised = track(execute, async () => "text" as const);
same<typeof promised, Promise<"text">>(true);
const nothing = track(execute, () => undefined, { timeoutMs: null, signal: null });
same<typeof nothing, Promise<undefined>>(true);
track(execute, (client, signal) => {
  same<typeof client, CreateosClient>(true);
  same<typeof signal, AbortSignal>(true);
});
const viaDriver = new LeaseDriver().track(execute, async () => new Map<string, number>());
same<typeof viaDriver, Promise<Map<string, number>>>(true);

// Lifecycle results.
const acquired = new LeaseDriver().acquire(acquireParams);
same<typeof acquired, Promise<AcquiredLease>>(true);
const stopped = shutdown();
same<typeof stopped, Promise<void>>(true);
const state = leaseState(execute, "sb-1");
same<typeof state, LeaseState>(true);
const key = scopeKey(execute, "sb-1");
same<typeof key, string>(true);
const config = parseConfig(execute.config);
same<typeof config, CreateosConfig>(true);
const apiKey = resolveApiKey(config);
same<typeof apiKey, string>(true);

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
const usable: boolean = canUseLease(execute.lease, execute) && canRelease(releaseParams, "https://x");
const { mismatches } = explainLease(execute);
same<(typeof mismatches)[number]["field"], LeaseField>(true);

// Misuse is refused.
// @ts-expect-error work is missing
track(execute);
// @ts-expect-error work is no function
track(execute, 1);
// @ts-expect-error a timeout is a number
track(execute, () => 1, "5");
// @ts-expect-error no such option
track(execute, () => 1, { timeout: 5 });
// @ts-expect-error a company is missing
track({ environmentId: "e", config: {}, lease: execute.lease }, () => 1);
// @ts-expect-error destroy is a boolean
release(releaseParams, 1);
// @ts-expect-error a lease id is missing
release({ companyId: "c", environmentId: "e", config: {} });
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
export const unused = [usable, number, promised, nothing, viaDriver, acquired, stopped, state, key, apiKey];

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
