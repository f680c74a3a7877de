// Tables of what a process's output stream may hold that it should not, and of what is passed over.
import { ENDS, STAYS } from "./executes.js";
import { CONNECT, DONE, EVICTED, INVALID_FRAME, NO_STATUS, data, ended, eventOf, frame, lines, on, output, streams, type Case } from "./executes_faults.js";

const UNKNOWN_EVENT = output("returned an unknown process event");
const BAD_SEQUENCE = output("process sequence is invalid");
const GAP = output("process output has a sequence gap");
const BAD_OUTPUT = output("process output is invalid");
const PTY = output("pipe process returned PTY output");
const TOO_LARGE = output("process frame is too large");
const REPORTED = output("process stream reported an error");

/** A failure on the spot: one stream, one removal. */
const AT_ONCE = { connect: 1, wait: 0, delete: 1 };
/** The command's own end, by its one stream. */
const AS_EVER = streams(1);
const LARGE = 1_100_000;

export const BROKEN_FRAMES: Case[] = [
  ["no JSON", STAYS, [frame("malformed")], INVALID_FRAME, AT_ONCE],
  ["no JSON in the last piece", STAYS, [frame("malformed", 3)], INVALID_FRAME, AT_ONCE],
  ["no JSON, of a command that has ended", ENDS, [frame("malformed", 3)], INVALID_FRAME, AT_ONCE],
  ["null", STAYS, [lines(1, "null")], INVALID_FRAME, AT_ONCE],
  ["a list", STAYS, [lines(2, "[]")], INVALID_FRAME, AT_ONCE],
  ["a number", STAYS, [lines(2, "1")], INVALID_FRAME, AT_ONCE],
  ["a text", STAYS, [lines(2, '"data"')], INVALID_FRAME, AT_ONCE],
  ["two objects in a line", STAYS, [lines(2, "{}{}")], INVALID_FRAME, AT_ONCE],
  ["HTML", STAYS, [lines(1, "<html><body>502 Bad Gateway</body></html>")], INVALID_FRAME, AT_ONCE],
  ["an unknown event", STAYS, [frame("unknown", 2)], UNKNOWN_EVENT, AT_ONCE],
  ["no event", STAYS, [lines(1, "{}")], UNKNOWN_EVENT, AT_ONCE],
  ["an event that is no text", STAYS, [lines(1, '{"type":["data"]}')], UNKNOWN_EVENT, AT_ONCE],
  ["an event of another case", STAYS, [lines(1, '{"type":"Data"}')], UNKNOWN_EVENT, AT_ONCE],
  ["no sequence", STAYS, [lines(1, data(undefined, "abcd"))], BAD_SEQUENCE, AT_ONCE],
  ["sequence 0", STAYS, [lines(1, data(0, "abcd"))], BAD_SEQUENCE, AT_ONCE],
  ["a negative sequence", STAYS, [lines(1, data(-1, "abcd"))], BAD_SEQUENCE, AT_ONCE],
  ["a fraction of a sequence", STAYS, [lines(2, data(1.5, "abcd"))], BAD_SEQUENCE, AT_ONCE],
  ["a sequence that is a text", STAYS, [lines(1, data("1", "abcd"))], BAD_SEQUENCE, AT_ONCE],
  ["a sequence that is null", STAYS, [lines(2, data(null, "abcd"))], BAD_SEQUENCE, AT_ONCE],
  ["a gap at the start", STAYS, [frame("gap")], GAP, AT_ONCE],
  ["a gap", STAYS, [frame("gap", 2)], GAP, AT_ONCE],
  ["a sequence far ahead", STAYS, [lines(2, data(2 ** 40, "abcd"))], GAP, AT_ONCE],
  ["an unknown stream", STAYS, [frame("badStream")], BAD_OUTPUT, AT_ONCE],
  ["an unknown stream at the end", ENDS, [frame("badStream", 3)], BAD_OUTPUT, AT_ONCE],
  ["no stream", STAYS, [lines(1, data(1, "abcd", { stream: undefined }))], BAD_OUTPUT, AT_ONCE],
  ["a stream that is a number", STAYS, [lines(1, data(1, "abcd", { stream: 1 }))], BAD_OUTPUT, AT_ONCE],
  ["a terminal's output", STAYS, [frame("pty")], PTY, AT_ONCE],
  ["a terminal's output later", STAYS, [frame("pty", 3)], PTY, AT_ONCE],
  ["what is no base64", STAYS, [frame("badBase64")], BAD_OUTPUT, AT_ONCE],
  ["what is no base64 later", STAYS, [frame("badBase64", 2)], BAD_OUTPUT, AT_ONCE],
  ["no base64", STAYS, [lines(1, data(1, "", { data_base64: undefined }))], BAD_OUTPUT, AT_ONCE],
  ["base64 that is a number", STAYS, [lines(1, data(1, "", { data_base64: 1234 }))], BAD_OUTPUT, AT_ONCE],
  ["base64 without its padding", STAYS, [lines(1, data(1, "", { data_base64: "YWI" }))], BAD_OUTPUT, AT_ONCE],
  ["base64 with padding inside", STAYS, [lines(1, data(1, "", { data_base64: "YQ==YWI=" }))], BAD_OUTPUT, AT_ONCE],
  ["base64 of another alphabet", STAYS, [lines(1, data(1, "", { data_base64: "-_-_" }))], BAD_OUTPUT, AT_ONCE],
  ["base64 with a line break", STAYS, [lines(1, data(1, "", { data_base64: "YWJj\nYWJj" }))], BAD_OUTPUT, AT_ONCE],
  ["a line that is too large", STAYS, [frame("oversized")], TOO_LARGE, AT_ONCE],
  ["a later line that is too large", STAYS, [frame("oversized", 3)], TOO_LARGE, AT_ONCE],
  ["a line without an end", STAYS, [on(CONNECT, { type: "frame", what: "raw", message: "x".repeat(LARGE) })], TOO_LARGE, AT_ONCE],
  ["a heartbeat that is too large", STAYS, [lines(1, `{"type":"heartbeat"${" ".repeat(LARGE)}}`)], TOO_LARGE, AT_ONCE],
  ["blank lines that are too large", STAYS, [lines(1, " ".repeat(LARGE))], TOO_LARGE, AT_ONCE],
  ["a reported error", STAYS, [eventOf("internal error")], REPORTED, AT_ONCE],
  ["an error without a text", STAYS, [lines(1, '{"type":"error"}')], REPORTED, AT_ONCE],
  ["an error that is a key", STAYS, (at) => [eventOf(at.provider.apiKey)], REPORTED, AT_ONCE],
  ["evicted output", STAYS, [eventOf("output_offset_expired")], EVICTED, AT_ONCE],
  ["an exit without a status", ENDS, [frame("exitWithoutStatus")], NO_STATUS, AT_ONCE],
  ["an exit whose status is null", STAYS, [lines(1, '{"type":"exit","exit_code":null,"signal":null}')], NO_STATUS, AT_ONCE],
  ["an exit whose status is a text", STAYS, [lines(1, '{"type":"exit","exit_code":"0"}')], NO_STATUS, AT_ONCE],
  ["an exit whose status is a fraction", STAYS, [lines(1, '{"type":"exit","exit_code":0.5}')], NO_STATUS, AT_ONCE],
];

