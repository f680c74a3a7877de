// An output stream may be lost at any byte of it: what was printed comes whole, in order and once, or the command fails
// (specification, section 9).
import { describe, expect, test, vi } from "vitest";
import { ScriptedProvider, type Script, type Stream } from "./support/execute_server.js";
import { api, data, output, type Expectation } from "./support/executes_faults.js";
import { expectCreateosError } from "./support/errors.js";
import type { Result } from "./support/executes.js";

vi.setConfig({ maxConcurrency: 30 });

const euro = Buffer.from("€");
const piece = (seq: number, stream: "stdout" | "stderr", bytes: Buffer | string) =>
  `${data(seq, "", { stream, data_base64: Buffer.from(bytes).toString("base64") })}\n`;
const HEARTBEAT = '{"type":"heartbeat"}\n';
const EXIT = '{"type":"exit","exit_code":7}\n';

/** A character of one stream is cut in two, with a piece of the other between its halves. */
const PIECES = [
  piece(1, "stdout", Buffer.concat([Buffer.from("a"), euro.subarray(0, 1)])),
  piece(2, "stderr", "é"),
  piece(3, "stdout", Buffer.concat([euro.subarray(1), Buffer.from("z")])),
];
const LINES = [PIECES[0] ?? "", HEARTBEAT, PIECES[1] ?? "", "\n", PIECES[2] ?? "", EXIT];
const WHOLE = Buffer.from(LINES.join(""));
const PRINTED = { exitCode: 7, signal: null, timedOut: false, stdout: "a€z", stderr: "é" };

/** All that comes after a sequence. */
const rest = (after: number) => PIECES.slice(after).join("") + EXIT;
/** The sequence of the last piece whose line is whole in so many bytes. */
const readIn = (bytes: number): number => {
  const lines = WHOLE.subarray(0, bytes).toString().split("\n").slice(0, -1);
  return lines.filter((line) => line.includes('"data"')).length;
};

function expectPrinted(run: Awaited<ReturnType<ScriptedProvider["run"]>>): void {
  if (run.outcome.value === undefined) throw run.outcome.reason;
  const metadata = { processId: "proc_scripted", outputTruncated: false };
  expect(run.outcome.value).toEqual({ ...PRINTED, metadata });
  const given = (stream: string) => run.pieces.map(([one, text]) => (one === stream ? text : "")).join("");
  expect({ stdout: given("stdout"), stderr: given("stderr") }).toEqual({ stdout: "a€z", stderr: "é" });
}

const PER_TEST = 24;
const starts = Array.from({ length: Math.ceil((WHOLE.length + 1) / PER_TEST) }, (_, index) => index * PER_TEST);
const bytesFrom = (start: number) =>
  Array.from({ length: Math.min(PER_TEST, WHOLE.length + 1 - start) }, (_, index) => start + index);

describe.concurrent.each(["cut", "end"] as const)("a stream whose connection comes to its %s", (last) => {
  test.concurrent.for(starts)("after %i bytes and each of the next ones", async (start, context) => {
    const provider = await ScriptedProvider.start(context);
    await Promise.all(
      bytesFrom(start).map(async (bytes) => {
        const first: Stream = { chunks: [WHOLE.subarray(0, bytes)], last };
        const run = await provider.run({ streams: (after, nth) => (nth === 1 ? first : { chunks: [rest(after)] }) });
        expectPrinted(run);
        // A line that only lacks its end may count as read when the stream has ended as it should.
        const read = [readIn(bytes), last === "end" ? readIn(bytes + 1) : readIn(bytes)];
        const isWhole = bytes === WHOLE.length || (last === "end" && bytes === WHOLE.length - 1);
        expect([...(isWhole ? [[0]] : []), [0, read[0]], [0, read[1]]]).toContainEqual(run.afters);
        expect(run).toMatchObject({ closes: 1, waits: 0, ends: 0 });
      }),
    );
  });
});

test.concurrent("a stream that is lost after each byte of it in turn", async (context) => {
  // Each new stream goes one byte further than the one before; what has been read is not sent again.
  const provider = await ScriptedProvider.start(context);
  const text = Buffer.from(piece(1, "stdout", "x") + EXIT);
  const lengths = [1, 2, 3].map((lost) => text.length - lost);
  const runs = lengths.map((length) =>
    provider.run({ streams: (_after, nth) => ({ chunks: [text.subarray(0, length + nth - 1)], last: "cut" }) }),
  );
  for (const { outcome } of await Promise.all(runs)) expect(outcome.value).toMatchObject({ exitCode: 7, stdout: "x" });
});

