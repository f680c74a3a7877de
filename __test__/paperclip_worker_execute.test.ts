// The example plugin's execute hook as a host calls it: over a worker's pipes, with the output of commands as
// notifications (specification, section 9).
import { PLUGIN_RPC_ERROR_CODES } from "@paperclipai/plugin-sdk";
import { afterAll, beforeAll, describe, expect, test, type TestContext } from "vitest";
import { MESSAGES } from "./support/errors.js";
import {
  bash,
  CANCELLED,
  type Command,
  COMMANDS,
  endedBefore,
  FOREVER,
  left,
  putFile,
  RESULT,
  runIn,
  textOf,
} from "./support/paperclip_commands.js";
import { acquire, destroy, destroyed, marked, release, resume, status, stopped } from "./support/paperclip_leases.js";
import { installPlugin, type InstalledPlugin, type StoredLease, type Tenant, tenant } from "./support/paperclip_plugin.js";
import { type Execution, PluginWorker } from "./support/paperclip_worker.js";
import { nothingAlive, provide } from "./support/providers.js";
import { within } from "./support/waiting.js";

let installed: InstalledPlugin;
beforeAll(async () => {
  installed = await installPlugin();
});
afterAll(() => installed.remove());

/** A worker that holds a lease. */
async function leased(context: TestContext, options: Parameters<typeof provide>[0] = {}) {
  const provider = await provide(options, context);
  const worker = await PluginWorker.start(installed, context);
  const owner = tenant(provider);
  const lease = await acquire(worker, owner);
  const execute = (command: Command) => worker.execute(runIn(owner, lease, command));
  return { provider, worker, owner, lease, execute };
}

/** What a command is refused with. */
const refusal = (execution: Execution) =>
  execution.answer.then(
    () => expect.fail("The command was not refused."),
    ({ message, code }) => ({ message, code }),
  );
const failure = (message: string) => ({ message, code: PLUGIN_RPC_ERROR_CODES.WORKER_ERROR });

/** That the host has heard exactly what the answer says. What comes too late for that is kept as another notification. */
async function expectHeard(worker: PluginWorker, { pieces, answer }: Execution): Promise<void> {
  const { stdout, stderr } = await answer;
  expect({ stdout: textOf(pieces, "stdout"), stderr: textOf(pieces, "stderr") }).toEqual({ stdout, stderr });
  expect([worker.requests, worker.notifications]).toEqual([[], []]);
}

