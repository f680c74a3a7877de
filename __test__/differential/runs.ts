// How often properties run and from which seed, in one place.

const seed = Number(process.env.DIFFERENTIAL_SEED ?? Date.now() % 2 ** 31);
const factor = Number(process.env.DIFFERENTIAL_RUNS ?? 100) / 100;
let announced = false;

/**
 * Parameters for `fc.assert`. `runs` is the count at DIFFERENTIAL_RUNS=100, the default, which keeps the folder below a
 * minute; DIFFERENTIAL_RUNS=1000 runs everything ten times as often. DIFFERENTIAL_SEED repeats a run.
 */
export function runs(count: number): { seed: number; numRuns: number } {
  if (!announced) console.info(`differential seed ${seed}, runs at ${factor * 100} %`);
  announced = true;
  return { seed, numRuns: Math.max(1, Math.round(count * factor)) };
}
