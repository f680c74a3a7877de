// Sections 4 and 5 of the specification: tracked calls, releases, shutdown, and the marks that a scope carries.
import { CreateosClient, isStatus, timeoutReason, within } from "./client.js";
import { type Config, formatScopeKey, isIntegerIn, MAX_TIMEOUT_MS, parseConfig, resolveApiKey } from "./config.js";
import { CreateosError, type ErrorClass, holdsCleanupFailure, isObject } from "./errors.js";
import { requireReleasable, requireTrackable } from "./ownership.js";

export type LeaseState = "open" | "closing" | "unconfirmed" | "shutdown";
export type Work<T> = (client: CreateosClient, signal: AbortSignal) => T | PromiseLike<T>;
export type TrackOptions = number | null | undefined | { timeoutMs?: number | null; signal?: AbortSignal | null };

interface Call {
  controller: AbortController;
  number: number;
  configTimeoutMs: number;
  settled: Promise<void>;
}

interface Keys {
  scope: string;
  /** The scope key without the API key: a destroy covers every scope of the same sandbox. */
  sandbox: string;
}

interface Scope {
  keys: Keys;
  calls: Set<Call>;
  /** Closed by a release of its own; that it is closed by a destroy is kept with its sandbox. */
  closing: boolean;
  unconfirmed: boolean;
}

const WAIT_SLACK_MS = 5_000;

export class ReferenceDriver {
  readonly #cleanupErrors: readonly ErrorClass[];
  readonly #scopes = new Map<string, Scope>();
  /** Sandboxes that are being destroyed, which closes their scopes under all keys, those yet to come included. */
  readonly #destroying = new Set<string>();
  readonly #releases = new Set<Promise<void>>();
  #shutDown = false;
  #calls = 0;

  constructor(options: { cleanupErrors?: readonly ErrorClass[] } = {}) {
    this.#cleanupErrors = options.cleanupErrors ?? [];
  }

  // An async function runs synchronously up to its first await, which is after `work` was called: that is what makes two
  // calls and a release of one tick see each other, and what turns every failed check into a rejection.
  async track<T>(params: unknown, work: Work<T>, options?: TrackOptions): Promise<T> {
    const lease = requireTrackable(params);
    const apiKey = resolveApiKey(lease.config);
    const keys = keysOf(lease, lease.config, apiKey, lease.providerLeaseId);
    if (this.#shutDown || this.#stateOf(keys) !== "open") {
      throw new CreateosError("ERR_CREATEOS_LEASE_CLOSING", "CreateOS lease is closing or requires cleanup.");
    }
    const { timeoutMs, signal } = readOptions(options, lease.config);
    if (typeof work !== "function") throw new TypeError("work must be a function.");
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new TypeError("options.signal must be an AbortSignal.");
    }
    signal?.throwIfAborted();

