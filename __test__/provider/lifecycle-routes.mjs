// Handlers of the sandbox calls: the provider contract, sections 4, 7, 11 and 12.

import { HttpFailure } from "./reply.mjs";
import { isTerminal, statuses } from "./state.mjs";
import {
  createdView,
  parseAutoPause,
  parseCreate,
  parseEgress,
  parseEnvs,
  parseStrings,
  sandboxView,
} from "./view.mjs";

/** @typedef {import("./types.mjs").Context} Context */
/** @typedef {import("./types.mjs").Reply} Reply */
/** @typedef {import("./world.mjs").World} World */
/** @typedef {import("./sandboxes.mjs").Sandbox} Sandbox */

/** @param {World} world @param {Context} context */
function find(world, { params, owner }) {
  return world.sandboxes.find(params["id"] ?? "", owner);
}

/**
 * Page of a list, doubly nested (section 4).
 * @param {any[]} rows
 * @param {URLSearchParams} query
 */
export function page(rows, query) {
  const number = (/** @type {string} */ name, /** @type {number} */ otherwise) => {
    const text = query.get(name);
    if (text === null || text === "") return otherwise;
    const value = Number(text);
    if (!Number.isInteger(value) || value < 0)
      throw new HttpFailure(400, "must be a non-negative integer", { field: name });
    return value;
  };
  const limit = Math.min(number("limit", 50) || 50, 500);
  const offset = number("offset", 0);
  const data = rows.slice(offset, offset + limit);
  return { data, pagination: { total: rows.length, limit, offset, count: data.length } };
}

/** @param {World} world */
function requireCredit(world) {
  if (!world.switches.credit) throw new HttpFailure(402, "no credit");
}

