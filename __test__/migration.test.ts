// A plugin whose lease logic is swapped for the package does what it did: one table of scenarios, run against both, and
// the deviations one by one, run against both as well.
import { afterEach, describe, expect, test, vi } from "vitest";
import { deviations } from "./migration/deviations.js";
import { Host, type Shape } from "./migration/host.js";
import { acquireScenarios } from "./migration/scenarios_acquire.js";
import { callScenarios } from "./migration/scenarios_call.js";
import { leaseScenarios } from "./migration/scenarios_lease.js";
import { provide } from "./support/providers.js";

const scenarios = [...acquireScenarios, ...leaseScenarios, ...callScenarios];
const SHAPES: Shape[] = ["before", "after"];

afterEach(() => vi.unstubAllEnvs());

describe.each(SHAPES)("with the lease logic of %s", (shape) => {
  test.each(scenarios)("$name", async ({ config, provider, run, outcome }) => {
    const host = await Host.load(shape, await provide(provider), config);
    expect(await run(host)).toStrictEqual(outcome);
  });
});

describe("on purpose different", () => {
  test.each(deviations)("section $section: $name", async ({ config, provider, run, before, after }) => {
    const old = await Host.load("before", await provide(provider), config);
    const swapped = await Host.load("after", await provide(provider), config);
    const [was, is] = await Promise.all([run(old, swapped), run(swapped, old)]);
    expect({ was, is }).toStrictEqual({ was: before, is: after });
  });
});
