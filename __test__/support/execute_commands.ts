// A sandbox with a program that says what it was given, texts that are hard to hand on unchanged, and output in frames of a
// test's own choice.
import { chmodSync, linkSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { expect } from "vitest";
import { executor, place, type Executor, type Place, type Result } from "./executes.js";
import { provide } from "./providers.js";
import { within } from "./waiting.js";

/** A command with all that it can be given. */
export interface Asked {
  command: string;
  args?: readonly string[];
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string;
  timeoutMs?: number;
}

/** A running sandbox under a lease, and a driver of its own. */
export interface Guest extends Place {
  driver: Executor;
  /** The workspace, on this machine. */
  folder: string;
  run(asked: Asked, onOutput?: unknown, options?: unknown): Promise<Result>;
}

type Options = Parameters<typeof provide>[0];
type Context = Parameters<typeof provide>[1];

export async function guest(context: Context, options: Options = {}): Promise<Guest> {
  const at = await place(await provide(options, context));
  const driver = executor();
  return {
    ...at,
    driver,
    folder: path.join(at.provider.sandbox(at.id)?.directory ?? "", "paperclip-workspace"),
    run: (asked, onOutput, options) =>
      within(driver.execute({ ...at.params(), ...asked }, onOutput, options), 25_000, "The command"),
  };
}

/** What is left in a sandbox's /tmp, and in its workspace besides the folder of the test's own. */
export const leftIn = ({ folder }: Guest) => ({
  tmp: readdirSync(path.join(folder, "../tmp")),
  workspace: readdirSync(folder).filter((name) => name !== OWN),
});

export const NOTHING_LEFT = { tmp: [], workspace: [] };

/** Where a test puts its own programs and folders, so that whatever else turns up in the workspace shows. */
const OWN = "own";

/** What arrives of a text: lone surrogates are no characters, so each of them arrives as U+FFFD. */
export const arriving = (text: string): string => Buffer.from(text).toString();

// Bash reads its own environment from where the kernel keeps what it was started with.
const REPORTER = String.raw`#!/bin/bash
hex() { od -An -v -tx1 | tr -d ' \n'; echo; }
printf '%s\0' "$0" "$@" | hex
hex < /proc/$$/environ
readlink -n /proc/$$/cwd | hex
hex
`;

/** What a reporting program was given, byte for byte, in Latin-1 so that no byte is lost in a comparison. */
export interface Report {
  program: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
  stdin: string;
}

/** A text's bytes, as a report has them. */
export const bytes = (text: string): string => Buffer.from(text).toString("latin1");

const list = (text: string): string[] => text.split("\0").slice(0, -1);

/** Has a program report, which has to come to its end. */
export async function report(at: Guest, asked: Asked): Promise<Report> {
  const result = await at.run(asked);
  expect(result).toMatchObject({ exitCode: 0, signal: null, timedOut: false, stderr: "" });
  const lines = result.stdout.split("\n").map((line) => Buffer.from(line, "hex").toString("latin1"));
  expect(lines).toHaveLength(5);
  const [argv = "", environment = "", cwd = "", stdin = ""] = lines;
  const [program = "", ...args] = list(argv);
  const pairs = list(environment).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
  // By this one the provider knows its processes; each has another.
  const env: Record<string, string> = { ...Object.fromEntries(pairs), CREATEOS_GUEST: "" };
  // Where the sandbox has no namespace of its own, its programs see paths of this machine.
  const inside = (file: string) => file.replace(bytes(path.dirname(at.folder)), "");
  return { program: inside(program), args, env, cwd: inside(cwd), stdin };
}

/** Puts a program that reports into the sandbox and gives its path; by default one of a plain name. */
export function putReporter(at: Guest, name = "reporter"): string {
  const own = path.join(at.folder, OWN);
  const first = path.join(own, "reporter");
  mkdirSync(own, { recursive: true });
  if (!readdirSync(own).includes("reporter")) {
    writeFileSync(first, REPORTER);
    chmodSync(first, 0o755);
  }
  const file = arriving(name);
  if (!readdirSync(own).includes(file)) linkSync(first, path.join(own, file));
  return `/paperclip-workspace/${OWN}/${name}`;
}

/** Makes a folder in the sandbox and gives its path as the workspace has it. */
export function putFolder(at: Guest, names: readonly string[]): string {
  const inside = [OWN, "folders", ...names].join("/");
  mkdirSync(path.join(at.folder, arriving(inside)), { recursive: true });
  return inside;
}

/** The folder of the programs, for a PATH; what reports needs the system's own besides. */
export const OWN_PATH = `/paperclip-workspace/${OWN}:/usr/local/bin:/usr/bin:/bin`;

/** What a shell, `env`, a decoder or a careless quotation would take for something else. */
export const HOSTILE = [
  ..."'\"`$\\!*?~=-#&|;<>()[]{}%^@:,. \t\n\r\v\f\b\u0001\u001b\u007f\u0085",
  ..."é\u0301\u00a0\u200b\u200e\u2028\ufeff\ufffd\uffff",
  ..."😀\u{10000}\u{10ffff}",
  "\ud800",
  "\udc00",
  "\udc00\ud800",
  "''",
  "'\\''",
  '"\'"',
  "\r\n",
  "\n\n",
  "\\\n",
  "\\0",
  "\\\\",
  "$(touch pwned)",
  "`touch pwned`",
  "${HOME}",
  "$HOME",
  "$'\\x41'",
  "$0",
  "$$",
  "!!",
  "!touch",
  "[a-z]*",
  "{a,b}",
  "--",
  "-e",
  "--help",
  "-c",
  "A=1",
  "=",
  "~root",
  "~+",
  "; touch pwned;",
  "&& touch pwned",
  "| touch pwned",
  "> pwned",
  "<(touch pwned)",
  "<<EOF",
  "\nEOF\n",
  "%s%n",
  "\u001b[31m",
  "exec",
  "'; touch pwned; '",
  "\n touch pwned\n",
];

/** Any text without NUL, most of which are made of the above. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.array(fc.constantFrom(...HOSTILE, "a", ""), { maxLength: 8 }).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 30 }).map((text) => text.replaceAll("\0", "\u0002")) },
  { weight: 1, arbitrary: fc.array(fc.integer({ min: 1, max: 0xffff }), { maxLength: 30 }).map((units) => String.fromCharCode(...units)) },
);

/** Names that a file can have. */
export const hostileName: fc.Arbitrary<string> = hostileText
  .map((text) => text.replaceAll("/", "'").slice(0, 80))
  .filter((text) => !["", ".", ".."].includes(text));

export const variableName: fc.Arbitrary<string> = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,12}$/u);

