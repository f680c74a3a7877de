// Sandboxes and their lifecycle: the provider contract, sections 5 to 7. Each is a directory in which commands run.

import { EventEmitter } from "node:events";
import { cp, mkdir, rm } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import path from "node:path";

import { Guest } from "./isolation.mjs";
import { killAll, signalAll } from "./proctree.mjs";
import { HttpFailure } from "./reply.mjs";
import { isTerminal, next } from "./state.mjs";

/** @typedef {import("./types.mjs").Status} Status */

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
let lastStamp = 0;

/** A sortable identifier, as ULIDs are. */
export function ulid() {
  lastStamp = Math.max(lastStamp + 1, Date.now());
  let stamp = lastStamp;
  let head = "";
  for (let i = 0; i < 10; i += 1) {
    head = alphabet[stamp % 32] + head;
    stamp = Math.floor(stamp / 32);
  }
  return head + [...randomBytes(16)].map((byte) => alphabet[byte % 32]).join("");
}

/** A sandbox: its row, its directory, its processes. Fields are readable by tests; states change through `apply`. */
export class Sandbox {
  /** @type {Status} */
  status;
  /** @type {{status: Status, at: number}[]} */
  history;
  /** @type {Map<string, import("./processes.mjs").Managed>} */
  processes = new Map();
  /** Process groups of running exec calls. @type {Set<number>} */
  execGroups = new Set();
  /** Requests that reach into the guest. @type {Set<{cut: () => void, stream: boolean}>} */
  connections = new Set();
  /** @type {{status: Status, reads: number}|undefined} */
  oldState;
  /** @type {NodeJS.Timeout|undefined} */
  transition;
  /** @type {NodeJS.Timeout|undefined} */
  idle;
  /** @type {Guest|undefined} */
  guest;
  /** @type {Record<string, string|undefined>} */
  times;
  stuck = false;

  /**
   * @param {string} id
   * @param {string} owner
   * @param {string} directory
   * @param {import("./view.mjs").Settings} settings
   * @param {Status} status
   */
  constructor(id, owner, directory, settings, status) {
    this.id = id;
    this.owner = owner;
    this.directory = directory;
    this.settings = settings;
    this.status = status;
    this.history = [{ status, at: performance.now() }];
    this.times = { created_at: new Date().toISOString() };
  }
}

/**
 * Events: "state" (sandbox, from). Every change of state goes through `#enter`.
 */
export class SandboxStore extends EventEmitter {
  /** @type {Map<string, Sandbox>} */
  all = new Map();
  #world;
  #addresses = 1;

  /** @param {import("./world.mjs").World} world */
  constructor(world) {
    super();
    this.#world = world;
  }

