// Sandbox paths on the host: the provider contract, section 10. A sandbox's root is a directory; absolute guest paths
// resolve below it the way a changed root would resolve them, so neither `..` nor a link leads out.

import { lstat, readlink } from "node:fs/promises";
import path from "node:path";

import { HttpFailure } from "./reply.mjs";

/** Directories every sandbox starts with. */
export const initialDirectories = ["paperclip-workspace", "tmp", "root", "home", "run", "var/tmp"];

/**
 * The host path of a guest path, links followed inside the root. What does not exist is kept as written.
 * @param {string} root
 * @param {unknown} guestPath
 * @returns {Promise<string>}
 */
export async function resolveInside(root, guestPath) {
  if (typeof guestPath !== "string" || !guestPath.startsWith("/") || guestPath.includes("\0")) {
    throw new HttpFailure(400, "path must be absolute", { field: "path" });
  }
  /** @type {string[]} */
  const pending = guestPath.split("/").reverse();
  /** @type {string[]} */
  const done = [];
  let links = 0;
  while (pending.length > 0) {
    const part = pending.pop();
    if (part === undefined || part === "" || part === ".") continue;
    if (part === "..") {
      done.pop();
      continue;
    }
    const here = path.join(root, ...done, part);
    const target = await linkTarget(here);
    if (target === undefined) {
      done.push(part);
      continue;
    }
    if (++links > 40) throw new HttpFailure(400, "too many links", { field: "path" });
    // Without namespaces a command may have written the host's name of the root into a link.
    const inner = target === root || target.startsWith(`${root}/`) ? target.slice(root.length) || "/" : target;
    if (inner.startsWith("/")) done.length = 0;
    pending.push(...inner.split("/").reverse());
  }
  return path.join(root, ...done);
}

/** @param {string} file @returns {Promise<string|undefined>} */
async function linkTarget(file) {
  try {
    return (await lstat(file)).isSymbolicLink() ? await readlink(file) : undefined;
  } catch {
    return undefined;
  }
}

const guestPrefix = /(^|[^\w.\-/])\/(paperclip-workspace|tmp|root)(?![\w.-])/g;

/**
 * The fallback without namespaces: guest prefixes inside a text become host paths. `/usr/tmp` and `/tmpfile` stay.
 * @param {string} root
 * @param {string} text
 */
export function rewritePrefixes(root, text) {
  return text.replace(guestPrefix, (_all, before, name) => `${before}${root}/${name}`);
}
