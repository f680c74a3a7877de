// What a command's output costs its reader, in one process: `execute` without and with an onOutput that only counts, on the
// same stream as the control, which is fetch whose bytes nobody looks at. The provider runs in another process and sends
// as fast as it is read. Then the plugin code that the package replaces, how long output keeps the event loop from its
// next turn, and what memory it takes.
//
//   node __test__/bench/execute.mjs            prints medians, best rounds and ratios, in MB of decoded output a second
//   node __test__/bench/execute.mjs --quick    the same with little output, for a look
//   node __test__/bench/execute.mjs --check    also fails below the floors, and above the ceilings, given here
//
// Not comparable: the replaced code keeps all output, and so is given less of it than V8's longest string holds. The text is
// ASCII except where it says otherwise, with which the control does not differ and whoever decodes does.
import process from "node:process";
import { measureDelay } from "./execute_delay.mjs";
import { measureMemory } from "./execute_memory.mjs";
import { ASCII, MIB, MIXED, openPlace } from "./execute_place.mjs";
import { discard, execute, executeWithOutput, replaced } from "./execute_ways.mjs";

const isQuick = process.argv.includes("--quick");
const isChecked = process.argv.includes("--check");

const ROUNDS = isQuick ? 3 : 7;
/** Others use the machine too: a ratio may fall short of its floor by so much. */
const SLACK = 0.85;
/** Milliseconds; the best of so many rounds has to keep within it. */
const LONGEST_DELAY = 20;
const DELAY_ROUNDS = 5;
const MOST_MEMORY = 32 * MIB;

const scale = isQuick ? 1 / 8 : 1;
const FRAME = 32 * 1024;
const SMALL_FRAME = 1024;

/** @typedef {{name: string, run: import("./execute_ways.mjs").Way, floor?: number}} Contender */

/**
 * @typedef {object} Load
 * @property {string} name
 * @property {import("./execute_place.mjs").Output} output
 * @property {number} [without] the least share of the control's speed without onOutput
 * @property {number} [with] the same with it
 */

/** @type {Load[]} */
const LOADS = [
  { name: "32 KiB frames", output: { bytes: 512 * MIB * scale, frameBytes: FRAME, text: ASCII }, without: 1, with: 0.7 },
  { name: "1 KiB frames", output: { bytes: 128 * MIB * scale, frameBytes: SMALL_FRAME, text: ASCII }, without: 0.5, with: 0.5 },
  { name: "32 KiB frames, a quarter not ASCII", output: { bytes: 256 * MIB * scale, frameBytes: FRAME, text: MIXED } },
];

/** @type {string[]} */
const faults = [];

/** @param {boolean} holds @param {string} what */
function expect(holds, what) {
  if (!holds) faults.push(what);
}

/** @param {number} bytes */
const mib = (bytes) => (bytes / MIB).toFixed(1);

/** @param {readonly number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

/**
 * Milliseconds of every round but the first, which warms up.
 * @param {readonly Contender[]} contenders
 * @param {import("./execute_place.mjs").Place} place
 */
async function compare(contenders, place) {
  /** @type {Map<string, number[]>} */
  const times = new Map(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    // Rotated, so that none always runs in the wake of the same other's garbage.
    const first = round % contenders.length;
    for (const { name, run } of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      const millis = await run(place);
      if (round > 0) times.get(name)?.push(millis);
    }
  }
  return times;
}

/**
 * @param {string} name
 * @param {number} bytes
 * @param {readonly number[]} times
 * @param {number} [control] what the control's median is
 */
function row(name, bytes, times, control) {
  const speed = (/** @type {number} */ millis) => (bytes / 1000 / millis).toFixed(0).padStart(5);
  const ratio = control === undefined ? "" : `   ${(control / median(times)).toFixed(2)} of control`;
  console.log(`  ${name.padEnd(26)} median ${speed(median(times))}   best ${speed(Math.min(...times))}${ratio}`);
}

