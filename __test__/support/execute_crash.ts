// Drivers that end in the middle of what they do: each lives in a process or a worker thread of its own and does what it
// is told. What they leave in a sandbox is looked at here, where its provider is.
import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { lease } from "./package.js";
import { provide } from "./providers.js";
import { alive, sleeping, startProcess } from "./resumes.js";
import { type Deferred, deferred, within } from "./waiting.js";

type Driver = InstanceType<(typeof lease)["LeaseDriver"]>;
type Execute = Parameters<Driver["execute"]>[0];
export type Command = Pick<Execute, "command" | "args" | "stdin" | "timeoutMs">;
export type Result = Awaited<ReturnType<Driver["execute"]>>;

/** Where a concurrent test says what to do when it has ended: its context. */
type Context = NonNullable<Parameters<typeof provide>[1]>;

const file = fileURLToPath(new URL("execute_crash_home.cjs", import.meta.url));

/** How a process or a worker thread ended. */
export type Exit = number | NodeJS.Signals | null;

interface Call {
  answer: Deferred<any>;
  said: Deferred<string>;
}

interface Place {
  send(message: object): void;
  end(): unknown;
  exited: Promise<Exit>;
}

/** A driver somewhere else. */
export class Home {
  readonly #place: Place;
  readonly #calls = new Map<number, Call>();
  readonly exited: Promise<Exit>;
  #next = 1;

  private constructor(begin: (hear: (message: any) => void) => Place) {
    this.#place = begin((message) => this.#hear(message));
    this.exited = this.#place.exited;
  }

  /** In a process of its own. It does not outlive its test. */
  static process(context: Context): Home {
    return Home.#settle(context, (hear) => {
      const env = { ...process.env, NODE_OPTIONS: "", VITEST: undefined, CREATEOS_API_KEY: undefined };
      const child = fork(file, { env, execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
      child.on("message", hear);
      return {
        send: (message) => child.send(message),
        end: () => child.kill("SIGKILL"),
        exited: new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code))),
      };
    });
  }

  /** In a worker thread of this process. */
  static worker(context: Context): Home {
    return Home.#settle(context, (hear) => {
      const worker = new Worker(file);
      worker.on("message", hear);
      return {
        send: (message) => worker.postMessage(message),
        end: () => worker.terminate(),
        exited: new Promise((resolve, reject) => worker.once("error", reject).once("exit", resolve)),
      };
    });
  }

  static #settle(context: Context, begin: (hear: (message: any) => void) => Place): Home {
    const home = new Home(begin);
    context.onTestFinished(async () => void (await home.end()));
    return home;
  }

  call<M extends "acquire" | "resume" | "release" | "destroy" | "execute">(
    method: M,
    params: Parameters<Driver[M]>[0],
  ): { answer: Promise<Awaited<ReturnType<Driver[M]>>>; said: Promise<string> } {
    const id = this.#next++;
    const call: Call = { answer: deferred(), said: deferred() };
    this.#calls.set(id, call);
    this.#place.send({ id, method, params });
    const answer = within(call.answer.promise, 20_000, method);
    const said = within(call.said.promise, 10_000, "Output");
    // A test that ends it awaits neither.
    for (const promise of [answer, said]) promise.catch(() => {});
    return { answer, said };
  }

  /** Ends it from inside, by process.exit, while its calls are under way. */
  exit(code: number): Promise<Exit> {
    this.#place.send({ method: "exit", params: code });
    return within(this.exited);
  }

  /** Ends it from outside, without a word: by SIGKILL, or a worker thread by its termination. */
  async end(): Promise<Exit> {
    await this.#place.end();
    return within(this.exited);
  }

  #hear({ id, said, failure, value }: { id: number; said?: string; failure?: { message: string }; value?: unknown }): void {
    const call = this.#calls.get(id);
    if (said !== undefined) {
      call?.said.resolve(said);
      return;
    }
    const unsaid = new Error("The command has ended without a word.");
    call?.said.reject(unsaid);
    if (failure === undefined) call?.answer.resolve(value);
    else call?.answer.reject(Object.assign(new Error(failure.message), failure));
  }
}

