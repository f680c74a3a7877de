// Tables of what can go wrong before a command's process is there, and when it has to be ended.
import { ENDS, STAYS, TEXT, sh, withInput } from "./executes.js";
import {
  CLOSE,
  CREATE,
  DELETE,
  DONE,
  EXEC,
  INVALID_FRAME,
  KILLED,
  LOST_REPLY,
  LOST_REQUEST,
  NO_CONNECTION,
  NO_JSON,
  PUT,
  UNCREATED,
  UNENDED,
  api,
  ended,
  frame,
  kill,
  on,
  once,
  patch,
  status,
  streams,
  timedOut,
  tooMany,
  type Case,
} from "./executes_faults.js";

/** No process was there to be ended. */
const NO_PROCESS = { connect: 0, close: 0, wait: 0, delete: 0 };

/** A failure, after which the process has to be ended. */
const BROKEN = frame("malformed");
const removals = (count: number) => ({ connect: 1, wait: 0, delete: count });

export const CLEANUPS: Case[] = [
  ["is proved", STAYS, [BROKEN], INVALID_FRAME, removals(1)],
  ["is answered without a proof", STAYS, [BROKEN, on(DELETE, { type: "treeAlive" })], UNENDED, removals(1)],
  ["is answered without a proof, which the next answer would have", STAYS, [BROKEN, once(DELETE, { type: "treeAlive" })], UNENDED, removals(1)],
  ["is answered without a proof, though the command has ended", ENDS, [BROKEN, on(DELETE, { type: "treeAlive" })], UNENDED, removals(1)],
  ["fails, and then is answered without a proof", STAYS, [BROKEN, once(DELETE, status(500)), on(DELETE, { type: "treeAlive" })], UNENDED, removals(2)],
  ["finds nothing (404)", STAYS, (at) => [BROKEN, on(DELETE, [kill(at), status(404)])], INVALID_FRAME, removals(1)],
  ["finds nothing at the second try", STAYS, (at) => [BROKEN, once(DELETE, status(500)), on(DELETE, [kill(at), status(404)], { skip: 1 })], INVALID_FRAME, removals(2)],
  ["fails once (500)", STAYS, [BROKEN, once(DELETE, status(500))], INVALID_FRAME, removals(2)],
  ["fails once, though done", STAYS, [BROKEN, once(DELETE, status(500, { when: "after" }))], INVALID_FRAME, removals(2)],
  ["fails twice", STAYS, [BROKEN, on(DELETE, status(503), { times: 2 })], INVALID_FRAME, removals(3)],
  ["fails always", STAYS, [BROKEN, on(DELETE, status(500))], UNENDED, removals(3)],
  ["fails always, and gives the key back", STAYS, [BROKEN, on(DELETE, { type: "echoError", status: 500 })], UNENDED, removals(3)],
  ["is refused", STAYS, [BROKEN, on(DELETE, status(403))], UNENDED, {}],
  ["is refused once", STAYS, [BROKEN, once(DELETE, status(409))], INVALID_FRAME, removals(2)],
  ["is too much for the provider once (429)", STAYS, [BROKEN, once(DELETE, tooMany(0))], INVALID_FRAME, removals(2)],
  ["is too much for the provider, for an hour", STAYS, [BROKEN, on(DELETE, tooMany(3600))], UNENDED, {}],
  ["is lost once", STAYS, [BROKEN, once(DELETE, LOST_REQUEST)], INVALID_FRAME, removals(2)],
  ["is lost once on its way back", STAYS, [BROKEN, once(DELETE, LOST_REPLY)], INVALID_FRAME, removals(2)],
  ["is always lost", STAYS, [BROKEN, on(DELETE, LOST_REQUEST)], UNENDED, removals(3)],
  ["is always lost on its way back", STAYS, [BROKEN, on(DELETE, LOST_REPLY)], UNENDED, removals(3)],
  ["breaks off once in its answer", STAYS, [BROKEN, once(DELETE, { type: "cutBody", after: 20 })], INVALID_FRAME, removals(2)],
  ["goes elsewhere once", STAYS, [BROKEN, once(DELETE, { type: "redirect", location: "/elsewhere" })], INVALID_FRAME, removals(2)],
  ["is no JSON once", STAYS, [BROKEN, once(DELETE, NO_JSON)], INVALID_FRAME, removals(2)],
  ["has no word of it", STAYS, [BROKEN, on(DELETE, patch({}, "tree_exited"))], UNENDED, removals(1)],
  ["has a text for it", STAYS, [BROKEN, on(DELETE, patch({ tree_exited: "true" }))], UNENDED, removals(1)],
  ["has a number for it", STAYS, [BROKEN, on(DELETE, patch({ tree_exited: 1 }))], UNENDED, removals(1)],
  ["is of another process", STAYS, [BROKEN, on(DELETE, patch({ process_id: "proc_another" }))], UNENDED, removals(1)],
  ["says failure with HTTP 200", STAYS, [BROKEN, on(DELETE, { type: "envelope", variant: "fail" })], UNENDED, removals(3)],
  ["says nothing", STAYS, [BROKEN, on(DELETE, { type: "envelope", variant: "noContent" })], UNENDED, removals(3)],
  ["fails after the deadline", { ...STAYS, timeoutMs: 2000 }, [on(DELETE, status(500))], UNENDED, removals(3)],
  ["fails once after the deadline", { ...STAYS, timeoutMs: 2000 }, [once(DELETE, status(500))], timedOut(TEXT), removals(2)],
];

