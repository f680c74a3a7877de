// Commands as a host gives them to the execute hook of a plugin, and what it gets.
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { PluginEnvironmentExecuteParams, PluginEnvironmentExecuteResult } from "@paperclipai/plugin-sdk";
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { leaseOf, type StoredLease, type Tenant } from "./paperclip_plugin.js";
import { alive } from "./resumes.js";

export type Command = Pick<PluginEnvironmentExecuteParams, "command" | "args" | "cwd" | "env" | "stdin" | "timeoutMs">;

/** A command in a lease's sandbox, as a host asks for it. */
export const runIn = (owner: Tenant, lease: StoredLease, command: Command): PluginEnvironmentExecuteParams => ({
  ...owner,
  lease: leaseOf(lease).lease,
  ...command,
});

export const bash = (script: string, more: Partial<Command> = {}): Command => ({
  command: "bash",
  args: ["-c", script],
  ...more,
});

/** Goes on until it is ended, with a child in a session of its own. */
export const FOREVER = bash("setsid sleep 1000 & echo up; sleep 1000");

/** What a command gives that says nothing and ends well, but for its process. */
export const RESULT = {
  exitCode: 0,
  signal: null,
  timedOut: false,
  stdout: "",
  stderr: "",
  metadata: { processId: expect.stringMatching(/^proc_\w+$/), outputTruncated: false },
};

export const CANCELLED = "CreateOS command was cancelled.";

/** What a command is given, and what comes of it. */
export const COMMANDS: [name: string, command: Command, result: Partial<PluginEnvironmentExecuteResult>][] = [
  ["ends well without a word", { command: "true" }, {}],
  ["ends with the exit code that it has", bash("exit 7"), { exitCode: 7 }],
  ["tells the signal that has ended it", bash("kill -9 $$"), { exitCode: null, signal: "SIGKILL" }],
  [
    "tells what can't be run",
    { command: "no-such-command" },
    { exitCode: 127, stderr: expect.stringContaining("no-such-command") },
  ],
  ["prints to both streams", bash("echo one; echo two >&2; exit 1"), { exitCode: 1, stdout: "one\n", stderr: "two\n" }],
  [
    "gets its arguments as they are",
    { command: "printf", args: ["<%s>", "a b", "$HOME `id`", "it's", '"', "\\", "*", "", "a\nb", "☃"] },
    { stdout: "<a b><$HOME `id`><it's><\"><\\><*><><a\nb><☃>" },
  ],
  [
    "gets variables besides the sandbox's own, whatever they hold",
    bash('printf "%s|%s|%s" "$GREETING" "$EMPTY" "${PATH:+has a path}"', { env: { GREETING: "it's $HOME\n☃", EMPTY: "" } }),
    { stdout: "it's $HOME\n☃||has a path" },
  ],
  ["reads what it is given", { command: "cat", stdin: "☃ 'input'\nno newline" }, { stdout: "☃ 'input'\nno newline" }],
  ["reads nothing where it is given nothing", { command: "cat" }, {}],
  ["begins in the workspace", bash('basename "$PWD"'), { stdout: "paperclip-workspace\n" }],
  ["begins in the folder that is asked for", bash('basename "$PWD"', { cwd: "/tmp" }), { stdout: "tmp\n" }],
];

/** All that one stream said. */
export const textOf = (pieces: readonly [stream: string, chunk: string][], stream: string): string =>
  pieces.map(([one, chunk]) => (one === stream ? chunk : "")).join("");

/** Makes a file in a lease's workspace, past the provider. */
export function putFile(provider: Provider, { providerLeaseId }: StoredLease, name: string): void {
  const folder = provider.sandbox(providerLeaseId)?.directory ?? "";
  writeFileSync(path.join(folder, "paperclip-workspace", name), "");
}

/** The process trees that have not ended in a lease's sandbox. */
export const left = (provider: Provider, { providerLeaseId }: StoredLease) => alive(provider, providerLeaseId);

/**
 * That the commands of a lease had ended, with all that they started, before something else was asked for: their end is
 * confirmed by then, and nothing of them runs.
 */
export async function endedBefore(provider: Provider, lease: StoredLease, route: string): Promise<void> {
  const asked = provider.requests.find((request) => request.route === route);
  expect(asked?.sandboxId).toBe(lease.providerLeaseId);
  const at = asked?.at ?? Number.NaN;
  for (const { process_id: id } of provider.processes(lease.providerLeaseId)) {
    const gone = await provider.waitFor((event) => event.type === "process:tree-exit" && event.id === id);
    expect("at" in gone && gone.at).toBeLessThan(at);
    const ended = provider.requests.find((one) => one.route === "process.delete" && one.path.endsWith(id));
    expect(ended?.finishedAt).toBeLessThan(at);
  }
}
