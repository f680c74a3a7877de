// Managed processes: the provider contract, section 9. A process outlives the connections to it; its output is kept in
// a journal; its tree is the leader, its group, and whatever descends from it.

import { EventEmitter } from "node:events";

import { start } from "./isolation.mjs";
import { Journal } from "./journal.mjs";
import { killAll, members, send, signalAll } from "./proctree.mjs";
import { ptyCommand } from "./pty.mjs";
import { ulid } from "./sandboxes.mjs";

/** @typedef {import("./types.mjs").StreamName} StreamName */
/** @typedef {{frames: number, frameBytes: number, bytes: number, text: string}} SyntheticPlan */
/**
 * @typedef {object} Request
 * @property {string} cmd
 * @property {string[]} args
 * @property {string|undefined} cwd
 * @property {Record<string,string>} env
 * @property {{rows: number, cols: number}|undefined} pty
 */

/** Emits "change" whenever leader, tree or state changes. */
export class Managed extends EventEmitter {
  id = `proc_${ulid()}`;
  /** @type {import("./isolation.mjs").Started|undefined} */
  child;
  /** @type {"starting"|"running"|"terminating"|"exited"|"failed"} */
  state = "starting";
  leaderExited = false;
  treeExited = false;
  createdAt = new Date().toISOString();
  /** @type {string|undefined} */
  finishedAt;
  /** @type {number|undefined} */
  exitCode;
  /** @type {string|undefined} */
  signal;
  pid = 0;
  inputs = 0;
  stdinOpen = true;
  /** All that the leader wrote is in the journal. */
  drained = false;
  /** Sequences of attached readers. @type {Set<{cursor: number}>} */
  readers = new Set();
  /** Set for processes that only exist for benchmarks. @type {SyntheticPlan|undefined} */
  synthetic;
  #world;
  #sandbox;
  /** @type {NodeJS.Timeout|undefined} */
  #look;

  /**
   * @param {import("./world.mjs").World} world
   * @param {import("./sandboxes.mjs").Sandbox} sandbox
   * @param {Request} request
   */
  constructor(world, sandbox, request) {
    super();
    this.setMaxListeners(0);
    this.#world = world;
    this.#sandbox = sandbox;
    this.request = request;
    this.journal = new Journal(world.journalBytes, world.frameBytes);
  }

  /** Process groups that may still have members. */
  groups() {
    return this.treeExited || this.pid === 0 || this.synthetic ? [] : [this.pid];
  }

  /** @returns {import("./proctree.mjs").Membership} */
  #tree() {
    return { token: this.#world.token(this.#sandbox.id, this.id), leaders: this.groups() };
  }

  async start() {
    const { cmd, args, cwd = "/root", env, pty } = this.request;
    const guest = this.#sandbox.guest;
    if (guest === undefined) throw new Error("sandbox has no guest");
    const command = pty ? ptyCommand(cmd, args, pty) : { cmd, args };
    const launch = await guest.prepare({
      ...command,
      cwd,
      env: {
        ...this.#sandbox.settings.envs,
        ...env,
        ...(pty ? { TERM: "xterm" } : {}),
        CREATEOS_GUEST: this.#world.token(this.#sandbox.id, this.id),
      },
    });
    if ("error" in launch) {
      this.#failed(launch.error);
      return;
    }
    this.#world.sandboxes.requireRunning(this.#sandbox);
    const child = start(launch);
    if (typeof child === "string") {
      this.#failed(child);
      return;
    }
    this.child = child;
    this.pid = child.pid;
    this.#world.watchdog.add(child.pid);
    this.state = "running";
    this.#read(child.stdout, pty ? "pty" : "stdout");
    this.#read(child.stderr, pty ? "pty" : "stderr");
    child.on("exit", (code, signal) => this.#leaderGone(code, signal));
    child.on("close", () => {
      this.#setDrained();
      this.#lookAtTree();
    });
    this.#tell("process:start");
  }

  /** @param {import("node:stream").Readable} stream @param {StreamName} name */
  #read(stream, name) {
    stream.on("data", (/** @type {Buffer} */ chunk) => {
      this.journal.append(name, chunk);
      this.#throttle();
    });
    stream.on("error", () => {});
  }

  /** Slows the process while an attached reader is far behind. */
  #throttle() {
    if (!this.#world.switches.backpressure || this.leaderExited) return;
    const slowest = Math.min(...[...this.readers].map((reader) => reader.cursor));
    const behind = Number.isFinite(slowest) && this.journal.unread(slowest) > this.#world.journalBytes / 2;
    for (const stream of [this.child?.stdout, this.child?.stderr]) {
      if (behind) stream?.pause();
      else if (stream?.isPaused()) stream.resume();
    }
  }

  /** A reader moved on, came or went. */
  readerMoved() {
    if (this.child?.stdout?.isPaused() || this.child?.stderr?.isPaused()) this.#throttle();
  }

