// One-off commands: the provider contract, section 8. Buffered, or as an NDJSON stream with heartbeats.

import { StringDecoder } from "node:string_decoder";

import { start } from "./isolation.mjs";
import { killAll, send } from "./proctree.mjs";
import { HttpFailure } from "./reply.mjs";
import { ulid } from "./sandboxes.mjs";
import { parseCommandEnv, parseStrings } from "./view.mjs";

const signalNumbers = /** @type {Record<string, number>} */ ({
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
});

/**
 * @param {import("./world.mjs").World} world
 * @param {import("./sandboxes.mjs").Sandbox} sandbox
 * @param {import("./types.mjs").Context} context
 * @returns {Promise<import("./types.mjs").Reply>}
 */
export async function exec(world, sandbox, context) {
  const { body, query, signal } = context;
  const cmd = body["cmd"];
  if (typeof cmd !== "string" || cmd === "") throw new HttpFailure(400, "cmd is required", { field: "cmd" });
  const args = parseStrings(body["args"], "args");
  const env = parseCommandEnv(body["env"], sandbox.settings.envs);
  const stdin = body["stdin"] ?? "";
  if (typeof stdin !== "string") throw new HttpFailure(400, "stdin must be a string", { field: "stdin" });
  const streaming = body["stream"] === true || query.get("stream") === "true";
  if (streaming && world.switches.execStream404) throw new HttpFailure(404, "not found");

  const started = performance.now();
  const id = `exec_${ulid()}`;
  const token = world.token(sandbox.id, id);
  const launch = await /** @type {import("./isolation.mjs").Guest} */ (sandbox.guest).prepare({
    cmd,
    args,
    cwd: "/root",
    env: { ...sandbox.settings.envs, ...env, CREATEOS_GUEST: token },
  });
  if ("error" in launch) return notStarted(launch.error, started, streaming);
  world.sandboxes.requireRunning(sandbox);

  const child = start(launch);
  if (typeof child === "string") return notStarted(child, started, streaming);
  const { pid } = child;
  world.watchdog.add(pid);
  sandbox.execGroups.add(pid);
  world.log.record({ type: "process:start", id, sandboxId: sandbox.id, pid, at: performance.now() });
  child.once("exit", () =>
    world.log.record({ type: "process:exit", id, sandboxId: sandbox.id, pid, at: performance.now() }),
  );
  child.stdin.end(world.switches.execStdin ? stdin : "");
  const closed = new Promise((/** @type {(code: number) => void} */ resolve) => {
    child.once("close", (code, killedBy) => resolve(code ?? 128 + (signalNumbers[killedBy ?? ""] ?? 0)));
  });
  const over = closed.finally(() => {
    // Something may have stayed behind in the group; the sandbox's own token finds it when the sandbox goes.
    if (!send(-pid, /** @type {any} */ (0))) sandbox.execGroups.delete(pid);
  });
  const gone = () => {
    // A pause cuts the connection too, but the frozen command is to go on after the resume.
    if (world.switches.execKillOnDisconnect && sandbox.status === "running") void killAll({ token, leaders: [pid] });
  };
  signal.addEventListener("abort", gone);
  void over.finally(() => signal.removeEventListener("abort", gone));
  if (signal.aborted) gone();
  return streaming ? streamed(child, closed, world.heartbeatMs) : buffered(child, closed, started);
}

/** @param {string} error @param {number} started @param {boolean} streaming @returns {import("./types.mjs").Reply} */
function notStarted(error, started, streaming) {
  if (streaming) {
    return { headers: { "content-type": "application/x-ndjson" }, raw: `${JSON.stringify({ error })}\n` };
  }
  return { data: { result: { stdout: "", stderr: "", exit_code: 0, error }, exec_ms: performance.now() - started } };
}

/**
 * @param {import("./isolation.mjs").Started} child
 * @param {Promise<number>} closed
 * @param {number} started
 * @returns {Promise<import("./types.mjs").Reply>}
 */
async function buffered(child, closed, started) {
  /** @type {Buffer[]} */
  const stdout = [];
  /** @type {Buffer[]} */
  const stderr = [];
  child.stdout.on("data", (chunk) => stdout.push(chunk));
  child.stderr.on("data", (chunk) => stderr.push(chunk));
  const exitCode = await closed;
  return {
    data: {
      result: {
        stdout: Buffer.concat(stdout).toString("utf8"),
        stderr: Buffer.concat(stderr).toString("utf8"),
        exit_code: exitCode,
      },
      exec_ms: performance.now() - started,
    },
  };
}

/**
 * @param {import("./isolation.mjs").Started} child
 * @param {Promise<number>} closed
 * @param {number} heartbeatMs
 * @returns {import("./types.mjs").Reply}
 */
function streamed(child, closed, heartbeatMs) {
  return {
    headers: { "content-type": "application/x-ndjson" },
    async stream(sink) {
      const beat = setInterval(() => void sink.write('{"hb":true}\n'), heartbeatMs);
      /** @param {import("node:stream").Readable} from @param {"stdout"|"stderr"} name */
      const pump = async (from, name) => {
        // A character cut by a chunk boundary is kept for the next frame.
        const decoder = new StringDecoder("utf8");
        for await (const chunk of from) {
          const text = decoder.write(chunk);
          if (text !== "") await sink.write(`${JSON.stringify({ [name]: text })}\n`);
        }
        const rest = decoder.end();
        if (rest !== "") await sink.write(`${JSON.stringify({ [name]: rest })}\n`);
      };
      try {
        await Promise.all([pump(child.stdout, "stdout"), pump(child.stderr, "stderr")]);
        await sink.write(`${JSON.stringify({ exit_code: await closed })}\n`);
      } catch {
        // The pipes were torn down with the sandbox: the stream ends without an exit code.
      } finally {
        clearInterval(beat);
      }
    },
  };
}