const ASKED = "process creation";
export const CREATIONS: Case[] = [
  ["a lost request", ENDS, [once(CREATE, LOST_REQUEST)], UNCREATED, NO_PROCESS],
  ["a lost reply", ENDS, [once(CREATE, LOST_REPLY)], UNCREATED, NO_PROCESS],
  ["an answer that breaks off", ENDS, [once(CREATE, { type: "cutBody", after: 20 })], UNCREATED, NO_PROCESS],
  ["a redirect", ENDS, [once(CREATE, { type: "redirect", location: "/elsewhere" })], UNCREATED, NO_PROCESS],
  // None of these says that the request was refused.
  ...[300, 304, 305, 306, 309, 399].map((code): Case => [`HTTP ${code}`, ENDS, [once(CREATE, status(code))], UNCREATED, NO_PROCESS]),
  ["HTTP 400", ENDS, [once(CREATE, status(400))], api(400, ASKED), NO_PROCESS],
  ["HTTP 401 that gives the key back", ENDS, [once(CREATE, { type: "echoError", status: 401 })], api(401, ASKED), NO_PROCESS],
  ["HTTP 402", ENDS, [once(CREATE, status(402))], api(402, ASKED), NO_PROCESS],
  ["HTTP 403", ENDS, [once(CREATE, status(403))], api(403, ASKED), NO_PROCESS],
  ["HTTP 404", ENDS, [once(CREATE, status(404))], api(404, ASKED), NO_PROCESS],
  ["HTTP 409", ENDS, [once(CREATE, status(409))], api(409, ASKED), NO_PROCESS],
  ["HTTP 413 in HTML", ENDS, [once(CREATE, { type: "status", status: 413, body: "<html>" })], api(413, ASKED), NO_PROCESS],
  ["HTTP 429 for no time", ENDS, [once(CREATE, tooMany(0))], DONE, { create: 2, ...streams(1) }],
  ["HTTP 429 for a second", ENDS, [once(CREATE, tooMany(1))], DONE, { create: 2, ...streams(1) }],
  ["HTTP 429 for an hour", ENDS, [once(CREATE, tooMany(3600))], api(429, ASKED), NO_PROCESS],
  ["HTTP 429 until the deadline", { ...ENDS, timeoutMs: 2000 }, [on(CREATE, tooMany(3))], timedOut(""), NO_PROCESS],
  ["HTTP 500", ENDS, [once(CREATE, status(500))], UNCREATED, NO_PROCESS],
  ["HTTP 500, though done", ENDS, [once(CREATE, status(500, { when: "after" }))], UNCREATED, NO_PROCESS],
  ["HTTP 502 in HTML", ENDS, [once(CREATE, { type: "status", status: 502, body: "<html>" })], UNCREATED, NO_PROCESS],
  ["HTTP 503 that gives the key back", ENDS, [once(CREATE, { type: "echoError", status: 503 })], UNCREATED, NO_PROCESS],
  ["HTTP 500 with a huge body", ENDS, [once(CREATE, { type: "hugeError", bytes: 4_000_000 })], UNCREATED, NO_PROCESS],
  ["no JSON", ENDS, [once(CREATE, NO_JSON)], UNCREATED, NO_PROCESS],
  ["an empty answer", ENDS, [once(CREATE, { type: "envelope", variant: "empty" })], UNCREATED, NO_PROCESS],
  ["no content", ENDS, [once(CREATE, { type: "envelope", variant: "noContent" })], UNCREATED, NO_PROCESS],
  ["failure with HTTP 200", ENDS, [once(CREATE, { type: "envelope", variant: "fail" })], UNCREATED, NO_PROCESS],
  ["no data", ENDS, [once(CREATE, { type: "envelope", variant: "nullData" })], UNCREATED, NO_PROCESS],
  ["a list", ENDS, [once(CREATE, { type: "envelope", variant: "arrayData" })], UNCREATED, NO_PROCESS],
  ["no id", ENDS, [once(CREATE, patch({}, "process_id"))], UNCREATED, NO_PROCESS],
  ["an empty id", ENDS, [once(CREATE, patch({ process_id: "" }))], UNCREATED, NO_PROCESS],
  ["an id that is null", ENDS, [once(CREATE, patch({ process_id: null }))], UNCREATED, NO_PROCESS],
  ["an id that is a number", ENDS, [once(CREATE, patch({ process_id: 7 }))], UNCREATED, NO_PROCESS],
  ["an id that leads elsewhere", ENDS, [once(CREATE, patch({ process_id: "../../whoami" }))], UNCREATED, NO_PROCESS],
  ["an id with a query", ENDS, [once(CREATE, patch({ process_id: "proc?a=b" }))], UNCREATED, NO_PROCESS],
  ["an id that is too long", ENDS, [once(CREATE, patch({ process_id: "p".repeat(201) }))], UNCREATED, NO_PROCESS],
  ["HTTP 400 of a command with input", withInput(ENDS), [once(CREATE, status(400))], api(400, ASKED), { put: 1, exec: 1, ...NO_PROCESS }],
  ["a lost reply of a command with input", withInput(ENDS), [once(CREATE, LOST_REPLY)], UNCREATED, { put: 1, ...NO_PROCESS }],
];

