// Tables of how a command's output stream can be lost, how its end is found out then, and how the command is let begin.
import { ENDS, STAYS, TEXT } from "./executes.js";
import {
  CLOSE,
  CONNECT,
  DONE,
  EVICTED,
  INVALID_FRAME,
  KILLED,
  LOST_REPLY,
  LOST_REQUEST,
  NO_CONNECTION,
  NO_JSON,
  NO_STATUS,
  WAIT,
  api,
  ended,
  frame,
  kill,
  on,
  once,
  output,
  patch,
  response,
  status,
  streams,
  timedOut,
  tooMany,
  type Case,
} from "./executes_faults.js";

const BAD_JOURNAL = output("process output journal is invalid");
const UNREPLAYED = output("process stream ended before all output could be replayed");
const INVALID_JSON = response("returned invalid JSON");
const UNSUCCESSFUL = response("returned an unsuccessful response");
const INVALID_RESPONSE = response("returned an invalid response");

/** Each stream ends where it did before the exit, so that only the provider's wait tells of it. */
const NO_EXIT = frame("eofBeforeExit");
/** Five streams: one with all output, four in a row with nothing new. */
const FIVE = 5;

export const LOST_STREAMS: Case[] = [
  ["a lost request", ENDS, [once(CONNECT, LOST_REQUEST)], DONE, streams(2)],
  ["a lost reply", ENDS, [once(CONNECT, LOST_REPLY)], DONE, streams(2)],
  ["three lost requests", ENDS, [on(CONNECT, LOST_REQUEST, { times: 3 })], DONE, streams(4)],
  ["HTTP 500", ENDS, [once(CONNECT, status(500))], DONE, streams(2)],
  ["HTTP 502, three times", ENDS, [on(CONNECT, status(502), { times: 3 })], DONE, streams(4)],
  ["HTTP 503 with a whole body", ENDS, [once(CONNECT, { type: "hugeError", status: 503, bytes: 4_000_000 })], DONE, streams(2)],
  ["HTTP 504 that gives back what was sent", ENDS, [once(CONNECT, { type: "echoError", status: 504 })], DONE, streams(2)],
  ["a redirect", ENDS, [once(CONNECT, { type: "redirect", location: "/elsewhere" })], DONE, streams(2)],
  ["HTTP 429 for no time", ENDS, [once(CONNECT, tooMany(0))], DONE, streams(2)],
  ["HTTP 429 for no time, three times", ENDS, [on(CONNECT, tooMany(0), { times: 3 })], DONE, streams(4)],
  ["HTTP 429 for a second", ENDS, [once(CONNECT, tooMany(1))], DONE, streams(2)],
  ["HTTP 429 for an unknown time", ENDS, [once(CONNECT, tooMany())], DONE, streams(2)],
  ["a stream that ends at its start", ENDS, [frame("eof", 1, { times: 1 })], DONE, streams(2)],
  ["a stream that ends in between", ENDS, [frame("eof", 2, { times: 1 })], DONE, streams(2)],
  ["a stream that ends before the last piece", ENDS, [frame("eof", 3, { times: 1 })], DONE, streams(2)],
  ["half a line at the start", ENDS, [frame("halfLine", 1, { times: 1 })], DONE, streams(2)],
  ["half a line in between", ENDS, [frame("halfLine", 2, { times: 1 })], DONE, streams(2)],
  ["half a line at the end", ENDS, [frame("halfLine", 3, { times: 3 })], DONE, streams(4)],
  ["a connection that breaks at its start", ENDS, [once(CONNECT, { type: "cutBody", after: 1 })], DONE, streams(2)],
  ["a connection that breaks in between", ENDS, [once(CONNECT, { type: "cutBody", after: 100 })], DONE, streams(2)],
  ["a stream that trickles", ENDS, [on(CONNECT, { type: "slowBody", bytes: 3, everyMs: 1 })], DONE, streams(1)],
  ["a stream that ends before its exit", ENDS, [frame("eofBeforeExit", 1, { times: 1 })], DONE, streams(2)],
  ["a new failure after each piece", ENDS, [1, 2, 3].map((at) => frame("eof", at, { times: 1, skip: at - 1 })), DONE, streams(4)],
  ["three failures before each piece", ENDS, [1, 2, 3].flatMap((at) => frame("eof", at, { times: at === 1 ? 3 : 4, skip: [0, 3, 7][at - 1] ?? 0 })), DONE, streams(12)],
  ["HTTP 429 where a stream is taken up again", ENDS, [frame("eof", 2, { times: 1 }), on(CONNECT, tooMany(0), { skip: 1, times: 1 })], DONE, streams(3)],
  ["HTTP 429 for a second where a stream is taken up again", ENDS, [frame("eof", 2, { times: 1 }), on(CONNECT, tooMany(1), { skip: 1, times: 1 })], DONE, streams(3)],
  ["HTTP 500 where a stream is taken up again", ENDS, [frame("eof", 2, { times: 1 }), on(CONNECT, status(500), { skip: 1, times: 2 })], DONE, streams(4)],
  ["HTTP 400", STAYS, [once(CONNECT, status(400))], api(400, "output connection"), { connect: 1, close: 0, delete: 1 }],
  ["HTTP 401 that gives the key back", STAYS, [once(CONNECT, { type: "echoError", status: 401 })], api(401, "output connection"), { connect: 1, delete: 1 }],
  ["HTTP 403", STAYS, [once(CONNECT, status(403))], api(403, "output connection"), { connect: 1, close: 0, delete: 1 }],
  ["HTTP 404", STAYS, [once(CONNECT, status(404))], api(404, "output connection"), { connect: 1, close: 0, delete: 1 }],
  ["HTTP 409", STAYS, [once(CONNECT, status(409))], api(409, "output connection"), { connect: 1, close: 0, delete: 1 }],
  ["HTTP 404 where a stream is taken up again", STAYS, [frame("eof", 3), on(CONNECT, status(404), { skip: 1 })], api(404, "output connection"), { connect: 2, wait: 0, delete: 1 }],
  ["HTTP 410", STAYS, [once(CONNECT, status(410))], EVICTED, { connect: 1, delete: 1 }],
  ["HTTP 410 where a stream is taken up again", STAYS, [frame("eof", 3), on(CONNECT, status(410), { skip: 1 })], EVICTED, { connect: 2, wait: 0, delete: 1 }],
  ["streams that never come, so that the command never begins", { ...STAYS, timeoutMs: 2500 }, [on(CONNECT, LOST_REQUEST)], timedOut(""), { connect: 4, close: 0, wait: 1, delete: 1 }],
  ["streams that never come, and a process that waits for one", STAYS, [on(CONNECT, LOST_REQUEST), on(WAIT, status(408))], NO_CONNECTION, { connect: 4, close: 0, wait: 1, delete: 1 }],
  ["a beginning that is refused for ever (500)", STAYS, [on(CLOSE, status(500)), on(WAIT, status(408))], api(500, "stdin close"), { connect: 4, close: 16, wait: 1, delete: 1 }],
];

