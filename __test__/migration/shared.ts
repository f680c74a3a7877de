// What a plugin may keep when its lease logic is swapped: how it runs a command, which after the swap only its own file
// sync does, and its own error for a clean-up that can't be confirmed. It is written against a client made of fetch and
// knows nothing of the package.
import { randomUUID } from "node:crypto";
import type {
  PluginContext,
  PluginDefinition,
  PluginEnvironmentExecuteParams,
  PluginEnvironmentExecuteResult,
} from "@paperclipai/plugin-sdk";

/** The hooks that have to do with leases, all of them there. */
export type LeaseHooks = Required<
  Pick<
    PluginDefinition,
    | "onEnvironmentValidateConfig"
    | "onEnvironmentProbe"
    | "onEnvironmentAcquireLease"
    | "onEnvironmentResumeLease"
    | "onEnvironmentReleaseLease"
    | "onEnvironmentDestroyLease"
    | "onEnvironmentRealizeWorkspace"
    | "onEnvironmentExecute"
    | "onEnvironmentSyncIn"
    | "onEnvironmentSyncOut"
    | "onShutdown"
  >
>;

/** What the plugin's code asks of its client. */
export interface PluginClient {
  request(path: string, init?: RequestInit): Promise<Response>;
  json(path: string, method?: string, body?: unknown, signal?: AbortSignal): Promise<Record<string, unknown>>;
  upload(id: string, path: string, content: string | Uint8Array, signal?: AbortSignal): Promise<void>;
}

/** A command whose end nobody can vouch for. Its `name` is just "Error", as with most such classes. */
export class CreateosCleanupError extends Error {}

/** The status of a refusal: the old client's error and the new one's both carry it. */
export function statusOf(error: unknown): unknown {
  return error instanceof Error && "status" in error ? error.status : undefined;
}

/** Where live output goes: the plugin keeps what `setup` was given. */
export const host: Pick<PluginContext, "execution"> = { execution: { log() {} } };

export const WORKSPACE = "/paperclip-workspace";
const CLEANUP_MS = 30_000;
const MOST_RECONNECTS = 3;

/** A frame of a process's output stream. */
interface Frame {
  type: "data" | "exit" | "heartbeat" | "error";
  seq: number;
  stream: "stdout" | "stderr";
  data_base64: string;
  exit_code?: number;
  signal?: string;
}

/** Runs a command and tells its output as it comes. It never ends before the command's process tree has. */
export async function execute(
  client: PluginClient,
  params: PluginEnvironmentExecuteParams,
  signal: AbortSignal,
): Promise<PluginEnvironmentExecuteResult> {
  const { command, args = [], cwd = WORKSPACE, env = {}, stdin } = params;
  const id = params.lease.providerLeaseId ?? "";
  const result = { exitCode: null, signal: null, timedOut: false, stdout: "", stderr: "" };
  try {
    let input = "</dev/null";
    if (stdin !== undefined) {
      const file = `/tmp/stdin-${randomUUID()}`;
      await client.upload(id, file, stdin, signal);
      input = `<${file} && rm -f ${file}`;
    }
    const words = [...Object.entries(env).map(([name, value]) => `${name}=${value}`), command, ...args];
    const script = `exec ${input}; cd ${quote(cwd)} && exec env ${words.map(quote).join(" ")}`;
    const process = await start(client, id, script, signal);
    try {
      await follow(client, process, result, signal);
    } catch (error) {
      await terminate(client, process);
      throw error;
    }
  } catch (error) {
    if (error instanceof CreateosCleanupError || !signal.aborted) throw error;
    if (signal.reason?.name !== "TimeoutError") throw new Error("CreateOS command was cancelled.");
    result.timedOut = true;
  }
  return result;
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Gives the path of the process. */
async function start(client: PluginClient, id: string, script: string, signal: AbortSignal): Promise<string> {
  const processes = `/sandboxes/${id}/processes`;
  try {
    const body = { cmd: "/bin/bash", args: ["-c", script] };
    const { process_id: process } = await client.json(processes, "POST", body, signal);
    if (typeof process === "string") return `${processes}/${process}`;
  } catch (error) {
    // A refusal is a clear answer. After anything else the command may run.
    if (Number(statusOf(error)) < 500) throw error;
  }
  throw new CreateosCleanupError(
    "CreateOS process creation could not be confirmed; destroy the lease before reusing it.",
  );
}

/** Reads the output to its end, from where it was lost when a stream breaks. */
async function follow(
  client: PluginClient,
  process: string,
  result: PluginEnvironmentExecuteResult,
  signal: AbortSignal,
): Promise<void> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let seen = 0;
  for (let losses = 0; losses <= MOST_RECONNECTS; losses += 1) {
    try {
      const response = await client.request(`${process}/connect?after=${seen}`, { signal });
      for await (const frame of frames(response)) {
        if (frame.type === "exit") {
          result.exitCode = frame.exit_code ?? null;
          result.signal = frame.signal ?? null;
          return;
        }
        if (frame.type !== "data" || frame.seq <= seen) continue;
        if (frame.seq !== seen + 1) throw new Error("CreateOS process output has a sequence gap.");
        seen = frame.seq;
        losses = 0;
        const text = decoders[frame.stream].decode(Buffer.from(frame.data_base64, "base64"), { stream: true });
        result[frame.stream] += text;
        host.execution.log(frame.stream, text);
      }
    } catch (error) {
      // A client made of fetch tells a broken connection by a TypeError.
      const isLost = error instanceof TypeError || Number(statusOf(error)) >= 500;
      if (signal.aborted || !isLost) throw error;
    }
  }
  throw new Error("CreateOS process stream ended before all output could be replayed.");
}

async function* frames(response: Response): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body ?? []) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

/** Ends the process tree. The command's own signal may be aborted, so this has a bound of its own. */
async function terminate(client: PluginClient, process: string): Promise<void> {
  try {
    const signal = AbortSignal.timeout(CLEANUP_MS);
    const { tree_exited: ended } = await client.json(`${process}?grace_ms=1000`, "DELETE", undefined, signal);
    if (ended === true) return;
  } catch (error) {
    if (statusOf(error) === 404) return;
  }
  throw new CreateosCleanupError("CreateOS command cleanup failed; process termination is unconfirmed.");
}
