// A resume that is stopped at one of its waits, what ends it there, and how everything must be afterwards.
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { expectAborted, expectTimedOut } from "./errors.js";
import { hold } from "./leases.js";
import { looseDriver, type LooseDriver } from "./package.js";
import { provide, routesSince } from "./providers.js";
import {
  alive,
  commandMarker,
  expectResumed,
  lookedAt,
  pause,
  persist,
  resume,
  sleeping,
  startProcess,
  writeMarker,
  type Persisted,
  type Resumed,
} from "./resumes.js";
import { rejection, turns, watch, within } from "./waiting.js";

type Rule = ReturnType<Provider["faults"]["add"]>;

/** Where a resume is stopped. */
export interface Scene {
  name: string;
  /** The sandbox as it is found; default: paused. */
  state?: "paused" | "running";
  /** Whether it holds another marker. */
  isAnother?: boolean;
  /** Whether no command of a crashed client runs in it, so that the list of processes is the last that is asked for. */
  isQuiet?: boolean;
  /** Holds the resume up; resolves, once that has begun, with what lets it go on. */
  stop(kept: Persisted, provider: Provider): Promise<() => void>;
}

/** The n-th request of a route is held, before it is acted upon or, with `after`, its answer is. */
function held(route: string, how: Partial<Scene> & { at?: number; after?: boolean } = {}): Scene {
  const { at = 0, after = false, ...scene } = how;
  const name = `${route}${at > 0 ? `, number ${at + 1}` : ""}${after ? ", its answer" : ""}`;
  return {
    name,
    ...scene,
    async stop(_kept, provider) {
      const effect = { type: "hold" as const, when: after ? ("after" as const) : ("before" as const) };
      const rule: Rule = provider.faults.add({ match: { path: route }, skip: at, times: 1, effect });
      await within(rule.hit);
      return () => rule.release();
    },
  };
}

export const SCENES: Scene[] = [
  held("sandbox.get"),
  held("egress.put"),
  held("egress.put", { after: true }),
  held("sandbox.get", { at: 1 }),
  held("sandbox.resume"),
  held("sandbox.resume", { after: true }),
  held("sandbox.get", { at: 2 }),
  held("exec"),
  held("process.list"),
  held("process.list", { isQuiet: true, name: "process.list, where nothing is to be ended" }),
  held("process.delete"),
  held("process.delete", { after: true }),
  held("sandbox.pause", { isAnother: true, name: "the pause of a sandbox with another marker" }),
  {
    name: "the pause between two looks",
    async stop(kept, provider) {
      provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "stuck" } });
      await provider.waitForState(kept.id, "resuming");
      for (let looks = 0; looks < 4; looks += 1) await lookedAt(provider, kept.id, provider.mark());
      return () => provider.guest.unstick(kept.id);
    },
  },
  {
    name: "the pause between two tries to end a process",
    async stop(_kept, provider) {
      const effect = { type: "status", status: 500 } as const;
      const rule = provider.faults.add({ match: { path: "process.delete" }, times: 2, effect });
      await within(rule.hit);
      await provider.waitFor(
        (event) => event.type === "request:finish" && event.request.route === "process.delete" && rule.hits === 2,
      );
      return () => {};
    },
  },
];

/** What ends a resume. */
export interface End {
  name: string;
  config?: object;
  /** Ends it; resolves when whatever does that is done. */
  act(at: Acting): Promise<unknown>;
  /** What the resume rejects with. */
  expectReason(reason: unknown, at: Acting): void;
  /** The requests that come after it: those of the release, and none of the resume. */
  requests: RegExp;
  /** What has become of the sandbox, where that is the end's doing. */
  leaves?: "paused" | "destroyed";
  leaseState: string;
}

interface Acting {
  kept: Persisted;
  driver: LooseDriver;
  controller: AbortController;
  /** Resolves once the deadline of a call has passed that began with the resume, if the end is a deadline. */
  deadline: Promise<unknown>;
}

const OWN = { own: "the caller's own reason" };
const TIMEOUT_MS = 1200;

const PAUSED = /^(sandbox\.get )*(sandbox\.pause (sandbox\.get )+)?$/u;
const DESTROYED = /^sandbox\.destroy $/u;
const NOTHING = /^$/u;

