// Commands whose surroundings are against them: a sandbox that sets what shells read, callers that are slow or break
// off, signals and globals that are not what they seem. Each of these has gone wrong once.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ENDS, STAYS, TEXT, executor, expectAccountedFor, isUnconfirmed, place, sh, withInput } from "./support/executes.js";
import { CLOSE, CONNECT, CREATE, DELETE, EXEC, UNENDED, api, expectOutcome, frame, on, once, status, tooMany } from "./support/executes_faults.js";
import { runProgram, said } from "./support/programs.js";
import { provide } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

const LONG = sh(`for i in $(seq 300); do echo "$i"; done; exit 3`);
const WHOLE = Array.from({ length: 300 }, (_, index) => `${index + 1}\n`).join("");

describe.concurrent("a command that can't be created settles, with an onOutput too", () => {
  test.concurrent.for([400, 401, 404, 409, 500] as const)("HTTP %i", async (code, context) => {
    const at = await place(await provide({}, context));
    at.provider.faults.add(on(CREATE, status(code)));
    const driver = executor();
    const reason = await within(rejection(driver.execute(at.params(ENDS), () => {})));
    expect(isUnconfirmed(reason)).toBe(code >= 500);
    expectAccountedFor(at, driver, reason);
  });

  test.concurrent("a sandbox that is paused", async (context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    await driver.release({ ...at.params(), providerLeaseId: at.id });
    for (const command of [ENDS, withInput(ENDS)]) {
      const reason = await within(rejection(driver.execute(at.params(command), () => {})));
      expect(reason).toMatchObject({ code: "ERR_CREATEOS_API", status: 409 });
    }
  });
});

describe.concurrent("an onOutput that takes its time gets all there is", () => {
  const slow = (given: string[]) => async (_stream: unknown, text: string) => {
    given.push(text);
    await new Promise((resolve) => setTimeout(resolve, 1));
  };

  test.concurrent("when the command ends by itself, even after its deadline", async (context) => {
    const at = await place(await provide({ frameBytes: 4 }, context));
    const given: string[] = [];
    let goOn = () => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const takes = async (stream: unknown, text: string) => {
      await held;
      return slow(given)(stream, text);
    };
    const driver = executor();
    const executed = driver.execute(at.params({ ...LONG, timeoutMs: 1500 }), takes);
    await at.provider.waitFor((event) => event.type === "process:exit");
    setTimeout(goOn, 2000);
    expect(await within(executed)).toMatchObject({ exitCode: 3, timedOut: false, stdout: WHOLE });
    expect(given.join("")).toBe(WHOLE);
  });

  test.concurrent("when output is lost", async (context) => {
    const at = await place(await provide({ frameBytes: 4 }, context));
    at.provider.faults.add(frame("gap", 90));
    const given: string[] = [];
    // All in one write: what is written line by line may be read, and so come, in shorter pieces.
    const reason = await within(rejection(executor().execute(at.params(sh(`printf '${WHOLE}'`)), slow(given))));
    expect(reason).toMatchObject({ code: "ERR_CREATEOS_OUTPUT" });
    expect(given.join("")).toBe(WHOLE.slice(0, 89 * 4));
  });

  test.concurrent("and what it rejects with after the deadline is the rejection", async (context) => {
    const at = await place(await provide({}, context));
    const mine = { my: "own" };
    const rejects = () => new Promise((_resolve, reject) => setTimeout(() => reject(mine), 1500));
    const driver = executor();
    const reason = await within(rejection(driver.execute(at.params({ ...STAYS, timeoutMs: 1000 }), rejects)));
    expect(reason).toBe(mine);
    expectAccountedFor(at, driver, reason);
  });

  test.concurrent("and holds nobody else up, however many pieces there are", async (context) => {
    const at = await place(await provide({ frameBytes: 1 }, context));
    const controller = new AbortController();
    let calls = 0;
    const holds = () => {
      calls += 1;
      const until = performance.now() + 5;
      while (performance.now() < until);
    };
    const both = sh("for i in $(seq 1000); do echo o; echo e >&2; done; sleep 1000");
    const executed = rejection(executor().execute(at.params(both), holds, { signal: controller.signal }));
    const began = performance.now();
    await at.provider.waitForRequest("process.stdinClose", { timeoutMs: 20_000 });
    const timer = setTimeout(() => controller.abort("enough"), 300);
    expect(await within(executed)).toBe("enough");
    clearTimeout(timer);
    expect(performance.now() - began).toBeLessThan(4000);
    expect(calls).toBeLessThan(500);
  });

  test.concurrent("what it throws is the rejection, whatever that is", async (context) => {
    const at = await place(await provide({}, context));
    const traps = { getPrototypeOf: () => { throw new Error("the trap's"); } };
    const mine = new Proxy({}, traps);
    const thrower = () => {
      throw mine;
    };
    // Compared by hand: whatever looks into it falls into its trap.
    const reason = await executor().execute(at.params(ENDS), thrower).then(() => undefined, (error: unknown) => error);
    expect(reason === mine).toBe(true);
  });
});

