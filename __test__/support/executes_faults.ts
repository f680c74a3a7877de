// The words of which the tables of faults are made, and what happens in each of their lines.
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { expectCreateosError, type Expected } from "./errors.js";
import { outcomeOf, type Outcome } from "./failed_requests.js";
import { provide, routesSince } from "./providers.js";
import { alive } from "./resumes.js";
import {
  PIECES,
  TEXT,
  executor,
  expectAccountedFor,
  expectNoSecret,
  place,
  type Command,
  type Piece,
  type Place,
  type Result,
} from "./executes.js";
import { turns, within } from "./waiting.js";

export type Rule = Parameters<Provider["faults"]["add"]>[0];
export type Effect = Rule["effect"];
type OneEffect = Exclude<Effect, readonly unknown[]>;
type FrameEffect = Extract<OneEffect, { type: "frame" }>;

export const PUT = "files.put";
export const CREATE = "process.create";
export const CONNECT = "process.connect";
export const CLOSE = "process.stdinClose";
export const WAIT = "process.wait";
export const DELETE = "process.delete";
export const EXEC = "exec";

/** A fault of a route, by default of each request. */
export const on = (route: string, effect: Effect, how: Pick<Rule, "times" | "skip"> = {}): Rule => ({
  match: { path: route },
  effect,
  ...how,
});
export const once = (route: string, effect: Effect): Rule => on(route, effect, { times: 1 });

/** A fault in each output stream, or only in the first so many. */
export const frame = (what: FrameEffect["what"], at = 1, how: Pick<Rule, "times" | "skip"> = {}): Rule =>
  on(CONNECT, { type: "frame", what, at }, how);
/** Lines in the place of a piece of output. */
export const lines = (at: number, ...texts: string[]): Rule =>
  on(CONNECT, { type: "frame", what: "raw", at, message: texts.map((text) => `${text}\n`).join("") });
export const eventOf = (message: string): Rule => on(CONNECT, { type: "frame", what: "error", at: 2, message });

/** A piece of output as it goes over the wire, with what is wrong with it. */
export const data = (seq: unknown, text: string, wrong: object = {}): string =>
  JSON.stringify({ type: "data", seq, stream: "stdout", data_base64: Buffer.from(text).toString("base64"), ...wrong });

export const status = (code: number, how: { when?: "after"; headers?: Record<string, string> } = {}) => ({
  type: "status" as const,
  status: code,
  ...how,
});
export const tooMany = (seconds?: number) =>
  status(429, seconds === undefined ? {} : { headers: { "retry-after": String(seconds) } });
export const patch = (set: Record<string, unknown>, ...omit: string[]) => ({ type: "patch" as const, set, omit });
export const LOST_REQUEST = { type: "lostRequest" as const };
export const LOST_REPLY = { type: "lostReply" as const };
export const NO_JSON = { type: "invalidJson" as const };

/** What a command comes to. */
export type Expectation =
  | { result: Partial<Result> }
  | { error: Expected }
  /** A value of the caller's own. */
  | { reason: unknown };

export const ended = (result: Partial<Result>): Expectation => ({ result });
/** The command's own end, with all that it has printed. */
export const DONE = ended({ exitCode: 3, stdout: TEXT });
export const timedOut = (stdout: string): Expectation => ended({ timedOut: true, stdout });
export const failed = (code: string, message: string): Expectation => ({ error: { code, message: `CreateOS ${message}.` } });
export const output = (message: string): Expectation => failed("ERR_CREATEOS_OUTPUT", message);
export const response = (message: string): Expectation => failed("ERR_CREATEOS_RESPONSE", message);
export const NO_CONNECTION = failed("ERR_CREATEOS_CONNECTION", "connection failed");

export const api = (code: number, operation: string): Expectation => ({
  error: {
    name: "CreateosApiError",
    code: "ERR_CREATEOS_API",
    message: `CreateOS request failed (HTTP ${code}) during ${operation}.`,
    extra: { status: code, operation },
  },
});

