// Puts a reply on the wire: complete bodies with a length, streams with backpressure, and the faults of slow or cut
// bodies.

import { ConnectionTaken } from "./fault-effects.mjs";
import { success } from "./reply.mjs";

/** @typedef {import("./types.mjs").Sink} Sink */

/**
 * @param {import("./types.mjs").Context} context
 * @param {import("./types.mjs").Reply} reply
 */
export async function send(context, reply) {
  const { res, entry, effects } = context;
  const status = reply.status ?? 200;
  entry.status = status;
  if (context.signal.aborted) return;
  const raw = reply.stream ? undefined : Buffer.from(reply.raw ?? success(reply.data));
  res.statusCode = status;
  if (raw !== undefined && reply.raw === undefined) res.setHeader("content-type", "application/json");
  for (const [name, value] of Object.entries(reply.headers ?? {})) res.setHeader(name, value);
  if (raw !== undefined && status !== 204) res.setHeader("content-length", raw.length);
  res.flushHeaders();

  const sink = shape(context, effects);
  try {
    if (reply.stream) await reply.stream(sink);
    else if (raw !== undefined && raw.length > 0 && status !== 204) await sink.write(raw);
  } catch (error) {
    // The head is out: breaking the connection off is all that is left to say.
    if (!(error instanceof ConnectionTaken)) context.cut();
    return;
  }
  if (context.signal.aborted) return;
  await new Promise((/** @type {(value: void) => void} */ resolve) => {
    res.once("close", resolve);
    res.end(resolve);
  });
}

/**
 * @param {import("./types.mjs").Context} context
 * @param {import("./faults.mjs").Effect[]} effects
 * @returns {Sink}
 */
function shape(context, effects) {
  const { res, signal } = context;
  /** @param {Buffer|string} chunk */
  const put = async (chunk) => {
    if (signal.aborted || res.write(chunk)) return;
    await new Promise((/** @type {(value: void) => void} */ resolve) => {
      const finish = () => {
        res.off("drain", finish);
        signal.removeEventListener("abort", finish);
        resolve();
      };
      res.on("drain", finish);
      signal.addEventListener("abort", finish);
    });
  };
  /** @param {Buffer} chunk */
  const flush = (chunk) =>
    new Promise((/** @type {(value: void) => void} */ resolve) => {
      if (signal.aborted) resolve();
      else res.write(chunk, () => resolve());
    });

  const slow = effects.find((effect) => effect.type === "slowBody");
  const cut = effects.find((effect) => effect.type === "cutBody");
  if (slow === undefined && cut === undefined) return { write: put, flush, signal };

  let left = cut?.after ?? Infinity;
  /** @param {Buffer|string} chunk */
  const write = async (chunk) => {
    const bytes = Buffer.from(chunk);
    const step = slow?.bytes ?? (slow ? 1 : bytes.length);
    for (let at = 0; at < bytes.length && !signal.aborted; at += step) {
      const part = bytes.subarray(at, Math.min(at + step, at + left));
      left -= part.length;
      if (part.length > 0) await flush(part);
      if (left <= 0) {
        context.cut();
        throw new ConnectionTaken();
      }
      if (slow) await new Promise((resolve) => setTimeout(resolve, slow.everyMs ?? 10));
    }
  };
  return { write, flush: write, signal };
}