describe.concurrent("a stream in pieces", () => {
  test.concurrent.for([1, 2, 7, 64])("of %i bytes", async (size, context) => {
    const provider = await ScriptedProvider.start(context);
    const chunks = Array.from({ length: Math.ceil(WHOLE.length / size) }, (_, at) => WHOLE.subarray(at * size, (at + 1) * size));
    const run = await provider.run({ streams: () => ({ chunks }) });
    expectPrinted(run);
    expect(run).toMatchObject({ afters: [0], closes: 1, waits: 0, ends: 0 });
  });
});

/** What a wait tells: a journal of so many pieces, and an exit. */
const over = (newest: unknown, more: object = { exit_code: 7 }) => ({
  data: { process_id: "proc_scripted", tree_exited: true, output: { newest_seq: newest }, ...more },
});

const cut = (...chunks: string[]): Stream => ({ chunks, last: "cut" });
const end = (...chunks: string[]): Stream => ({ chunks });
const DOWN: Stream = { status: 503, chunks: ["injected"] };
/** The n-th stream of a list, and its last one from then on. */
const each =
  (...streams: (Stream | ((after: number) => Stream))[]) =>
  (after: number, nth: number): Stream => {
    const stream = streams[Math.min(nth, streams.length) - 1];
    return typeof stream === "function" ? stream(after) : (stream ?? DOWN);
  };
const whole = (after: number): Stream => end(rest(after));
const onePiece = (after: number): Stream => cut(PIECES[after] ?? EXIT);

type Asked = Partial<{ afters: number[]; waits: number; ends: number; closes: number }>;
type Line = [name: string, script: Script, expected: "printed" | Expectation, asked: Asked];

const GAP = output("process output has a sequence gap");
const UNREPLAYED = output("process stream ended before all output could be replayed");
const INVALID_FRAME = output("returned an invalid process frame");
const [ONE = "", TWO = "", THREE = ""] = PIECES;
const ALL = ONE + TWO + THREE;

const RECOVERIES: Line[] = [
  ["one piece by each stream", { streams: onePiece }, "printed", { afters: [0, 1, 2, 3], waits: 0, ends: 0 }],
  ["three failures before each piece", { streams: (after, nth) => (nth % 4 === 0 ? onePiece(after) : DOWN) }, "printed", { waits: 0, ends: 0 }],
  ["a stream that begins anew each time", { streams: each(cut(ONE), cut(ONE + TWO), end(ALL + EXIT)) }, "printed", { afters: [0, 1, 2], waits: 0 }],
  ["a stream that gives what was not asked for", { streams: each(cut(ONE + TWO), end(ONE + TWO + ONE + THREE + TWO + EXIT)) }, "printed", { afters: [0, 2] }],
  ["each line twice", { streams: () => end(LINES.flatMap((line) => (line === EXIT ? [line] : [line, line])).join("")) }, "printed", { afters: [0] }],
  ["each line twice, cut after the first", { streams: each(cut(ONE + ONE + TWO.slice(0, 20)), end(ONE + ONE + TWO + TWO + THREE + THREE + EXIT)) }, "printed", { afters: [0, 1] }],
  ["what comes after the exit", { streams: () => end(`${ALL}${EXIT}${piece(4, "stdout", "more")}nonsense`) }, "printed", { afters: [0] }],
  ["an exit, and a connection that stays", { streams: () => ({ chunks: [ALL + EXIT], last: "stay" }) }, "printed", { afters: [0] }],
  ["an exit in a line without an end", { streams: each(end(ALL + EXIT.trimEnd()), whole) }, "printed", { waits: 0, ends: 0 }],
  ["less than was promised", { streams: each({ chunks: [ONE], headers: { "content-length": "999" }, last: "cut" }, whole) }, "printed", { afters: [0, 1] }],
  ["streams without a byte", { streams: each(end(), cut(), end(), whole) }, "printed", { afters: [0, 0, 0, 0], waits: 0 }],
  ["heartbeats only, until it breaks", { streams: each(cut(HEARTBEAT), cut(HEARTBEAT, HEARTBEAT), whole) }, "printed", { afters: [0, 0, 0] }],
  ["no exit", { streams: each(end(ALL)), wait: () => over(3) }, "printed", { waits: 1, ends: 0 }],
  ["no exit, and no answer for a while", { streams: each(end(ALL)), wait: (nth) => (nth < 4 ? 408 : over(3)) }, "printed", { waits: 4, ends: 0 }],
  ["no exit, and failures between the answers", { streams: each(end(ALL)), wait: (nth) => [500, 503, 408, 502, 500, 504][nth - 1] ?? over(3) }, "printed", { waits: 7, ends: 0 }],
  ["heartbeats are nothing new", { streams: each(end(ALL), cut(HEARTBEAT)), wait: () => over(3) }, "printed", { afters: [0, 3, 3, 3, 3], waits: 1 }],
  ["what was seen is nothing new", { streams: each(end(ALL), end(ALL)), wait: () => over(3) }, "printed", { afters: [0, 3, 3, 3, 3], waits: 1 }],
  ["half a piece is nothing new", { streams: each(cut(ONE + TWO), ...Array(4).fill(cut(THREE.slice(0, 30))), whole), wait: () => over(3) }, "printed", { afters: [0, 2, 2, 2, 2, 2], waits: 1 }],
  ["the last piece in the last round", { streams: each(cut(ONE + TWO), DOWN, DOWN, DOWN, DOWN, end(THREE)), wait: () => over(3) }, "printed", { afters: [0, 2, 2, 2, 2, 2, 3, 3, 3, 3], waits: 1 }],
  ["the last piece never", { streams: each(cut(ONE + TWO), DOWN), wait: () => over(3) }, UNREPLAYED, { afters: [0, ...Array(8).fill(2)], waits: 1, ends: 1 }],
  ["a process that has printed nothing", { streams: each(end()), wait: () => over(0) }, { result: { exitCode: 7 } }, { afters: [0, 0, 0, 0], waits: 1, ends: 0 }],
  ["a gap after a break", { streams: each(cut(ONE), end(THREE + EXIT)) }, GAP, { afters: [0, 1], ends: 1 }],
  ["another stream's piece after a break", { streams: each(cut(ONE), end(piece(7, "stdout", "x"))) }, GAP, { afters: [0, 1], ends: 1 }],
  ["nonsense after a break", { streams: each(cut(ONE), end("nonsense\n")) }, INVALID_FRAME, { afters: [0, 1], ends: 1 }],
  ["two broken halves that do not make a line", { streams: each(cut(ONE.slice(0, 30)), end(ONE.slice(30) + TWO)) }, INVALID_FRAME, { afters: [0, 0], ends: 1 }],
  ["a break, a failure, and no process any more", { streams: each(cut(ONE), DOWN, { status: 404 }), end: () => 404 }, api(404, "output connection"), { afters: [0, 1, 1], ends: 1 }],
];

