// What one tracked call costs, in one process and on the same work: ours, the plain TypeScript reference, the logic that
// the package replaces (signals composed by AbortSignal.any and AbortSignal.timeout), and an AbortController alone, which
// is what no implementation can go below: on Node 20 it takes about as long as all the rest of ours.
//
//   npm run bench                prints medians, minima and ratios
//   npm run bench -- --check     also fails when ours takes more than a third of what it replaces, or more than the
//                                AbortController and a third of the rest of the reference
//
// Not compared: pacing and requests, since none is sent.
import { createRequire } from "node:module";
import * as reference from "../reference/index.js";
import * as replaced from "./replaced.js";

interface Contender {
  name: string;
  track(params: object, work: () => Promise<number>): Promise<number>;
}

const CALLS_PER_ROUND = 5_000;
const WARM_UP_ROUNDS = 4;
const ROUNDS = 24;
const LARGEST_SHARE = 1 / 3;

const params = {
  companyId: "company",
  environmentId: "environment",
  config: { apiUrl: "https://api.sb.createos.sh", shape: "s-1vcpu-1gb", apiKey: "key", timeoutMs: 300_000, reuseLease: true },
  lease: {
    providerLeaseId: "sb-01JZ0000000000000000000000",
    metadata: {
      provider: "createos",
      companyId: "company",
      environmentId: "environment",
      apiUrl: "https://api.sb.createos.sh",
    },
  },
};

function contenders(): Contender[] {
  const ours = createRequire(import.meta.url)("../../index.js") as typeof reference;
  return [
    { name: "replaced", track: (given, work) => replaced.track(given as Parameters<typeof replaced.track>[0], work) },
    { name: "reference", track: (given, work) => reference.track(given, work) },
    { name: "controller", track: async (_, work) => (new AbortController().signal.aborted ? 0 : await work()) },
    { name: "ours", track: (given, work) => ours.track(given, work) },
  ];
}

/** Microseconds for one call, and the sum of the results, which proves that the same work was done. */
async function round({ track }: Contender): Promise<{ micros: number; sum: number }> {
  let sum = 0;
  const began = process.hrtime.bigint();
  for (let call = 0; call < CALLS_PER_ROUND; call += 1) sum += await track(params, async () => 1);
  const micros = Number(process.hrtime.bigint() - began) / 1_000 / CALLS_PER_ROUND;
  return { micros, sum };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle - 0.5)] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

async function main(): Promise<void> {
  const all = contenders();
  const times = new Map(all.map(({ name }) => [name, [] as number[]]));
  for (let turn = 0; turn < WARM_UP_ROUNDS + ROUNDS; turn += 1) {
    // Rotated, so that neither always runs in the wake of the other's garbage.
    const order = [...all.slice(turn % all.length), ...all.slice(0, turn % all.length)];
    for (const contender of order) {
      const { micros, sum } = await round(contender);
      if (sum !== CALLS_PER_ROUND) throw new Error(`${contender.name} came to ${sum} instead of ${CALLS_PER_ROUND}.`);
      if (turn >= WARM_UP_ROUNDS) times.get(contender.name)?.push(micros);
    }
  }

  console.log(`await track(params, async () => 1), Node ${process.versions.node}, ${ROUNDS} rounds of ${CALLS_PER_ROUND} calls`);
  for (const [name, micros] of times) {
    console.log(`${name.padEnd(11)} median ${median(micros).toFixed(2)} µs   minimum ${Math.min(...micros).toFixed(2)} µs`);
  }
  const of = (name: string) => median(times.get(name) ?? []);
  const [ours, controller] = [of("ours"), of("controller")];
  const shares = { replaced: ours / of("replaced"), reference: ours / of("reference") };
  for (const [peer, share] of Object.entries(shares)) {
    console.log(`ours takes ${(100 * share).toFixed(1)} % of ${peer}, 1/${(1 / share).toFixed(1)}`);
  }
  const rest = (ours - controller) / (of("reference") - controller);
  console.log(`without the AbortController that each makes: ${(100 * rest).toFixed(1)} % of reference`);
  if (process.argv.includes("--check") && !(shares.replaced <= LARGEST_SHARE && rest <= LARGEST_SHARE)) {
    console.error("That is more than a third.");
    process.exitCode = 1;
  }
}

void main();
