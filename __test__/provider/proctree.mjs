// Which operating system processes belong to a sandbox or to a managed process, and signals to all of them.
//
// Membership is found through /proc, since a child may leave its group with setsid: an environment token that every
// command inherits, the process group and session of the leader, descendants of any member, and for a whole sandbox its
// root, or without a root of its own the working directory. Without /proc only the process groups are left.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * @typedef {object} Membership
 * @property {string} token text to look for in the environment
 * @property {Iterable<number>} leaders process groups (and sessions) that belong
 * @property {string|undefined} [root] whoever has this root directory belongs
 * @property {string|undefined} [folder] whoever works below this directory belongs
 * @property {Iterable<number>} [except] processes that do not count
 */

/** @typedef {{pid: number, parent: number, group: number, session: number, state: string}} Stat */

/** @returns {Stat[]} live processes; zombies are not alive */
function liveProcesses() {
  /** @type {Stat[]} */
  const all = [];
  for (const name of listProc()) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const text = read(`/proc/${name}/stat`)?.toString("latin1");
    if (text === undefined) continue;
    // The command may contain blanks and parentheses; the fields proper start after the last one.
    const [state = "X", parent, group, session] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || state === "X") continue;
    all.push({ pid, parent: Number(parent), group: Number(group), session: Number(session), state });
  }
  return all;
}

/** @param {Membership} membership @returns {Stat[]} */
export function members({ token, leaders, root, folder, except = [] }) {
  const groups = new Set(leaders);
  const skip = new Set(except);
  skip.add(process.pid);
  const live = liveProcesses();
  if (live.length === 0) {
    return [...groups].filter(groupAlive).map((pid) => ({ pid, parent: 0, group: pid, session: pid, state: "?" }));
  }
  const inside = new Set();
  for (const { pid, group, session, state } of live) {
    if (groups.has(group) || groups.has(session)) inside.add(pid);
    // Kernel threads and the like have an idle state and no environment; reading it is cheap enough to try them all.
    else if (state !== "I" && read(`/proc/${pid}/environ`)?.includes(token)) inside.add(pid);
    else if (root !== undefined && link(`/proc/${pid}/root`) === root) inside.add(pid);
    else if (folder !== undefined && link(`/proc/${pid}/cwd`)?.startsWith(`${folder}/`)) inside.add(pid);
  }
  for (let grew = true; grew;) {
    grew = false;
    for (const { pid, parent } of live) {
      if (inside.has(parent) && !inside.has(pid)) {
        inside.add(pid);
        grew = true;
      }
    }
  }
  return live.filter(({ pid }) => inside.has(pid) && !skip.has(pid));
}

/** @param {number} group */
function groupAlive(group) {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {number} pid negative for a group
 * @param {NodeJS.Signals} signal
 * @returns {boolean} whether there was anybody to signal
 */
export function send(pid, signal) {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Signals every member; repeats while new ones turn up, as a fork may race with the scan.
 * @param {Membership} membership
 * @param {NodeJS.Signals} signal
 */
export function signalAll(membership, signal) {
  const seen = new Set();
  for (let round = 0; round < 10; round += 1) {
    const fresh = members(membership).filter(({ pid }) => !seen.has(pid));
    if (fresh.length === 0) return;
    for (const { pid, group } of fresh) {
      seen.add(pid);
      if (!send(pid, signal)) send(-group, signal);
    }
  }
}

/**
 * Kills every member and waits until none is left.
 * @param {Membership} membership
 * @param {{timeoutMs?: number}} [options]
 * @returns {Promise<boolean>} false when some survived
 */
export async function killAll(membership, { timeoutMs = 10_000 } = {}) {
  const end = performance.now() + timeoutMs;
  // One in the middle of a fork or an exec escapes a scan: nobody twice in a row is the proof.
  for (let wait = 2, empty = 0; ; wait = Math.min(wait * 2, 50)) {
    const alive = members(membership);
    empty = alive.length === 0 ? empty + 1 : 0;
    if (empty >= 2) return true;
    if (performance.now() > end) return false;
    for (const { pid } of alive) send(pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function listProc() {
  try {
    return readdirSync("/proc");
  } catch {
    return [];
  }
}

/** @param {string} file */
function read(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

/** @param {string} file */
function link(file) {
  try {
    return readlinkSync(file);
  } catch {
    return undefined;
  }
}
