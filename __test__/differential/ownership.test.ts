import fc from "fast-check";
import { test } from "vitest";
import { guards, hostileGuards, releaseChecks, trackChecks } from "./guards.js";
import { runs } from "./runs.js";
import { loadSubject } from "./subject.js";

const subject = loadSubject();

test("track refuses the same parameters for the same reason after the same reads", { timeout: 600_000 }, async () => {
  await fc.assert(trackChecks(subject), runs(10_000));
});

test("release refuses the same parameters for the same reason after the same reads", { timeout: 600_000 }, async () => {
  await fc.assert(releaseChecks(subject), runs(5_000));
});

test("the guards agree about every lease", { timeout: 600_000 }, () => {
  fc.assert(guards(subject), runs(5_000));
});

test("no guard throws, even at objects that throw at every touch", { timeout: 600_000 }, () => {
  fc.assert(hostileGuards(subject), runs(200));
});