    const scope = this.#scope(keys);
    const controller = new AbortController();
    const [settled, settle] = pending();
    const call: Call = { controller, number: this.#calls++, configTimeoutMs: lease.config.timeoutMs, settled };
    scope.calls.add(call);
    const deadline = setTimeout(() => controller.abort(timeoutReason()), timeoutMs).unref();
    const forward = () => controller.abort(signal?.reason);
    signal?.addEventListener("abort", forward, { once: true });
    try {
      return await work(new CreateosClient(lease.config, apiKey), controller.signal);
    } catch (error) {
      if (holdsCleanupFailure(error, this.#cleanupErrors)) scope.unconfirmed = true;
      throw error;
    } finally {
      clearTimeout(deadline);
      signal?.removeEventListener("abort", forward);
      scope.calls.delete(call);
      this.#forgetIfIdle(scope);
      settle();
    }
  }

  async release(params: unknown, destroy = false): Promise<void> {
    const lease = requireReleasable(params);
    if (lease === null) return;
    const { config, providerLeaseId } = lease;
    // The provider would not pause a sandbox that was created with another setting, so it must not be left behind.
    const wantsAutoPause = config.reuseLease && config.autoPauseAfterSeconds !== null;
    const pausesItself = wantsAutoPause && lease.metadata.autoPauseAfterSeconds === config.autoPauseAfterSeconds;
    const destroys = destroy || !config.reuseLease || (wantsAutoPause && !pausesItself);
    const apiKey = resolveApiKey(config);
    const keys = keysOf(lease, config, apiKey, providerLeaseId);
    if (this.#stateOf(keys) === "closing") {
      throw new CreateosError("ERR_CREATEOS_RELEASE_IN_PROGRESS", "CreateOS lease cleanup is already in progress.");
    }

    const scope = this.#scope(keys);
    const scopes = destroys ? this.#scopesOf(keys.sandbox) : [scope];
    const [finished, finish] = pending();
    this.#releases.add(finished);
    scope.closing = true;
    if (destroys) this.#destroying.add(keys.sandbox);
    const waits = scopes.map(waitForCalls);
    abortAll(scopes);
    try {
      const inTime = (await Promise.all(waits)).every(Boolean);
      const client = new CreateosClient(config, apiKey);
      if (destroys) {
        await tolerateGone(client.destroySandbox(providerLeaseId));
        for (const gone of scopes) gone.unconfirmed = false;
        return;
      }
      if (!inTime) scope.unconfirmed = true;
      if (scope.unconfirmed) {
        throw new CreateosError(
          "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
          "CreateOS process cleanup is unconfirmed; destroy this lease before reusing it.",
        );
      }
      if (pausesItself) return;
      await tolerateGone(within(config.timeoutMs, (signal) => client.transition(providerLeaseId, "paused", signal)));
    } finally {
      scope.closing = false;
      if (destroys) this.#destroying.delete(keys.sandbox);
      for (const released of scopes) this.#forgetIfIdle(released);
      this.#releases.delete(finished);
      finish();
    }
  }

  destroy(params: unknown): Promise<void> {
    return this.release(params, true);
  }

  async shutdown(): Promise<void> {
    this.#shutDown = true;
    const scopes = [...this.#scopes.values()];
    const waits = scopes.map(waitForCalls);
    const releases = [...this.#releases];
    abortAll(scopes);
    await Promise.all(waits);
    // Those in flight now: ones that begin later are not waited for, so that this ends.
    await Promise.all(releases);
  }

  leaseState(params: { companyId: unknown; environmentId: unknown; config?: unknown }, id: unknown): LeaseState {
    if (this.#shutDown) return "shutdown";
    const config = parseConfig(params.config);
    return this.#stateOf(keysOf(params, config, resolveApiKey(config), id));
  }

  #stateOf({ scope, sandbox }: Keys): LeaseState {
    const found = this.#scopes.get(scope);
    if (found?.closing || this.#destroying.has(sandbox)) return "closing";
    return found?.unconfirmed ? "unconfirmed" : "open";
  }

  #scope(keys: Keys): Scope {
    let scope = this.#scopes.get(keys.scope);
    if (scope === undefined) {
      scope = { keys, calls: new Set(), closing: false, unconfirmed: false };
      this.#scopes.set(keys.scope, scope);
    }
    return scope;
  }

  #scopesOf(sandbox: string): Scope[] {
    return [...this.#scopes.values()].filter(({ keys }) => keys.sandbox === sandbox);
  }

  #forgetIfIdle({ keys, calls, closing, unconfirmed }: Scope): void {
    if (calls.size === 0 && !closing && !unconfirmed) this.#scopes.delete(keys.scope);
  }
}

function keysOf(ids: { companyId: unknown; environmentId: unknown }, config: Config, apiKey: string, id: unknown): Keys {
  const { companyId, environmentId } = ids;
  return {
    scope: formatScopeKey(companyId, environmentId, config.apiUrl, apiKey, id),
    sandbox: JSON.stringify([companyId, environmentId, config.apiUrl, id]),
  };
}

function readOptions(options: unknown, config: Config): { timeoutMs: number; signal: unknown } {
  const fields: { timeoutMs?: unknown; signal?: unknown } =
    isObject(options) && !Array.isArray(options) ? options : { timeoutMs: options };
  const timeoutMs = fields.timeoutMs ?? config.timeoutMs;
  const signal = fields.signal ?? undefined;
  if (!isIntegerIn(timeoutMs, 1, MAX_TIMEOUT_MS)) {
    throw new CreateosError("ERR_CREATEOS_TIMEOUT_INVALID", "Invalid CreateOS command timeout.");
  }
  return { timeoutMs, signal };
}

function pending(): [Promise<void>, () => void] {
  let settle!: () => void;
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return [promise, settle];
}

// The calls and the bound are those of the moment at which the release or shutdown begins; false means the bound passed.
async function waitForCalls(scope: Scope): Promise<boolean> {
  const calls = [...scope.calls];
  if (calls.length === 0) return true;
  const boundMs = 2 * Math.max(...calls.map((call) => call.configTimeoutMs)) + WAIT_SLACK_MS;
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), boundMs);
  });
  const settled = Promise.all(calls.map((call) => call.settled)).then(() => true);
  return Promise.race([settled, bound]).finally(() => clearTimeout(timer));
}

function abortAll(scopes: readonly Scope[]): void {
  const calls = scopes.flatMap((scope) => [...scope.calls]).sort((a, b) => a.number - b.number);
  for (const call of calls) call.controller.abort();
}

async function tolerateGone(request: Promise<unknown>): Promise<void> {
  await request.catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
  });
}
