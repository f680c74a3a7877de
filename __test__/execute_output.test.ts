// What comes back from a command (specification, section 9): its output as text, all of it to onOutput and the end of it in the
// result, and how it has ended.
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Heard, almostUtf8, cut, decoded, frames, guest, type Frame, type Guest } from "./support/execute_commands.js";
import { sh } from "./support/executes.js";
import { lease } from "./support/package.js";
import { alive } from "./support/resumes.js";
import { deferred, rejection, turns, within } from "./support/waiting.js";

const runs = (numRuns: number) => ({ numRuns, endOnFailure: true });

const order = fc.array(fc.constantFrom<Frame[0]>("stdout", "stderr"), { minLength: 1, maxLength: 12 });

/** Puts a file into the workspace. */
const put = (at: Guest, name: string, content: string | Uint8Array) => writeFileSync(path.join(at.folder, name), content);

/** Prints two files, each to its stream. */
const BOTH = sh("cat out; cat err >&2");

describe("output is decoded as a whole, however it comes", () => {
  test.concurrent.for([
    ["of some bytes each", fc.integer({ min: 0, max: 7 }), 60, 50],
    ["of any size", fc.integer({ min: 1, max: 5000 }), 8000, 15],
  ] as const)("in frames %s", async ([, size, most, count], context) => {
    const at = await guest(context);
    const output = fc.record({
      stdout: almostUtf8(most),
      stderr: almostUtf8(most),
      sizes: fc.array(size, { minLength: 1, maxLength: 12 }).filter((sizes) => sizes.some((one) => one > 0)),
      order,
      chunk: fc.option(fc.integer({ min: 50, max: 5000 }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(output, async ({ stdout, stderr, sizes, order: wanted, chunk }) => {
        const heard = new Heard();
        const result = await frames(at, cut({ stdout, stderr }, sizes, wanted), heard.hear, chunk);
        const expected = { stdout: decoded(stdout), stderr: decoded(stderr) };
        expect(result).toMatchObject({ ...expected, exitCode: 0, metadata: { outputTruncated: false } });
        expect(heard.both).toEqual(expected);
        expect(heard.pieces.every(([, text]) => text !== "")).toBe(true);
      }),
      runs(count),
    );
  });

  test.concurrent.for([1, 2, 3, 4, 5, 7, 1000])("from the sandbox's own pipes, in frames of at most %i bytes", async (frameBytes, context) => {
    const at = await guest(context, { frameBytes });
    await fc.assert(
      fc.asyncProperty(almostUtf8(500), almostUtf8(500), async (out, err) => {
        put(at, "out", out);
        put(at, "err", err);
        const heard = new Heard();
        const result = await at.run(BOTH, heard.hear);
        expect(result).toMatchObject({ stdout: decoded(out), stderr: decoded(err), exitCode: 0 });
        expect(heard.both).toEqual({ stdout: decoded(out), stderr: decoded(err) });
      }),
      runs(4),
    );
  });

  test.concurrent("a character whose rest never comes is none, at an exit as at a deadline", async (context) => {
    const at = await guest(context);
    const half = sh("printf '\\357\\273\\277a\\360\\237\\230'; printf '\\342\\202' >&2; [ -z \"$WAITS\" ] || exec sleep 1000");
    const expected = { stdout: "\ufeffa\ufffd", stderr: "\ufffd" };
    for (const [more, end] of [[{}, { exitCode: 0 }], [{ env: { WAITS: "1" }, timeoutMs: 2000 }, { timedOut: true, exitCode: null }]] as const) {
      const heard = new Heard();
      expect(await at.run({ ...half, ...more }, heard.hear)).toMatchObject({ ...expected, ...end });
      expect(heard.both).toEqual(expected);
    }
  });

  test.concurrent("pieces of both streams come in the order of their frames", async (context) => {
    const at = await guest(context);
    const output = fc.array(fc.tuple(fc.constantFrom<Frame[0]>("stdout", "stderr"), fc.string({ minLength: 1, maxLength: 5 })), { maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(output, async (written) => {
        const [heard, expected] = [new Heard(), new Heard()];
        for (const piece of written) expected.hear(...piece);
        await frames(at, written.map(([stream, text]): Frame => [stream, Buffer.from(text)]), heard.hear);
        expect(heard.pieces).toEqual(expected.pieces);
      }),
      runs(20),
    );
  });
});

describe("the result keeps the end of each stream", () => {
  const MOST = 4 * 1024 * 1024;
  const PAIRS = MOST / 2;

  test.concurrent.for<[what: string, out: string, err: string, lost: number]>([
    ["as much as is kept", "a".repeat(MOST), "b".repeat(MOST), 0],
    ["one unit more", `x${"a".repeat(MOST)}`, "", 1],
    ["one unit more on stderr", "a".repeat(MOST), `x${"b".repeat(MOST)}`, 1],
    ["pairs, as much as is kept", "😀".repeat(PAIRS), "", 0],
    ["a unit before them", `x${"😀".repeat(PAIRS)}`, "", 1],
    ["a unit after them, so that half a pair would be kept", `${"😀".repeat(PAIRS)}x`, "", 2],
    ["the same on stderr", "a", `${"😀".repeat(PAIRS)}x`, 2],
    ["characters of three bytes", "€".repeat(MOST + 7), "", 7],
    ["much more than is kept", `${"x".repeat(MOST)}${"😀".repeat(PAIRS - 1)}ab`, "", MOST],
  ])("%s", async ([, out, err, lost], context) => {
    const at = await guest(context);
    put(at, "out", out);
    put(at, "err", err);
    const heard = new Heard();
    const { stdout, stderr, exitCode, metadata } = await at.run(BOTH, heard.hear);
    expect([exitCode, metadata.outputTruncated]).toEqual([0, lost > 0]);
    const [lostOut, lostErr] = err.length > MOST ? [0, lost] : [lost, 0];
    // Texts that are too long to be shown.
    expect([stdout.length, stderr.length]).toEqual([out.length - lostOut, err.length - lostErr]);
    expect([stdout === out.slice(lostOut), stderr === err.slice(lostErr)]).toEqual([true, true]);
    expect([heard.of("stdout") === out, heard.of("stderr") === err]).toEqual([true, true]);
  });

  test.concurrent("of what is no text", async (context) => {
    const at = await guest(context);
    put(at, "out", Buffer.alloc(MOST + 3, 0xff));
    put(at, "err", "");
    const { stdout, metadata } = await at.run(BOTH);
    expect([stdout === "\ufffd".repeat(MOST), metadata.outputTruncated]).toEqual([true, true]);
  });
});

const MIB = 1024 * 1024;

describe("a slow onOutput", () => {
  const BLOCKS = 48;
  /** What may be on its way: the queue, the sockets, the provider's journal. All that is printed is far more. */
  const MOST_AHEAD = 24;
  /** So many pieces take so long; the others keep nobody waiting. */
  const SLOW = { pieces: 200, ms: 4 };

  const busy = (ms: number) => {
    for (const end = performance.now() + ms; performance.now() < end;);
  };
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  test.concurrent.for<[what: string, act: (ms: number, done: () => void) => unknown]>([
    ["that keeps its thread busy", (ms, done) => { busy(ms / 4); done(); }],
    ["that gives a promise", async (ms, done) => { await wait(ms); done(); }],
    // oxlint-disable-next-line unicorn/no-thenable -- a caller's promises may be of any library
    ["that gives a promise of its own kind", (ms, done) => ({ then: (resolve: () => void) => void wait(ms).then(done).then(resolve) })],
  ])("%s loses nothing and keeps the command from running ahead", async ([, act], context) => {
    const at = await guest(context);
    const block = Buffer.alloc(MIB, "0123456789abcdé\n");
    put(at, "block", block);
    put(at, "done", "0");
    const hash = createHash("sha256");
    const whole = createHash("sha256");
    for (let index = 0; index < BLOCKS; index += 1) whole.update(`${index}\n`).update(block);
    let [calls, bytes, ahead, isBusy] = [0, 0, 0, false];
    const onOutput = (_stream: string, text: string) => {
      expect(isBusy).toBe(false);
      hash.update(text);
      bytes += Buffer.byteLength(text);
      ahead = Math.max(ahead, Number(readFileSync(path.join(at.folder, "done"), "utf8")) - bytes / MIB);
      calls += 1;
      if (calls > SLOW.pieces) return undefined;
      isBusy = true;
      return act(SLOW.ms, () => (isBusy = false));
    };
    const script = `i=0; while [ $i -lt ${BLOCKS} ]; do echo $i; cat block; i=$((i + 1)); echo $i > next; mv next done; done`;
    expect(await at.run(sh(script), onOutput)).toMatchObject({ exitCode: 0, stderr: "", metadata: { outputTruncated: true } });
    expect(hash.digest("hex")).toBe(whole.digest("hex"));
    expect(calls).toBeGreaterThan(SLOW.pieces);
    expect(ahead).toBeLessThan(MOST_AHEAD);
  });
});

describe("onOutput runs in its caller's asynchronous context", () => {
  const storage = new AsyncLocalStorage<string>();
  const TALKS = sh("for i in 1 2 3 4 5; do printf $i; sleep 0.01; printf $i >&2; done");

  const ways: [way: string, run: (at: Guest, onOutput: unknown) => Promise<unknown>][] = [
    ["the driver", (at, onOutput) => at.run(TALKS, onOutput)],
    ["the function", (at, onOutput) => lease.execute(new lease.CreateosClient(at.params().config as never), { ...at.params(), ...TALKS }, null, onOutput as never)],
  ];

  test.concurrent.for(ways)("%s, of several commands at once", async ([, run], context) => {
    const at = await guest(context, { frameBytes: 1 });
    const one = async (name: string) => {
      const seen = new Set<string | undefined>();
      const look = () => void seen.add(storage.getStore());
      let calls = 0;
      const onOutput = () => {
        look();
        calls += 1;
        return calls % 2 === 0 ? undefined : new Promise<void>((resolve) => setImmediate(resolve)).then(look);
      };
      const done = storage.run(name, () => run(at, onOutput).then(look));
      await done;
      expect([...seen]).toEqual([name]);
      expect(calls).toBeGreaterThan(1);
    };
    await Promise.all(["a", "b", "c"].map(one));
    expect(storage.getStore()).toBeUndefined();
  });

  test.concurrent("of what is delivered once its deadline has passed, too", async (context) => {
    const at = await guest(context);
    const timeoutMs = 1500;
    const began = performance.now();
    const seen: unknown[] = [];
    const onOutput = (stream: string, text: string) => {
      // The deadline passes while the first of both pieces is looked at.
      while (performance.now() < began + timeoutMs + 50);
      seen.push([storage.getStore(), stream, text]);
    };
    const output = [["stdout", Buffer.from("a")], ["stderr", Buffer.from("b")]] satisfies Frame[];
    const message = output.map(([stream, text], index) => JSON.stringify({ type: "data", seq: index + 1, stream, data_base64: text.toString("base64") }));
    at.provider.faults.add({ match: { path: "process.connect" }, effect: { type: "frame", what: "raw", message: `${message.join("\n")}\n` } });
    const result = await storage.run("mine", () => at.run({ ...sh("printf x; exec sleep 1000"), timeoutMs }, onOutput));
    expect(result).toMatchObject({ timedOut: true, stdout: "a", stderr: "b" });
    expect(seen).toEqual([["mine", "stdout", "a"], ["mine", "stderr", "b"]]);
  });
});

describe("onOutput is not called any more once the command has settled", () => {
  const FOREVER = { command: "yes" };

  test.concurrent.for<[end: string, act: (controller: AbortController) => unknown, timeoutMs?: number]>([
    ["failed by its throwing", () => { throw "own"; }],
    ["failed by its promise", () => Promise.reject("own")],
    ["ended by its caller's signal", (controller) => controller.abort("own")],
    ["ended by its caller's signal while a promise is pending", (controller) => { controller.abort("own"); return deferred().promise; }],
    ["ended by its deadline while a promise is pending", () => deferred().promise, 2000],
    ["ended by its deadline", () => undefined, 2000],
  ])("%s", async ([, act, timeoutMs], context) => {
    const at = await guest(context);
    const controller = new AbortController();
    let [isSettled, calls, late] = [false, 0, 0];
    const onOutput = () => {
      calls += 1;
      if (isSettled) late += 1;
      return act(controller);
    };
    const executed = at.run({ ...FOREVER, ...(timeoutMs === undefined ? {} : { timeoutMs }) }, onOutput, { signal: controller.signal });
    const settled = executed.finally(() => (isSettled = true));
    if (timeoutMs === undefined) {
      expect(await rejection(settled)).toBe("own");
      expect(calls).toBe(1);
    } else expect(await settled).toMatchObject({ timedOut: true, exitCode: null, signal: null });
    await turns(50);
    expect(late).toBe(0);
    expect(alive(at.provider, at.id)).toEqual([]);
  });
});

describe("how a command has ended", () => {
  test.concurrent("its exit code", async (context) => {
    const at = await guest(context);
    for (const exitCode of [0, 1, 2, 77, 126, 127, 128, 130, 137, 143, 255]) {
      expect(await at.run(sh(`exit ${exitCode}`))).toMatchObject({ exitCode, signal: null, timedOut: false });
    }
    expect(await at.run({ command: "none-such" })).toMatchObject({ exitCode: 127, stdout: "", stderr: expect.stringContaining("none-such") });
    expect(await at.run({ command: "/etc/passwd" })).toMatchObject({ exitCode: 126, stdout: "", stderr: expect.stringContaining("/etc/passwd") });
  });

  test.concurrent("the signal that has ended it, and what it had printed", async (context) => {
    const at = await guest(context);
    for (const signal of ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGSEGV", "SIGPIPE", "SIGUSR1"]) {
      const killed = await at.run(sh(`printf out; printf err >&2; kill -s ${signal.slice(3)} $$; sleep 1000`));
      expect(killed).toMatchObject({ exitCode: null, signal, timedOut: false, stdout: "out", stderr: "err" });
    }
    expect(at.provider.requests.filter(({ route }) => route === "process.delete")).toEqual([]);
  });

  test.concurrent.for([
    ["that is silent", "sleep 1000 >/dev/null 2>&1 &"],
    ["that could still print", "sleep 1000 &"],
    ["that has left its session", "setsid sleep 1000 &"],
  ])("a process %s outlives its command and stays", async ([, begin], context) => {
    const at = await guest(context);
    const result = await at.run(sh(`${begin} printf begun`));
    expect(result).toMatchObject({ exitCode: 0, stdout: "begun", timedOut: false });
    expect(alive(at.provider, at.id)).toEqual([result.metadata.processId]);
    const again = await at.run(sh("printf again"));
    expect(again).toMatchObject({ exitCode: 0, stdout: "again" });
    await at.provider.waitFor((event) => event.type === "process:tree-exit" && event.id === again.metadata.processId);
    expect(alive(at.provider, at.id)).toEqual([result.metadata.processId]);
    expect(at.provider.requests.filter(({ route }) => route === "process.delete")).toEqual([]);
  });

  test.concurrent("a command that is given no input sees its end", async (context) => {
    const at = await guest(context);
    for (const stdin of [undefined, null, ""]) {
      const params = { ...at.params(), ...sh("cat; wc -c; read -r line || printf end"), stdin };
      expect(await within(at.driver.execute(params))).toMatchObject({ exitCode: 0, stdout: "0\nend", stderr: "" });
    }
    expect(at.provider.requests.filter(({ route }) => route === "files.put")).toEqual([]);
  });
});

describe("where a command runs", () => {
  test.concurrent("in the workspace, or in a folder that is seen from there", async (context) => {
    const at = await guest(context, { isolation: "auto" });
    mkdirSync(path.join(at.folder, "a/b"), { recursive: true });
    const folders = [
      [undefined, ""],
      [null, ""],
      ["", ""],
      [".", ""],
      ["a", "/a"],
      ["a/b/", "/a/b"],
      ["./a/../a/b", "/a/b"],
      ["/paperclip-workspace/a", "/a"],
    ];
    const root = path.dirname(at.folder);
    for (const [cwd, inside] of folders) {
      const { stdout, exitCode } = await at.driver.execute({ ...at.params(), command: "pwd", args: ["-P"], cwd });
      expect([cwd, exitCode, stdout.replace(root, "")]).toEqual([cwd, 0, `/paperclip-workspace${inside}\n`]);
    }
    expect(await at.run({ command: "pwd", cwd: "/usr" })).toMatchObject({ exitCode: 0, stdout: "/usr\n" });
  });

  test.concurrent("a folder that is not there: the command has not run", async (context) => {
    const at = await guest(context);
    for (const cwd of ["none", "/none", "none/../none"]) {
      const result = await at.run({ ...sh("printf begun"), cwd });
      expect(result).toMatchObject({ stdout: "", signal: null, timedOut: false, stderr: expect.stringContaining("none") });
      expect(result.exitCode).toBeGreaterThan(0);
    }
  });
});