  /** @param {string} message */
  #failed(message) {
    if (this.leaderExited) return;
    this.journal.append("stderr", Buffer.from(`${message}\n`));
    this.state = "failed";
    this.exitCode = 127;
    this.leaderExited = this.treeExited = this.drained = true;
    this.stdinOpen = false;
    this.finishedAt = new Date().toISOString();
    this.#changed();
  }

  /** @param {number|null} code @param {string|null} signal */
  #leaderGone(code, signal) {
    this.leaderExited = true;
    this.stdinOpen = false;
    this.finishedAt = new Date().toISOString();
    if (signal) this.signal = signal;
    else this.exitCode = code ?? 0;
    for (const stream of [this.child?.stdout, this.child?.stderr]) if (stream?.isPaused()) stream.resume();
    this.#tell("process:exit");
    this.#changed();
    this.#lookAtTree();
    this.#drain(this.journal.newest, 0);
  }

  /**
   * What the leader wrote before it ended is in the pipes by now: three turns of the event loop without a byte mean
   * that they are empty, even if a child of the leader keeps them open.
   * @param {number} seen
   * @param {number} quiet
   */
  #drain(seen, quiet) {
    if (this.drained) return;
    const newest = this.journal.newest;
    if (newest === seen && quiet >= 3) {
      this.#setDrained();
      return;
    }
    setImmediate(() => this.#drain(newest, newest === seen ? quiet + 1 : 0));
  }

  #setDrained() {
    if (this.drained || !this.leaderExited) return;
    this.drained = true;
    this.#changed();
  }

  /**
   * Looks until the tree is gone. A process in the middle of a fork or an exec escapes one scan, hence two.
   * @param {number} [wait]
   * @param {boolean} [again] the scan before found nobody
   */
  #lookAtTree(wait = 4, again = false) {
    if (this.treeExited || !this.leaderExited) return;
    clearTimeout(this.#look);
    const empty = members(this.#tree()).length === 0;
    if (!empty || !again) {
      const pause = empty ? 4 : wait;
      this.#look = setTimeout(() => this.#lookAtTree(empty ? wait : Math.min(wait * 2, 100), empty), pause);
      return;
    }
    this.treeExited = true;
    this.state = "exited";
    this.#tell("process:tree-exit");
    this.#changed();
  }

  /** Tells readers and waiters. */
  #changed() {
    this.journal.wake();
    this.emit("change");
  }

  /** @param {"process:start"|"process:exit"|"process:tree-exit"} type */
  #tell(type) {
    this.#world.log.record({ type, id: this.id, sandboxId: this.#sandbox.id, pid: this.pid, at: performance.now() });
  }

  /** Whether an `exit` frame is due once the journal is read. */
  get over() {
    return this.drained && (this.#world.switches.exitScope === "leader" || this.treeExited);
  }

  /** @param {"leader"|"tree"} scope */
  ended(scope) {
    return scope === "tree" ? this.treeExited : this.leaderExited;
  }

  /**
   * @param {"leader"|"tree"} scope
   * @param {number} timeoutMs
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} whether it ended in time
   */
  wait(scope, timeoutMs, signal) {
    if (this.ended(scope)) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", settle);
        this.off("change", look);
        resolve(this.ended(scope));
      };
      const look = () => {
        if (this.ended(scope)) settle();
      };
      const timer = setTimeout(settle, timeoutMs);
      signal.addEventListener("abort", settle);
      this.on("change", look);
    });
  }

  /** @param {NodeJS.Signals} signal @returns {boolean} */
  kill(signal) {
    return !this.treeExited && send(-this.pid, signal);
  }

  /** Ends the whole tree: SIGTERM, grace, SIGKILL. @param {number} graceMs */
  async terminate(graceMs) {
    if (this.synthetic) this.finishSynthetic("SIGTERM");
    if (this.treeExited) return;
    this.state = "terminating";
    if (graceMs > 0) {
      signalAll(this.#tree(), "SIGTERM");
      await this.wait("tree", graceMs, new AbortController().signal);
    }
    if (!this.treeExited && (await killAll(this.#tree()))) {
      await this.wait("tree", 5_000, new AbortController().signal);
    }
  }

  /** The sandbox is gone, and this with it. */
  lost() {
    clearTimeout(this.#look);
    this.child?.stdin?.destroy();
    this.child?.stdout?.destroy();
    this.child?.stderr?.destroy();
  }

  /** @param {string} [signal] */
  finishSynthetic(signal) {
    if (this.leaderExited) return;
    if (signal) this.signal = signal;
    else this.exitCode = 0;
    this.leaderExited = this.treeExited = this.drained = true;
    this.state = "exited";
    this.finishedAt = new Date().toISOString();
    this.#changed();
  }

  /** The object of section 9.1. */
  view() {
    const { cmd, args, cwd, pty } = this.request;
    const synthetic = this.synthetic;
    return {
      process_id: this.id,
      kind: pty ? "pty" : "process",
      pid: this.pid,
      state: this.state,
      leader_exited: this.leaderExited,
      tree_exited: this.treeExited,
      created_at: this.createdAt,
      ...(this.finishedAt === undefined ? {} : { finished_at: this.finishedAt }),
      ...(this.exitCode === undefined ? {} : { exit_code: this.exitCode }),
      ...(this.signal === undefined ? {} : { signal: this.signal }),
      cmd,
      args,
      ...(cwd === undefined ? {} : { cwd }),
      ...(pty && !this.treeExited ? { foreground: { pid: this.pid, cmd, args } } : {}),
      output: synthetic ? { oldest_seq: 1, newest_seq: synthetic.frames, bytes: synthetic.bytes } : this.journal.window,
    };
  }
}
