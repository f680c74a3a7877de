// The package in worker threads: state for each environment, and environments that end (specification, section 1). Each
// program runs in a process of its own.
import { describe, expect, test } from "vitest";
import { provide } from "./support/providers.js";
import { runProgram, said } from "./support/programs.js";

/** What the programs here share: a Worker from source, its messages, and its end. */
const WORKERS = `
  const { Worker } = require("node:worker_threads");
  const { once } = require("node:events");
  const start = (source, options = {}) =>
    new Worker(prelude + 'const { parentPort, workerData } = require("node:worker_threads");\\n' + source, { eval: true, ...options });
  const message = async (worker) => {
    const failed = once(worker, "error").then(([error]) => { throw error; });
    failed.catch(() => {});
    return (await Promise.race([once(worker, "message"), failed]))[0];
  };
  const main = (run) => run().catch((error) => { console.error(error); process.exit(1); });
`;

const program = (source: string, options?: Parameters<typeof runProgram>[1]) =>
  runProgram(`${WORKERS}\nmain(async () => {\n${source}\n});`, options);

describe.concurrent("the default driver is one for each environment", () => {
  test("calls, closing marks and shutdowns of one are nothing to the others", async () => {
    const outcome = await program(`
      const lease = require(packagePath);
      const source = \`
        const lease = require(packagePath);
        let signal;
        lease.track(params(), (client, given) => { signal = given; return never(); });
        parentPort.on("message", async (ask) => {
          if (ask === "state") parentPort.postMessage([lease.leaseState(params(), "sb-1"), signal.aborted]);
          if (ask === "shutdown") { lease.shutdown(); parentPort.postMessage([lease.leaseState(params(), "sb-1"), signal.aborted]); }
          if (ask === "end") process.exit(0);
        });
        parentPort.postMessage("ready");
      \`;
      const workers = [start(source), start(source)];
      await Promise.all(workers.map(message));
      const ask = (worker, what) => { const answer = message(worker); worker.postMessage(what); return answer; };
      let mine;
      const call = lease.track(params(), (client, signal) => new Promise((resolve) => { mine = signal; signal.onabort = () => resolve("stopped"); }));
      await lease.release(params());
      say([await call, mine.aborted, await ask(workers[0], "state"), await ask(workers[1], "state")]);
      say([await ask(workers[0], "shutdown"), await ask(workers[1], "state"), lease.leaseState(params(), "sb-1")]);
      for (const worker of workers) worker.postMessage("end");
    `);
    expect(said(outcome)).toEqual([
      ["stopped", true, ["open", false], ["open", false]],
      [["shutdown", true], ["open", false], "open"],
    ]);
  });

  test("classes are an environment's own, and deadlines, releases and values work in each", async () => {
    const outcome = await program(`
      const source = \`
        const lease = require(packagePath);
        // A pending deadline holds nothing, so something else has to.
        const alive = setInterval(() => {}, 1000);
        (async () => {
          const abort = await lease.track(params(), (client, signal) => new Promise((resolve) => { signal.onabort = () => resolve(signal.reason.name); }), 20);
          const value = {};
          const same = (await lease.track(params(), () => value)) === value;
          const reason = await lease.track({}, () => {}).catch((error) => error);
          await lease.release(params());
          parentPort.postMessage([abort, same, reason instanceof lease.CreateosError, reason.code]);
          clearInterval(alive);
        })();
      \`;
      say(await Promise.all([1, 2, 3, 4].map(() => message(start(source)))));
    `);
    const one = ["TimeoutError", true, true, "ERR_CREATEOS_LEASE_MISMATCH"];
    expect(said(outcome)).toEqual([[one, one, one, one]]);
  });
});

