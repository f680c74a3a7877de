// A caller's function gets all that was read, whatever ended the command; what it fails with is the failure, whenever and
// whatever that is; and however many pieces there are, nobody else waits for them and no memory grows (specification,
// section 9).
import { describe, expect, test } from "vitest";
import { ScriptedProvider, type Script, type Stream } from "./support/execute_server.js";
import { expectCreateosError } from "./support/errors.js";
import { STAYS, executor, expectAccountedFor, place, type Piece, type Result } from "./support/executes.js";
import { UNENDED, data, output, type Expectation } from "./support/executes_faults.js";
import type { Outcome } from "./support/failed_requests.js";
import { provide } from "./support/providers.js";
import { deferred, turn, turns, within } from "./support/waiting.js";

/** So many pieces of a character each, by turns of each stream, so that none of them are joined. */
const pieces = (count: number): string =>
  Array.from({ length: count }, (_, at) => `${data(at + 1, "x", { stream: at % 2 === 0 ? "stdout" : "stderr" })}\n`).join("");
const EXIT = '{"type":"exit","exit_code":3}\n';
const NONSENSE = "nonsense\n";

const lengths = (result: Pick<Result, "stdout" | "stderr">) => [result.stdout.length, result.stderr.length];
const givenOf = (given: Piece[]) => {
  const text = (stream: string) => given.map(([one, piece]) => (one === stream ? piece : "")).join("");
  return { stdout: text("stdout"), stderr: text("stderr") };
};

function expectCame({ value, reason }: Outcome<Result>, expected: Expectation): void {
  if ("error" in expected) expectCreateosError(reason, expected.error);
  else if ("reason" in expected) expect(reason).toBe(expected.reason);
  else expect(value).toMatchObject(expected.result);
}

const COUNT = 400;
const HALVES = { stdout: "x".repeat(COUNT / 2), stderr: "x".repeat(COUNT / 2) };
const GAP = output("process output has a sequence gap");
const INVALID_FRAME = output("returned an invalid process frame");

/** What ends a command whose caller still has nearly all of it to take: what its stream holds, and what it comes to. */
const STOPS: [name: string, stream: Stream, timeoutMs: number | undefined, expected: Expectation][] = [
  ["its deadline", { chunks: [pieces(COUNT)], last: "stay" }, 1000, { result: { timedOut: true, exitCode: null, ...HALVES } }],
  ["a gap", { chunks: [pieces(COUNT), data(COUNT + 2, "x"), "\n"], last: "stay" }, undefined, GAP],
  ["a line that is none", { chunks: [pieces(COUNT), NONSENSE], last: "stay" }, undefined, INVALID_FRAME],
];

/** What a caller's function gives that waits until the command is being ended. */
const SLOW: [name: string, take: (going: Promise<void>) => unknown][] = [
  ["one promise for all", (going) => going],
  ["a promise for each piece", async (going) => void (await going, await turn())],
  // oxlint-disable-next-line unicorn/no-thenable
  ["a thenable for each piece", (going) => ({ then: (goOn: () => void) => void going.then(() => setImmediate(goOn)) })],
];

