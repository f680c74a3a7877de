// Commands that run in a sandbox under a lease, and what has to hold however one of them ends.
import { readdirSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { leaseParams, type LeaseParams } from "./leases.js";
import { lease, looseDriver, type LooseDriver } from "./package.js";
import { makeSandbox } from "./providers.js";
import { alive } from "./resumes.js";

/** What a command is asked for with, untyped where a test may want it wrong. */
export interface Command {
  command: string;
  args?: readonly string[];
  stdin?: string;
  cwd?: string;
  timeoutMs?: number;
}

export interface Result {
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  stdout: string;
  stderr: string;
  metadata: { processId: string | null; outputTruncated: boolean };
}

export type Piece = [stream: "stdout" | "stderr", text: string];

/** A driver that runs commands. */
export interface Executor extends LooseDriver {
  execute(params?: unknown, onOutput?: unknown, options?: unknown): Promise<Result>;
}

export const executor = (): Executor => looseDriver() as Executor;

/** A running sandbox under a lease. */
export interface Place {
  provider: Provider;
  id: string;
  /** Parameters of a command in it, and of the lease's release. */
  params(command?: Command, config?: Record<string, unknown>): LeaseParams & Partial<Command>;
}

/** A lease that is kept for reuse, unless the configuration says otherwise. */
export async function place(provider: Provider, key = provider.apiKey): Promise<Place> {
  const id = await makeSandbox(provider, key);
  const params: Place["params"] = (command, config) => ({
    ...leaseParams({ provider, id, config: { reuseLease: true, apiKey: key, ...config } }),
    ...command,
  });
  return { provider, id, params };
}

export const sh = (script: string): Command => ({ command: "/bin/sh", args: ["-c", script] });

/** What the commands here print at once: three pieces of a journal whose pieces have four bytes. */
export const TEXT = "abcdefghijkl";
export const PIECES = { frameBytes: 4 };

/** Prints and exits. */
export const ENDS = sh(`printf ${TEXT}; exit 3`);
/** Prints and goes on, with a process of its own, until it is ended. */
export const STAYS = sh(`sleep 1000 & printf ${TEXT}; wait`);
/** Goes on without a word. */
export const SILENT = sh("exec sleep 1000");

/** Has files of its own in the sandbox, which are not to be left there. */
export const withInput = (command: Command): Command => ({ ...command, stdin: "input" });

/** The files of commands that are still in a sandbox. */
const filesLeft = ({ provider, id }: Place): string[] =>
  readdirSync(path.join(provider.sandbox(id)?.directory ?? "", "tmp")).filter((name) => name.startsWith("createos-lease-"));

/** Whether a failure says that something may still run. */
export const isUnconfirmed = (reason: unknown): boolean => reason instanceof lease.CreateosCleanupError;

/**
 * Whatever has become of a command: either all its processes have ended, or the driver takes the lease for unconfirmed,
 * which it does exactly if the command's failure says so. What was put into the sandbox for a command is gone with it.
 * `state`: what an end that is no failure has made of the lease. `keepsFiles`: nothing could be removed any more.
 */
export function expectAccountedFor(at: Place, driver: LooseDriver, reason: unknown, state?: string, keepsFiles = false): void {
  const { provider, id } = at;
  expect(driver.leaseState(at.params(), id)).toBe(state ?? (isUnconfirmed(reason) ? "unconfirmed" : "open"));
  if (isUnconfirmed(reason) || provider.sandbox(id)?.status === "destroyed") return;
  expect(alive(provider, id)).toEqual([]);
  if (!keepsFiles) expect(filesLeft(at)).toEqual([]);
}

/** All that a value shows to whoever prints it, one way or another. */
function shown(value: unknown): string {
  const forms = [inspect(value, { depth: Infinity, showHidden: true, maxStringLength: Infinity }), String(value)];
  if (value instanceof Error) forms.push(value.stack ?? "", inspect(value.cause), JSON.stringify({ ...value }));
  return forms.join("\n");
}

/** That a failure shows neither a key nor where or for what it came about, nor what the provider said. */
export function expectNoSecret(reason: unknown, { provider, id }: { provider: Pick<Provider, "apiKey" | "url">; id: string }): void {
  const everything = shown(reason);
  expect(everything).not.toContain(provider.apiKey);
  expect(everything).not.toContain(id);
  expect(everything).not.toContain(provider.url);
  expect(everything).not.toContain("injected");
}
