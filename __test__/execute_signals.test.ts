// What a signal and a deadline make of a command, under the driver and by itself (specification, section 9).
import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { guest, type Asked, type Guest } from "./support/execute_commands.js";
import { ENDS, SILENT, STAYS, TEXT, executor, sh, type Result } from "./support/executes.js";
import { CREATE, DELETE, frame, on, status } from "./support/executes_faults.js";
import { expectCreateosError } from "./support/errors.js";
import { outcomeOf } from "./support/failed_requests.js";
import { lease } from "./support/package.js";
import { routesSince } from "./support/providers.js";
import { alive } from "./support/resumes.js";
import { abortion, deferred, rejection, turns, within } from "./support/waiting.js";

// Most of the time each waits for a deadline, or for what has to end.
vi.setConfig({ maxConcurrency: 16 });

type Execute = (client: unknown, params: unknown, signal?: unknown, onOutput?: unknown) => Promise<Result>;
const execute = lease.execute as unknown as Execute;

const clientOf = (at: Guest) => new lease.CreateosClient(at.params().config as never);

type Run = (at: Guest, asked: Asked, signal?: unknown, onOutput?: unknown) => Promise<Result>;

const byDriver: Run = (at, asked, signal, onOutput) => at.run(asked, onOutput, { signal });
const byFunction: Run = (at, asked, signal, onOutput) =>
  within(execute(clientOf(at), { ...at.params(), ...asked }, signal, onOutput), 25_000, "The command");

const WAYS: [way: string, run: Run][] = [
  ["the driver", byDriver],
  ["the function", byFunction],
];

const REASONS: [what: string, reason: unknown][] = [
  ["an error", new Error("own")],
  ["an AbortError of its own", new DOMException("own", "AbortError")],
  ["a TimeoutError of its own", new DOMException("own", "TimeoutError")],
  ["an error that looks like a broken connection", new TypeError("terminated")],
  ["an answer of the provider's", new lease.CreateosApiError(503)],
  ["an error that looks like the command's own", new lease.CreateosError("CreateOS command was cancelled.", "ERR_CREATEOS_CANCELLED")],
  ["a text", "own"],
  ["an empty text", ""],
  ["null", null],
  ["zero", 0],
  ["false", false],
  ["a symbol", Symbol("own")],
  ["a function", () => "own"],
  ["an object", { name: "AbortError" }],
  ["the platform's", undefined],
];

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;
const start = (at: Guest) => at.provider.requests.length;

/** A command that runs, with all it has begun, until it is ended, and a promise of its first output. */
function begin(at: Guest, run: Run, signal?: unknown, asked: Asked = STAYS) {
  const begun = deferred();
  const executed = run(at, asked, signal, () => begun.resolve());
  executed.catch(() => {});
  return { executed, begun: within(Promise.race([begun.promise, executed]), 20_000, "The output") };
}

const CANCELLED = { code: "ERR_CREATEOS_CANCELLED", message: "CreateOS command was cancelled." };
const TIMED_OUT = { timedOut: true, exitCode: null, signal: null };
const UNBEGUN = { ...TIMED_OUT, stdout: "", stderr: "", metadata: { processId: null, outputTruncated: false } };

/** Long enough for a command to print something, even where much else is going on. */
const SOON_MS = 2500;