/** What the wait is for when no stream tells of the exit. */
const waits = (wait: number) => ({ connect: FIVE, wait, delete: 0 });
const failedWait = (wait: number) => ({ connect: FIVE, wait, delete: 1 });

export const WAITS: Case[] = [
  ["tells of the end", ENDS, [NO_EXIT], DONE, waits(1)],
  ["tells of a signal", ENDS, [NO_EXIT, on(WAIT, patch({ signal: "SIGKILL" }, "exit_code"))], ended({ signal: "SIGKILL", stdout: TEXT }), waits(1)],
  ["has to be asked again (408)", ENDS, [NO_EXIT, once(WAIT, status(408))], DONE, waits(2)],
  ["has to be asked again and again", ENDS, [NO_EXIT, on(WAIT, status(408), { times: 6 })], DONE, waits(7)],
  ["fails for a moment (500)", ENDS, [NO_EXIT, once(WAIT, status(500))], DONE, waits(2)],
  ["fails three times", ENDS, [NO_EXIT, on(WAIT, status(503), { times: 3 })], DONE, waits(4)],
  ["fails for good", ENDS, [NO_EXIT, on(WAIT, status(500))], api(500, "process cleanup"), failedWait(4)],
  ["fails three times on each side of a 408", ENDS, [NO_EXIT, on(WAIT, status(500), { times: 3 }), on(WAIT, status(408), { skip: 3, times: 1 }), on(WAIT, status(500), { skip: 4, times: 3 })], DONE, waits(8)],
  ["is lost", ENDS, [NO_EXIT, once(WAIT, LOST_REQUEST)], DONE, waits(2)],
  ["is lost on its way back", ENDS, [NO_EXIT, once(WAIT, LOST_REPLY)], DONE, waits(2)],
  ["is lost for good", ENDS, [NO_EXIT, on(WAIT, LOST_REPLY)], NO_CONNECTION, failedWait(4)],
  ["breaks off in its answer", ENDS, [NO_EXIT, once(WAIT, { type: "cutBody", after: 20 })], DONE, waits(2)],
  ["is too much for the provider (429)", ENDS, [NO_EXIT, once(WAIT, tooMany(0))], DONE, waits(2)],
  ["knows no such process (404)", ENDS, [NO_EXIT, on(WAIT, status(404))], api(404, "process cleanup"), failedWait(1)],
  ["is refused (403)", ENDS, [NO_EXIT, on(WAIT, status(403))], api(403, "process cleanup"), failedWait(1)],
  ["is no JSON", ENDS, [NO_EXIT, on(WAIT, NO_JSON)], INVALID_JSON, failedWait(1)],
  ["says failure", ENDS, [NO_EXIT, on(WAIT, { type: "envelope", variant: "fail" })], UNSUCCESSFUL, failedWait(1)],
  ["says nothing", ENDS, [NO_EXIT, on(WAIT, { type: "envelope", variant: "nullData" })], INVALID_RESPONSE, failedWait(1)],
  ["tells of no journal", ENDS, [NO_EXIT, on(WAIT, patch({}, "output"))], BAD_JOURNAL, failedWait(1)],
  ["tells of a journal that is null", ENDS, [NO_EXIT, on(WAIT, patch({ output: null }))], BAD_JOURNAL, failedWait(1)],
  ["tells of a journal without a sequence", ENDS, [NO_EXIT, on(WAIT, patch({ output: { oldest_seq: 1 } }))], BAD_JOURNAL, failedWait(1)],
  ["tells of a sequence that is a text", ENDS, [NO_EXIT, on(WAIT, patch({ output: { newest_seq: "3" } }))], BAD_JOURNAL, failedWait(1)],
  ["tells of half a sequence", ENDS, [NO_EXIT, on(WAIT, patch({ output: { newest_seq: 3.5 } }))], BAD_JOURNAL, failedWait(1)],
  ["tells of less than was read", ENDS, [NO_EXIT, on(WAIT, patch({ output: { newest_seq: 2 } }))], BAD_JOURNAL, failedWait(1)],
  ["tells of a negative sequence", ENDS, [NO_EXIT, on(WAIT, patch({ output: { newest_seq: -1 } }))], BAD_JOURNAL, failedWait(1)],
  ["tells of no exit", ENDS, [NO_EXIT, on(WAIT, patch({}, "exit_code", "signal"))], NO_STATUS, failedWait(1)],
  ["tells of more, which then comes", ENDS, [frame("eof", 3, { times: 5 })], DONE, { connect: 6, wait: 1, delete: 0 }],
  ["tells of more, which then comes without an exit", ENDS, [NO_EXIT, frame("eof", 3, { times: 5 })], DONE, { connect: 10, wait: 1, delete: 0 }],
  ["tells of more, which never comes", ENDS, [frame("eof", 3)], UNREPLAYED, { connect: 9, wait: 1, delete: 1 }],
  ["tells of less than then comes", ENDS, [frame("eof", 2, { times: 5 }), on(WAIT, patch({ output: { newest_seq: 2 } }))], DONE, { connect: 6, wait: 1, delete: 0 }],
  ["tells of less than then comes without an exit", ENDS, [NO_EXIT, frame("eof", 2, { times: 5 }), on(WAIT, patch({ output: { newest_seq: 2 } }))], DONE, { connect: 10, wait: 1, delete: 0 }],
  ["tells of more than there is", ENDS, [NO_EXIT, on(WAIT, patch({ output: { newest_seq: 4 } }))], UNREPLAYED, { connect: 9, wait: 1, delete: 1 }],
  ["tells of more, which then is broken", ENDS, [frame("eof", 3, { times: 5 }), frame("malformed", 3, { skip: 5 })], INVALID_FRAME, { connect: 6, wait: 1, delete: 1 }],
  ["waits for what goes on, until the deadline", { ...STAYS, timeoutMs: 3000 }, [frame("eof", 3)], timedOut("abcdefgh"), { connect: FIVE, wait: 1, delete: 1 }],
];