describe("a command", () => {
  test("of every kind: what it is given, what it gives, and what the host hears of it", async (context) => {
    const { worker, execute } = await leased(context);
    for (const [name, command, result] of COMMANDS) {
      const execution = execute(command);
      expect(await execution.answer, name).toEqual({ ...RESULT, ...result });
      await expectHeard(worker, execution);
    }
  });

  test("is heard while it runs, in order, and before the answer", async (context) => {
    const { provider, worker, lease, execute } = await leased(context);
    const execution = execute(bash("echo one; until [ -e go-on ]; do sleep 0.01; done; echo two >&2; exit 3"));
    await execution.said("one");
    expect(worker.answered).not.toContain("environmentExecute");
    putFile(provider, lease, "go-on");
    expect(await execution.answer).toEqual({ ...RESULT, exitCode: 3, stdout: "one\n", stderr: "two\n" });
    expect(execution.pieces).toEqual([["stdout", "one\n"], ["stderr", "two\n"]]);
    await expectHeard(worker, execution);
  });

  test("that changes between its streams is heard in its order", async (context) => {
    const { provider, worker, lease, execute } = await leased(context);
    const rounds = Array.from({ length: 8 }, (_, index) => index);
    // It says the next word once the file of the last one is there.
    const say = 'say() { echo $1; until [ -e $1 ]; do sleep 0.01; done; }';
    const execution = execute(bash(`${say}; for i in ${rounds.join(" ")}; do say out$i; say err$i >&2; done`));
    const words = rounds.flatMap((round) => [`out${round}`, `err${round}`]);
    for (const word of words) {
      await execution.said(word);
      putFile(provider, lease, word);
    }
    await expectHeard(worker, execution);
    const streams = { o: "stdout", e: "stderr" } as Record<string, string>;
    expect(execution.pieces).toEqual(words.map((word) => [streams[word.charAt(0)], `${word}\n`]));
  });

  test("that prints some megabytes is heard whole, whatever the host is willing to take at once", async (context) => {
    const { worker, execute } = await leased(context);
    const execution = execute(bash("head -c 3000000 /dev/zero | tr '\\0' x; echo ☃"));
    expect((await execution.answer).stdout).toBe(`${"x".repeat(3_000_000)}☃\n`);
    expect(execution.pieces.length).toBeGreaterThan(3);
    await expectHeard(worker, execution);
  });

  test("that does not end in time is ended with all that it started, which is no error", async (context) => {
    const { provider, worker, lease, execute } = await leased(context);
    const execution = execute({ ...FOREVER, timeoutMs: 2000 });
    expect(await execution.answer).toEqual({ ...RESULT, exitCode: null, timedOut: true, stdout: "up\n" });
    await expectHeard(worker, execution);
    expect(left(provider, lease)).toEqual([]);
    expect(await execute(bash("echo next")).answer).toEqual({ ...RESULT, stdout: "next\n" });
  });

  test("is refused in exact words where it can't be run, and the worker serves on", async (context) => {
    const { provider, worker, execute } = await leased(context);
    const start = provider.requests.length;
    const refused: [Command, string][] = [
      [{ command: "" }, "A sandbox command is required."],
      [{ command: "true", env: { "A-B": "1" } }, "Invalid sandbox environment variable."],
      [{ command: "true", args: ["a\0b"] }, "Sandbox command values cannot contain NUL."],
      [{ command: "true", timeoutMs: -1 }, MESSAGES.timeout],
    ];
    for (const [command, message] of refused) expect(await refusal(execute(command))).toEqual(failure(message));
    expect(provider.requests.length).toBe(start);
    expect(await execute({ command: "true" }).answer).toEqual(RESULT);
    expect(worker.notifications).toEqual([]);
  });
});

describe.concurrent("a command that runs while its lease ends", () => {
  const ends = [
    ["release", release, stopped, "sandbox.pause"],
    ["destroy", destroy, destroyed, "sandbox.destroy"],
  ] as const;
  test.for(ends)("is ended by a %s first, with all that it started", async ([_name, end, receipt, route], context) => {
    const { provider, worker, owner, lease, execute } = await leased(context);
    const execution = execute(FOREVER);
    await execution.said("up");
    expect(await end(worker, owner, lease)).toEqual(receipt(lease));
    expect(await refusal(execution)).toEqual(failure(CANCELLED));
    await endedBefore(provider, lease, route);
    expect(left(provider, lease)).toEqual([]);
    // The host hears of the command's end before that of the lease.
    expect(worker.answered.slice(-2)[0]).toBe("environmentExecute");
  });

  test("is ended by a shutdown, and the host hears of it before the worker is gone", async (context) => {
    const { provider, worker, lease, execute } = await leased(context);
    const execution = execute(FOREVER);
    await execution.said("up");
    expect(await worker.call("shutdown", {})).toBeNull();
    expect(await refusal(execution)).toEqual(failure(CANCELLED));
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect(worker.answered.slice(-2)).toEqual(["environmentExecute", "shutdown"]);
    expect(left(provider, lease)).toEqual([]);
    expect(status(provider, lease)).toBe("running");
  });

  test("may have been left by a worker that was killed: its successor's resume ends it, and nothing else", async (context) => {
    const { provider, worker, owner, lease, execute } = await leased(context);
    const server = await execute(bash("sleep 1000 >/dev/null 2>&1 &")).answer;
    const execution = execute(FOREVER);
    await execution.said("up");
    await worker.kill();
    await expect(execution.answer).rejects.toThrow("The worker ended (SIGKILL) before it answered environmentExecute.");
    expect(left(provider, lease)).toHaveLength(2);

    const next = await PluginWorker.start(installed, context);
    const resumed = await resume(next, owner, lease);
    expect(resumed).toEqual(marked(lease));
    expect(left(provider, lease)).toEqual([server.metadata?.["processId"]]);
    expect(await next.execute(runIn(owner, resumed, bash("echo next"))).answer).toEqual({ ...RESULT, stdout: "next\n" });
    expect(await destroy(next, owner, resumed)).toEqual(destroyed(lease));
    await nothingAlive(provider);
  });
});