test.concurrent.for(RECOVERIES)("%s", async ([, script, expected, asked], context) => {
  const provider = await ScriptedProvider.start(context);
  const run = await provider.run(script);
  if (expected === "printed") expectPrinted(run);
  else if ("error" in expected) expectCreateosError(run.outcome.reason, expected.error);
  else expect(run.outcome.value).toMatchObject("result" in expected ? expected.result : {});
  expect(run).toMatchObject({ closes: 1, ...asked });
});

describe.concurrent("what goes on and on", () => {
  const goesOn = (stream: Stream): Script => ({ streams: () => stream, goesOn: true });

  test.concurrent.for<[string, Stream, Partial<Result>]>([
    ["heartbeats", { chunks: Array(20).fill(HEARTBEAT), last: "stay" }, {}],
    ["nothing", { last: "stay" }, {}],
    ["nothing after a piece", { chunks: [ONE + TWO], last: "stay" }, { stdout: "a\uFFFD", stderr: "é" }],
    ["nothing after half a line", { chunks: [ONE, TWO.slice(0, 40)], last: "stay" }, { stdout: "a\uFFFD" }],
  ])("%s is ended by the deadline", async ([, stream, expected], context) => {
    const provider = await ScriptedProvider.start(context);
    const run = await provider.run(goesOn(stream), { timeoutMs: 2500 });
    expect(run.outcome.value).toMatchObject({ exitCode: null, signal: null, timedOut: true, stdout: "", stderr: "", ...expected });
    expect(run).toMatchObject({ afters: [0], waits: 0, ends: 1 });
  });

  test.concurrent("streams that each live on a piece", async (context) => {
    const provider = await ScriptedProvider.start(context);
    const streams = (after: number): Stream => (after < 8 ? cut(piece(after + 1, "stdout", `${after}`)) : end(EXIT));
    const run = await provider.run({ streams });
    expect(run.outcome.value).toMatchObject({ exitCode: 7, stdout: "01234567" });
    expect(run).toMatchObject({ afters: [0, 1, 2, 3, 4, 5, 6, 7, 8], waits: 0, ends: 0 });
  });

  test.concurrent("a command whose end the provider does not prove", async (context) => {
    const provider = await ScriptedProvider.start(context);
    const end = () => ({ data: { process_id: "proc_scripted", tree_exited: false } });
    const { outcome, ends } = await provider.run({ ...goesOn({ chunks: ["nonsense\n"], last: "stay" }), end });
    expectCreateosError(outcome.reason, {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: "CreateOS command cleanup failed; process termination is unconfirmed.",
    });
    expect(ends).toBe(1);
  });
});
