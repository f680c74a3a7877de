// A process that asks an origin for more than it takes in a minute, from two clients, a driver and a Worker.
"use strict";
const path = require("node:path");
const { once } = require("node:events");
const { Worker } = require("node:worker_threads");
const { CreateosClient, LeaseDriver } = require("../../index.js");

const [, , origin = "", elsewhere = "", apiKey = ""] = process.argv;
const config = { apiUrl: origin, apiKey, shape: "s", timeoutMs: 120_000 };
const metadata = { provider: "createos", companyId: "c", environmentId: "e", apiUrl: origin };
const params = { companyId: "c", environmentId: "e", config, lease: { providerLeaseId: "sb-1", metadata } };
/** @param {string} line */
const tell = (line) => process.stdout.write(`${line}\n`);

async function main() {
  const first = new CreateosClient(config);
  const second = new CreateosClient({ ...config, apiKey: "another" });
  const worker = new Worker(path.join(__dirname, "http_worker.cjs"), { workerData: config });
  await once(worker, "message");
  /** @type {Map<string, () => void>} */
  const workersCalls = new Map();
  worker.on("message", (/** @type {string} */ line) => {
    workersCalls.get(line)?.();
    if (line.startsWith("failed")) tell(line);
  });

  for (let index = 0; index < 20; index += 1) await first.json(`/slow/${index}`);
  await Promise.all(Array.from({ length: 280 }, (_, index) => (index % 2 ? first : second).json(`/burst/${index}`)));
  tell("burst");

  // Two that give up: one ahead of all others, one in their midst.
  const controller = new AbortController();
  /** @param {number} name */
  const givingUp = (name) =>
    first.json(`/given-up/${name}`, "GET", undefined, controller.signal).then(
      () => tell(`failed to give up ${name}`),
      (reason) => tell(`aborted ${name} ${reason}`),
    );
  /** @type {Promise<unknown>[]} */
  const calls = [givingUp(0)];
  for (let index = 0; index < 20; index += 1) {
    const path = `/queued/${index}`;
    if (index === 10) calls.push(givingUp(1));
    if (index % 4 === 0) calls.push(first.json(path));
    else if (index % 4 === 1) calls.push(second.json(path));
    else if (index % 4 === 2) calls.push(new LeaseDriver().track(params, (client) => client.json(path)));
    else {
      const called = new Promise((/** @type {(value: void) => void} */ resolve) => workersCalls.set("called", resolve));
      calls.push(new Promise((/** @type {(value: void) => void} */ resolve) => workersCalls.set(`done ${path}`, resolve)));
      worker.postMessage([path]);
      // The Worker's place in the queue is the moment of its own call.
      await called;
    }
  }
  await new CreateosClient({ ...config, apiUrl: elsewhere }).json("/elsewhere");
  controller.abort("enough");
  await Promise.all(calls);
  worker.postMessage("end");
}

main().catch((error) => {
  tell(`failed ${error}`);
  process.exitCode = 1;
});