export const ENDS: End[] = [
  {
    name: "a release for reuse",
    act: ({ driver, kept }) => driver.release(kept.params()),
    expectReason: expectAborted,
    requests: PAUSED,
    leaves: "paused",
    leaseState: "open",
  },
  {
    name: "a destroy",
    act: ({ driver, kept }) => driver.destroy(kept.params()),
    expectReason: expectAborted,
    requests: DESTROYED,
    leaves: "destroyed",
    leaseState: "open",
  },
  {
    name: "a destroy that is confirmed",
    async act({ driver, kept }) {
      const receipt = await driver.destroy(kept.params(), { confirm: true });
      expect(receipt).toEqual({ providerLeaseId: kept.id, state: "destroyed" });
    },
    expectReason: expectAborted,
    requests: /^sandbox\.destroy (sandbox\.get )*$/u,
    leaves: "destroyed",
    leaseState: "open",
  },
  {
    name: "a destroy under a rotated key",
    act: ({ driver, kept }) => driver.destroy(kept.params({ config: { apiKey: "new" } })),
    expectReason: expectAborted,
    requests: DESTROYED,
    leaves: "destroyed",
    leaseState: "open",
  },
  {
    name: "a shutdown",
    act: ({ driver }) => driver.shutdown(),
    expectReason: expectAborted,
    requests: NOTHING,
    leaseState: "shutdown",
  },
  {
    name: "the deadline",
    config: { timeoutMs: TIMEOUT_MS },
    act: ({ deadline }) => deadline,
    expectReason: expectTimedOut,
    requests: NOTHING,
    leaseState: "open",
  },
  {
    name: "the caller's signal",
    act: async ({ controller }) => controller.abort(OWN),
    expectReason: (reason) => expect(reason).toBe(OWN),
    requests: NOTHING,
    leaseState: "open",
  },
];

/** Where a concurrent test says what to do when it has ended: its context. */
type Context = Parameters<typeof provide>[1];

/**
 * Stops a resume at the scene and ends it; with `late` what it waits for still comes, right after the end has begun.
 * Tells how long the resume took to give up.
 */
export async function play(
  scene: Scene,
  end: End,
  answer: "never" | "late",
  context: Context,
): Promise<{ waitedMs: number }> {
  const provider = await provide({ apiKeys: { old: "owner", new: "owner" } }, context);
  const kept = await persist(provider, { state: "running", key: "old", config: end.config ?? {} });
  if (!scene.isQuiet) await startProcess(kept, sleeping(commandMarker()), "old");
  if (scene.isAnother) await writeMarker(provider, kept.id, `${kept.marker.slice(1)}0`);
  if (scene.state !== "running") await pause(provider, kept.id);

  const driver = looseDriver();
  const controller = new AbortController();
  const stopped = scene.stop(kept, provider);
  const resumed = watch(resume(kept.params(), driver, { signal: controller.signal }));
  // Another lease's call, which began when the resume did: its deadline passes when the resume's does.
  const companion = hold(driver, kept.params({ id: "sb-companion" }), TIMEOUT_MS);
  const deadline = new Promise<void>((resolve) => companion.signal.addEventListener("abort", () => resolve()));
  const goOn = await stopped;
  const acting: Acting = { kept, driver, controller, deadline };
  expect(resumed.state).toBe("pending");
  if (end.leaseState !== "shutdown") expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  let start = provider.requests.length;
  const ended = watch(end.act(acting));
  if (end.leaves !== undefined) expect(driver.leaseState(kept.params(), kept.id)).toBe("closing");
  // A sandbox that hangs in a state lets no release end either.
  const isPause = scene.name.startsWith("the pause between");
  if (end.name === "the deadline") {
    await within(deadline);
    start = provider.requests.length;
  }
  const endedAt = performance.now();
  if (answer === "late" || isPause) goOn();

  end.expectReason(await rejection(resumed.promise as Promise<Resumed>), acting);
  const waitedMs = performance.now() - endedAt;
  companion.resolve();
  await within(ended.promise);
  await turns();
  const routes = routesSince(provider, start).map((route) => `${route} `);
  expect(routes.join("")).toMatch(end.requests);
  expect(driver.leaseState(kept.params(), kept.id)).toBe(end.leaseState);
  if (end.leaves !== undefined) await provider.waitForState(kept.id, end.leaves);
  if (end.leaves !== "destroyed") await resumesAgain(scene, end, kept, driver);
  return { waitedMs };
}

/** The sandbox is still there, so it can be resumed, and nothing of the crashed client runs in it afterwards. */
async function resumesAgain(scene: Scene, end: End, kept: Persisted, driver: LooseDriver): Promise<void> {
  const { provider, id } = kept;
  if (scene.isAnother) await writeMarker(provider, id, kept.marker);
  const params = kept.params({ config: { timeoutMs: 20_000 } });
  expectResumed(await within(resume(params, end.leaseState === "shutdown" ? looseDriver() : driver)), params);
  expect(provider.sandbox(id)?.status).toBe("running");
  expect(alive(provider, id)).toEqual([]);
}
