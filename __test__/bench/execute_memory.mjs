// How much memory a command's output takes while it passes, in a process of its own, which is nothing but the reader.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { ASCII, MIB, openPlace } from "./execute_place.mjs";

/**
 * What the reader does with output: it has asked for none, counts it, or takes a moment for each piece. The control is no
 * command but fetch.
 * @typedef {"control" | "none" | "counts" | "slow"} Manner
 */

/** @typedef {{rss: number, heap: number}} Resident bytes in all, and those of V8's heap */

/** @typedef {{idle: Resident, peak: Resident, samples: number, units: number}} Memory and what onOutput was given */

const child = fileURLToPath(new URL("execute_memory_child.mjs", import.meta.url));

/**
 * RSS before and while output passes.
 * @param {Manner} manner
 * @param {number} bytes
 * @returns {Promise<Memory>}
 */
export async function measureMemory(manner, bytes) {
  const output = { frameBytes: 32 * 1024, text: ASCII };
  // What one small command takes is there before and after.
  const [small, large] = await Promise.all([openPlace({ ...output, bytes: 8 * MIB }), openPlace({ ...output, bytes })]);
  try {
    const running = fork(child, [manner, JSON.stringify(small), JSON.stringify(large)], {
      execArgv: ["--expose-gc"],
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    /** @type {Promise<never>} */
    const failed = once(running, "exit").then(([code, signal]) => {
      throw new Error(`The reader ended with ${signal ?? code} before it told its memory.`);
    });
    const [memory] = await Promise.race([once(running, "message"), failed]);
    failed.catch(() => {});
    return memory;
  } finally {
    await Promise.all([small.close(), large.close()]);
  }
}
