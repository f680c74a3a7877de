// The loopback provider: an HTTP server on 127.0.0.1 that behaves as the provider contract says and really runs
// commands. Sandboxes are directories; nothing of them outlives `close()` or the end of the process.
//
//   const provider = await startProvider();
//   new CreateosClient({ apiUrl: provider.url, apiKey: provider.apiKey, shape: "s-1vcpu-1gb" });
//   await provider.waitFor((event) => event.type === "request:start" && event.request.route === "sandbox.destroy");
//   await provider.close();

import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

import { Faults } from "./faults.mjs";
import { chooseIsolation } from "./isolation.mjs";
import { EventLog } from "./log.mjs";
import { killAll, signalAll } from "./proctree.mjs";
import { RateLimit } from "./rate.mjs";
import { SandboxStore } from "./sandboxes.mjs";
import { createServer } from "./server.mjs";
import { Watchdog } from "./watchdog.mjs";
import { defaultSwitches } from "./world.mjs";

/** @typedef {import("./types.mjs").ProviderOptions} ProviderOptions */
/** @typedef {import("./types.mjs").Status} Status */

/**
 * @typedef {object} SandboxInfo
 * @property {string} id
 * @property {Status} status
 * @property {string} owner
 * @property {string} name
 * @property {string} directory host directory that is the sandbox's root
 * @property {readonly {status: Status, at: number}[]} history with performance.now() times
 */

/** @type {Set<Provider>} */
const open = new Set();
function endAll() {
  for (const provider of open) provider.endNow();
}

/** A running loopback provider. */
export class Provider {
  #world;
  #server;
  #rate;
  /** @type {Promise<void>|undefined} */
  #closed;

  /**
   * @param {import("./world.mjs").World} world
   * @param {import("node:http").Server} server
   * @param {RateLimit|undefined} rate
   * @param {string} runToken
   */
  constructor(world, server, rate, runToken) {
    this.#world = world;
    this.#server = server;
    this.#rate = rate;
    const address = /** @type {import("node:net").AddressInfo} */ (server.address());
    /** Origin, without a path. */
    this.url = `http://127.0.0.1:${address.port}`;
    /** The first key. */
    this.apiKey = /** @type {string} */ ([...world.keys.keys()][0]);
    /** Set at any time: what disagreeing sources say. */
    this.switches = world.switches;
    /** Set at any time: how long transitions take, in ms. */
    this.delays = world.delays;
    this.faults = world.faults;
    /** Directory of all sandboxes. */
    this.directory = world.base;
    /** "namespace" or "rewrite", see isolation.mjs. */
    this.isolation = world.isolation.kind;
    this.runToken = runToken;
    if (open.size === 0) process.on("exit", endAll);
    open.add(this);
  }

  /** Received requests, oldest first. */
  get requests() {
    return this.#world.log.requests;
  }

