// The host of a plugin, as far as leases go: it loads a plugin of either shape, and keeps leases as JSON.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { vi } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { deferred, within } from "../support/waiting.js";
import type { LeaseHooks } from "./shared.js";

export type Shape = "before" | "after";

/** A lease as the host has it in its database. */
export interface Recorded {
  providerLeaseId: string;
  metadata: Record<string, unknown>;
}

/** What a test gives a hook besides, or instead of, what the host has. */
type Params<Hook extends keyof LeaseHooks> = Partial<Parameters<LeaseHooks[Hook]>[0]>;

/** What every hook is given. */
interface Owner {
  driverKey: string;
  companyId: string;
  environmentId: string;
  config: Record<string, unknown>;
}

export const MARKER = "/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease";

/** A host with one environment on a provider, and the plugin that it has loaded. */
export class Host {
  /** Live output, each piece as `stream: text`. */
  readonly output: string[] = [];
  #spoke = deferred();

  private constructor(
    readonly provider: Provider,
    readonly hooks: LeaseHooks,
    readonly config: Record<string, unknown>,
  ) {}

  /** Loads a plugin anew: like one whose process has just started, it knows nothing of the past. */
  static async load(shape: Shape, provider: Provider, config: object = {}): Promise<Host> {
    vi.resetModules();
    const { hooks } = shape === "before" ? await import("./before.js") : await import("./after.js");
    const { host: context } = await import("./shared.js");
    const basic = { apiUrl: provider.url, apiKey: provider.apiKey, shape: "s-1vcpu-1gb", timeoutMs: 20_000 };
    const host = new Host(provider, hooks, { ...basic, ...config });
    context.execution = { log: (stream, text) => host.#hear(`${stream}: ${text}`) };
    return host;
  }

  #hear(piece: string): void {
    this.output.push(piece);
    const spoke = this.#spoke;
    this.#spoke = deferred();
    spoke.resolve();
  }

  /** Resolves once live output has said something. */
  async said(text: string): Promise<void> {
    while (!this.output.join("").includes(text)) await within(this.#spoke.promise, 10_000, `"${text}"`);
  }

  owner(): Owner {
    return { driverKey: "createos", companyId: "company", environmentId: "environment", config: this.config };
  }

  async acquire(more: Params<"onEnvironmentAcquireLease"> = {}): Promise<Recorded> {
    return recorded(await this.hooks.onEnvironmentAcquireLease({ ...this.owner(), runId: "run", ...more }));
  }

  resume({ providerLeaseId, metadata }: Recorded, more: Params<"onEnvironmentResumeLease"> = {}) {
    const lease = { providerLeaseId, leaseMetadata: metadata };
    return this.hooks.onEnvironmentResumeLease({ ...this.owner(), ...lease, ...more });
  }

  release({ providerLeaseId, metadata }: Recorded, more: Params<"onEnvironmentReleaseLease"> = {}) {
    const lease = { providerLeaseId, leaseMetadata: metadata };
    return this.hooks.onEnvironmentReleaseLease({ ...this.owner(), ...lease, ...more });
  }

  destroy({ providerLeaseId, metadata }: Recorded, more: Params<"onEnvironmentDestroyLease"> = {}) {
    const lease = { providerLeaseId, leaseMetadata: metadata };
    return this.hooks.onEnvironmentDestroyLease({ ...this.owner(), ...lease, ...more });
  }

  realizeWorkspace(lease: Recorded, more: Params<"onEnvironmentRealizeWorkspace"> = {}) {
    return this.hooks.onEnvironmentRealizeWorkspace({ ...this.owner(), lease, workspace: {}, ...more });
  }

  /**
   * Runs a Bash script, or with `command` and `args` whatever they say. What a plugin tells about a result besides is
   * left out.
   */
  async execute(lease: Recorded, script: string, more: Params<"onEnvironmentExecute"> = {}) {
    const command = { command: "bash", args: ["-c", script] };
    const ended = await this.hooks.onEnvironmentExecute({ ...this.owner(), lease, ...command, ...more });
    const { metadata: _besides, ...result } = ended;
    return result;
  }

  /** Without operations it transfers nothing, and is a call of its lease all the same. */
  syncIn(lease: Recorded, more: Params<"onEnvironmentSyncIn"> = {}) {
    return this.hooks.onEnvironmentSyncIn({ ...this.owner(), lease, operations: [], ...more });
  }

  syncOut(lease: Recorded, more: Params<"onEnvironmentSyncOut"> = {}) {
    return this.hooks.onEnvironmentSyncOut({ ...this.owner(), lease, operations: [], ...more });
  }

  /**
   * What the provider was asked for since a place in its list. How often a state is looked at, or something is tried, is
   * nobody's promise; nor is what lets a command begin once it is there.
   */
  asked(start = 0): (string | undefined)[] {
    const routes = this.provider.requests.slice(start).map(({ route }) => route);
    const told = routes.filter((route) => route !== "sandbox.get" && route !== "process.stdinClose");
    return told.filter((route, place) => route !== told[place - 1]);
  }

  /** Where a file of the lease's sandbox is. */
  file({ providerLeaseId }: Recorded, name: string): string {
    return path.join(this.provider.sandbox(providerLeaseId)?.directory ?? "", name);
  }

  /** What a file of the lease's sandbox holds. */
  read(lease: Recorded, name: string): Promise<string> {
    return readFile(this.file(lease, name), "utf8");
  }

  status({ providerLeaseId }: Recorded): string | undefined {
    return this.provider.sandbox(providerLeaseId)?.status;
  }

  /** How many of the lease's commands have not ended, descendants included. */
  running({ providerLeaseId }: Recorded): number {
    return this.provider.processes(providerLeaseId).filter(({ tree_exited: ended }) => !ended).length;
  }
}

/** What a database gives back of what it was given. */
export function recorded(lease: unknown): Recorded {
  return JSON.parse(JSON.stringify(lease));
}

/** What came of a call, to be compared: the value, the name of an abort, or the message of an error. */
export async function told(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { value: await within(promise, 20_000) };
  } catch (error) {
    if (error instanceof DOMException) return { aborted: error.name };
    return { error: error instanceof Error ? error.message : error };
  }
}
