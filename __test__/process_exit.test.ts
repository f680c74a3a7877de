// What keeps a process alive and what does not, and how abruptly one may end (specification, section 4 and 5). Each program
// runs in a process of its own.
import { describe, expect, test } from "vitest";
import { provide, makeSandbox } from "./support/providers.js";
import { runProgram, said } from "./support/programs.js";

/** A program that would wait for something longer than this hangs on it. */
const PROMPT_MS = 8000;

const ended = { code: 0, signal: null, stderr: "" };

describe.concurrent("does not keep the process alive", () => {
  const programs: [string, string][] = [
    ["the loaded package", ""],
    ["a pending deadline", "lease.track(params(), never, 86_400_000);"],
    [
      "pending deadlines of every length",
      "for (let i = 1; i <= 1000; i += 1) lease.track(params(), never, i * 60_000);",
    ],
    ["a settled call's deadline", "lease.track(params(), () => 1, 86_400_000).then(say);"],
    ["a caller's signal", "lease.track(params(), never, { signal: new AbortController().signal });"],
    ["a release that is over", "lease.release(params()).then(() => say('over'));"],
    ["a shutdown that is over", "lease.shutdown().then(() => say('over'));"],
    ["many drivers", "for (let i = 0; i < 100; i += 1) new lease.LeaseDriver().track(params(), never);"],
    ["a client", "new lease.CreateosClient(params().config);"],
    ["a deadline that has passed", "lease.track(params(), never, 1); setTimeout(() => say('passed'), 50);"],
  ];
  test.each(programs)("%s", async (_name, program) => {
    const outcome = await runProgram(`const lease = require(packagePath);\n${program}`);
    expect(outcome).toMatchObject(ended);
    expect(outcome.elapsedMs).toBeLessThan(PROMPT_MS);
  });

  test("the connection of a request that is over", async ({ onTestFinished }) => {
    const provider = await provide({}, { onTestFinished });
    const outcome = await runProgram(`
      const lease = require(packagePath);
      const config = { apiUrl: ${JSON.stringify(provider.url)}, apiKey: ${JSON.stringify(provider.apiKey)} };
      lease.release(params("sb-none", config), true).then(() => say("over"));
    `);
    expect(outcome).toMatchObject(ended);
    expect(said(outcome)).toEqual(["over"]);
    expect(outcome.elapsedMs).toBeLessThan(PROMPT_MS);
  });
});

describe.concurrent("keeps the process alive until it is done", () => {
  test("a release that waits for its provider, though nothing else does", async ({ onTestFinished }) => {
    const provider = await provide({}, { onTestFinished });
    const id = await makeSandbox(provider);
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "delay", ms: 300 } });
    const outcome = await runProgram(`
      const lease = require(packagePath);
      process.on("beforeExit", () => say("idle"));
      const config = { apiUrl: ${JSON.stringify(provider.url)}, apiKey: ${JSON.stringify(provider.apiKey)} };
      lease.release(params(${JSON.stringify(id)}, config), true).then(() => say("released"));
    `);
    expect(outcome).toMatchObject(ended);
    expect(said(outcome)).toEqual(["released", "idle"]);
    await provider.waitForState(id, "destroyed");
  });

  test("a release that waits for a call whose work holds nothing, until its bound", async ({ onTestFinished }) => {
    const provider = await provide({}, { onTestFinished });
    const id = await makeSandbox(provider);
    const outcome = await runProgram(`
      const lease = require(packagePath);
      const config = { apiUrl: ${JSON.stringify(provider.url)}, apiKey: ${JSON.stringify(provider.apiKey)} };
      lease.track(params(${JSON.stringify(id)}, { ...config, timeoutMs: 1 }), never, 60_000);
      lease.release(params(${JSON.stringify(id)}, config), true).then(() => say("released"));
    `);
    expect(outcome).toMatchObject(ended);
    expect(said(outcome)).toEqual(["released"]);
    expect(outcome.elapsedMs).toBeGreaterThan(5000);
    await provider.waitForState(id, "destroyed");
  });

  test("an acquisition", async ({ onTestFinished }) => {
    const provider = await provide({}, { onTestFinished });
    const outcome = await runProgram(`
      const lease = require(packagePath);
      const config = { apiUrl: ${JSON.stringify(provider.url)}, apiKey: ${JSON.stringify(provider.apiKey)} };
      new lease.LeaseDriver().acquire(params("", config)).then(({ providerLeaseId }) => say(providerLeaseId));
    `);
    expect(said(outcome)).toEqual([provider.sandboxes[0]?.id]);
  });
});

