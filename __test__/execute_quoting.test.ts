// A command receives what it was given, byte for byte (specification, section 9): its name, its arguments, its variables, its
// folder and its input, in the real Bash of a sandbox. Nothing of that is left there.
import { createHash } from "node:crypto";
import { rmdirSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  HOSTILE,
  NOTHING_LEFT,
  OWN_PATH,
  bytes,
  guest,
  hostileName,
  hostileText,
  leftIn,
  putFolder,
  putReporter,
  report,
  variableName,
  type Asked,
  type Guest,
} from "./support/execute_commands.js";
import { sh } from "./support/executes.js";
import { CLOSE, on } from "./support/executes_faults.js";
import { rejection } from "./support/waiting.js";

// Where there may be one, a namespace of its own, so that paths are what they are in a sandbox.
const open = (context: Parameters<typeof guest>[0]): Promise<Guest> => guest(context, { isolation: "auto" });

// The first counterexample is told: smaller ones would have to wait for the pace of requests.
const runs = (numRuns: number) => ({ numRuns, endOnFailure: true });

const inBytes = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, bytes(value)]));

describe("a command is given what it was given", () => {
  test.concurrent("each text of the table, as an argument, as a variable and as input", async (context) => {
    const at = await open(context);
    const command = putReporter(at);
    const plain = await report(at, { command });
    expect(plain).toMatchObject({ program: command, args: [], cwd: "/paperclip-workspace", stdin: "" });
    const args = ["", ...HOSTILE, "", HOSTILE.join("")];
    const env = Object.fromEntries(args.map((value, index) => [`V_${index}`, value]));
    const given = await report(at, { command, args, env, stdin: args.join("\n") });
    expect(given.args).toEqual(args.map(bytes));
    expect(given.env).toEqual({ ...plain.env, ...inBytes(env) });
    expect(given.stdin).toBe(bytes(args.join("\n")));
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("any arguments", async (context) => {
    const at = await open(context);
    const command = putReporter(at);
    await fc.assert(
      fc.asyncProperty(fc.array(hostileText, { minLength: 1, maxLength: 60 }), async (args) => {
        expect((await report(at, { command, args })).args).toEqual(args.map(bytes));
      }),
      runs(40),
    );
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("any variables", async (context) => {
    const at = await open(context);
    const command = putReporter(at);
    const { env: plain } = await report(at, { command });
    await fc.assert(
      fc.asyncProperty(fc.dictionary(variableName, hostileText, { maxKeys: 40 }), async (env) => {
        expect((await report(at, { command, env })).env).toEqual({ ...plain, ...inBytes(env) });
      }),
      runs(30),
    );
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("any input, NUL included", async (context) => {
    const at = await open(context);
    const command = putReporter(at);
    const input = fc.array(fc.oneof(hostileText, fc.constant("\0")), { maxLength: 100 }).map((parts) => parts.join(""));
    await fc.assert(
      fc.asyncProperty(input, async (stdin) => {
        expect((await report(at, { command, stdin })).stdin).toBe(bytes(stdin));
      }),
      runs(30),
    );
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("anything of everything at once", async (context) => {
    const at = await open(context);
    const { env: plain } = await report(at, { command: putReporter(at) });
    const asked = fc.record({
      name: hostileName,
      way: fc.constantFrom(...WAYS),
      folders: fc.array(hostileName, { maxLength: 3 }),
      isRelative: fc.boolean(),
      args: fc.array(hostileText, { maxLength: 10 }),
      values: fc.array(hostileText, { maxLength: 10 }),
      stdin: hostileText,
    });
    await fc.assert(
      fc.asyncProperty(asked, async ({ name, way: [, toCommand], folders, isRelative, args, values, stdin }) => {
        putReporter(at, name);
        const folder = putFolder(at, folders);
        const variables = Object.fromEntries(values.map((value, index) => [`V_${index}`, value]));
        const env = { ...variables, PATH: OWN_PATH };
        const cwd = isRelative ? folder : `/paperclip-workspace/${folder}`;
        const given = await report(at, { command: toCommand(name, "../".repeat(folders.length + 2)), args, env, cwd, stdin });
        expect(given.program.endsWith(bytes(`own/${name}`))).toBe(true);
        expect(given.args).toEqual(args.map(bytes));
        expect(given.env).toMatchObject(inBytes(variables));
        expect(Object.keys(given.env).toSorted()).toEqual(Object.keys({ ...plain, ...env }).toSorted());
        expect(given.cwd).toBe(bytes(`/paperclip-workspace/${folder}`));
        expect(given.stdin).toBe(bytes(stdin));
      }),
      runs(40),
    );
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });
});

type Way = [way: string, command: (name: string, up: string) => string];

/** The ways to a program of the test's own; `up` leads from the folder it runs in to the workspace. */
const WAYS: Way[] = [
  ["by its path", (name, up) => `${up}own/${name}`],
  ["by its name", (name) => name],
];

/** Names that somebody on the way might take for an option, a variable, a command of its own or a pattern. */
const NAMES = [
  ..."-=~*?!#%[{'\"`$\\&|;<>( \t\n\ré😀\ud800",
  "--",
  "-x",
  "-a=b",
  "--help",
  "-c",
  "a=b",
  "=a",
  "A=1",
  "A=",
  "-=",
  "~root",
  "[a-z]*",
  "{a,b}",
  "%s",
  "$(touch pwned)",
  "exec",
  "cd",
  "env",
  "eval",
  "exit",
  "if",
  "time",
  "nice",
  "rm",
  "read",
];

describe("a program is found", () => {
  test.concurrent.for(WAYS)("%s, whatever it is called", async ([, command], context) => {
    const at = await open(context);
    for (const name of NAMES) putReporter(at, name);
    const find = async (name: string) => {
      const given = await report(at, { command: command(name, ""), args: [name], env: { PATH: OWN_PATH, V: name } });
      expect(given.program.endsWith(bytes(`own/${name}`)), name).toBe(true);
      expect(given).toMatchObject({ args: [bytes(name)], env: { PATH: OWN_PATH, V: bytes(name) } });
    };
    await Promise.all(NAMES.map(find));
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("in its folder, whatever that is called", async (context) => {
    const at = await open(context);
    const command = putReporter(at);
    const find = async (names: string[]) => {
      const folder = putFolder(at, names);
      expect(await report(at, { command, cwd: folder })).toMatchObject({ cwd: bytes(`/paperclip-workspace/${folder}`) });
    };
    const few = 4;
    const beginnings = NAMES.map((_name, index) => index).filter((index) => index % few === 0);
    await Promise.all(beginnings.map((index) => find(NAMES.slice(index, index + few))));
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });
});

/** Variables that a Bash on the way would take for its own: it reads, changes, drops or obeys them. */
const OF_BASH =
  "PWD OLDPWD _ SHLVL IFS UID EUID PPID RANDOM SECONDS LINENO TMOUT ENV CDPATH BASH BASH_VERSION BASH_ENV BASHOPTS SHELLOPTS PS4 POSIXLY_CORRECT LC_ALL TZ"
    .split(" ")
    .map((name) => [name, "own/none"]);

describe("a variable that a shell would take for its own reaches the command unchanged", () => {
  // What the command prints is not Bash's doing, so that none of these means anything to it.
  const DUMP = { args: ["-An", "-v", "-tx1", "/proc/self/environ"] };

  test.concurrent.for([
    ["of a plain name", "dump"],
    ["whose name looks like a variable", "dump=1"],
    ["whose name looks like an option", "-dump"],
  ] as const)("%s", async ([, name], context) => {
    const at = await open(context);
    putReporter(at);
    await at.run({ command: "ln", args: ["-s", "/usr/bin/od", `own/${name}`] });
    const env = { ...Object.fromEntries(OF_BASH), PATH: OWN_PATH, SHELLOPTS: "noexec", BASH_ENV: "own/reporter" };
    const result = await at.run({ command: name, env, ...DUMP });
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    const dumped = Buffer.from(result.stdout.replaceAll(/\s/gu, ""), "hex").toString("latin1").split("\0");
    const wanted = Object.entries(env).map(([variable, value]) => `${variable}=${value}`);
    expect(dumped.filter((pair) => pair.slice(0, pair.indexOf("=")) in env).toSorted()).toEqual(wanted.toSorted());
  });
});

const sha256 = (text: string) => `${createHash("sha256").update(text).digest("hex")}  -\n`;
/** Many characters of all lengths, so that no length in bytes is a round one. */
const long = (length: number) => "aé'€\n😀".repeat(Math.ceil(length / 6)).slice(0, length);

describe("what is long arrives too", () => {
  test.concurrent.for([1, 64 * 1024, 1024 * 1024, 5_000_000])("input of %i bytes", async (size, context) => {
    const at = await open(context);
    const stdin = Buffer.from(long(size)).subarray(0, size).toString();
    expect(await at.run({ command: "sha256sum", stdin })).toMatchObject({ exitCode: 0, stdout: sha256(stdin), stderr: "" });
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  /** Prints the sum of its arguments, each ended by NUL. */
  const summed = (args: readonly string[]): Asked => ({ command: "bash", args: ["-c", "printf '%s\\0' \"$@\" | sha256sum", "sum", ...args] });
  const sumOf = (args: readonly string[]) => sha256(args.map((argument) => `${argument}\0`).join(""));
  /** What Linux takes for one argument, without its NUL. */
  const LONGEST = 128 * 1024 - 1;

  test.concurrent.for<[what: string, args: string[]]>([
    ["one of the longest", ["a".repeat(LONGEST)]],
    ["one of quotes", ["'".repeat(LONGEST)]],
    ["forty", Array.from({ length: 40 }, (_none, index) => long(10_000 + index))],
    ["ten of the longest", Array.from({ length: 10 }, (_none, index) => String(index).repeat(LONGEST))],
    ["ten thousand", Array.from({ length: 10_000 }, (_none, index) => `${index} '"`)],
  ])("arguments that make a script of more than 128 KiB: %s", async ([, args], context) => {
    const at = await open(context);
    const result = await at.run({ ...summed(args), stdin: "input", env: { V: long(40_000) } });
    expect(result).toMatchObject({ exitCode: 0, stdout: sumOf(args), stderr: "" });
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("variables", async (context) => {
    const at = await open(context);
    const env = Object.fromEntries(Array.from({ length: 8 }, (_none, index) => [`V${index}`, long(40_000 + index)]));
    const result = await at.run({ ...sh('for name in V0 V1 V2 V3 V4 V5 V6 V7; do printenv "$name"; done | sha256sum'), env });
    expect(result).toMatchObject({ exitCode: 0, stdout: sha256(`${Object.values(env).join("\n")}\n`), stderr: "" });
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  // Where the script travels in a file instead of as an argument, all the same: each length up to there and beyond.
  test.concurrent("a script around the length from which it is no argument any more", async (context) => {
    const at = await open(context);
    const sizes = Array.from({ length: 16 }, (_none, index) => 96 * 1024 - 240 + 16 * index);
    const run = async (size: number) => {
      const args = ["é".repeat(size / 2)];
      expect(await at.run(summed(args))).toMatchObject({ exitCode: 0, stdout: sumOf(args), stderr: "" });
    };
    await Promise.all(sizes.map(run));
    const uploads = at.provider.requests.filter(({ route }) => route === "files.put").length;
    expect(uploads).toBeGreaterThan(0);
    expect(uploads).toBeLessThan(sizes.length);
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });
});

describe("nothing is left in /tmp", () => {
  const STDIN = "input";
  /** Makes the script long enough for a file of its own. */
  const LONG = { V: "a".repeat(100_000) };

  test.concurrent.for<[what: string, asked: Asked, result: object]>([
    ["that leaves its input unread", { command: "true" }, { exitCode: 0 }],
    ["that is not there", { command: "own/none" }, { exitCode: 127 }],
    ["that is a folder", { command: "/tmp" }, { exitCode: 126 }],
    ["that is killed", sh("kill -9 $$"), { signal: "SIGKILL" }],
    ["that is too slow", { command: "sleep", args: ["1000"], timeoutMs: 1500 }, { timedOut: true }],
    ["whose folder is not there", { command: "true", cwd: "none" }, { exitCode: 127 }],
    ["whose folder is a file", { command: "true", cwd: "/etc/passwd" }, {}],
  ])("of a command %s", async ([, asked, result], context) => {
    const at = await open(context);
    for (const env of [{}, LONG]) expect(await at.run({ ...asked, env, stdin: STDIN })).toMatchObject(result);
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("of a command whose folder goes before it begins", async (context) => {
    const at = await open(context);
    const folder = putFolder(at, ["gone"]);
    at.provider.faults.add(on(CLOSE, { type: "call", run: () => rmdirSync(path.join(at.folder, folder)) }));
    const result = await at.run({ command: "echo", args: ["begun"], cwd: folder, stdin: STDIN });
    expect(result).toMatchObject({ stdout: "", timedOut: false });
    expect(result.exitCode).not.toBe(0);
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });

  test.concurrent("of a command whose onOutput fails", async (context) => {
    const at = await open(context);
    const fails = () => {
      throw STDIN;
    };
    expect(await rejection(at.driver.execute({ ...at.params(), command: "yes", env: LONG, stdin: STDIN }, fails))).toBe(STDIN);
    expect(leftIn(at)).toEqual(NOTHING_LEFT);
  });
});
