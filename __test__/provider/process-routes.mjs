// Handlers of the managed process calls: the provider contract, section 9.

import { follow, followSynthetic } from "./connect.mjs";
import { Managed } from "./processes.mjs";
import { foregroundGroup, resizeTerminal } from "./pty.mjs";
import { send } from "./proctree.mjs";
import { ack, HttpFailure } from "./reply.mjs";
import { parseCommandEnv, parseStrings } from "./view.mjs";

/** @typedef {import("./types.mjs").Context} Context */
/** @typedef {import("./types.mjs").Reply} Reply */
/** @typedef {import("./world.mjs").World} World */
/** @typedef {import("./sandboxes.mjs").Sandbox} Sandbox */

const inputLimit = 256 * 1024;
const syntheticText = "0123456789abcdefghijklmnopqrstuvwxyz .,\n";
const signals = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH"];

/** @param {Sandbox} sandbox @param {Context} context @returns {Managed} */
function find(sandbox, { params }) {
  const managed = sandbox.processes.get(params["process"] ?? "");
  if (managed === undefined) throw new HttpFailure(404, "process not found", { field: "process_id" });
  return managed;
}

/** @param {URLSearchParams} query @param {string} name @param {number} otherwise */
function count(query, name, otherwise) {
  const text = query.get(name);
  if (text === null || text === "") return otherwise;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new HttpFailure(400, "must be a non-negative integer", { field: name });
  return value;
}

/** @param {any} value @returns {{rows: number, cols: number}|undefined} */
function parsePty(value) {
  if (value === undefined || value === null) return undefined;
  const { rows = 24, cols = 80 } = value;
  if (![rows, cols].every((side) => Number.isInteger(side) && side > 0 && side < 65_536))
    throw new HttpFailure(400, "rows and cols must be positive", { field: "pty" });
  return { rows, cols };
}

/** @param {World} world @param {Sandbox} sandbox @param {Context} context @returns {Promise<Reply>} */
export async function create(world, sandbox, { body }) {
  const pty = parsePty(body["pty"]);
  const cmd = body["cmd"] ?? "";
  if (typeof cmd !== "string" || cmd.includes("\0") || (cmd === "" && !pty))
    throw new HttpFailure(400, "cmd is required", { field: "cmd" });
  const cwd = body["cwd"] || undefined;
  if (cwd !== undefined && (typeof cwd !== "string" || !cwd.startsWith("/")))
    throw new HttpFailure(400, "cwd must be absolute", { field: "cwd" });
  const request = {
    cmd,
    args: parseStrings(body["args"], "args"),
    cwd,
    env: parseCommandEnv(body["env"], sandbox.settings.envs),
    pty,
  };
  const managed = new Managed(world, sandbox, request);
  const [bytes = "0", frameBytes = "32768"] = request.args;
  if (world.synthetic && !pty) startSynthetic(managed, world.synthetic);
  else if (cmd === "createos:synthetic") startSynthetic(managed, { bytes: Number(bytes), frameBytes: Number(frameBytes) });
  else await managed.start();
  sandbox.processes.set(managed.id, managed);
  return { status: 201, data: managed.view() };
}

/** @param {Managed} managed @param {import("./types.mjs").Synthetic} output */
function startSynthetic(managed, { bytes, frameBytes, text }) {
  if (!Number.isSafeInteger(bytes) || bytes < 0 || !Number.isSafeInteger(frameBytes) || frameBytes < 1) {
    throw new HttpFailure(400, "synthetic output needs [bytes, frameBytes]", { field: "args" });
  }
  managed.synthetic = { bytes, frameBytes, frames: Math.ceil(bytes / frameBytes), text: text ?? syntheticText };
  managed.pid = 1;
  managed.state = "running";
}

/** @param {World} _world @param {Sandbox} sandbox @returns {Reply} */
export function list(_world, sandbox) {
  return { data: { processes: [...sandbox.processes.values()].map((one) => one.view()) } };
}

/** @param {World} _world @param {Sandbox} sandbox @param {Context} context @returns {Reply} */
export function get(_world, sandbox, context) {
  return { data: find(sandbox, context).view() };
}