describe.each(WAYS)("%s", (way, run) => {
  test.concurrent.for(REASONS)("rejects with the reason of a signal that is aborted already: %s", async ([, reason], context) => {
    const at = await guest(context);
    const from = start(at);
    const signal = AbortSignal.abort(reason);
    expect(await rejection(run(at, SILENT, signal))).toBe(signal.reason);
    expect(routesSince(at.provider, from)).toEqual([]);
    expect(listeners(signal)).toBe(0);
    expect(at.driver.leaseState(at.params(), at.id)).toBe("open");
  });

  test.concurrent.for(REASONS)("rejects with the reason of its caller's signal, once all has ended: %s", async ([, reason], context) => {
    const at = await guest(context);
    const controller = new AbortController();
    const { executed, begun } = begin(at, run, controller.signal);
    await begun;
    expect(listeners(controller.signal)).toBe(1);
    controller.abort(reason);
    expect(await rejection(executed)).toBe(controller.signal.reason);
    expect(alive(at.provider, at.id)).toEqual([]);
    expect(listeners(controller.signal)).toBe(0);
    expect(at.driver.leaseState(at.params(), at.id)).toBe("open");
  });

  test.concurrent("begins nothing when it is aborted in the tick in which it was called", async (context) => {
    const at = await guest(context);
    const from = start(at);
    const controller = new AbortController();
    const executed = run(at, SILENT, controller.signal);
    controller.abort("own");
    expect(await rejection(executed)).toBe("own");
    await turns();
    expect(routesSince(at.provider, from)).toEqual([]);
    expect(listeners(controller.signal)).toBe(0);
  });

  test.concurrent("does nothing about an abort after its end", async (context) => {
    const at = await guest(context);
    const controller = new AbortController();
    const result = await run(at, sh("sleep 1000 >/dev/null 2>&1 & printf begun"), controller.signal);
    const from = start(at);
    controller.abort("own");
    await turns();
    expect(routesSince(at.provider, from)).toEqual([]);
    expect(alive(at.provider, at.id)).toEqual([result.metadata.processId]);
  });

  test.concurrent("takes AbortSignal.timeout and AbortSignal.any for a caller's own", async (context) => {
    const at = await guest(context);
    const timeout = AbortSignal.timeout(SOON_MS);
    const timed = rejection(run(at, STAYS, timeout), 25_000);
    const controller = new AbortController();
    const any = AbortSignal.any([new AbortController().signal, controller.signal]);
    const { executed, begun } = begin(at, run, any);
    await begun;
    controller.abort("own");
    expect(await rejection(executed)).toBe("own");
    expect(await timed).toBe(timeout.reason);
    expect(alive(at.provider, at.id)).toEqual([]);
    expect([listeners(any), listeners(timeout)]).toEqual([0, 0]);
  });

  test.concurrent("takes what only behaves as a signal", async (context) => {
    const at = await guest(context);
    const listening = new Set<() => void>();
    const signal = {
      aborted: false,
      reason: undefined as unknown,
      addEventListener: (_type: string, listener: () => void) => void listening.add(listener),
      removeEventListener: (_type: string, listener: () => void) => void listening.delete(listener),
    };
    expect(await run(at, sh("printf done"), signal)).toMatchObject({ exitCode: 0, stdout: "done" });
    expect(listening.size).toBe(0);
    const { executed, begun } = begin(at, run, signal);
    await begun;
    Object.assign(signal, { aborted: true, reason: "own" });
    for (const listener of listening) listener();
    expect(await rejection(executed)).toBe("own");
    expect(listening.size).toBe(0);
    expect(alive(at.provider, at.id)).toEqual([]);
  });

  test.concurrent("many commands share a signal without a warning, and none leaves a listener", async (context) => {
    const at = await guest(context);
    const warnings: Error[] = [];
    const listen = (warning: Error) => void warnings.push(warning);
    process.on("warning", listen);
    context.onTestFinished(() => void process.off("warning", listen));
    const controller = new AbortController();
    const commands = Array.from({ length: 24 }, () => begin(at, run, controller.signal));
    expect(await run(at, sh("printf done"), controller.signal)).toMatchObject({ exitCode: 0, stdout: "done" });
    await Promise.all(commands.map(({ begun }) => begun));
    controller.abort("own");
    const reasons = await Promise.all(commands.map(({ executed }) => rejection(executed, 25_000)));
    expect(reasons).toEqual(commands.map(() => "own"));
    expect(alive(at.provider, at.id)).toEqual([]);
    expect(listeners(controller.signal)).toBe(0);
    await turns();
    expect(warnings.filter(({ name }) => name.startsWith("MaxListeners"))).toEqual([]);
  });

  const fails = () => {
    throw "own";
  };
  test.concurrent.for<[end: string, asked: Asked, rules: Parameters<Guest["provider"]["faults"]["add"]>[0][], onOutput?: unknown]>([
    ["it has ended", ENDS, []],
    ["its deadline has passed", { ...STAYS, timeoutMs: SOON_MS }, []],
    ["its deadline passes before it begins", { ...STAYS, timeoutMs: 1 }, []],
    ["it was refused", { command: "" }, []],
    ["its timeout was refused", { command: "true", timeoutMs: 0 }, []],
    ["its onOutput was none", ENDS, [], "none"],
    ["its onOutput has thrown", STAYS, [], fails],
    ["it could not be created", ENDS, [on(CREATE, status(400))]],
    ["it may have been created", ENDS, [on(CREATE, status(500))]],
    ["its output was broken", STAYS, [frame("malformed")]],
    ["it could not be ended", STAYS, [frame("malformed"), on(DELETE, status(500))]],
  ])("leaves no listener on its caller's signal when %s", async ([, asked, rules, onOutput], context) => {
    const at = await guest(context);
    for (const rule of rules) at.provider.faults.add(rule);
    const controller = new AbortController();
    await outcomeOf(run(at, asked, controller.signal, onOutput));
    expect(listeners(controller.signal)).toBe(0);
  });

  test.concurrent("a deadline gives what was printed, once all that was begun has ended", async (context) => {
    const at = await guest(context);
    const script = "trap '' TERM; setsid sleep 1000 & (trap '' TERM; sleep 1000) & printf out; printf err >&2; wait; wait; sleep 1000";
    for (const signal of [undefined, new AbortController().signal]) {
      const result = await run(at, { ...sh(script), timeoutMs: SOON_MS }, signal);
      expect(result).toMatchObject({ ...TIMED_OUT, stdout: "out", stderr: "err", metadata: { processId: expect.any(String) } });
      expect(alive(at.provider, at.id)).toEqual([]);
    }
    expect(at.driver.leaseState(at.params(), at.id)).toBe("open");
  });

  test.concurrent("whichever comes first of deadline and signal counts, whatever comes while the command is being ended", async (context) => {
    const at = await guest(context);
    const first = at.provider.faults.add({ ...on(DELETE, { type: "hold" }), times: 1 });
    const late = new AbortController();
    const timed = run(at, { ...STAYS, timeoutMs: SOON_MS }, late.signal);
    await within(first.hit, 20_000);
    late.abort("own");
    await turns();
    first.release();
    expect(await timed).toMatchObject({ ...TIMED_OUT, stdout: TEXT });

    const second = at.provider.faults.add({ ...on(DELETE, { type: "hold" }), times: 1 });
    const early = new AbortController();
    const deadline = AbortSignal.timeout(SOON_MS + 50);
    const { executed, begun } = begin(at, run, early.signal, { ...STAYS, timeoutMs: SOON_MS });
    await begun;
    early.abort("own");
    await abortion(deadline);
    second.release();
    expect(await rejection(executed), way).toBe("own");
  });

  test.concurrent("the configured timeout counts where there is no other", async (context) => {
    const at = await guest(context);
    const asked = { ...at.params(undefined, { timeoutMs: SOON_MS }), ...STAYS };
    const client = new lease.CreateosClient(asked.config as never);
    const executed = way === "the driver" ? at.driver.execute(asked) : execute(client, asked);
    expect(await within(executed)).toMatchObject({ ...TIMED_OUT, stdout: TEXT });
    expect(alive(at.provider, at.id)).toEqual([]);
  });
});

