// Plugin code of the kind that exists: a command in a sandbox, written against a client made of fetch. It knows nothing of
// the package but two error classes, and is run on the package's client as it is.
import { CreateosApiError, CreateosCleanupError } from "./http_plugin_errors.js";

/** What such code asks of its client. */
export interface PluginClient {
  readonly config: { readonly timeoutMs: number };
  request(path: string, init?: PluginRequest): Promise<Response>;
  json(path: string, method?: string, body?: unknown, signal?: AbortSignal): Promise<Record<string, unknown>>;
  upload(id: string, path: string, content: string, signal?: AbortSignal): Promise<void>;
}

export interface PluginRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: BodyInit;
  signal?: AbortSignal;
  duplex?: "half";
}

export interface Command {
  command: string;
  args?: string[];
  stdin?: string;
  onOutput?: (stream: "stdout" | "stderr", text: string) => void;
}

export interface Result {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** How often the output stream was taken up again. */
  reconnects: number;
}

interface Frame {
  type: string;
  seq?: number;
  stream?: "stdout" | "stderr";
  data_base64?: string;
  exit_code?: number;
}

const MOST_RECONNECTS = 3;
const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

export async function execute(client: PluginClient, id: string, command: Command, signal: AbortSignal): Promise<Result> {
  const token = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  const gate = `/tmp/gate-${token}`;
  const input = `/tmp/input-${token}`;
  if (command.stdin !== undefined) await client.upload(id, input, command.stdin, signal);
  const words = [command.command, ...(command.args ?? [])].map(quote).join(" ");
  const script = `until [ -e ${gate} ]; do sleep 0.01; done; rm -f ${gate}; ${words} < ${command.stdin === undefined ? "/dev/null" : input}`;

  let processId: string;
  try {
    const body = { cmd: "/bin/bash", args: ["-c", script], cwd: "/paperclip-workspace" };
    const created = await client.json(`/sandboxes/${id}/processes`, "POST", body, signal);
    processId = String(created["process_id"]);
  } catch (error) {
    // A refusal is a clear answer; anything else may have started it.
    if (error instanceof CreateosApiError && error.status < 500) throw error;
    throw new CreateosCleanupError("creation unconfirmed");
  }
  const base = `/sandboxes/${id}/processes/${processId}`;
  try {
    return await follow(client, base, () => client.upload(id, gate, "", signal), command, signal);
  } catch (error) {
    await terminate(client, base);
    throw error;
  }
}

async function follow(
  client: PluginClient,
  base: string,
  open: () => Promise<void>,
  { onOutput }: Command,
  signal: AbortSignal,
): Promise<Result> {
  const result: Result = { exitCode: null, stdout: "", stderr: "", reconnects: 0 };
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let seen = 0;
  let opened = false;
  let failures = 0;

  /** Reads one stream to its end: true when the process has exited. */
  async function readStream(): Promise<boolean> {
    const response = await client.request(`${base}/connect?after=${seen}`, { signal });
    try {
      if (!opened) {
        await open();
        opened = true;
      }
      const reader = response.body?.getReader();
      if (!reader) throw new Error("An answer without a body.");
      const lines = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          reader.releaseLock();
          return false;
        }
        rest += lines.decode(value, { stream: true });
        for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
          const frame = JSON.parse(rest.slice(0, end)) as Frame;
          rest = rest.slice(end + 1);
          if (frame.type === "exit") {
            result.exitCode = frame.exit_code ?? null;
            reader.releaseLock();
            return true;
          }
          if (frame.type !== "data" || frame.seq === undefined || frame.stream === undefined) continue;
          if (frame.seq <= seen) continue;
          if (frame.seq !== seen + 1) throw new Error("A gap in the output.");
          seen = frame.seq;
          failures = 0;
          const text = decoders[frame.stream].decode(Buffer.from(frame.data_base64 ?? "", "base64"), { stream: true });
          result[frame.stream] += text;
          onOutput?.(frame.stream, text);
        }
      }
    } finally {
      if (response.body && !response.body.locked) await response.body.cancel().catch(() => {});
    }
  }

  for (;;) {
    try {
      if (await readStream()) return result;
    } catch (error) {
      signal.throwIfAborted();
      const lost = error instanceof TypeError || (error instanceof CreateosApiError && (error.status === 429 || error.status >= 500));
      if (!lost) throw error;
    }
    failures += 1;
    if (failures > MOST_RECONNECTS) throw new Error("The output stream is lost.");
    result.reconnects += 1;
  }
}

/** Ends the process tree. The command's own signal may be aborted, so this has a bound of its own. */
async function terminate(client: PluginClient, base: string): Promise<void> {
  try {
    const signal = AbortSignal.timeout(client.config.timeoutMs);
    const response = await client.request(`${base}?grace_ms=1000`, { method: "DELETE", signal });
    const { data } = (await response.json()) as { data?: { tree_exited?: boolean } };
    if (data?.tree_exited === true) return;
  } catch (error) {
    if (error instanceof CreateosApiError && error.status === 404) return;
  }
  throw new CreateosCleanupError();
}