describe.concurrent("an environment's end", () => {
  test("50 rounds of a Worker that is terminated in the middle of its calls", async () => {
    const outcome = await program(
      `
      const lease = require(packagePath);
      const source = \`
        const lease = require(packagePath);
        for (let i = 0; i < 50; i += 1) lease.track(params("sb-" + i), never, 1 + i % 7);
        lease.track(params("sb-0"), (client, signal) => { signal.onabort = () => { for (;;) {} }; return never(); }, 2);
        lease.release(params("sb-1"));
        parentPort.postMessage("tracking");
      \`;
      for (let round = 0; round < 50; round += 1) {
        const worker = start(source);
        await message(worker);
        await worker.terminate();
      }
      // The main thread's own is as well as ever. A pending deadline holds nothing, so something else has to.
      const alive = setInterval(() => {}, 1000);
      say(await lease.track(params(), (client, signal) => new Promise((resolve) => { signal.onabort = () => resolve(signal.reason.name); }), 10));
      await lease.release(params());
      clearInterval(alive);
      say("done");
    `,
    );
    expect(outcome.signal).toBeNull();
    expect(said(outcome)).toEqual(["TimeoutError", "done"]);
  });

  test("a Worker that ends with requests in flight, by process.exit and by an exception", async ({
    onTestFinished,
  }) => {
    const provider = await provide({}, { onTestFinished });
    provider.faults.add({ effect: { type: "hold" } });
    const outcome = await program(
      `
      const ends = ["process.exit(0)", "throw new Error('on purpose')"];
      for (const end of [...ends, ...ends, ...ends]) {
        const worker = start(\`
          const lease = require(packagePath);
          const config = { apiUrl: process.env.PROVIDER };
          for (let i = 0; i < 20; i += 1) {
            lease.track(params("sb-" + i, config), (client, signal) => client.getSandbox("sb-" + i, signal)).catch(() => {});
            lease.release(params("sb-x" + i, config), true).catch(() => {});
          }
          parentPort.postMessage("asking");
          setImmediate(() => { \${end}; });
        \`);
        worker.on("error", () => {});
        const exited = new Promise((resolve) => worker.once("exit", resolve));
        // Its exception may come before its message.
        await message(worker).catch(() => {});
        await exited;
      }
      say("done");
    `,
      { env: { PROVIDER: provider.url } },
    );
    expect(said(outcome)).toEqual(["done"]);
  });

  test("many Workers at once, all of them terminated", async () => {
    const outcome = await program(`
      const source = \`
        const lease = require(packagePath);
        for (let i = 0; i < 100; i += 1) lease.track(params("sb-" + i), never, 1 + i % 10);
        parentPort.postMessage("tracking");
      \`;
      for (let round = 0; round < 4; round += 1) {
        const workers = Array.from({ length: 8 }, () => start(source));
        await Promise.all(workers.map(message));
        await Promise.all(workers.map((worker) => worker.terminate()));
      }
      say("done");
    `);
    expect(said(outcome)).toEqual(["done"]);
  });

  test("only Workers load the package: the main thread never does, and the process ends well", async () => {
    const outcome = await program(`
      const source = \`
        const lease = require(packagePath);
        lease.track(params(), () => "value").then((value) => {
          lease.track(params(), never, 60_000);
          parentPort.postMessage(value);
        });
      \`;
      // One after another, so that each one's end may unload the addon, and then two together.
      for (let round = 0; round < 3; round += 1) {
        const worker = start(source);
        say(await message(worker));
        await worker.terminate();
      }
      const [one, two] = [start(source), start(source)];
      say(await Promise.all([message(one), message(two)]));
      await one.terminate();
      await two.terminate();
    `);
    expect(said(outcome)).toEqual(["value", "value", "value", ["value", "value"]]);
  });

  test("what a Worker was acquiring when it was terminated is removed", async ({ onTestFinished }) => {
    const provider = await provide({}, { onTestFinished });
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    let child: { kill(signal: NodeJS.Signals): unknown } | undefined;
    const running = program(
      `
      const worker = start(\`
        const lease = require(packagePath);
        new lease.LeaseDriver().acquire(params("", { apiUrl: process.env.PROVIDER, apiKey: process.env.PROVIDER_KEY }));
        parentPort.on("message", () => {});
      \`);
      const stop = new Promise((resolve) => process.once("SIGUSR2", resolve));
      const alive = setInterval(() => {}, 1000);
      say("started");
      await stop;
      await worker.terminate();
      say("terminated");
      process.once("SIGUSR2", () => clearInterval(alive));
    `,
      { env: { PROVIDER: provider.url, PROVIDER_KEY: provider.apiKey }, began: (one) => (child = one) },
    );
    const { sandboxId } = await rule.hit;
    child?.kill("SIGUSR2");
    await provider.waitForState(sandboxId as string, "destroyed");
    child?.kill("SIGUSR2");
    expect(said(await running)).toEqual(["started", "terminated"]);
  });

  test("a pending deadline holds no Worker", async () => {
    const outcome = await program(`
      const worker = start('require(packagePath).track(params(), never, 86_400_000);');
      const [code] = await once(worker, "exit");
      say(code);
    `);
    expect(said(outcome)).toEqual([0]);
  });
});

