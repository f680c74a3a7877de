import fc from "fast-check";
import { test } from "vitest";
import { histories } from "./histories.js";
import { runs } from "./runs.js";
import { loadSubject } from "./subject.js";

const subject = loadSubject();

test("calls, releases and shutdowns come to the same end in the same order", { timeout: 1_200_000 }, async () => {
  await fc.assert(histories(subject), runs(300));
});