export const HARMLESS_FRAMES: Case[] = [
  ["a piece twice", ENDS, [frame("duplicate")], DONE, AS_EVER],
  ["a later piece twice", ENDS, [frame("duplicate", 2)], DONE, AS_EVER],
  ["the last piece twice", ENDS, [frame("duplicate", 3)], DONE, AS_EVER],
  ["every piece twice", ENDS, [1, 2, 3].map((at) => frame("duplicate", at)), DONE, AS_EVER],
  ["all that was there again", ENDS, [lines(3, data(1, "abcd"), data(2, "efgh"), data(3, "ijkl"))], DONE, AS_EVER],
  ["a seen sequence with another content", ENDS, [lines(2, data(1, "XXXX"), data(2, "efgh"))], DONE, AS_EVER],
  ["a heartbeat between", ENDS, [lines(2, '{"type":"heartbeat"}', data(2, "efgh"))], DONE, AS_EVER],
  ["a heartbeat with fields of its own", ENDS, [lines(2, '{"type":"heartbeat","seq":9,"stream":"pty"}', data(2, "efgh"))], DONE, AS_EVER],
  ["blank lines", ENDS, [lines(2, "", "", data(2, "efgh"), "")], DONE, AS_EVER],
  ["lines that end as on Windows", ENDS, [lines(2, `${data(2, "efgh")}\r`)], DONE, AS_EVER],
  ["white space around", ENDS, [lines(2, `  ${data(2, "efgh")}\t`)], DONE, AS_EVER],
  ["unknown fields", ENDS, [lines(2, data(2, "efgh", { at: { seq: 1, type: "exit" }, more: ["pty"] }))], DONE, AS_EVER],
  ["another order of fields", ENDS, [lines(2, '{"data_base64":"ZWZnaA==","stream":"stdout","seq":2,"type":"data"}')], DONE, AS_EVER],
  ["escapes where none are needed", ENDS, [lines(2, '{"\\u0074ype":"d\\u0061ta","seq":2,"stream":"std\\u006fut","data_base64":"ZWZnaA\\u003d="}')], DONE, AS_EVER],
  ["a sequence written as a fraction", ENDS, [lines(2, '{"type":"data","seq":2.0,"stream":"stdout","data_base64":"ZWZnaA=="}')], DONE, AS_EVER],
  ["a piece without a byte", ENDS, [lines(2, data(2, ""))], ended({ exitCode: 3, stdout: "abcdijkl" }), AS_EVER],
  ["a piece of the other stream", ENDS, [lines(2, data(2, "efgh", { stream: "stderr" }))], ended({ exitCode: 3, stdout: "abcdijkl", stderr: "efgh" }), AS_EVER],
  ["a piece nearly as large as a line may be", ENDS, [lines(2, data(2, "x".repeat(780_000)))], ended({ exitCode: 3, stdout: `abcd${"x".repeat(780_000)}ijkl` }), AS_EVER],
  ["an exit by a signal", ENDS, [lines(3, '{"type":"exit","signal":"SIGKILL"}')], ended({ signal: "SIGKILL", stdout: "abcdefgh" }), AS_EVER],
  ["an exit by a signal, without a code", ENDS, [lines(3, '{"type":"exit","exit_code":null,"signal":"SIGTERM"}')], ended({ signal: "SIGTERM", stdout: "abcdefgh" }), AS_EVER],
  ["an exit with both", ENDS, [lines(3, '{"type":"exit","exit_code":137,"signal":"SIGKILL"}')], ended({ exitCode: 137, signal: "SIGKILL", stdout: "abcdefgh" }), AS_EVER],
  ["an exit with the code 0", ENDS, [lines(3, '{"type":"exit","exit_code":0}')], ended({ exitCode: 0, stdout: "abcdefgh" }), AS_EVER],
];