/** @param {World} world @param {Context} context @returns {Promise<Reply>} */
export async function create(world, { body, owner, effects }) {
  requireCredit(world);
  const settings = parseCreate(body, world.region);
  if (world.sandboxes.nameTaken(owner, settings.name)) throw new HttpFailure(409, "name is in use", { field: "name" });
  const started = performance.now();
  const sandbox = await world.sandboxes.add(owner, settings, "creating");
  await world.sandboxes.startGuest(sandbox);
  sandbox.stuck = effects.some((effect) => effect.type === "stuck");
  if (sandbox.stuck) return { data: createdView(sandbox, world.switches) };
  if (world.delays.create > 0) await new Promise((resolve) => setTimeout(resolve, world.delays.create));
  if (sandbox.status === "creating") {
    settings.spawn_ms = performance.now() - started;
    world.sandboxes.apply(sandbox, "booted");
  }
  return { data: createdView(sandbox, world.switches) };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function list(world, { query, owner }) {
  const status = query.get("status");
  if (status && !statuses.includes(/** @type {any} */ (status)))
    throw new HttpFailure(400, "unknown status", { field: "status" });
  const rows = [...world.sandboxes.all.values()].filter(
    (one) =>
      one.owner === owner &&
      (!status || one.status === status) &&
      !(one.status === "destroyed" && world.switches.destroyedIs404),
  );
  const { data, pagination } = page(rows, query);
  return { data: { data: data.map((one) => sandboxView(one)), pagination } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function get(world, context) {
  const sandbox = find(world, context);
  const old = sandbox.oldState;
  if (old !== undefined && old.reads > 0) {
    old.reads -= 1;
    return { data: sandboxView(sandbox, old.status) };
  }
  return { data: sandboxView(sandbox) };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function byIp(world, { params, owner }) {
  for (const sandbox of world.sandboxes.all.values()) {
    if (sandbox.owner === owner && sandbox.settings.ip === params["ip"] && !isTerminal(sandbox.status))
      return { data: sandboxView(sandbox) };
  }
  throw new HttpFailure(404, "sandbox not found", { field: "ip" });
}

/**
 * Accepts a transition, with the faults that concern it.
 * @param {World} world
 * @param {Context} context
 * @param {(sandbox: Sandbox) => import("./types.mjs").Status|undefined} act
 * @param {string} doing
 * @returns {Reply}
 */
function transition(world, context, act, doing) {
  const sandbox = find(world, context);
  const before = sandbox.status;
  const wasStuck = sandbox.stuck;
  sandbox.stuck = context.effects.some((effect) => effect.type === "stuck");
  const after = act(sandbox);
  // A refused or idle call leaves a transition that hangs as it is.
  if (after === undefined || after === before) sandbox.stuck = wasStuck;
  if (after === undefined) throw new HttpFailure(409, `cannot ${doing} while ${before}`, { field: "status" });
  if (after === before) return { status: 200, data: sandboxView(sandbox) };
  const echo = context.effects.find((effect) => effect.type === "oldState");
  sandbox.oldState = { status: before, reads: echo ? (echo.reads ?? 1) : world.switches.oldStateReads };
  return { status: 202, data: sandboxView(sandbox) };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function pause(world, context) {
  const reply = transition(world, context, (sandbox) => world.sandboxes.pause(sandbox), "pause");
  return reply.status === 202 ? { ...reply, headers: { "x-poll-after": String(world.pollAfterSeconds) } } : reply;
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function resume(world, context) {
  find(world, context);
  requireCredit(world);
  const fail = context.effects.some((effect) => effect.type === "resumeError");
  return transition(world, context, (sandbox) => world.sandboxes.resume(sandbox, { fail }), "resume");
}

/** @param {World} world @param {Context} context @returns {Promise<Reply>} */
export async function destroy(world, context) {
  // A repeated delete of what is gone succeeds even where reading it gives 404.
  const known = world.sandboxes.all.get(context.params["id"] ?? "");
  if (known?.owner === context.owner && known.status === "destroyed")
    return { data: { id: known.id, status: known.status } };
  const sandbox = find(world, context);
  await world.sandboxes.destroy(sandbox, { stuck: context.effects.some((effect) => effect.type === "stuck") });
  return { data: { id: sandbox.id, status: isTerminal(sandbox.status) ? "destroyed" : sandbox.status } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function patch(world, context) {
  const sandbox = find(world, context);
  if (isTerminal(sandbox.status)) throw new HttpFailure(409, `sandbox is ${sandbox.status}`, { field: "status" });
  const { ingress_enabled: ingress, auto_pause_after_seconds: seconds, disable_auto_pause: off } = context.body;
  const parsed = parseAutoPause(seconds);
  if (off === true && parsed !== undefined)
    throw new HttpFailure(400, "cannot set and disable auto-pause at once", { field: "disable_auto_pause" });
  if (typeof ingress === "boolean") sandbox.settings.ingress_enabled = ingress;
  if (off === true) sandbox.settings.auto_pause_after_seconds = undefined;
  else if (parsed !== undefined) sandbox.settings.auto_pause_after_seconds = parsed;
  world.sandboxes.touch(sandbox);
  return { data: sandboxView(sandbox) };
}

/** @param {World} world @param {Context} context @returns {Promise<Reply>} */
export async function fork(world, context) {
  const source = find(world, context);
  requireCredit(world);
  if (source.status !== "paused") throw new HttpFailure(409, `cannot fork while ${source.status}`, { field: "status" });
  const { body } = context;
  const settings = {
    ...parseCreate(
      { shape: source.settings.shape, rootfs: source.settings.rootfs, disk_mib: source.settings.disk_mib },
      world.region,
    ),
    egress: body["egress"] === undefined ? source.settings.egress : parseEgress(body["egress"]),
    envs: body["envs"] === undefined ? source.settings.envs : parseEnvs(body["envs"]),
    ssh_pubkeys:
      body["ssh_pubkeys"] === undefined
        ? source.settings.ssh_pubkeys
        : parseStrings(body["ssh_pubkeys"], "ssh_pubkeys"),
    ingress_enabled: body["ingress_enabled"] ?? source.settings.ingress_enabled,
    forked_from: source.id,
  };
  const copy = await world.sandboxes.add(context.owner, settings, "forking");
  await world.sandboxes.copyInto(source, copy, body["start_paused"] === true);
  return { data: sandboxView(copy) };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function getEgress(world, context) {
  const { id, settings } = find(world, context);
  return { data: { id, egress: settings.egress } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function putEgress(world, context) {
  const sandbox = find(world, context);
  if (isTerminal(sandbox.status) || sandbox.status === "destroying")
    throw new HttpFailure(409, `sandbox is ${sandbox.status}`, { field: "status" });
  sandbox.settings.egress = parseEgress(context.body["egress"]);
  return { data: { id: sandbox.id, egress: sandbox.settings.egress } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function bandwidth(world, context) {
  const { id, settings } = find(world, context);
  const quota = settings.quota_bytes;
  return { data: { id, quota_bytes: quota, used_bytes: 0, ingress_bytes: 0, remaining_bytes: quota, capped: false } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function recharge(world, context) {
  const sandbox = find(world, context);
  requireCredit(world);
  const add = context.body["add_bytes"];
  if (!Number.isInteger(add) || add <= 0)
    throw new HttpFailure(400, "must be a positive integer", { field: "add_bytes" });
  sandbox.settings.quota_bytes += add;
  return bandwidth(world, context);
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function sshKeys(world, context) {
  const { settings } = find(world, context);
  settings.ssh_pubkeys = [...new Set([...settings.ssh_pubkeys, ...parseStrings(context.body["keys"], "keys")])];
  return { data: { count: settings.ssh_pubkeys.length } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function resize(world, context) {
  const sandbox = find(world, context);
  const disk = context.body["disk_mib"];
  if (!Number.isInteger(disk) || disk < sandbox.settings.disk_mib)
    throw new HttpFailure(400, "a disk can only grow", { field: "disk_mib" });
  sandbox.settings.disk_mib = disk;
  return { data: { id: sandbox.id, disk_mib: disk } };
}

/** @param {World} world @param {Context} context @returns {Reply} */
export function whoami(world, { owner }) {
  const mine = [...world.sandboxes.all.values()].filter((one) => one.owner === owner && one.status !== "destroyed");
  const running = mine.filter((one) => one.status === "running").length;
  const paused = mine.filter((one) => one.status === "paused").length;
  return {
    data: { user_id: owner, stats: { running, paused, other: mine.length - running - paused, total: mine.length } },
  };
}