describe.concurrent("the command begins only when its output can be read", () => {
  test.concurrent.for([
    ["TMOUT in a profile", "export TMOUT=1", ""],
    ["REPLY in a profile", "export REPLY=keep", "keep"],
  ] as const)("%s", async ([, profile, stdout], context) => {
    const at = await place(await provide({ heartbeatMs: 100 }, context));
    writeFileSync(path.join(at.provider.sandbox(at.id)?.directory ?? "", "root", ".bash_profile"), `${profile}\n`);
    const rule = at.provider.faults.add(once(CONNECT, { type: "hold" }));
    const driver = executor();
    const executed = driver.execute(at.params(sh(`printf "%s" "$REPLY"; exit 3`)));
    await rule.hit;
    const [process] = at.provider.processes(at.id);
    // Longer than the shell's own timeout.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(at.provider.processes(at.id)[0]).toMatchObject({ process_id: process?.process_id, leader_exited: false });
    rule.release();
    expect(await within(executed)).toMatchObject({ exitCode: 3, stdout });
  });

  test.concurrent("and is read while the answer to that is missing", async (context) => {
    const at = await place(await provide({}, context));
    at.provider.faults.add(on("process.stdinClose", { type: "hold", when: "after" }));
    const given: string[] = [];
    const result = executor().execute(at.params(ENDS), (_stream: unknown, text: string) => given.push(text));
    expect(await within(result, 3000)).toMatchObject({ exitCode: 3, stdout: TEXT });
    expect(given.join("")).toBe(TEXT);
  });
});

describe.concurrent("a clean-up that is refused for the time being again and again comes to an end (429)", () => {
  test.concurrent.for([
    ["of the process", DELETE, frame("malformed"), UNENDED],
    ["of the command's files", EXEC, on(CLOSE, status(400)), api(400, "stdin close")],
  ] as const)("%s", async ([, route, failure, expected], context) => {
    const at = await place(await provide({}, context));
    at.provider.faults.add(failure);
    at.provider.faults.add(on(route, tooMany(1)));
    const driver = executor();
    const params = at.params(withInput(STAYS), { timeoutMs: 1000 });
    const reason = await rejection(driver.execute({ ...params, timeoutMs: 60_000 }), 15_000);
    expectOutcome({ reason }, expected, at);
    expectAccountedFor(at, driver, reason, undefined, true);
  });
});

test.concurrent("seventy thousand arguments arrive", async (context) => {
  // In a folder that is there whether or not the sandbox has a root of its own.
  const at = await place(await provide({ isolation: "auto" }, context));
  const args = ["-c", 'echo "$#"', "sh", ...Array.from({ length: 70_000 }, () => "a")];
  expect(await executor().execute(at.params({ command: "/bin/sh", args, cwd: "/" }))).toMatchObject({ stdout: "70000\n" });
});

test.concurrent("a signal whose reason can't be read ends the calls of all, and no process", async (context) => {
  const at = await place(await provide({}, context));
  const listeners = new Set<() => void>();
  const foreign = {
    aborted: false,
    get reason() {
      throw new Error("not to be read");
    },
    addEventListener: (_type: string, listener: () => void) => listeners.add(listener),
    removeEventListener: (_type: string, listener: () => void) => listeners.delete(listener),
  };
  const driver = executor();
  const start = at.provider.requests.length;
  const calls = [
    driver.execute(at.params(STAYS), null, { signal: foreign }),
    driver.track(at.params(), (_client: unknown, signal: AbortSignal) => new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    }), { signal: foreign }),
  ].map((call) => rejection(call));
  await at.provider.waitFor((event) => event.type === "process:start", { since: start });
  foreign.aborted = true;
  for (const listener of listeners) listener();
  for (const call of calls) expect(await within(call)).toMatchObject({ name: "AbortError" });
});

test.concurrent("an array that can't be filled while a command starts leaves none behind", async (context) => {
  const at = await place(await provide({}, context));
  const params = at.params({ ...STAYS, timeoutMs: 1000 });
  const outcome = await runProgram(`
    const { LeaseDriver } = require(packagePath);
    const executed = new LeaseDriver().execute(${JSON.stringify(params)});
    const set = () => {
      throw new Error("setter");
    };
    // There in the microtasks in which the command starts, and gone when its result comes.
    Object.defineProperty(Array.prototype, "0", { configurable: true, set });
    (async () => {
      for (let turn = 0; turn < 5; turn += 1) await null;
      delete Array.prototype[0];
      await executed.then((result) => say(result.timedOut), (error) => say(error.message));
    })();
  `);
  expect(said(outcome)).toEqual([true]);
  expect(at.provider.processes(at.id)).toMatchObject([{ tree_exited: true }]);
});

test.concurrent("what an Object.prototype has been given is no option of a command", async (context) => {
  const at = await place(await provide({}, context));
  const outcome = await runProgram(`
    const { LeaseDriver } = require(packagePath);
    Object.defineProperty(Object.prototype, "signal", { configurable: true, value: AbortSignal.abort("not mine") });
    const executed = new LeaseDriver().execute(${JSON.stringify(at.params(ENDS))});
    delete Object.prototype.signal;
    executed.then((result) => say(result.stdout), (reason) => say({ reason }));
  `);
  expect(said(outcome)).toEqual([TEXT]);
});
