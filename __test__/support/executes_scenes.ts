// The waits of a command, each as a scene in which it is stopped.
import type { Acting } from "./executes_abort.js";
import { ENDS, STAYS, TEXT, sh, withInput, type Command } from "./executes.js";
import {
  CLOSE,
  CONNECT,
  CREATE,
  DELETE,
  DONE,
  EXEC,
  INVALID_FRAME,
  PUT,
  UNCREATED,
  WAIT,
  api,
  frame,
  on,
  once,
  status,
  tooMany,
  type Expectation,
  type Rule,
} from "./executes_faults.js";
import { OWN } from "./executes_abort.js";
import { within } from "./waiting.js";

/** Where a command is stopped. */
export interface Scene {
  name: string;
  /** Default: one that goes on without a word. */
  command?: Command;
  /** What has to go wrong for the command to get there. */
  rules?(acting: Acting): Rule[];
  onOutput?(acting: Acting): unknown;
  /** Resolves once it has got there, with what lets it go on. */
  stop(acting: Acting): Promise<() => void>;
  /** Its output by then. */
  text?: string;
  /** Whether its caller has not taken all of that yet. */
  isPending?: boolean;
  /** What it had failed with before, whatever ends it. */
  failure?: Expectation;
  /** What the deadline leaves it at. */
  atDeadline?: Expectation;
  /** What it comes to if what it waits for never comes. */
  unanswered?: Expectation;
  /** How long the command pauses of its own before it gets there, in ms. */
  pausesMs?: number;
  /** How long it waits for that all the same, in ms. */
  patienceMs?: number;
  /** Whether what it waits for is the removal of its own files, which then stay. */
  isRemoval?: boolean;
  /** Whether there is nothing that could come. */
  isPause?: boolean;
}

type Details = Omit<Partial<Scene>, "stop" | "isPause">;

/** The n-th request of a route is held, before it is acted upon or, with `after`, its answer is. */
function held(route: string, { at = 0, after = false, ...details }: Details & { at?: number; after?: boolean } = {}): Scene {
  const name = `${route}${at > 0 ? `, number ${at + 1}` : ""}${after ? ", its answer" : ""}`;
  return {
    name,
    ...details,
    async stop({ provider }) {
      const effect = { type: "hold" as const, when: after ? ("after" as const) : ("before" as const) };
      const rule = provider.faults.add({ match: { path: route }, skip: at, times: 1, effect });
      const { id } = await within(rule.hit, 25_000, name);
      await provider.waitFor((event) => event.type === "fault:hit" && event.effect === "hold" && event.request.id === id);
      return () => rule.release();
    },
  };
}

/** The pause after the n-th answer of a route. Where the deadline is to end it, it begins right before that. */
function pause(name: string, route: string, details: Details & { at?: number; answer?: Rule["effect"] }): Scene {
  const { at = 0, answer = [], rules, ...more } = details;
  return {
    name,
    ...more,
    isPause: true,
    rules: (acting) => [
      ...(rules?.(acting) ?? []),
      on(route, [{ type: "call" as const, run: () => acting.untilDeadline() }, answer].flat(), { skip: at, times: 1 }),
    ],
    async stop({ provider }) {
      let left = at;
      const isIt = (request: { route: string | undefined }) => request.route === route && (left -= 1) < 0;
      await provider.waitFor((event) => event.type === "request:finish" && isIt(event.request), { timeoutMs: 25_000 });
      return () => {};
    },
  };
}

/** A moment in which the command waits for more output. */
function listening(name: string, details: Details & { until: (acting: Acting) => Promise<unknown> }): Scene {
  const { until, ...more } = details;
  return {
    name,
    ...more,
    isPause: true,
    async stop(acting) {
      await within(until(acting), 25_000, name);
      return () => {};
    },
  };
}

/** Resolves once a request of a route has been answered. */
const answered =
  (route: string) =>
  ({ provider }: Acting) =>
    provider.waitFor((event) => event.type === "request:finish" && event.request.route === route, { timeoutMs: 25_000 });

/** The caller's function does not come to an end. */
const pending = (name: string, command: Command, until: (acting: Acting) => Promise<unknown>, details: Details): Scene => ({
  ...details,
  name,
  command,
  text: TEXT,
  isPending: true,
  onOutput: ({ output }) => output.promise,
  async stop(acting) {
    await within(until(acting), 25_000, name);
    return () => acting.output.resolve();
  },
});

/** The pauses before a lost stream is taken up again, until the round is over, and the one before the last round. */
const ROUND_MS = 4 * 250;
const LAST_ROUND_MS = ROUND_MS + 1000;

