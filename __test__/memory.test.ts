// A settled call leaves nothing behind (specification, section 4). Programs of their own measure their heap and RSS.
import { describe, expect, test } from "vitest";
import { runProgram, said } from "./support/programs.js";

const MIB = 1024 * 1024;

/**
 * Runs `round` 100,000 times after a warm-up, or as often as `quarter` says, in quarters, and says by how many bytes heap and RSS have grown: four times
 * the middle growth of a quarter, since a leak grows in each of them, and a collector's or an allocator's mood in one.
 */
const measure = (round: string, quarter = "25_000") => `
  const lease = require(packagePath);
  const driver = new lease.LeaseDriver();
  const shared = new AbortController().signal;
  require("node:events").setMaxListeners(0, shared);
  const round = async (index) => { ${round} };
  const run = async (count) => {
    for (let done = 0; done < count; done += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => round(done + index)));
    }
  };
  const settle = async () => {
    for (let left = 5; left > 0; left -= 1) {
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return process.memoryUsage();
  };
  (async () => {
    await run(20_000);
    const points = [await settle()];
    while (points.length < 5) {
      await run(${quarter});
      points.push(await settle());
    }
    const growth = (name) => {
      const quarters = points.slice(1).map((point, index) => point[name] - points[index][name]);
      quarters.sort((one, other) => one - other);
      return 2 * (quarters[1] + quarters[2]);
    };
    say({ heap: growth("heapUsed"), external: growth("external"), rss: growth("rss") });
  })();
`;

/** The young generation stays small: left to itself it grows with the load, and the RSS with it, once and for all. */
const FLAGS = ["--expose-gc", "--max-semi-space-size=2"];

/** Per call, what the old logic kept was some 500 bytes: 52 MB for as many calls. */
const HEAP_LIMIT = 1.5 * MIB;
const RSS_LIMIT = 8 * MIB;

describe("100,000 finished calls leave heap and RSS flat", () => {
  const rounds: [string, string, string?][] = [
    ["with the default timeout", "await driver.track(params(), () => index);"],
    ["each under a lease of its own", "await driver.track(params('sb-' + index), () => index);"],
    ["with a signal of the caller's for all", "await driver.track(params(), () => index, { signal: shared });"],
    ["each on a driver of its own", "await new lease.LeaseDriver().track(params(), () => index);", "5_000"],
    ["that reject", "await driver.track(params(), () => Promise.reject(index)).catch(() => {});"],
    ["that are refused", "await driver.track(params('', {}, { provider: 'e2b' }), () => index).catch(() => {});"],
    [
      "whose work used client and signal",
      "await driver.track(params(), (client, signal) => { signal.addEventListener('abort', () => {}); return client.config.shape; });",
    ],
  ];
  test.concurrent.each(rounds)("%s", { timeout: 120_000 }, async (_name, round, quarter) => {
    const outcome = await runProgram(measure(round, quarter), { flags: FLAGS, timeoutMs: 110_000 });
    const [{ heap, external, rss }] = said(outcome);
    expect(heap).toBeLessThan(HEAP_LIMIT);
    expect(external).toBeLessThan(HEAP_LIMIT);
    expect(rss).toBeLessThan(RSS_LIMIT);
  });
});

test("releases leave nothing behind either", { timeout: 60_000 }, async () => {
  const round = `
    const one = params("sb-" + index);
    const call = driver.track(one, (client, signal) => new Promise((resolve) => { signal.onabort = resolve; }));
    await driver.release(one);
    await call;
  `;
  const outcome = await runProgram(measure(round, "5_000"), {
    flags: FLAGS,
    timeoutMs: 55_000,
  });
  const [{ heap, external, rss }] = said(outcome);
  expect(heap).toBeLessThan(HEAP_LIMIT);
  expect(external).toBeLessThan(HEAP_LIMIT);
  expect(rss).toBeLessThan(RSS_LIMIT);
});

test("a settled call's client, signal and value can be collected while its deadline lies ahead", async () => {
  const outcome = await runProgram(
    `
    const lease = require(packagePath);
    const references = [];
    (async () => {
      // All at once, so that each has a place of its own, which none takes over.
      await Promise.all(Array.from({ length: 50 }, () => lease.track(params(), async (client, signal) => {
        const value = {};
        for (const one of [client, signal, value]) references.push(new WeakRef(one));
        return value;
      }, 86_400_000)));
      let alive = references.length;
      for (let round = 0; round < 50 && alive > 0; round += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        globalThis.gc();
        alive = references.filter((reference) => reference.deref() !== undefined).length;
      }
      say(alive);
    })();
  `,
    { flags: FLAGS },
  );
  // The last call's own may still be on the stack.
  expect(said(outcome)[0]).toBeLessThanOrEqual(3);
});

test("a driver that nobody holds can be collected, once its calls have settled", async () => {
  const outcome = await runProgram(
    `
    const lease = require(packagePath);
    const references = [];
    (async () => {
      for (let left = 20; left > 0; left -= 1) {
        const driver = new lease.LeaseDriver();
        driver.track(params(), () => left);
        references.push(new WeakRef(driver));
      }
      let alive = references.length;
      for (let round = 0; round < 50 && alive > 1; round += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        globalThis.gc();
        alive = references.filter((reference) => reference.deref() !== undefined).length;
      }
      say(alive);
    })();
  `,
    { flags: FLAGS },
  );
  expect(said(outcome)[0]).toBeLessThanOrEqual(1);
});
