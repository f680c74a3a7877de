// The lease logic that a plugin had before: what the package is swapped for, and so the cost that its users know. Only the
// way of one call that succeeds is here; the reference next door is the whole specification.
import { createHash } from "node:crypto";
import { parseConfig } from "../reference/config.js";

interface Params {
  companyId: string;
  environmentId: string;
  config: Record<string, unknown>;
  lease: { providerLeaseId: string; metadata: Record<string, unknown> };
}

interface Running {
  controller: AbortController;
  done: Promise<void>;
}

/** What a plugin's own client was: an object around its configuration and key. */
class PluginClient {
  constructor(
    readonly config: unknown,
    readonly apiKey: string,
  ) {}
}

const running = new Map<string, Set<Running>>();
const closing = new Set<string>();

/** Runs `work` under a lease, as the replaced code did: signals composed by the platform, the configuration parsed anew. */
export async function track<T>(
  params: Params,
  work: (client: PluginClient, signal: AbortSignal) => T | PromiseLike<T>,
): Promise<Awaited<T>> {
  const { companyId, environmentId, lease } = params;
  const { metadata, providerLeaseId } = lease;
  const config = parseConfig(params.config);
  const isOwn =
    metadata["provider"] === "createos" &&
    metadata["companyId"] === companyId &&
    metadata["environmentId"] === environmentId &&
    metadata["apiUrl"] === config.apiUrl;
  if (!isOwn) throw new Error("CreateOS execution requires a lease from this environment.");
  const apiKey = config.apiKey ?? "";
  const account = createHash("sha256").update(apiKey).digest("hex");
  const scope = JSON.stringify([companyId, environmentId, config.apiUrl, account, providerLeaseId]);
  if (closing.has(scope)) throw new Error("CreateOS lease is closing or requires cleanup.");
  const controller = new AbortController();
  let finish = () => {};
  const call: Running = { controller, done: new Promise((resolve) => (finish = resolve)) };
  const calls = running.get(scope) ?? new Set();
  running.set(scope, calls.add(call));
  try {
    const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(config.timeoutMs)]);
    return await work(new PluginClient(config, apiKey), signal);
  } finally {
    calls.delete(call);
    if (calls.size === 0) running.delete(scope);
    finish();
  }
}