/** @param {Load} load */
async function throughput({ name, output, ...floors }) {
  /** @type {Contender[]} */
  const contenders = [
    { name: "control: fetch, discarded", run: discard },
    { name: "execute", run: execute, ...(floors.without ? { floor: floors.without } : {}) },
    { name: "execute with onOutput", run: executeWithOutput, ...(floors.with ? { floor: floors.with } : {}) },
  ];
  console.log(`${name}, ${ROUNDS} rounds of ${output.bytes / MIB} MiB, MB/s decoded`);
  const place = await openPlace(output);
  const times = await compare(contenders, place);
  await place.close();
  const control = median(times.get(contenders[0]?.name ?? "") ?? []);
  for (const { name: way, floor } of contenders) {
    const own = times.get(way) ?? [];
    row(way, output.bytes, own, control);
    const share = control / median(own);
    if (floor) expect(share >= floor * SLACK, `${way}, ${name}: ${share.toFixed(2)} of control instead of ${floor}`);
  }
  // A sixteenth of it, in a place of its own.
  const less = { ...output, bytes: output.bytes / 16 };
  const small = await openPlace(less);
  const code = `replaced, ${less.bytes / MIB} MiB`;
  row(code, less.bytes, (await compare([{ name: code, run: replaced }], small)).get(code) ?? [], control / 16);
  await small.close();
}

async function delays() {
  const place = await openPlace({ bytes: 512 * MIB * scale, frameBytes: FRAME, text: ASCII });
  console.log(`event-loop delay at full stream, ms, the best of ${DELAY_ROUNDS} rounds and all maxima`);
  for (const { name, run, isOurs } of [
    { name: "control: fetch, discarded", run: discard, isOurs: false },
    { name: "execute", run: execute, isOurs: true },
    { name: "execute with onOutput", run: executeWithOutput, isOurs: true },
  ]) {
    const rounds = [];
    for (let round = 0; round < DELAY_ROUNDS; round += 1) rounds.push(await measureDelay(() => run(place)));
    // What the machine does to a process comes and goes; what the code does is there in every round.
    rounds.sort((a, b) => a.max - b.max);
    const [best] = rounds;
    if (best === undefined) throw new Error("No round.");
    const maxima = rounds.map(({ max }) => max.toFixed(1)).join(", ");
    console.log(`  ${name.padEnd(26)} max ${best.max.toFixed(1)}   p99 ${best.p99.toFixed(1)}   (${maxima})`);
    if (isOurs) expect(best.max < LONGEST_DELAY, `${name}: the event loop stood still for ${best.max.toFixed(1)} ms`);
  }
  await place.close();
}

async function memory() {
  const bytes = 4096 * MIB * (isQuick ? 1 / 16 : 1);
  console.log(`RSS above idle while ${bytes / MIB} MiB pass (past a slow onOutput: ${bytes / 16 / MIB}), MiB`);
  for (const [name, manner, total] of /** @type {const} */ ([
    ["control: fetch, discarded", "control", bytes],
    ["execute", "none", bytes],
    ["execute with onOutput", "counts", bytes],
    ["with a slow onOutput", "slow", bytes / 16],
  ])) {
    const { idle, peak, samples } = await measureMemory(manner, total);
    const more = mib(peak.rss - idle.rss);
    const heap = `V8's heap ${mib(peak.heap - idle.heap)} above its idle ${mib(idle.heap)}`;
    console.log(`  ${name.padEnd(26)} ${more.padStart(5)}   (idle ${mib(idle.rss)}; ${heap}; ${samples} samples)`);
    if (manner !== "control") expect(peak.rss - idle.rss <= MOST_MEMORY, `${name}: ${more} MiB above idle`);
  }
}

console.log(`Node ${process.versions.node}, ${process.arch}`);
for (const load of LOADS) await throughput(load);
await delays();
await memory();
if (isChecked && faults.length > 0) {
  for (const fault of faults) console.error(`Not good enough: ${fault}.`);
  process.exitCode = 1;
}