describe("two companies in one worker", () => {
  const keys = ["skp_of_the_first_company", "skp_of_the_second_company"];

  /** Both with a lease each. */
  async function both(context: TestContext) {
    const provider = await provide({ apiKeys: keys }, context);
    const worker = await PluginWorker.start(installed, context);
    const have = async (companyId: string, apiKey: string | undefined) => {
      const owner = tenant(provider, { companyId }, { apiKey });
      const lease = await acquire(worker, owner);
      return { owner, lease, execute: (command: Command) => worker.execute(runIn(owner, lease, command)) };
    };
    return { provider, worker, first: await have("first", keys[0]), second: await have("second", keys[1]) };
  }

  test("run commands side by side, and each hears its own", async (context) => {
    const { provider, worker, first, second } = await both(context);
    const script = (name: string) => bash(`echo ${name} is up; until [ -e go-on ]; do sleep 0.01; done; echo ${name}`);
    const mine = first.execute(script("first"));
    const theirs = second.execute(script("second"));
    await Promise.all([mine.said("first is up"), theirs.said("second is up")]);
    // The one that began last ends first.
    putFile(provider, second.lease, "go-on");
    expect(await theirs.answer).toEqual({ ...RESULT, stdout: "second is up\nsecond\n" });
    expect(mine.pieces).toEqual([["stdout", "first is up\n"]]);
    putFile(provider, first.lease, "go-on");
    expect(await mine.answer).toEqual({ ...RESULT, stdout: "first is up\nfirst\n" });
    for (const execution of [mine, theirs]) await expectHeard(worker, execution);
  });

  test("many commands of both at once: every answer and every piece is its own question's", async (context) => {
    const { worker, first, second } = await both(context);
    const executions = Array.from({ length: 20 }, (_, index) => {
      const { execute } = index % 2 === 0 ? first : second;
      return execute(bash(`echo ${index}; cat; echo ${-index} >&2; exit ${index}`, { stdin: `input ${index}\n` }));
    });
    for (const [index, execution] of executions.entries()) {
      const expected = { exitCode: index, stdout: `${index}\ninput ${index}\n`, stderr: `${-index}\n` };
      expect(await execution.answer).toEqual({ ...RESULT, ...expected });
      await expectHeard(worker, execution);
    }
  });

  test("are refused in each other's leases, without a request, while commands run in them", async (context) => {
    const { provider, worker, first, second } = await both(context);
    const running = second.execute(FOREVER);
    await running.said("up");
    const start = provider.requests.length;
    const stolen: [Tenant, StoredLease][] = [
      [first.owner, second.lease],
      [first.owner, { ...second.lease, providerLeaseId: first.lease.providerLeaseId }],
      [second.owner, first.lease],
      [{ ...first.owner, environmentId: "other" }, first.lease],
    ];
    for (const [owner, lease] of stolen) {
      expect(await refusal(worker.execute(runIn(owner, lease, bash("true"))))).toEqual(failure(MESSAGES.notForTrack));
    }
    expect(provider.requests.length).toBe(start);
    expect(left(provider, second.lease)).toHaveLength(1);
  });

  test("end their commands by releases of their own: the other's goes on", async (context) => {
    const { provider, worker, first, second } = await both(context);
    const mine = first.execute(FOREVER);
    const theirs = second.execute(bash("echo up; until [ -e go-on ]; do sleep 0.01; done"));
    await Promise.all([mine.said("up"), theirs.said("up")]);
    expect(await release(worker, first.owner, first.lease)).toEqual(stopped(first.lease));
    expect(await refusal(mine)).toEqual(failure(CANCELLED));
    putFile(provider, second.lease, "go-on");
    expect(await theirs.answer).toEqual({ ...RESULT, stdout: "up\n" });
  });
});