/** @param {World} _world @param {Sandbox} sandbox @param {Context} context @returns {Promise<Reply>} */
export async function remove(_world, sandbox, context) {
  const managed = find(sandbox, context);
  await managed.terminate(Math.min(count(context.query, "grace_ms", 1000), 60_000));
  return { data: managed.view() };
}

/** @param {World} world @param {Sandbox} sandbox @param {Context} context @returns {Reply} */
export function connect(world, sandbox, context) {
  const managed = find(sandbox, context);
  const after = count(context.query, "after", 0);
  const { synthetic, journal } = managed;
  // No cursor means: from the start of what is retained.
  const from = after === 0 && !synthetic ? journal.oldest - 1 : after;
  if (!synthetic && from + 1 < journal.oldest && world.switches.expiredOutput === "410") {
    throw new HttpFailure(410, "output_offset_expired", { field: "after" });
  }
  return {
    headers: { "content-type": "application/x-ndjson" },
    stream: (sink) =>
      synthetic
        ? followSynthetic(managed, synthetic, after, sink)
        : follow(managed, from, world.heartbeatMs, sink, context.effects),
  };
}

/** @param {World} _world @param {Sandbox} sandbox @param {Context} context @returns {Promise<Reply>} */
export async function wait(_world, sandbox, context) {
  const managed = find(sandbox, context);
  const scope = context.query.get("scope") || "leader";
  if (scope !== "leader" && scope !== "tree") throw new HttpFailure(400, "unknown scope", { field: "scope" });
  const timeout = Math.min(count(context.query, "timeout_ms", 30_000), 300_000);
  if (!(await managed.wait(scope, timeout, context.signal))) throw new HttpFailure(408, "process is still running");
  return { data: managed.view() };
}

/** @param {World} _world @param {Sandbox} sandbox @param {Context} context @returns {Reply} */
export function input(_world, sandbox, context) {
  const managed = find(sandbox, context);
  const encoded = context.body["data_base64"];
  if (
    typeof encoded !== "string" ||
    !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded)
  ) {
    throw new HttpFailure(400, "must be padded base64", { field: "data_base64" });
  }
  const data = Buffer.from(encoded, "base64");
  if (data.length > inputLimit) throw new HttpFailure(413, "input too large", { field: "data_base64" });
  if (!managed.stdinOpen || managed.leaderExited) throw new HttpFailure(409, "stdin is closed");
  managed.child?.stdin?.write(data);
  managed.inputs += 1;
  return { data: { input_seq: managed.inputs } };
}

/** @param {World} world @param {Sandbox} sandbox @param {Context} context @returns {Reply} */
export function closeStdin(world, sandbox, context) {
  const managed = find(sandbox, context);
  if (managed.request.pty || !managed.stdinOpen || managed.leaderExited) throw new HttpFailure(409, "stdin is closed");
  managed.stdinOpen = false;
  managed.child?.stdin?.end();
  return { data: ack(world.switches.ack, managed.id) };
}

/** @param {World} world @param {Sandbox} sandbox @param {Context} context @returns {Reply} */
export function signal(world, sandbox, context) {
  const managed = find(sandbox, context);
  const name = context.body["signal"];
  if (!signals.includes(name)) throw new HttpFailure(400, "unknown signal", { field: "signal" });
  const foreground = managed.request.pty ? foregroundGroup(managed.pid) : undefined;
  const sent = foreground && foreground > 0 ? send(-foreground, name) : managed.kill(name);
  if (!sent) throw new HttpFailure(409, "process has exited");
  return { data: ack(world.switches.ack, managed.id) };
}

/** @param {World} world @param {Sandbox} sandbox @param {Context} context @returns {Promise<Reply>} */
export async function resize(world, sandbox, context) {
  const managed = find(sandbox, context);
  if (!managed.request.pty) throw new HttpFailure(409, "process has no terminal");
  const size = parsePty(context.body);
  if (size === undefined || managed.leaderExited || !(await resizeTerminal(managed.pid, size.rows, size.cols))) {
    throw new HttpFailure(409, "terminal is gone");
  }
  return { data: ack(world.switches.ack, managed.id) };
}
