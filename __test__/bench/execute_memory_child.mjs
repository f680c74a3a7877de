// The reader of execute_memory.mjs: warms up with one small command, then tells its RSS before and during a large one.
import { setTimeout as pause } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import { LeaseDriver } from "../../index.js";
import { checkResult, commandIn } from "./execute_place.mjs";
import { discard } from "./execute_ways.mjs";

const SAMPLE_MS = 50;

const [, , manner, small, large] = process.argv;
const driver = new LeaseDriver();
let units = 0;

/** @type {Record<string, import("../../index.js").OnOutput|undefined>} */
const readers = {
  none: undefined,
  counts: (_, text) => {
    units += text.length;
  },
  // Far slower than the output comes.
  slow: async (_, text) => {
    units += text.length;
    await pause(1);
  },
};

/** @param {string|undefined} json */
async function read(json) {
  const place = JSON.parse(json ?? "");
  if (manner === "control") await discard(place);
  else checkResult(place.output, await driver.execute(commandIn(place), readers[manner ?? ""]));
}

await read(small);
// Twice, since what a promise still held the first time is not held any more the second.
for (let left = 2; left > 0; left -= 1) {
  globalThis.gc?.();
  await pause(SAMPLE_MS);
}
units = 0;
const resident = () => ({ rss: process.memoryUsage.rss(), heap: getHeapStatistics().total_physical_size });
const idle = resident();
const peak = { ...idle };
let samples = 0;
const sample = () => {
  const { rss, heap } = resident();
  peak.rss = Math.max(peak.rss, rss);
  peak.heap = Math.max(peak.heap, heap);
  samples += 1;
};
const timer = setInterval(sample, SAMPLE_MS);
await read(large);
clearInterval(timer);
sample();
process.send?.({ idle, peak, samples, units }, () => process.exit());
