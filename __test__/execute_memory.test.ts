// Section 9: however much a command prints, its reader's memory stays flat: a slow one slows the stream down.
import { expect, test } from "vitest";
import { measureMemory, type Manner } from "./bench/execute_memory.mjs";
import { ASCII, MIB } from "./bench/execute_place.mjs";

const MOST = 32 * MIB;

test.for<[what: string, manner: Manner, bytes: number]>([
  ["without onOutput", "none", 256 * MIB],
  ["with an onOutput that counts", "counts", 256 * MIB],
  ["with an onOutput whose promise takes its time", "slow", 128 * MIB],
])("%s, memory stays within 32 MiB while output passes", { timeout: 120_000 }, async ([, manner, bytes]) => {
  const { idle, peak, samples, units } = await measureMemory(manner, bytes);
  expect(samples).toBeGreaterThan(2);
  expect(units).toBe(manner === "none" ? 0 : (bytes * ASCII.length) / Buffer.byteLength(ASCII));
  expect(peak.rss - idle.rss).toBeLessThanOrEqual(MOST);
});
