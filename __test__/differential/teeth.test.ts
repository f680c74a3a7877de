// Proves that the properties notice faults: each mutant of the reference has to fail the property that is named for it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addresses, configReads, keys, parsing } from "./configurations.js";
import { guards, hostileGuards, releaseChecks, trackChecks } from "./guards.js";
import { histories } from "./histories.js";
import { makeSubject, MUTANTS, type Property } from "./mutants.js";
import { runs } from "./runs.js";
import type { Subject } from "./subject.js";

const { seed } = runs(1);
// Histories take their time, so that a run has a third of their mutants, another one with another seed.
const THIRDS = process.env.DIFFERENTIAL_TEETH === "all" ? [0, 1, 2] : [seed % 3];
// Only histories can hang, and only when something is wrong, which is all that this file asks.
const HANGS_AFTER_MS = 1_000;

const PROPERTIES: Record<Property, (subject: Subject) => fc.IRawProperty<unknown>> = {
  parsing,
  addresses,
  configReads,
  keys,
  trackChecks,
  releaseChecks,
  guards,
  hostileGuards,
  histories: (subject) => histories(subject, HANGS_AFTER_MS),
};

async function fails(subject: Subject, property: Property, numRuns: number): Promise<boolean> {
  const { failed } = await fc.check(PROPERTIES[property](subject), { seed, numRuns, endOnFailure: true });
  return failed;
}

describe.each(Object.keys(PROPERTIES) as Property[])("%s", (property) => {
  test("passes a second copy of the reference", { timeout: 600_000 }, async () => {
    expect(await fails(await makeSubject(null), property, 30)).toBe(false);
  });

  const all = MUTANTS.filter((mutant) => mutant.noticedBy === property);
  const faults = property === "histories" ? all.filter((_, index) => THIRDS.includes(index % 3)) : all;
  // Histories mostly wait for a provider, so that they can do so side by side; the others keep the thread busy.
  const each = property === "histories" ? test.concurrent.each(faults) : test.each(faults);
  each("notices that $name", { timeout: 600_000 }, async (mutant) => {
    expect(await fails(await makeSubject(mutant), property, property === "histories" ? 3_000 : 30_000)).toBe(true);
  });
});