  /** Requests above the limit, and the highest count seen in a window. */
  get rateLimit() {
    return { violations: this.#rate?.violations ?? [], peak: this.#rate?.peak ?? 0 };
  }

  /** @returns {SandboxInfo[]} every sandbox ever made */
  get sandboxes() {
    return [...this.#world.sandboxes.all.values()].map(({ id, status, owner, directory, history, settings }) => ({
      id,
      status,
      owner,
      directory,
      history: [...history],
      name: settings.name,
    }));
  }

  /** @param {string} id */
  sandbox(id) {
    return this.sandboxes.find((one) => one.id === id);
  }

  /** A position for `waitFor`'s `since`. */
  mark() {
    return this.#world.log.mark();
  }

  /**
   * Resolves with the first event that satisfies the predicate. Past events count too; with `since` (a `mark()`) only
   * later ones.
   * @param {(event: import("./types.mjs").ProviderEvent) => unknown} predicate
   * @param {{timeoutMs?: number, since?: number}} [options]
   */
  waitFor(predicate, options) {
    return this.#world.log.waitFor(predicate, options);
  }

  /**
   * Resolves when a sandbox is in a state: at once if it is now. With `since`, when it has been in it after that mark.
   * @param {string} id
   * @param {Status} status
   * @param {{timeoutMs?: number, since?: number}} [options]
   * @returns {Promise<void>}
   */
  async waitForState(id, status, options = {}) {
    if (options.since === undefined && this.#world.sandboxes.all.get(id)?.status === status) return;
    await this.waitFor((event) => event.type === "sandbox:state" && event.id === id && event.to === status, {
      since: this.mark(),
      ...options,
    });
  }

  /**
   * Waits until a request of a route has come in.
   * @param {string} route
   * @param {{timeoutMs?: number, since?: number}} [options]
   * @returns {Promise<import("./types.mjs").RequestEntry>}
   */
  async waitForRequest(route, options) {
    const event = await this.waitFor((one) => one.type === "request:start" && one.request.route === route, options);
    return /** @type {import("./types.mjs").RequestEvent} */ (event).request;
  }

  /**
   * @param {import("./types.mjs").ProviderEvent["type"]|"event"} event
   * @param {(event: any) => void} listener
   */
  on(event, listener) {
    this.#world.log.on(event, listener);
    return this;
  }

  /**
   * @param {import("./types.mjs").ProviderEvent["type"]|"event"} event
   * @param {(event: any) => void} listener
   */
  off(event, listener) {
    this.#world.log.off(event, listener);
    return this;
  }

  /** What the guest, or fate, does to a sandbox behind the client's back (section 6). */
  get guest() {
    const store = this.#world.sandboxes;
    const one = (/** @type {string} */ id) => {
      const sandbox = store.all.get(id);
      if (sandbox === undefined) throw new Error(`No sandbox ${id}.`);
      return sandbox;
    };
    return {
      delete: (/** @type {string} */ id) => void store.destroy(one(id)),
      pause: (/** @type {string} */ id) => void store.pause(one(id)),
      resume: (/** @type {string} */ id) => void store.resume(one(id)),
      crash: (/** @type {string} */ id) => void store.apply(one(id), "crash"),
      fail: (/** @type {string} */ id) => void store.apply(one(id), "fail"),
      /** Lets a sandbox that a fault left stuck in `pausing`, `resuming` or `creating` go on. */
      unstick: (/** @type {string} */ id) => void store.unstick(one(id)),
    };
  }

  /** Managed processes of a sandbox, as the API shows them. @param {string} id */
  processes(id) {
    return [...(this.#world.sandboxes.all.get(id)?.processes.values() ?? [])].map((one) => one.view());
  }

  /** Drops every connection, without closing the provider. */
  dropConnections() {
    this.#server.closeAllConnections();
  }

  /** Process groups that may be alive. */
  #groups() {
    const store = this.#world.sandboxes;
    return [...store.all.values()].flatMap((sandbox) => [...store.membership(sandbox, true).leaders]);
  }

  /** The last chance when the process ends without `close`; the watchdog finishes what this cannot wait for. */
  endNow() {
    signalAll({ token: this.runToken, leaders: this.#groups() }, "SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Ends every process, removes every directory, closes every connection. */
  close() {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close() {
    this.#world.faults.clear();
    const stopped = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    const live = [...this.#world.sandboxes.all.values()].filter((one) => one.status !== "destroyed");
    await Promise.all(live.map((sandbox) => this.#world.sandboxes.erase(sandbox)));
    await killAll({ token: this.runToken, leaders: [] });
    await rm(this.#world.base, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
    await this.#world.watchdog.dismiss();
    await stopped;
    open.delete(this);
    if (open.size === 0) process.off("exit", endAll);
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}

/** @param {ProviderOptions["apiKeys"]} apiKeys @returns {Map<string, string>} */
function parseKeys(apiKeys) {
  if (apiKeys === undefined) return new Map([[`skp_${randomBytes(16).toString("hex")}`, "user-1"]]);
  if (Array.isArray(apiKeys)) return new Map(apiKeys.map((key, index) => [key, `user-${index + 1}`]));
  return new Map(Object.entries(apiKeys));
}

/**
 * Starts a provider on a free loopback port.
 * @param {ProviderOptions} [options]
 * @returns {Promise<Provider>}
 */
export async function startProvider(options = {}) {
  const base = await mkdtemp(path.join(await realpath(tmpdir()), "createos-provider-"));
  const run = `createos-run-${randomBytes(12).toString("hex")}`;
  const log = new EventLog(options.logLimit ?? 100_000);
  const world = /** @type {import("./world.mjs").World} */ ({
    base,
    token: (sandbox, process) => `${run}/${sandbox}/${process === undefined ? "" : `${process}/`}`,
    watchdog: new Watchdog(run, base),
    // The variable forces the fallback for a whole test run.
    isolation: chooseIsolation(
      options.isolation ?? /** @type {ProviderOptions["isolation"]} */ (process.env["PROVIDER_ISOLATION"]) ?? "auto",
    ),
    log,
    faults: new Faults(),
    switches: { ...defaultSwitches, ...options.switches },
    delays: { create: 0, pause: 0, resume: 0, destroy: 0, ...options.delays },
    keys: parseKeys(options.apiKeys),
    heartbeatMs: options.heartbeatMs ?? 5000,
    journalBytes: options.journalBytes ?? 1024 * 1024,
    frameBytes: options.frameBytes ?? 32 * 1024,
    fileLimitBytes: options.fileLimitBytes ?? 500 * 1024 * 1024,
    autoPauseScale: options.autoPauseScale ?? 1,
    pollAfterSeconds: options.pollAfterSeconds ?? 1,
    region: options.region ?? "eu",
    synthetic: options.synthetic,
  });
  world.sandboxes = new SandboxStore(world);
  world.sandboxes.on("state", (sandbox, from) => {
    log.record({ type: "sandbox:state", id: sandbox.id, from, to: sandbox.status, at: performance.now() });
  });
  const rate = options.rateLimit ? new RateLimit(options.rateLimit) : undefined;
  const server = createServer(world, rate);
  await new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  return new Provider(world, server, rate, run);
}