describe("the function under a call of the driver's", () => {
  /** Has it run under a tracked call, with the call's signal alone or joined with its caller's own. */
  const tracked = (at: Guest, own: AbortSignal | undefined, asked: Asked, timeoutMs?: number, before?: (signal: AbortSignal) => unknown) => {
    const begun = deferred();
    const work = async (client: unknown, signal: AbortSignal) => {
      await before?.(signal);
      const joined = own === undefined ? signal : AbortSignal.any([signal, own]);
      return execute(client, { ...at.params(), ...asked }, joined, () => begun.resolve());
    };
    const executed = at.driver.track(at.params(), work, timeoutMs) as Promise<Result>;
    executed.catch(() => {});
    return { executed: within(executed, 25_000), begun: within(begun.promise, 20_000) };
  };

  const SIGNALS: [signal: string, own: () => AbortController | undefined][] = [
    ["with the call's signal", () => undefined],
    ["with the call's signal and one of its own", () => new AbortController()],
  ];

  describe.each(SIGNALS)("%s", (_signal, make) => {
    test.concurrent.for<[end: string, act: (at: Guest) => Promise<unknown>]>([
      ["a release", (at) => at.driver.release(at.params())],
      ["a destroy", (at) => at.driver.destroy(at.params())],
      ["a shutdown", (at) => at.driver.shutdown()],
    ])("%s cancels it, running or not yet begun", async ([, act], context) => {
      const at = await guest(context);
      const { executed, begun } = tracked(at, make()?.signal, STAYS);
      const from = start(at);
      const waiting = tracked(at, make()?.signal, SILENT, undefined, (signal) => abortion(signal));
      const reasons = [rejection(executed), rejection(waiting.executed)];
      await begun;
      await within(act(at));
      for (const reason of reasons) expectCreateosError(await reason, CANCELLED);
      expect(alive(at.provider, at.id)).toEqual([]);
      expect(routesSince(at.provider, from).filter((route) => route === CREATE)).toHaveLength(1);
    });

    test.concurrent("the call's deadline gives what was printed", async (context) => {
      const at = await guest(context);
      const { executed } = tracked(at, make()?.signal, STAYS, SOON_MS);
      expect(await executed).toMatchObject({ ...TIMED_OUT, stdout: TEXT });
      expect(alive(at.provider, at.id)).toEqual([]);
    });

    test.concurrent("a deadline that has passed already begins nothing", async (context) => {
      const at = await guest(context);
      const from = start(at);
      const { executed } = tracked(at, make()?.signal, STAYS, 20, (signal) => abortion(signal));
      expect(await executed).toEqual(UNBEGUN);
      expect(routesSince(at.provider, from)).toEqual([]);
    });

    test.concurrent("its own timeout counts within the call's", async (context) => {
      const at = await guest(context);
      const { executed } = tracked(at, make()?.signal, { ...STAYS, timeoutMs: SOON_MS }, 20_000);
      expect(await executed).toMatchObject({ ...TIMED_OUT, stdout: TEXT });
    });

    test.concurrent("the call's deadline counts though its own timeout is longer", async (context) => {
      const at = await guest(context);
      const { executed } = tracked(at, make()?.signal, { ...STAYS, timeoutMs: 60_000 }, SOON_MS);
      expect(await executed).toMatchObject({ ...TIMED_OUT, stdout: TEXT });
    });
  });

  test.concurrent.for(REASONS)("its own signal's reason is the rejection: %s", async ([, reason], context) => {
    const at = await guest(context);
    const own = new AbortController();
    const { executed, begun } = tracked(at, own.signal, STAYS);
    await begun;
    own.abort(reason);
    expect(await rejection(executed)).toBe(own.signal.reason);
    expect(alive(at.provider, at.id)).toEqual([]);
    expect(at.driver.leaseState(at.params(), at.id)).toBe("open");
  });

  test.concurrent("a signal of its own that is aborted already begins nothing", async (context) => {
    const at = await guest(context);
    const from = start(at);
    expect(await rejection(tracked(at, AbortSignal.abort("own"), STAYS).executed)).toBe("own");
    expect(routesSince(at.provider, from)).toEqual([]);
  });
});

describe("the function by itself", () => {
  test.concurrent("has no timeout but its signal's, where it has a signal", async (context) => {
    const at = await guest(context);
    const { config } = at.params(undefined, { timeoutMs: 300 });
    const client = new lease.CreateosClient(config as never);
    const asked = { ...at.params(), ...sh("sleep 0.8; printf late") };
    const { signal } = new AbortController();
    expect(await within(execute(client, asked, signal))).toMatchObject({ exitCode: 0, stdout: "late", timedOut: false });
    expect(listeners(signal)).toBe(0);
  });

  test.concurrent("is no call of any driver: nothing is refused for what it leaves", async (context) => {
    const at = await guest(context);
    for (const rule of [frame("malformed"), on(DELETE, status(500))]) at.provider.faults.add(rule);
    const reason = await rejection(byFunction(at, STAYS));
    expect(reason).toBeInstanceOf(lease.CreateosCleanupError);
    for (const driver of [executor(), at.driver]) expect(driver.leaseState(at.params(), at.id)).toBe("open");
  });
});