describe.concurrent.for(STOPS)("all that was read before %s is delivered", ([, stream, timeoutMs, expected]) => {
  test.concurrent.for(SLOW)("by %s", async ([, take], context) => {
    const provider = await ScriptedProvider.start(context);
    const going = deferred();
    const script: Script = {
      streams: () => stream,
      goesOn: true,
      end: () => (going.resolve(), { data: { process_id: "proc_scripted", tree_exited: true } }),
    };
    const onOutput = () => take(going.promise);
    const run = await provider.run(script, { onOutput, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    expectCame(run.outcome, expected);
    expect(givenOf(run.pieces)).toEqual(HALVES);
  });
});

const MINE = { my: "own" };
/** Whatever is looked for in it, it throws; only `===` does not look. */
const trapped = () => new Proxy({}, new Proxy({}, { get: () => () => { throw new Error("the trap's"); } }));
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

describe.concurrent("what a promise rejects with once the command has been ended", () => {
  /** Long after the answer to that, with which there is nothing else to wait for. */
  const LATER_MS = 300;
  const one = (...more: string[]): Stream => ({ chunks: [pieces(1), ...more], last: "stay" });

  test.concurrent.for<[string, Stream, number | undefined, boolean, Expectation]>([
    ["by its deadline, is the rejection", one(), 1000, true, { reason: MINE }],
    ["by a failure of its output, is the rejection", one(NONSENSE), undefined, true, { reason: MINE }],
    ["by its deadline, is not told where something may still run", one(), 1000, false, UNENDED],
    ["by a failure of its output, is not told where something may still run", one(NONSENSE), undefined, false, UNENDED],
  ])("%s", async ([, stream, timeoutMs, isProved, expected], context) => {
    const provider = await ScriptedProvider.start(context);
    const ended = deferred();
    const end = () => {
      setTimeout(ended.resolve, LATER_MS);
      return { data: { process_id: "proc_scripted", tree_exited: isProved } };
    };
    const onOutput = () => ended.promise.then(() => Promise.reject(MINE));
    const asked = timeoutMs === undefined ? {} : { timeoutMs };
    const run = await provider.run({ streams: () => stream, goesOn: true, end }, { onOutput, ...asked });
    expectCame(run.outcome, expected);
    expect(run.ends).toBe(1);
  });
});

describe.concurrent.each([
  ["traps every look", trapped],
  ["is a revoked proxy", revoked],
])("a failure of onOutput that %s is the rejection", (_name, make) => {
  test.concurrent.for<[string, (reason: unknown) => unknown]>([
    ["thrown", (reason) => { throw reason; }],
    ["rejected with", (reason) => Promise.reject(reason)],
    ["rejected with later", (reason) => turns(3).then(() => Promise.reject(reason))],
    // oxlint-disable-next-line unicorn/no-thenable
    ["given by a thenable", (reason) => ({ then: (_: unknown, reject: (reason: unknown) => void) => reject(reason) })],
  ])("%s", async ([, fail], context) => {
    const at = await place(await provide({}, context));
    const driver = executor();
    const mine = make();
    const executed = driver.execute(at.params(STAYS), () => fail(mine));
    // Compared by hand: whatever else looks at it falls into its trap.
    const isMine = await within(executed.then(() => false, (reason: unknown) => reason === mine));
    expect(isMine).toBe(true);
    expectAccountedFor(at, driver, undefined);
  });
});

describe.concurrent("many pieces", () => {
  test.concurrent("are handed over a few in each turn of the event loop, if each takes its time", async (context) => {
    const provider = await ScriptedProvider.start(context);
    let isRunning = true;
    let inTurn = 0;
    let most = 0;
    const count = async () => {
      while (isRunning) {
        inTurn = 0;
        await turn();
      }
    };
    const counting = count();
    const onOutput = () => {
      inTurn += 1;
      most = Math.max(most, inTurn);
      const until = performance.now() + 3;
      while (performance.now() < until);
    };
    const run = await provider.run({ streams: () => ({ chunks: [pieces(600), EXIT] }) }, { onOutput });
    isRunning = false;
    await counting;
    expectCame(run.outcome, { result: { exitCode: 3 } });
    expect(run.pieces.length).toBe(600);
    // A turn may begin between two of the package's own.
    expect(most).toBeLessThanOrEqual(6);
  });

  test.concurrent("of a character each keep a stream from being read as much as long ones do", async (context) => {
    const provider = await ScriptedProvider.start(context);
    const held = deferred();
    const end = () => (held.resolve(), { data: { process_id: "proc_scripted", tree_exited: true } });
    const streams = (): Stream => ({ chunks: [pieces(60_000)], last: "stay" });
    const run = await provider.run({ streams, goesOn: true, end }, { onOutput: () => held.promise, timeoutMs: 3000 });
    expectCame(run.outcome, { result: { timedOut: true } });
    const { value } = run.outcome;
    const [stdout = 0, stderr = 0] = value === undefined ? [] : lengths(value);
    // A piece takes over a hundred bytes of its own, and not much more than a mebibyte is kept.
    expect(stdout + stderr).toBeLessThan(12_000);
    expect(lengths(givenOf(run.pieces))).toEqual([stdout, stderr]);
  });
});
