// A command that is stopped at one of its waits, what ends it there, and how everything must be afterwards.
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { UNCONFIRMED, expectCreateosError } from "./errors.js";
import {
  PIECES,
  SILENT,
  executor,
  expectAccountedFor,
  expectNoSecret,
  isUnconfirmed,
  place,
  sh,
  type Executor,
  type Piece,
  type Place,
} from "./executes.js";
import { expectOutcome, failed, timedOut, type Context, type Expectation } from "./executes_faults.js";
import type { Scene } from "./executes_scenes.js";
import { outcomeOf } from "./failed_requests.js";
import { hold, leaseParams } from "./leases.js";
import { provide, routesSince } from "./providers.js";
import { deferred, rejection, turns, watch, within, type Deferred } from "./waiting.js";

/** A command on its way. */
export interface Acting {
  at: Place;
  provider: Provider;
  driver: Executor;
  controller: AbortController;
  /** What the caller has been given. */
  pieces: Piece[];
  given(piece: Piece): void;
  /** Resolves once the caller has been given so much. */
  has(text: string): Promise<void>;
  /** What a caller's function waits for that does. */
  output: Deferred<void>;
  /** Resolves once the deadline has passed, if that is what ends the command. */
  deadline: Promise<void>;
  /** Whether it has. */
  isLate: boolean;
  /** Called once the command has begun. */
  watchDeadline(): void;
  /** Until right before the deadline, if that is what ends the command: what follows, lasts until after it. */
  untilDeadline(): Promise<void>;
}

/** What ends a command. */
export interface End {
  name: string;
  timeoutMs?: number;
  /** Ends it; resolves when whatever does that is done. */
  act(acting: Acting): Promise<unknown>;
  /** What the command comes to, if it has come to nothing before. `text`: its output by then. */
  outcome(text: string): Expectation;
  /** The requests that come after those of the command. */
  requests: string;
  /** What has become of the sandbox, where that is the end's doing. */
  leaves?: "paused" | "destroyed";
  /** Whether it cannot be done as long as a process may still run. */
  isRefused?: boolean;
  leaseState?: string;
}

/** The caller's own reason. */
export const OWN = { own: "reason" };
const CANCELLED = failed("ERR_CREATEOS_CANCELLED", "command was cancelled");

/** More than any scene takes to begin, besides its own pauses, if the machine is not busy. */
const TIMEOUT_MS = 2800;
const MOST_TIMEOUT_MS = 10_000;
/** How long before the deadline a pause of 250 ms or more begins. */
const SHORTLY_MS = 120;

export const ENDS: End[] = [
  {
    name: "a release for reuse",
    act: ({ driver, at }) => driver.release(at.params()),
    outcome: () => CANCELLED,
    requests: "(sandbox.get )*(sandbox.pause (sandbox.get )+)?",
    leaves: "paused",
    isRefused: true,
  },
  {
    name: "a destroy",
    act: ({ driver, at }) => driver.destroy(at.params()),
    outcome: () => CANCELLED,
    requests: "sandbox.destroy ",
    leaves: "destroyed",
    leaseState: "open",
  },
  {
    name: "the caller's signal",
    act: async ({ controller }) => controller.abort(OWN),
    outcome: () => ({ reason: OWN }),
    requests: "",
  },
  {
    name: "the deadline",
    timeoutMs: TIMEOUT_MS,
    act: ({ deadline }) => deadline,
    outcome: timedOut,
    requests: "",
  },
  {
    name: "a shutdown",
    act: ({ driver }) => driver.shutdown(),
    outcome: () => CANCELLED,
    requests: "",
    leaseState: "shutdown",
  },
];

/** What a command may still ask for once it has been ended. */
const CLEANUP = "((process.delete ){0,3}(exec )?|exec (process.delete ){0,3})";

/** How long a command may take to end, besides what the scene knows of. */
const MOST_MS = 4500;

/** Whether what the command waits for when it is ended still comes, right after that. */
export type Answer = "never" | "late";

/** Stops a command at the scene, ends it there, and looks at everything afterwards. */
export function play(scene: Scene, end: End, answer: Answer, context: Context): Promise<void> {
  const timeout = end.timeoutMs === undefined ? {} : { timeoutMs: end.timeoutMs + (scene.pausesMs ?? 0) };
  return playIn(scene, { ...end, ...timeout }, answer, context);
}