/** A lease as its host has persisted it, and what runs in its sandbox. */
export interface Left {
  provider: Provider;
  id: string;
  /** Parameters of everything that is done with the lease. */
  claim: ReturnType<typeof claimOf>;
  /** The processes that are nobody's to end: a finished command's background server, and one of somebody else. */
  others: string[];
}

export const bash = (script: string, more: Partial<Command> = {}): Command => ({
  command: "bash",
  args: ["-c", script],
  ...more,
});

/** Goes on until it is ended, with two background processes, one of them in a session of its own. */
export const LONG = bash("sleep 1000 & setsid sleep 1000 & echo up; sleep 1000");

/** Leaves a server in the background when it ends. */
export const SERVER = bash("sleep 1000 >/dev/null 2>&1 &");

/** What makes a file in the workspace, so that it can be seen whether a command has begun. */
export const BEGINS = bash("echo > begun; sleep 1000");
export const hasBegun = ({ provider, id }: Left): boolean =>
  existsSync(path.join(provider.sandbox(id)?.directory ?? "", "paperclip-workspace", "begun"));

const ownerOf = (provider: Provider) => ({
  companyId: "company",
  environmentId: "environment",
  config: { apiUrl: provider.url, apiKey: provider.apiKey, shape: "s-1vcpu-1gb", reuseLease: true, timeoutMs: 20_000 },
});

function claimOf(provider: Provider, kept: string) {
  const acquired: { providerLeaseId: string; metadata: Record<string, unknown> } = JSON.parse(kept);
  const { providerLeaseId, metadata } = acquired;
  return { ...ownerOf(provider), lease: acquired, providerLeaseId, leaseMetadata: metadata };
}

/** A driver elsewhere that has acquired a lease, run a command that left a server, and is ready for the next. */
export async function settled(home: Home, context: Context, options: Parameters<typeof provide>[0] = {}): Promise<Left> {
  const provider = await provide(options, context);
  const kept = JSON.stringify(await home.call("acquire", ownerOf(provider)).answer);
  const claim = claimOf(provider, kept);
  const { providerLeaseId: id } = claim;
  const server = await home.call("execute", { ...claim, ...SERVER }).answer;
  expect(server.exitCode).toBe(0);
  const others = [server.metadata.processId ?? "", await startProcess({ provider, id }, sleeping())];
  expect(alive(provider, id)).toEqual(others);
  return { provider, id, claim, others };
}

/** Which of a sandbox's processes run, besides those that are nobody's to end. Those have to. */
export function commandsOf({ provider, id, others }: Left): string[] {
  const running = alive(provider, id);
  expect(running).toEqual(expect.arrayContaining(others));
  return running.filter((process) => !others.includes(process));
}

/** That a command runs, and its process. */
export function theCommand(left: Left): string {
  const [command, ...more] = commandsOf(left);
  expect(more).toEqual([]);
  return command ?? expect.fail("No command runs.");
}

/**
 * Holds a request, the next of its route, before it takes effect or with its answer on the way. `reached` resolves once
 * it is there.
 */
export function hold({ provider }: Left, route: string, when: "before" | "after" = "before") {
  const rule = provider.faults.add({ match: { path: route }, times: 1, effect: { type: "hold", when } });
  const isThere = provider.waitFor((event) => event.type === "fault:hit" && event.request.route === route);
  return { reached: isThere.then(() => {}), release: () => rule.release() };
}

/** Waits until the whole tree of a process is gone. */
export async function treeGone({ provider }: Left, process: string): Promise<void> {
  await provider.waitFor((event) => event.type === "process:tree-exit" && event.id === process);
}

/** That the lease can be used by a driver that has resumed it, and destroyed. */
export async function usable({ provider, id, claim }: Left, driver: Driver, resumed = claim.lease): Promise<void> {
  const next = await driver.execute({ ...claim, lease: resumed, ...bash("echo next") });
  expect(next).toMatchObject({ exitCode: 0, stdout: "next\n" });
  await driver.destroy(claim, { confirm: true });
  expect(provider.sandbox(id)?.status).toBe("destroyed");
}