const BROKEN = frame("malformed");
const NO_EXIT = frame("eofBeforeExit");
/** What is read of three pieces when each stream ends before the last. */
const TWO_PIECES = "abcdefgh";
const INPUT = withInput(STAYS);
/** Its script is too long for an argument. */
const LONG = withInput(sh(`: ${"x".repeat(100_000)}; exec sleep 1000`));
/** How long the answers to a creation and to a removal are waited for. */
const CREATED_MS = 5000;
const REMOVED_MS = 10_000;
/** How long a promise of the caller's is waited for, once its command has been ended. */
const DELIVERED_MS = 5_000;

/** Resolves once the caller has been given so much. */
const given = (text: string) => (acting: Acting) => acting.has(text);

export const SCENES: Scene[] = [
  held(DELETE, { command: STAYS, rules: () => [BROKEN], failure: INVALID_FRAME, patienceMs: REMOVED_MS }),
  held(DELETE, { command: STAYS, rules: () => [BROKEN], failure: INVALID_FRAME, patienceMs: REMOVED_MS, after: true }),
  held(EXEC, { command: INPUT, rules: () => [once(CREATE, status(400))], failure: api(400, "process creation"), patienceMs: REMOVED_MS, isRemoval: true }),
  {
    ...held(DELETE, { failure: { reason: OWN }, patienceMs: REMOVED_MS, name: "process.delete, after the caller's signal" }),
    async stop(acting) {
      const stopped = held(DELETE).stop(acting);
      await answered(CLOSE)(acting);
      acting.controller.abort(OWN);
      return stopped;
    },
  },
  held(CREATE, { command: INPUT, unanswered: UNCREATED, patienceMs: CREATED_MS }),
  held(CREATE, { unanswered: UNCREATED, patienceMs: CREATED_MS, after: true }),
  held(PUT, { command: INPUT }),
  held(PUT, { command: INPUT, after: true }),
  held(PUT, { command: LONG, at: 1, after: true }),
  held(CONNECT),
  held(CLOSE, { command: INPUT }),
  held(CLOSE, { after: true }),
  held(CONNECT, { command: STAYS, at: 1, rules: () => [frame("eof", 3)], text: TWO_PIECES }),
  held(CONNECT, { command: ENDS, at: 5, rules: () => [frame("eof", 3)], text: TWO_PIECES, name: "the connection of the last round", pausesMs: LAST_ROUND_MS }),
  held(WAIT, { command: ENDS, rules: () => [NO_EXIT], text: TEXT, pausesMs: ROUND_MS }),
  held(WAIT, { command: ENDS, rules: () => [NO_EXIT], text: TEXT, pausesMs: ROUND_MS, after: true }),
  // What ends a command while its output is being taken, and what comes after its own end.
  pending("a promise of the caller's", STAYS, given("abcd"), { patienceMs: DELIVERED_MS }),
  pending("a promise of the caller's, of a command that has ended", ENDS, answered(CONNECT), {
    atDeadline: DONE,
    patienceMs: DELIVERED_MS,
  }),
  listening("output that does not come", { until: answered(CLOSE) }),
  listening("more output", { command: STAYS, text: TEXT, until: given(TEXT) }),
  listening("the rest of a line", {
    command: STAYS,
    rules: () => [on(CONNECT, { type: "frame", what: "raw", at: 3, message: '{"type":"data","seq":3,' })],
    text: TWO_PIECES,
    until: given(TWO_PIECES),
  }),
  listening("the end of what goes on", {
    command: STAYS,
    rules: () => [frame("eof", 3)],
    text: TWO_PIECES,
    pausesMs: ROUND_MS,
    until: ({ provider }) => provider.waitForRequest(WAIT, { timeoutMs: 25_000 }),
  }),
  pause("the pause before a stream is taken up again", CONNECT, { answer: status(500) }),
  pause("the pause before the wait is tried again", WAIT, { command: ENDS, rules: () => [NO_EXIT], answer: status(500), text: TEXT, pausesMs: ROUND_MS }),
  pause("the pause before the last round", WAIT, { command: ENDS, rules: () => [frame("eof", 3)], text: TWO_PIECES, pausesMs: ROUND_MS }),
  pause("the pause before the input's end is told again", CLOSE, { answer: status(500) }),
  pause("the pause before the process is ended again", DELETE, {
    command: STAYS,
    at: 1,
    rules: () => [BROKEN, once(DELETE, status(500))],
    answer: status(500),
    failure: INVALID_FRAME,
  }),
  pause("the pause before the creation is tried again (429)", CREATE, { command: INPUT, answer: tooMany() }),
  pause("the pause before the input is sent again (429)", PUT, { command: INPUT, answer: tooMany() }),
  pause("the pause before a stream is asked for again (429)", CONNECT, { answer: tooMany() }),
];