async function playIn(scene: Scene, end: End, answer: Answer, context: Context): Promise<void> {
  const provider = await provide(PIECES, context);
  const at = await place(provider);
  const acting = act(at, end);
  const { driver, controller, pieces, given } = acting;
  for (const rule of scene.rules?.(acting) ?? []) provider.faults.add(rule);
  const stopped = scene.stop(acting);
  const timeout = end.timeoutMs === undefined ? {} : { timeoutMs: end.timeoutMs };
  const params = at.params({ ...(scene.command ?? SILENT), ...timeout });
  const onOutput = (...piece: Piece) => {
    given(piece);
    return scene.onOutput?.(acting);
  };
  const executed = watch(driver.execute(params, onOutput, { signal: controller.signal }));
  const outcome = outcomeOf(executed.promise);
  acting.watchDeadline();
  const goOn = await Promise.race([within(stopped, 25_000, "The scene"), outcome.then(() => undefined)]);
  // On a busy machine a deadline may pass before the command has got to where it is to be ended, which it may seem to
  // have: the deadline asks for the same as a failure does.
  if ((goOn === undefined || acting.isLate) && end.timeoutMs !== undefined && end.timeoutMs < MOST_TIMEOUT_MS) {
    stopped.catch(() => {});
    goOn?.();
    return playIn(scene, { ...end, timeoutMs: end.timeoutMs * 2 }, answer, context);
  }
  if (goOn === undefined) throw new Error("The command ended before it was stopped.", { cause: await outcome });
  expect(executed.state).toBe("pending");

  let start = provider.requests.length;
  const ended = watch(end.act(acting));
  ended.promise.catch(() => {});
  const before = pieces.length;
  if (end.leaves !== undefined) expect(driver.leaseState(params, at.id)).toBe("closing");
  if (end.timeoutMs !== undefined) {
    await within(acting.deadline);
    start = provider.requests.length;
  }
  const endedAt = performance.now();
  if (answer === "late") goOn();
  const settled = await within(outcome, 20_000, "The command");
  const waitedMs = performance.now() - endedAt;
  const after = pieces.length;

  const unanswered = answer === "never" ? scene.unanswered : undefined;
  const atDeadline = end.timeoutMs === undefined ? undefined : scene.atDeadline;
  expectOutcome(settled, scene.failure ?? unanswered ?? atDeadline ?? end.outcome(scene.text ?? ""), at, scene.isPending ? undefined : pieces);
  if (settled.reason !== OWN) expectNoSecret(settled.reason, at);
  expect(waitedMs).toBeLessThan(MOST_MS + ((answer === "never" && scene.patienceMs) || 0));
  const isLost = isUnconfirmed(settled.reason);
  const isRefused = isLost && end.isRefused === true;
  if (isRefused) expectCreateosError(await rejection(ended.promise), UNCONFIRMED);
  else await within(ended.promise);
  const routes = routesSince(provider, start).map((route) => `${route} `);
  expect(routes.join("")).toMatch(new RegExp(`^${CLEANUP}${isRefused ? "" : end.requests}$`, "u"));
  if (end.leaves !== undefined && !isRefused) await provider.waitForState(at.id, end.leaves);
  const state = isRefused ? undefined : end.leaseState;
  expectAccountedFor(at, driver, settled.reason, state, answer === "never" && scene.isRemoval === true);
  if (!isLost && end.leaves === undefined && end.leaseState === undefined) await worksAgain(acting);
  await turns();
  // Nothing comes after the end, and after an abort nothing even before it.
  expect(pieces.length).toBe(end.timeoutMs === undefined ? before : after);
}

function act(at: Place, end: End): Acting {
  const { provider } = at;
  const driver = executor();
  const pieces: Piece[] = [];
  const waiting = new Map<string, Deferred<void>>();
  const text = () => pieces.map(([, piece]) => piece).join("");
  const began = performance.now();
  const deadline = deferred();
  const acting: Acting = {
    at,
    provider,
    driver,
    controller: new AbortController(),
    pieces,
    given(piece) {
      pieces.push(piece);
      for (const [wanted, there] of waiting) if (text().startsWith(wanted)) there.resolve();
    },
    has(wanted) {
      const there = deferred<void>();
      waiting.set(wanted, there);
      return there.promise;
    },
    output: deferred(),
    deadline: deadline.promise,
    isLate: false,
    watchDeadline() {
      if (end.timeoutMs === undefined) return;
      // Another lease's call, which began after the command did: once its deadline has passed, the command's has too.
      const companion = hold(driver, leaseParams({ provider, id: "sb-companion" }), end.timeoutMs);
      companion.signal.addEventListener("abort", () => {
        companion.resolve();
        acting.isLate = true;
        deadline.resolve();
      });
    },
    async untilDeadline() {
      if (end.timeoutMs === undefined) return;
      const leftMs = began + end.timeoutMs - SHORTLY_MS - performance.now();
      await new Promise((resolve) => setTimeout(resolve, leftMs));
    },
  };
  return acting;
}

/** The lease is as good as before. */
async function worksAgain({ at, driver }: Acting): Promise<void> {
  at.provider.faults.clear();
  const result = await within(driver.execute(at.params(sh("printf again"))));
  expect(result).toMatchObject({ exitCode: 0, stdout: "again", timedOut: false });
}
