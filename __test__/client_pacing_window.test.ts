// Section 6, pacing: at most 300 requests arrive in any rolling 60 s, first come, first served, whoever in the process makes
// them. Takes a minute.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { KEY } from "./support/http_package.js";
import { answer, serve, within } from "./support/http_server.js";

const LIMIT = 300;
const WINDOW_MS = 60_000;

test("320 requests of one process keep to the window, in order, without those that gave up", async () => {
  const other = await serve((_, res) => answer(res));
  const server = await serve(({ url = "" }, res) => {
    // The first ones end one by one, so that their places come free one by one, and the order can be told.
    if (url.startsWith("/v1/slow/")) setTimeout(answer, 60, res);
    else answer(res);
  });
  const child = spawn(process.execPath, [path.join(__dirname, "support/http_many.cjs"), server.origin, other.origin, KEY], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const told: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => told.push(line));
  const exit = new Promise((resolve) => child.once("exit", resolve));

  await server.requests.count(LIMIT, "the first 300", 20_000);
  const burst = server.requests.all.slice(20, LIMIT);
  expect((burst.at(-1)?.at ?? NaN) - (burst[0]?.at ?? NaN)).toBeLessThan(5_000);
  expect(await within(exit, "the child's end", 90_000)).toBe(0);

  const arrivals = server.requests.all.map(({ at }) => at).sort((a, b) => a - b);
  expect(arrivals.length).toBe(320);
  for (let last = LIMIT; last < arrivals.length; last += 1) {
    expect((arrivals[last] ?? NaN) - (arrivals[last - LIMIT] ?? NaN)).toBeGreaterThanOrEqual(WINDOW_MS);
  }
  // And no longer than need be: the places come free as the first requests leave the window.
  expect((arrivals.at(-1) ?? NaN) - (arrivals[19] ?? NaN)).toBeLessThan(WINDOW_MS + 1_500);

  const queued = server.requests.all.slice(LIMIT).map(({ url }) => url.slice("/v1/".length));
  expect(queued).toEqual(Array.from({ length: 20 }, (_, index) => `queued/${index}`));
  expect(told).toContain("aborted 0 enough");
  expect(told).toContain("aborted 1 enough");
  expect(told.filter((line) => line.startsWith("failed"))).toEqual([]);
  // Another origin was asked while this one was full.
  expect(other.requests.length).toBe(1);
  expect(other.requests.all[0]?.at).toBeLessThan((burst.at(-1)?.at ?? NaN) + 5_000);
}, 120_000);
