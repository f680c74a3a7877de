import fc from "fast-check";
import { test } from "vitest";
import { addresses, configReads, keys, parsing } from "./configurations.js";
import { runs } from "./runs.js";
import { loadSubject } from "./subject.js";

const subject = loadSubject();

test("a configuration is parsed, or refused with the same message, whatever its fields hold", { timeout: 600_000 }, () => {
  fc.assert(parsing(subject), runs(20_000));
});

test("an API URL is accepted and normalised as the platform's URL does it", { timeout: 600_000 }, () => {
  fc.assert(addresses(subject), runs(20_000));
});

test("every field of a configuration is read once, in the same order, before the first is checked", { timeout: 600_000 }, () => {
  fc.assert(configReads(subject), runs(3_000));
});

test("the API key and the scope key are the same for every config, environment and id", { timeout: 600_000 }, () => {
  fc.assert(keys(subject), runs(5_000));
});