const UPLOAD = "file transfer";
const UPLOADED = { put: 1, create: 0, ...NO_PROCESS };
const INPUT = withInput(ENDS);
const CAT = withInput(sh("cat; exit 3"));

/** Its script is too long for an argument. */
const LONG = withInput(sh(`: ${"x".repeat(100_000)}`));

const NO_FOLDER = ended({ exitCode: 127, stderr: "chdir /paperclip-workspace/none: no such file or directory\n" });

export const INPUTS: Case[] = [
  ["goes well", CAT, [], ended({ exitCode: 3, stdout: "input" }), { put: 1, exec: 1, ...streams(1) }],
  ["goes well, and so does the command", withInput(sh("exec cat")), [], ended({ exitCode: 0, stdout: "input" }), { put: 1, exec: 0, ...streams(1) }],
  ["HTTP 400", INPUT, [on(PUT, status(400))], api(400, UPLOAD), UPLOADED],
  ["HTTP 413", INPUT, [on(PUT, status(413))], api(413, UPLOAD), UPLOADED],
  ["HTTP 401 that gives the key back", INPUT, [on(PUT, { type: "echoError", status: 401 })], api(401, UPLOAD), UPLOADED],
  ["HTTP 429 for no time", CAT, [once(PUT, tooMany(0))], ended({ exitCode: 3, stdout: "input" }), { ...streams(1), put: 2 }],
  ["HTTP 429 for an hour", INPUT, [on(PUT, tooMany(3600))], api(429, UPLOAD), { create: 0, ...NO_PROCESS }],
  ["HTTP 500", INPUT, [on(PUT, status(500))], api(500, UPLOAD), UPLOADED],
  ["HTTP 500, though done", INPUT, [on(PUT, status(500, { when: "after" }))], api(500, UPLOAD), { exec: 1, ...UPLOADED }],
  ["a lost request", INPUT, [on(PUT, LOST_REQUEST)], NO_CONNECTION, UPLOADED],
  ["a lost reply", INPUT, [on(PUT, LOST_REPLY)], NO_CONNECTION, { exec: 1, ...UPLOADED }],
  ["a redirect", INPUT, [on(PUT, { type: "redirect", location: "/elsewhere" })], NO_CONNECTION, UPLOADED],
  ["a process that ends before it is read", withInput(STAYS), (at) => [once(CLOSE, kill(at)), BROKEN], KILLED, { put: 1 }],
  ["a folder that is not there", { ...INPUT, cwd: "none" }, [], NO_FOLDER, { put: 1, ...streams(1) }],
  ["a folder that is not there, and a long script", { ...LONG, cwd: "none" }, [], NO_FOLDER, { put: 2, ...streams(1) }],
  ["a failure once it is read", withInput(STAYS), [BROKEN], INVALID_FRAME, { put: 1, delete: 1 }],
  ["a failure before it is read", withInput(STAYS), [on(CLOSE, status(400))], api(400, "stdin close"), { put: 1, exec: 1, delete: 1 }],
  ["a deadline before it is read", { ...withInput(STAYS), timeoutMs: 2000 }, [on(CLOSE, { type: "hold" })], timedOut(""), { put: 1, exec: 1, delete: 1 }],
  ["a removal that fails as well", INPUT, [on(PUT, status(400)), on(EXEC, status(500))], api(400, UPLOAD), UPLOADED],
];
