// File transfer: the provider contract, section 10. Uploads land under a temporary name and are renamed.

import { createReadStream, createWriteStream } from "node:fs";
import { chmod, mkdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { randomUUID } from "node:crypto";

import { resolveInside } from "./paths.mjs";
import { HttpFailure } from "./reply.mjs";

/** @typedef {import("./types.mjs").Reply} Reply */

/** @param {string} file */
async function kind(file) {
  try {
    return await stat(file);
  } catch {
    return undefined;
  }
}

/**
 * @param {import("./world.mjs").World} world
 * @param {import("./sandboxes.mjs").Sandbox} sandbox
 * @param {import("./types.mjs").Context} context
 * @returns {Promise<Reply>}
 */
export async function upload(world, sandbox, { query, req }) {
  const target = await resolveInside(sandbox.directory, query.get("path"));
  const existing = await kind(target);
  if (existing?.isDirectory()) throw new HttpFailure(400, "path is a directory", { field: "path" });
  const folder = path.dirname(target);
  const parent = await kind(folder);
  if (parent === undefined && world.switches.missingParent === "reject")
    throw new HttpFailure(400, "parent directory does not exist", { field: "path" });
  if (parent !== undefined && !parent.isDirectory())
    throw new HttpFailure(400, "parent is not a directory", { field: "path" });
  try {
    await mkdir(folder, { recursive: true });
  } catch {
    throw new HttpFailure(400, "parent is not a directory", { field: "path" });
  }
  const temporary = path.join(folder, `.upload-${randomUUID()}`);
  let received = 0;
  try {
    await pipeline(
      req,
      async function* (/** @type {AsyncIterable<Buffer>} */ source) {
        for await (const chunk of source) {
          received += chunk.length;
          // What is too much is read and dropped: a client that is cut off never sees the refusal.
          if (received <= world.fileLimitBytes) yield chunk;
        }
        if (received > world.fileLimitBytes) throw new HttpFailure(413, "file too large", { field: "file" });
      },
      createWriteStream(temporary, { mode: 0o644 }),
    );
    if (existing) await chmod(temporary, existing.mode & 0o7777);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return { data: { path: query.get("path"), bytes: received } };
}

/**
 * @param {import("./sandboxes.mjs").Sandbox} sandbox
 * @param {import("./types.mjs").Context} context
 * @returns {Promise<Reply>}
 */
export async function download(sandbox, { query }) {
  const file = await resolveInside(sandbox.directory, query.get("path"));
  const found = await kind(file);
  if (found === undefined) throw new HttpFailure(404, "file not found", { field: "path" });
  if (!found.isFile()) throw new HttpFailure(400, "not a regular file", { field: "path" });
  return {
    headers: { "content-type": "application/octet-stream", "content-length": String(found.size) },
    async stream(sink) {
      if (found.size === 0) return;
      for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024, end: found.size - 1 }))
        await sink.write(chunk);
    },
  };
}
