// Parameters of leases, for track and release alike, and calls that run until a test ends them.
import type { Provider } from "../provider/index.mjs";
import { deferred } from "./waiting.js";
import type { lease as packageValue, LooseDriver } from "./package.js";

export type Client = InstanceType<(typeof packageValue)["CreateosClient"]>;

/** An origin that nothing is ever sent to. */
export const ORIGIN = "https://createos.example";

export interface LeaseParams {
  companyId: string;
  environmentId: string;
  config: Record<string, unknown>;
  lease: { providerLeaseId: string; metadata: Record<string, unknown> };
  providerLeaseId: string;
  leaseMetadata: Record<string, unknown>;
}

export interface Changes {
  /** The provider to talk to; without one the lease is warm, so that a release sends nothing. */
  provider?: Provider;
  id?: string;
  companyId?: string;
  environmentId?: string;
  config?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

/** Parameters that fit each other, with changes. Fields of `config` and `metadata` are merged. */
export function leaseParams(changes: Changes = {}): LeaseParams {
  const { provider, id = "sb-1", companyId = "company", environmentId = "environment" } = changes;
  const apiUrl = provider?.url ?? ORIGIN;
  const warm = provider === undefined ? { reuseLease: true, autoPauseAfterSeconds: 60 } : {};
  const config = {
    apiUrl,
    shape: "s-1vcpu-1gb",
    apiKey: provider?.apiKey ?? "key",
    ...warm,
    ...changes.config,
  };
  const idle = provider === undefined ? { autoPauseAfterSeconds: 60 } : {};
  const metadata = { provider: "createos", companyId, environmentId, apiUrl, ...idle, ...changes.metadata };
  return {
    companyId,
    environmentId,
    config,
    lease: { providerLeaseId: id, metadata },
    providerLeaseId: id,
    leaseMetadata: metadata,
  };
}

/** A tracked call that takes no notice of its signal: it ends when the test says so. */
export interface HeldCall {
  promise: Promise<unknown>;
  client: Client;
  signal: AbortSignal;
  resolve: (value?: unknown) => void;
  reject: (reason: unknown) => void;
}

export function hold(
  driver: Pick<LooseDriver, "track">,
  params: unknown,
  options?: unknown,
  begun?: (call: { client: Client; signal: AbortSignal }) => void,
): HeldCall {
  const end = deferred<unknown>();
  const call = { resolve: end.resolve, reject: end.reject } as HeldCall;
  call.promise = driver.track(
    params,
    (client: Client, signal: AbortSignal) => {
      call.client = client;
      call.signal = signal;
      begun?.({ client, signal });
      return end.promise;
    },
    options,
  );
  // Whoever awaits it sees a rejection; a test that looks only at the signal need not.
  call.promise.catch(() => {});
  return call;
}