const cleanup = (message: string): { error: Expected } => ({
  error: { name: "CreateosCleanupError", code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED", message: `CreateOS ${message}.` },
});
export const UNENDED = cleanup("command cleanup failed; process termination is unconfirmed");
export const UNCREATED = cleanup("process creation could not be confirmed; destroy the lease before reusing it");

/** Failures of the output that several tables know. */
export const INVALID_FRAME = output("returned an invalid process frame");
export const EVICTED = output("process output was evicted before it could be read");
export const NO_STATUS = output("process exit status is missing");

/** Ends a sandbox's processes behind the client's back. */
export const kill = ({ provider, id }: Place) => ({
  type: "call" as const,
  async run() {
    const since = provider.mark();
    for (const { pid } of provider.processes(id)) process.kill(-pid, "SIGKILL");
    if (alive(provider, id).length > 0) await provider.waitFor((event) => event.type === "process:tree-exit", { since });
  },
});
export const KILLED = ended({ signal: "SIGKILL" });

const NAMES = { put: PUT, create: CREATE, connect: CONNECT, close: CLOSE, wait: WAIT, delete: DELETE, exec: EXEC };

/** The command's own end after so many streams. */
export const streams = (connect: number): Requests => ({ connect, wait: 0, delete: 0 });

/** How often something was asked for, where that matters; a creation without a word is one. */
export type Requests = Partial<Record<keyof typeof NAMES, number>>;

/** One line: a command, what goes wrong, what it comes to, and what was asked of the provider meanwhile. */
export type Case = [
  name: string,
  command: Command,
  rules: Rule[] | ((at: Place) => Rule[]),
  expected: Expectation,
  requests?: Requests,
];

/** What a test of such a line may set besides. */
export interface Playing {
  provider?: Parameters<typeof provide>[0];
  onOutput?: (at: Place, ...piece: Piece) => unknown;
}

/** Where a concurrent test says what to do when it has ended: its context. */
export type Context = Parameters<typeof provide>[1];

/** Runs a line's command under its faults and looks at everything afterwards. */
export async function play(line: Case, context: Context, how: Playing = {}): Promise<void> {
  const [name, { timeoutMs, ...command }, ...rest] = line;
  if (timeoutMs === undefined) return playOnce(line, context, how);
  try {
    await playOnce(line, context, how);
  } catch {
    // On a busy machine a deadline may pass before the command has done what it is to have done by then.
    await playOnce([name, { ...command, timeoutMs: timeoutMs * 3 }, ...rest], context, how);
  }
}

async function playOnce([, command, rules, expected, requests = {}]: Case, context: Context, how: Playing): Promise<void> {
  const provider = await provide({ ...PIECES, ...how.provider }, context);
  const at = await place(provider);
  for (const rule of typeof rules === "function" ? rules(at) : rules) provider.faults.add(rule);
  const driver = executor();
  const pieces: Piece[] = [];
  let isSettled = false;
  const onOutput = (...piece: Piece) => {
    pieces.push(isSettled ? ["stderr", "after the end"] : piece);
    return how.onOutput?.(at, ...piece);
  };
  const executed = driver.execute(at.params(command), onOutput).finally(() => (isSettled = true));
  const outcome = await within(outcomeOf(executed), 20_000, "The command");
  expectOutcome(outcome, expected, at, pieces);
  // It may end with its leader; what the leader leaves behind is looked for a moment later.
  if (outcome.value?.exitCode != null || outcome.value?.signal != null) await treesEnded(at);
  expectAccountedFor(at, driver, outcome.reason);
  expectRequests(provider, requests);
  await turns(3);
  expect(pieces).not.toContainEqual(["stderr", "after the end"]);
}

/** What a command has come to, all of it, and what of it its caller has been given. */
export function expectOutcome(outcome: Outcome<Result>, expected: Expectation, at: Place, pieces?: Piece[]): void {
  const text = (stream: string) => pieces?.map(([one, piece]) => (one === stream ? piece : "")).join("") ?? "";
  if ("error" in expected) {
    expect(outcome.value).toBeUndefined();
    expectCreateosError(outcome.reason, expected.error);
    expectNoSecret(outcome.reason, at);
    return;
  }
  if ("reason" in expected) {
    expect(outcome.value).toBeUndefined();
    // The value itself, where the table has it, and not one that is like it.
    if (expected.reason instanceof Error && outcome.reason !== expected.reason) throw outcome.reason;
    expect(outcome.reason).toBe(expected.reason);
    return;
  }
  if (outcome.value === undefined) throw outcome.reason;
  const processId = at.provider.processes(at.id)[0]?.process_id ?? null;
  const nothing = { exitCode: null, signal: null, timedOut: false, stdout: "", stderr: "" };
  expect(outcome.value).toEqual({ ...nothing, ...expected.result, metadata: { processId, outputTruncated: false } });
  const { stdout, stderr } = outcome.value;
  if (pieces !== undefined) expect({ stdout: text("stdout"), stderr: text("stderr") }).toEqual({ stdout, stderr });
}

/** Waits until nothing runs any more of what was started in a sandbox. */
async function treesEnded({ provider, id }: Place): Promise<void> {
  for (const one of alive(provider, id))
    await provider.waitFor((event) => event.type === "process:tree-exit" && event.id === one);
}

function expectRequests(provider: Provider, requests: Requests): void {
  const routes = routesSince(provider, 0);
  const wanted: Requests = { create: 1, ...requests };
  const names = Object.keys(wanted) as (keyof Requests)[];
  const counts = names.map((name) => [name, routes.filter((route) => route === NAMES[name]).length]);
  expect(Object.fromEntries(counts)).toEqual(wanted);
  for (const { route, url } of provider.requests)
    if (route === DELETE) expect(url).toMatch(/\?grace_ms=1000$/u);
}