describe.concurrent("a Worker's own process.env", () => {
  const OFFICIAL = `{ apiUrl: "https://api.sb.createos.sh", shape: "s" }`;

  test("is where its key comes from, at call time: a copy that native getenv does not see", async () => {
    const outcome = await program(
      `
      const lease = require(packagePath);
      const source = \`
        const lease = require(packagePath);
        const config = ${OFFICIAL};
        const key = () => { try { return lease.resolveApiKey(config); } catch (error) { return error.code; } };
        const seen = [key()];
        process.env.CREATEOS_API_KEY = "set in the Worker";
        seen.push(key());
        delete process.env.CREATEOS_API_KEY;
        seen.push(key());
        parentPort.postMessage(seen);
      \`;
      say(await message(start(source)));
      say(await message(start(source, { env: { CREATEOS_API_KEY: "given to the Worker" } })));
      say(await message(start(source, { env: {} })));
      say(lease.resolveApiKey(${OFFICIAL}));
    `,
      { env: { CREATEOS_API_KEY: "main" } },
    );
    const missing = "ERR_CREATEOS_API_KEY";
    expect(said(outcome)).toEqual([
      ["main", "set in the Worker", missing],
      ["given to the Worker", "set in the Worker", missing],
      [missing, "set in the Worker", missing],
      "main",
    ]);
  });

  test("with a shared environment, a change of the main thread's is seen", async () => {
    const outcome = await program(
      `
      const { SHARE_ENV } = require("node:worker_threads");
      process.env.CREATEOS_API_KEY = "changed";
      say(await message(start(
        'parentPort.postMessage(require(packagePath).resolveApiKey(${OFFICIAL}))',
        { env: SHARE_ENV },
      )));
    `,
      { env: { CREATEOS_API_KEY: "main" } },
    );
    expect(said(outcome)).toEqual(["changed"]);
  });
});

test("the pacing of requests, and it alone, is the whole process's", async () => {
  const provider = await provide();
  const outcome = await program(
    `
    const lease = require(packagePath);
    const config = { apiUrl: process.env.PROVIDER, apiKey: process.env.PROVIDER_KEY, shape: "s" };
    const client = new lease.CreateosClient(config);
    await Promise.all(Array.from({ length: 300 }, () => client.destroySandbox("sb-none")));
    // The Worker's first request has to wait for a place, which no deadline this short lives to see.
    say(await message(start(\`
      const lease = require(packagePath);
      const config = { apiUrl: process.env.PROVIDER, apiKey: process.env.PROVIDER_KEY, shape: "s" };
      new lease.CreateosClient(config).destroySandbox("sb-none", AbortSignal.timeout(200)).then(
        () => parentPort.postMessage("sent"),
        (reason) => parentPort.postMessage(reason.name),
      );
    \`)));
  `,
    { env: { PROVIDER: provider.url, PROVIDER_KEY: provider.apiKey } },
  );
  expect(said(outcome)).toEqual(["TimeoutError"]);
  expect(provider.requests).toHaveLength(300);
});