export const GATES: Case[] = [
  ["HTTP 409, though done", ENDS, [once(CLOSE, status(409, { when: "after" }))], DONE, { close: 1, ...streams(1) }],
  ["HTTP 404, though done", ENDS, [once(CLOSE, status(404, { when: "after" }))], DONE, { close: 1, ...streams(1) }],
  ["the process has ended before it", STAYS, (at) => [once(CLOSE, kill(at))], KILLED, { close: 1, ...streams(1) }],
  ["HTTP 429 for no time", ENDS, [once(CLOSE, tooMany(0))], DONE, { close: 2, ...streams(1) }],
  ["no JSON, though done", ENDS, [once(CLOSE, NO_JSON)], DONE, { close: 1, ...streams(1) }],
  ["no answer, though done", ENDS, [on(CLOSE, { type: "hold", when: "after" })], DONE, { close: 1, ...streams(1) }],
  ["an answer that does not come to its end, though done", ENDS, [on(CLOSE, { type: "slowBody", bytes: 1, everyMs: 5000 })], DONE, { close: 1, ...streams(1) }],
  ["no content, though done", ENDS, [once(CLOSE, { type: "envelope", variant: "noContent" })], DONE, { close: 1, ...streams(1) }],
  ["HTTP 500, once", ENDS, [once(CLOSE, status(500))], DONE, { wait: 0, delete: 0 }],
  ["HTTP 500, though done", ENDS, [once(CLOSE, status(500, { when: "after" }))], DONE, { wait: 0, delete: 0 }],
  ["a lost request", ENDS, [once(CLOSE, LOST_REQUEST)], DONE, { wait: 0, delete: 0 }],
  ["a lost reply", ENDS, [once(CLOSE, LOST_REPLY)], DONE, { wait: 0, delete: 0 }],
  ["HTTP 400", STAYS, [on(CLOSE, status(400))], api(400, "stdin close"), { close: 1, connect: 1, delete: 1 }],
  ["HTTP 403", STAYS, [on(CLOSE, status(403))], api(403, "stdin close"), { close: 1, connect: 1, delete: 1 }],
  ["HTTP 400 that gives the key back", STAYS, [on(CLOSE, { type: "echoError" })], api(400, "stdin close"), { close: 1, connect: 1, delete: 1 }],
];