describe.concurrent("ends at once, in good order", () => {
  const inFlight = (url: string) => `
    const lease = require(packagePath);
    const config = { apiUrl: ${JSON.stringify(url)} };
    for (let i = 0; i < 100; i += 1) {
      lease.track(params("sb-" + i, config), (client, signal) => client.getSandbox("sb-" + i, signal), 1 + i).catch(() => {});
      lease.track(params("sb-x" + i, config), never, 1 + i);
      lease.release(params("sb-y" + i, config), true).catch(() => {});
    }
  `;
  const ends: [string, string, number][] = [
    ["process.exit in the same tick", "process.exit(3);", 3],
    ["process.exit a few turns later", "setTimeout(() => process.exit(4), 20);", 4],
    ["process.exit while deadlines pass", "setTimeout(() => process.exit(5), 60);", 5],
    ["process.exit from an abort listener", "lease.track(params(), (c, s) => { s.onabort = () => process.exit(6); return never(); }, 5);", 6],
    ["process.exit from work", "lease.track(params(), () => process.exit(7));", 7],
    ["an uncaught exception", "setTimeout(() => { throw new Error('on purpose'); }, 20);", 1],
  ];
  test.for(ends)("%s, with calls and requests in flight", async ([_name, end, code], { onTestFinished }) => {
    const provider = await provide({}, { onTestFinished });
    provider.faults.add({ effect: { type: "hold" } });
    const outcome = await runProgram(inFlight(provider.url) + end);
    expect(outcome).toMatchObject({ code, signal: null });
    expect(outcome.elapsedMs).toBeLessThan(PROMPT_MS);
  });
});

test("an exception of an abort listener is the process's, as the platform has it, and does not stop the release", async () => {
  const outcome = await runProgram(`
    const lease = require(packagePath);
    process.on("uncaughtException", (error) => say(error.message));
    for (const name of ["first", "second"]) {
      lease.track(params(), (client, signal) => new Promise((resolve) => {
        signal.addEventListener("abort", () => { resolve(name); throw new Error(name); });
      })).then(say);
    }
    lease.release(params()).then(() => say("released"));
  `);
  expect(said(outcome).toSorted()).toEqual(["first", "first", "released", "second", "second"]);
});

test("no rejection is left to the process that the caller has handled", async () => {
  const provider = await provide();
  provider.faults.add({ effect: { type: "status", status: 500 } });
  const outcome = await runProgram(`
    const lease = require(packagePath);
    process.on("unhandledRejection", (reason) => say(String(reason)));
    const config = { apiUrl: ${JSON.stringify(provider.url)} };
    const quiet = (promise) => promise.catch(() => {});
    const driver = new lease.LeaseDriver();
    const controller = new AbortController();
    const fail = () => Promise.reject(new Error("handled"));
    for (const work of [fail, () => { throw new Error("handled"); }, 1, (client) => client.getSandbox("sb-1")]) {
      quiet(driver.track(params("sb-1", config), work));
      quiet(driver.track(params("sb-1", config), work, { signal: controller.signal, timeoutMs: 5 }));
      quiet(driver.track(params("sb-1", config), work, { signal: AbortSignal.abort(new Error("handled")) }));
    }
    quiet(driver.track(params("sb-1", config), (client, signal) => new Promise((_, reject) => { signal.onabort = () => reject(signal.reason); })));
    controller.abort(new Error("handled"));
    quiet(driver.release(params("sb-1", config), true));
    quiet(driver.release(params("sb-1", config), true));
    quiet(driver.acquire(params("sb-1", config)));
    quiet(driver.shutdown().then(fail));
  `);
  expect(outcome).toMatchObject({ ...ended, stdout: "" });
});

test("an exception of a deadline's abort listener is the process's, too, and stops no other deadline", async () => {
  const outcome = await runProgram(`
    const lease = require(packagePath);
    const alive = setInterval(() => {}, 1000);
    process.on("uncaughtException", (error) => say(error.message));
    for (const name of ["first", "second"]) {
      lease.track(params(), (client, signal) => new Promise((resolve) => {
        signal.addEventListener("abort", () => { resolve("after " + name); throw new Error(name); });
      }), 5).then(say);
    }
    lease.track(params(), (client, signal) => new Promise((resolve) => { signal.onabort = () => resolve("later"); }), 100)
      .then((value) => { say(value); clearInterval(alive); });
  `);
  expect(said(outcome).toSorted()).toEqual(["after first", "after second", "first", "later", "second"]);
});