/** A piece of output as it comes over the wire. */
export type Frame = [stream: "stdout" | "stderr", bytes: Uint8Array];

const line = ([stream, content]: Frame, index: number) =>
  `{"type":"data","seq":${index + 1},"stream":"${stream}","data_base64":"${Buffer.from(content).toString("base64")}"}\n`;

/** Has a command whose output comes in these frames; with `chunk`, so many bytes of them at a time. */
export function frames(at: Guest, output: readonly Frame[], onOutput?: unknown, chunk?: number): Promise<Result> {
  const raw = { type: "frame" as const, what: "raw" as const, message: output.map(line).join("") };
  const slow = chunk === undefined ? [] : [{ type: "slowBody" as const, bytes: chunk, everyMs: 0 }];
  at.provider.faults.add({ match: { path: "process.connect" }, times: 1, effect: [raw, ...slow] });
  return at.run({ command: "printf", args: ["x"] }, onOutput);
}

const BROKEN_UTF8 = [
  ..."a é € 😀 \u{10ffff} \ufeff \ufffd \uffff \u0000 \u07ff \u0800 \ud7ff \ue000".split(" ").map((text) => Buffer.from(text)),
  // Continuations without a beginning, beginnings without one, more than a character may have, surrogates, too much.
  ..."80 bf c0 c1 c2 e0 ed ef f0 f4 f5 ff c080 e080 e09f e0a0 eda080 ed9f edbfbf f080 f08f f090 f0908d f48f f490 f4908080 efbb efbf c2c2 e2e282 f0f0 e28278 fe"
    .split(" ")
    .map((hex) => Buffer.from(hex, "hex")),
];

/** Bytes that are UTF-8 here and there, and often broken where characters begin or end. */
export const almostUtf8 = (most: number): fc.Arbitrary<Buffer> =>
  fc
    .array(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...BROKEN_UTF8) }, fc.uint8Array({ maxLength: 4 })), { maxLength: most })
    .map((parts) => Buffer.concat(parts));

/** Cuts two streams into frames whose sizes and order come from lists that are gone through again and again. */
export function cut(streams: Record<Frame[0], Buffer>, sizes: readonly number[], order: readonly Frame[0][]): Frame[] {
  const left = { ...streams };
  const output: Frame[] = [];
  for (let turn = 0; left.stdout.length + left.stderr.length > 0; turn += 1) {
    const wanted = order[turn % order.length] ?? "stdout";
    const stream = left[wanted].length > 0 ? wanted : left.stdout.length > 0 ? "stdout" : "stderr";
    const size = sizes[turn % sizes.length] ?? 1;
    output.push([stream, left[stream].subarray(0, size)]);
    left[stream] = left[stream].subarray(size);
  }
  return output;
}

/** What the platform makes of bytes. */
export const decoded = (content: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true, fatal: false }).decode(content);

/** Keeps what a command's caller is given; pieces of one stream that follow each other are one. */
export class Heard {
  readonly pieces: [stream: Frame[0], text: string][] = [];

  readonly hear = (stream: Frame[0], text: string): void => {
    const last = this.pieces.at(-1);
    if (last?.[0] === stream) last[1] += text;
    else this.pieces.push([stream, text]);
  };

  of(wanted: Frame[0]): string {
    return this.pieces.map(([stream, text]) => (stream === wanted ? text : "")).join("");
  }

  /** As a result has it, as long as nothing of it is too long. */
  get both() {
    return { stdout: this.of("stdout"), stderr: this.of("stderr") };
  }
}