  /** @param {string} id @param {string} owner @returns {Sandbox} a foreign sandbox does not exist */
  find(id, owner) {
    const sandbox = this.all.get(id);
    if (
      sandbox === undefined ||
      sandbox.owner !== owner ||
      (sandbox.status === "destroyed" && this.#world.switches.destroyedIs404)
    ) {
      throw new HttpFailure(404, "sandbox not found", { field: "id" });
    }
    return sandbox;
  }

  /** Between admission and the start of a command the state may have changed. @param {Sandbox} sandbox */
  requireRunning(sandbox) {
    if (sandbox.status !== "running") throw new HttpFailure(409, `sandbox is ${sandbox.status}`, { field: "status" });
  }

  /** @param {string} owner */
  nameTaken(owner, /** @type {string} */ name) {
    return [...this.all.values()].some(
      (one) => one.owner === owner && one.settings.name === name && !isTerminal(one.status),
    );
  }

  /**
   * @param {string} owner
   * @param {import("./view.mjs").Settings} settings
   * @param {"creating"|"forking"} status
   */
  async add(owner, settings, status) {
    const id = this.#world.switches.idPrefix + ulid();
    const directory = path.join(this.#world.base, id);
    const sandbox = new Sandbox(id, owner, directory, settings, status);
    settings.ip = `10.77.${this.#addresses >> 8}.${this.#addresses++ & 255}`;
    this.all.set(id, sandbox);
    this.emit("state", sandbox, undefined);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    return sandbox;
  }

  /** @param {Sandbox} sandbox */
  async startGuest(sandbox) {
    sandbox.guest = new Guest(sandbox.directory, this.#world.isolation, (group) => this.#world.watchdog.add(group));
    await sandbox.guest.prepareDirectories();
  }

  /** Everything alive in a sandbox. @param {Sandbox} sandbox @param {boolean} withHolder */
  membership(sandbox, withHolder) {
    const holder = sandbox.guest?.holderPid;
    return {
      token: this.#world.token(sandbox.id),
      leaders: [
        ...sandbox.execGroups,
        ...[...sandbox.processes.values()].flatMap((one) => one.groups()),
        ...(withHolder && holder ? [holder] : []),
      ],
      root: sandbox.guest?.ownRoot,
      folder: sandbox.guest?.ownRoot === undefined ? sandbox.directory : undefined,
      except: withHolder || holder === undefined ? [] : [holder],
    };
  }

  /**
   * Applies an event; undefined when it is illegal in the present state.
   * @param {Sandbox} sandbox
   * @param {import("./state.mjs").StateEvent} event
   * @returns {Status|undefined}
   */
  apply(sandbox, event) {
    const to = next(sandbox.status, event);
    if (to !== undefined && to !== sandbox.status) this.#enter(sandbox, to);
    return to;
  }

  /** @param {Sandbox} sandbox @param {Status} to */
  #enter(sandbox, to) {
    const from = sandbox.status;
    clearTimeout(sandbox.transition);
    sandbox.status = to;
    sandbox.history.push({ status: to, at: performance.now() });
    const now = new Date().toISOString();
    if (to === "running") {
      sandbox.times["running_at"] = now;
      if (from === "resuming") sandbox.times["last_resumed_at"] = now;
    } else if (to === "paused") sandbox.times["paused_at"] = now;
    else if (to === "destroyed") sandbox.times["destroyed_at"] = now;
    if (to === "pausing" && this.#world.switches.pauseCutsStreams) this.cutConnections(sandbox, true);
    if (to === "destroying" || to === "failed" || to === "error") this.cutConnections(sandbox, false);
    if (to === "running") this.#signal(sandbox, "SIGCONT");
    this.emit("state", sandbox, from);
    this.touch(sandbox);
  }

  /** @param {Sandbox} sandbox @param {NodeJS.Signals} signal */
  #signal(sandbox, signal) {
    if (sandbox.guest?.used) signalAll(this.membership(sandbox, false), signal);
  }

  /** @param {Sandbox} sandbox @param {boolean} streamsOnly */
  cutConnections(sandbox, streamsOnly) {
    for (const connection of sandbox.connections) if (connection.stream || !streamsOnly) connection.cut();
  }

  /**
   * Does `work` after `delay` unless the state changes before. A stuck sandbox stays where it is.
   * @param {Sandbox} sandbox
   * @param {number} delay
   * @param {() => unknown} work
   */
  later(sandbox, delay, work) {
    if (sandbox.stuck) return;
    clearTimeout(sandbox.transition);
    sandbox.transition = setTimeout(work, delay);
  }

  /** @param {Sandbox} sandbox */
  pause(sandbox) {
    const before = sandbox.status;
    const to = this.apply(sandbox, "pause");
    if (to === "pausing" && before !== "pausing") {
      this.later(sandbox, this.#world.delays.pause, () => {
        this.#signal(sandbox, "SIGSTOP");
        this.apply(sandbox, "stopped");
      });
    }
    return to;
  }

  /** Finishes what a fault left hanging. @param {Sandbox} sandbox */
  unstick(sandbox) {
    if (!sandbox.stuck) return;
    if (sandbox.status === "destroying") {
      void this.destroy(sandbox);
      return;
    }
    sandbox.stuck = false;
    if (sandbox.status === "pausing") this.#signal(sandbox, "SIGSTOP");
    const event = /** @type {const} */ ({ creating: "booted", pausing: "stopped", resuming: "resumed" });
    if (sandbox.status in event) this.apply(sandbox, event[/** @type {keyof typeof event} */ (sandbox.status)]);
  }

  /** @param {Sandbox} sandbox @param {{fail?: boolean}} [how] */
  resume(sandbox, { fail = false } = {}) {
    const to = this.apply(sandbox, "resume");
    if (to === "resuming")
      this.later(sandbox, this.#world.delays.resume, () => this.apply(sandbox, fail ? "resumeFailed" : "resumed"));
    return to;
  }

  /**
   * Starts the reclaim; a repeated delete also restarts one that hangs.
   * @param {Sandbox} sandbox
   * @param {{stuck?: boolean}} [how]
   * @returns {Promise<void>} resolves at once, or when reclaimed where the switch asks for that
   */
  destroy(sandbox, { stuck = false } = {}) {
    const settled = sandbox.status === "paused" || sandbox.status === "error";
    const hangs = sandbox.status === "destroying" && sandbox.stuck;
    if (sandbox.status === "destroying" ? !hangs : this.apply(sandbox, "destroy") !== "destroying")
      return Promise.resolve();
    sandbox.stuck = stuck;
    if (stuck) return Promise.resolve();
    const inline = settled && this.#world.switches.inlineDestroy;
    const done = new Promise((/** @type {(value: void|Promise<void>) => void} */ resolve) => {
      this.later(sandbox, inline ? 0 : this.#world.delays.destroy, () => resolve(this.#reclaim(sandbox)));
    });
    return inline ? done : Promise.resolve();
  }

  /** @param {Sandbox} sandbox */
  async #reclaim(sandbox) {
    await this.erase(sandbox);
    this.apply(sandbox, "reclaimed");
  }

  /** Kills everything in a sandbox and removes its directory. @param {Sandbox} sandbox */
  async erase(sandbox) {
    clearTimeout(sandbox.idle);
    clearTimeout(sandbox.transition);
    sandbox.guest?.close();
    if (sandbox.guest?.used) await killAll(this.membership(sandbox, true));
    for (const one of sandbox.processes.values()) one.lost();
    await rm(sandbox.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  }

  /** Records activity and plans the idle pause of section 6. @param {Sandbox} sandbox */
  touch(sandbox) {
    clearTimeout(sandbox.idle);
    const seconds = sandbox.settings.auto_pause_after_seconds;
    if (seconds === undefined || sandbox.status !== "running") return;
    sandbox.idle = setTimeout(
      () => {
        // An open call into the guest is activity; it touches the sandbox when it ends.
        if (sandbox.connections.size === 0) this.pause(sandbox);
      },
      seconds * 1000 * this.#world.autoPauseScale,
    );
    sandbox.idle.unref();
  }

  /** @param {Sandbox} source @param {Sandbox} copy @param {boolean} paused */
  async copyInto(source, copy, paused) {
    // System directories are only mounted inside the namespace, so the directory holds the sandbox's own files alone.
    await cp(source.directory, copy.directory, { recursive: true, verbatimSymlinks: true, force: true });
    await this.startGuest(copy);
    this.later(copy, this.#world.delays.resume, () => this.apply(copy, paused ? "copiedPaused" : "copied"));
  }
}
