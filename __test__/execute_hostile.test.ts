// What code around a command can do, out of malice or by accident: the command is ended or comes to its end, its caller
// hears of it, and nothing of it runs on (specification, section 9).
import { describe, expect, test } from "vitest";
import { STAYS, TEXT, executor, expectAccountedFor, place, sh, type Command } from "./support/executes.js";
import { lease, looseDriver } from "./support/package.js";
import { runProgram, said } from "./support/programs.js";
import { provide } from "./support/providers.js";
import { alive, persist } from "./support/resumes.js";
import { abortion, rejection, turns, within } from "./support/waiting.js";

describe.concurrent("a global Promise that can't be made any more keeps a command from nothing", () => {
  test.concurrent.for<[string, Command, object]>([
    ["its own end", sh(`printf ${TEXT}; exit 3`), { exitCode: 3, timedOut: false }],
    ["its deadline", { ...STAYS, timeoutMs: 2000 }, { exitCode: null, timedOut: true }],
  ])("%s", async ([, command, expected], context) => {
    const { provider, id } = await place(await provide({}, context));
    const apiUrl = provider.url;
    // In a process of its own, which has to come to its end by itself.
    const outcome = await runProgram(`
      const { LeaseDriver } = require(packagePath);
      const changes = [${JSON.stringify(id)}, ${JSON.stringify({ apiUrl, apiKey: provider.apiKey })}, ${JSON.stringify({ apiUrl })}];
      const own = { ...params(...changes), ...${JSON.stringify(command)} };
      const driver = new LeaseDriver();
      const real = globalThis.Promise;
      let given = "";
      const onOutput = (stream, text) => {
        given += text;
        return real.resolve();
      };
      const executed = driver.execute(own, onOutput);
      globalThis.Promise = class {
        constructor() {
          throw new Error("no promise");
        }
      };
      const tell = (what) => {
        globalThis.Promise = real;
        say({ ...what, given, state: driver.leaseState(own, own.providerLeaseId) });
      };
      executed.then((value) => tell({ value }), (error) => tell({ message: String(error && error.message) }));
    `);
    expect(said(outcome)).toEqual([{ value: expect.objectContaining({ stdout: TEXT, ...expected }), given: TEXT, state: "open" }]);
    expect(alive(provider, id)).toEqual([]);
  });
});

describe.concurrent("a signal whose reason can't be read", () => {
  /** The platform's own, but for its reason. */
  function controllerWithout(): AbortController {
    const controller = new AbortController();
    const get = () => {
      throw new Error("not to be read");
    };
    Object.defineProperty(controller.signal, "reason", { get });
    return controller;
  }

  /** Aborts, and fails where that throws or an exception comes of it that nobody catches. */
  async function abort(controller: AbortController): Promise<void> {
    const uncaught: unknown[] = [];
    const note = (error: unknown) => uncaught.push(error);
    // The runner's own listeners would end the run for what others here may do at the same time.
    process.on("uncaughtExceptionMonitor", note);
    try {
      controller.abort("unread");
      await turns();
    } finally {
      process.off("uncaughtExceptionMonitor", note);
    }
    expect(uncaught).toEqual([]);
  }

  test.concurrent("ends a command by the driver", async (context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const controller = controllerWithout();
    const reason = rejection(driver.execute(at.params(STAYS), null, { signal: controller.signal }));
    await at.provider.waitForRequest("process.stdinClose");
    await abort(controller);
    expect(await reason).toMatchObject({ name: "AbortError" });
    expectAccountedFor(at, driver, await reason);
  });

  test.concurrent("ends a command by the function", async (context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const controller = controllerWithout();
    const client = new lease.CreateosClient(at.params().config as never);
    const reason = rejection(lease.execute(client, at.params(STAYS) as never, controller.signal, () => {}));
    await at.provider.waitForRequest("process.stdinClose");
    await abort(controller);
    // Whatever it rejects with: there is no reason that could be told.
    expect(await reason).toBeInstanceOf(Error);
    expectAccountedFor(at, driver, undefined);
  });

  test.concurrent("ends a resume", async (context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider);
    const controller = controllerWithout();
    const rule = provider.faults.add({ match: { path: "sandbox.get" }, effect: { type: "hold" } });
    const driver = looseDriver();
    const reason = rejection(driver.resume(kept.params(), { signal: controller.signal }));
    await within(rule.hit);
    await abort(controller);
    expect(await reason).toMatchObject({ name: "AbortError" });
  });

  test.concurrent("reaches all calls that were given it", async (context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const controller = controllerWithout();
    const options = { signal: controller.signal };
    const signals: AbortSignal[] = [];
    const work = (_client: unknown, signal: AbortSignal) => {
      signals.push(signal);
      return abortion(signal);
    };
    const tracked = () => driver.track(at.params(), work, options);
    const first = tracked();
    const executed = rejection(driver.execute(at.params(STAYS), null, options));
    const last = tracked();
    await at.provider.waitForRequest("process.stdinClose");
    await abort(controller);
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
    for (const reason of await within(Promise.all([first, last, executed]))) expect(reason).toMatchObject({ name: "AbortError" });
    expectAccountedFor(at, driver, await executed);
  });
});
