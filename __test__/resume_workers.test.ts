// Resumes in worker threads that end in the middle of them (specification, sections 1 and 8). Each program runs in a
// process of its own.
import { describe, expect, test } from "vitest";
import { looseDriver } from "./support/package.js";
import { runProgram, said } from "./support/programs.js";
import { provide } from "./support/providers.js";
import {
  alive,
  commandMarker,
  expectResumed,
  pause,
  persist,
  resume,
  sleeping,
  startProcess,
} from "./support/resumes.js";
import { within } from "./support/waiting.js";

/** A Worker that resumes, and is terminated when the process is told that it waits. */
const TERMINATED = `
  const { Worker } = require("node:worker_threads");
  const source = prelude + \`
    const { parentPort, workerData } = require("node:worker_threads");
    const { LeaseDriver } = require(packagePath);
    new LeaseDriver().resume(workerData).then(
      (answer) => parentPort.postMessage(["resumed", answer.providerLeaseId]),
      (reason) => parentPort.postMessage(["rejected", reason.message]),
    );
  \`;
  const alive = setInterval(() => {}, 1000);
  const worker = new Worker(source, { eval: true, workerData: GIVEN });
  worker.on("message", say);
  process.once("SIGUSR2", async () => {
    await worker.terminate();
    say("terminated");
    const { LeaseDriver } = require(packagePath);
    const again = await new LeaseDriver().resume(GIVEN);
    say(again.providerLeaseId);
    clearInterval(alive);
  });
`;

describe.concurrent("a Worker that is terminated in the middle of a resume", () => {
  const routes = ["sandbox.get", "egress.put", "sandbox.resume", "exec", "process.list", "process.delete"];
  test.for(routes)("at %s: nothing crashes, and another thread can resume", async (route, context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider, { state: "running" });
    await startProcess(kept, sleeping(commandMarker()));
    await pause(provider, kept.id);
    const rule = provider.faults.add({ match: { path: route }, times: 1, effect: { type: "hold" } });
    let child: { kill(signal: NodeJS.Signals): unknown } | undefined;
    const running = runProgram(`const GIVEN = ${JSON.stringify(kept.params())};\n${TERMINATED}`, {
      began: (one) => (child = one),
    });
    await within(rule.hit);
    child?.kill("SIGUSR2");
    expect(said(await running)).toEqual(["terminated", kept.id]);
    // This thread, of another process, can as well.
    expectResumed(await resume(kept.params(), looseDriver()), kept.params());
    expect(alive(provider, kept.id)).toEqual([]);
  });

  test("many at once, and at whatever moment", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider);
    const outcome = await runProgram(`
      const { Worker } = require("node:worker_threads");
      const GIVEN = ${JSON.stringify(kept.params())};
      const source = prelude + \`
        const { parentPort, workerData } = require("node:worker_threads");
        const { LeaseDriver } = require(packagePath);
        for (let i = 0; i < 4; i += 1) new LeaseDriver().resume(workerData).catch(() => {});
        parentPort.postMessage("resuming");
      \`;
      const started = () => new Promise((resolve) => {
        const worker = new Worker(source, { eval: true, workerData: GIVEN });
        worker.once("message", () => resolve(worker));
      });
      (async () => {
        for (let round = 0; round < 4; round += 1) {
          const workers = await Promise.all([started(), started()]);
          await Promise.all(workers.map((worker) => worker.terminate()));
        }
        const { LeaseDriver } = require(packagePath);
        say((await new LeaseDriver().resume(GIVEN)).providerLeaseId);
      })();
    `);
    expect(said(outcome)).toEqual([kept.id]);
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });
});

test("a Worker resumes like the main thread, with errors of its own classes", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const outcome = await runProgram(`
    const { Worker } = require("node:worker_threads");
    const GIVEN = ${JSON.stringify(kept.params())};
    const source = prelude + \`
      const { parentPort, workerData } = require("node:worker_threads");
      const { CreateosError, LeaseDriver } = require(packagePath);
      (async () => {
        const driver = new LeaseDriver();
        const { metadata } = await driver.resume(workerData);
        const refused = await driver.resume({ ...workerData, companyId: "other" }).catch((reason) => reason);
        await driver.release(workerData);
        parentPort.postMessage([metadata.resumedLease, refused instanceof CreateosError, refused.code]);
      })();
    \`;
    new Worker(source, { eval: true, workerData: GIVEN }).once("message", say);
  `);
  expect(said(outcome)).toEqual([[true, true, "ERR_CREATEOS_LEASE_MISMATCH"]]);
  expect(provider.sandbox(kept.id)?.status).toBe("paused");
});

test("a resume that is under way holds no process that has ended its own work", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const rule = provider.faults.add({ match: { path: "exec" }, times: 1, effect: { type: "hold" } });
  const running = runProgram(`
    const { LeaseDriver } = require(packagePath);
    new LeaseDriver().resume(${JSON.stringify(kept.params())}).catch(() => {});
    process.once("SIGUSR2", () => process.exit(0));
  `, { began: (child) => void rule.hit.then(() => child.kill("SIGUSR2")) });
  expect(await running).toMatchObject({ code: 0, signal: null, stderr: "" });
  expectResumed(await resume(kept.params()), kept.params());
});
