// One implementation going through a history, everything observable noted down.
/* oxlint-disable unicorn/no-thenable -- thenables that are no promises are among what work may return */
import { setImmediate as turn } from "node:timers/promises";
import { type Description, describeError, describeValue, Labels } from "./describe.js";
import { type Failure, makeFailure, makeValue, Renamed, type Value } from "./failures.js";
import type { CountingProvider } from "./provider.js";
import type { Driver, Subject } from "./subject.js";

/** The last one is no legal identifier for a request, so its requests must fail before they are sent. */
export const LEASES = ["sb-0", "sb-1", "sb/2"];
const COMPANIES = ["company-0", "company-1"];
const KEYS = [0, 1];

export interface Place {
  driver: number;
  company: number;
  key: number;
  lease: number;
}

export type Settling = { ok: Value; through: "value" | "thenable" } | { failure: Failure };

export type Simple =
  | {
      type: "track";
      place: Place;
      work: { kind: string; settling: Settling; inner: Simple | null; onAbort: "settle" | Simple | null };
      options: string;
      flaw: string | null;
    }
  | { type: "settle"; call: number; settling: Settling }
  | { type: "abort"; call: number; reason: Failure | null }
  | { type: "release"; place: Place; mode: string; by: "release" | "releaseDestroying" | "destroy"; flaw: string | null }
  | { type: "gate"; lease: number; closed: boolean }
  | { type: "shutdown"; driver: number };

export type Command = Simple | { type: "sameTick"; commands: Simple[] };

interface Call {
  label: string;
  place: Place;
  signal: AbortSignal | undefined;
  /** Held by the history: ends when a command or an abort says so. */
  held: boolean;
  end: (settling: Settling) => void;
  caller: AbortController | undefined;
}

interface Closing {
  label: string;
  driver: number;
  /** Absent when no request can come of it. */
  lease: number | null;
  isShutdown: boolean;
  /** The calls that have to settle before this one can. */
  calls: Call[];
}

export class World {
  readonly #subject: Subject;
  readonly #provider: CountingProvider;
  readonly #apiUrl: string;
  readonly #quietWithinMs: number;
  readonly #drivers: Driver[];
  readonly #labels = new Labels();
  readonly #calls: Call[] = [];
  readonly #closings: Closing[] = [];
  readonly #unsettled = new Set<string>();
  readonly #settlements = new Map<string, Description>();
  readonly #shared = new AbortController();
  #events: Description[] = [];
  #eventCount = 0;
  #started = 0;
  #wake: () => void = () => {};

  constructor(subject: Subject, provider: CountingProvider, apiUrl: string, quietWithinMs: number) {
    this.#quietWithinMs = quietWithinMs;
    this.#subject = subject;
    this.#provider = provider;
    this.#apiUrl = apiUrl;
    this.#drivers = [new subject.LeaseDriver({ cleanupErrors: [Renamed] }), new subject.LeaseDriver()];
    provider.onRequest = () => this.#wake();
  }

  /** Names of calls take the place of numbers, so that a command means the same call in both worlds. */
  resolve(command: Command): Command {
    const held = this.#calls.flatMap((call, index) => (call.held ? [index] : []));
    const callers = this.#calls.flatMap((call, index) => (call.caller ? [index] : []));
    const pick = (from: number[], number: number) => (from.length === 0 ? -1 : (from[number % from.length] as number));
    if (command.type === "settle") return { ...command, call: pick(held, command.call) };
    if (command.type === "abort") return { ...command, call: pick(callers, command.call) };
    if (command.type === "sameTick") {
      return { ...command, commands: command.commands.map((one) => this.resolve(one) as Simple) };
    }
    return command;
  }

  run(command: Command): void {
    if (command.type === "sameTick") for (const one of command.commands) this.#runOne(one);
    else this.#runOne(command);
  }

  /** Lets go of everything that is held, so that a history leaves nothing behind. */
  end(): void {
    for (const id of LEASES) this.#provider.openGate(id);
    // A call that is let go may start another through an abort listener, which the loop then meets as well.
    for (const call of this.#calls) if (call.held) call.end({ ok: "undefined", through: "value" });
  }

  close(): void {
    this.end();
    this.#provider.finish();
  }

  /**
   * Waits until nothing more can happen by itself: what is not held up by the history has settled, and a release before a
   * closed gate has its request waiting there. With `other`, also until this world has come as far as that one.
   */
  async quiet(other?: World): Promise<void> {
    let late = false;
    const limit = setTimeout(() => {
      late = true;
      this.#wake();
    }, this.#quietWithinMs);
    try {
      for (;;) {
        // Rejections of checks need no event of their own, only turns of the loop.
        for (let turns = 0; turns < 3; turns += 1) await turn();
        if (this.#isQuiet() && (other === undefined || this.#isAsFarAs(other))) return;
        // What is missing shows in the comparison; without one to come, nothing would tell.
        if (late && other !== undefined) return;
        if (late) throw new Error(`Waited in vain for ${[...this.#unsettled].join(", ")}.`);
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(limit);
    }
  }

  takeStep(): Description {
    const events = this.#events;
    this.#events = [];
    return {
      events,
      settlements: Object.fromEntries([...this.#settlements].sort(([a], [b]) => a.localeCompare(b))),
      unsettled: [...this.#unsettled].sort(),
      requests: Object.fromEntries([...this.#provider.requests].sort(([a], [b]) => a.localeCompare(b))),
      states: this.#states(),
      signals: this.#calls.map(({ label, signal }) => [label, signal?.aborted, signal?.aborted && this.#describe(signal.reason)]),
    };
  }

  #runOne(command: Simple): void {
    if (command.type === "track") this.#track(command);
    else if (command.type === "release") this.#release(command);
    else if (command.type === "shutdown") this.#shutdown(command.driver);
    else if (command.type === "settle") this.#calls[command.call]?.end(command.settling);
    else if (command.type === "abort") this.#abort(this.#calls[command.call], command.reason);
    else if (command.closed) this.#provider.closeGate(LEASES[command.lease] as string);
    else this.#provider.openGate(LEASES[command.lease] as string);
  }

  #track({ place, work: plan, options, flaw }: Simple & { type: "track" }): void {
    const label = `call ${this.#started++}`;
    const caller = options === "signal" ? new AbortController() : undefined;
    const call: Call = { label, place, signal: undefined, held: false, end: () => {}, caller };
    const work = (client: unknown, signal: AbortSignal) => {
      this.#calls.push(call);
      call.signal = signal;
      this.#event(["work", label, signal instanceof AbortSignal, signal.aborted, typeof client]);
      signal.addEventListener("abort", () => {
        this.#event(["abort", label, this.#describe(signal.reason)]);
        if (plan.onAbort === "settle") call.end(plan.settling);
        else if (plan.onAbort !== null) this.#runOne(plan.onAbort);
      });
      const result = this.#perform(call, plan.kind, plan.settling);
      if (plan.inner !== null) this.#runOne(plan.inner);
      return result();
    };
    const params = this.#trackParams(place, flaw);
    this.#watch(label, () =>
      (this.#drivers[place.driver] as Driver).track(params, flaw === "noWork" ? "work" : work, this.#options(options, caller)),
    );
  }

  /** What `work` does: the returned function gives its result, after whatever else it does in the meantime. */
  #perform(call: Call, kind: string, settling: Settling): () => unknown {
    if (kind === "throw") return () => this.#throw(call, settling);
    if (kind === "value") return () => ("ok" in settling ? this.#value(call, settling.ok) : settling.failure.leaf);
    if (kind === "throwingThen") {
      return () => ({
        get then() {
          throw new RangeError("then");
        },
      });
    }
    call.held = true;
    const settled = new Promise<unknown>((resolve, reject) => {
      call.end = (how) => {
        if (!call.held) return;
        call.held = false;
        if ("failure" in how) reject(this.#failure(call, how.failure));
        else if (how.through === "value") resolve(this.#value(call, how.ok));
        else resolve({ then: (ok: (value: unknown) => void) => ok(this.#value(call, how.ok)) });
        this.#wake();
      };
    });
    // A thenable that is no promise, and that calls back at once when it can.
    if (kind === "thenable") return () => ({ then: (ok: never, failed: never) => void settled.then(ok, failed) });
    return () => settled;
  }

  #throw(call: Call, settling: Settling): never {
    throw this.#failure(call, "failure" in settling ? settling.failure : { leaf: "plain", wrappers: [] });
  }

  #value(call: Call, name: Value): unknown {
    return this.#labels.add(makeValue(name), `value of ${call.label}`);
  }

  #failure(call: Call, plan: Failure): unknown {
    return this.#labels.add(makeFailure(this.#subject, plan), `failure of ${call.label}`);
  }

  #abort(call: Call | undefined, reason: Failure | null): void {
    if (reason === null) call?.caller?.abort();
    else call?.caller?.abort(this.#labels.add(makeFailure(this.#subject, reason), `reason for ${call?.label}`));
  }

  #release({ place, mode, by, flaw }: Simple & { type: "release" }): void {
    const label = `release ${this.#started++}`;
    const destroys = by !== "release" || mode === "disposable" || mode === "autoPauseDiffers" || mode === "autoPauseMissing";
    this.#close(label, place.driver, flaw === null ? place.lease : null, (call) =>
      flaw === null && samePlace(call.place, place) && (destroys || call.place.key === place.key),
    );
    const params = this.#releaseParams(place, mode, flaw);
    const driver = this.#drivers[place.driver] as Driver;
    this.#watch(label, () => {
      if (by === "destroy") return driver.destroy(params);
      return by === "releaseDestroying" ? driver.release(params, true) : driver.release(params);
    });
  }

  #shutdown(driver: number): void {
    const label = `shutdown ${this.#started++}`;
    this.#close(label, driver, null, (call) => call.place.driver === driver);
    this.#watch(label, () => (this.#drivers[driver] as Driver).shutdown());
  }

  #close(label: string, driver: number, lease: number | null, covers: (call: Call) => boolean): void {
    const calls = this.#calls.filter((call) => call.held && covers(call));
    this.#closings.push({ label, driver, lease, isShutdown: label.startsWith("shutdown"), calls });
  }

  #watch(label: string, start: () => Promise<unknown>): void {
    this.#unsettled.add(label);
    const settle = (how: Description) => {
      this.#unsettled.delete(label);
      this.#settlements.set(label, how);
      this.#wake();
    };
    try {
      start().then(
        (result) => settle({ resolved: describeValue(result, this.#labels) }),
        (error) => settle({ rejected: this.#describe(error) }),
      );
    } catch (error) {
      settle({ threwSynchronously: this.#describe(error) });
    }
  }

  #isQuiet(): boolean {
    const pending = this.#closings.filter(({ label }) => this.#unsettled.has(label));
    const freeToGoOn = pending.filter((one) => !isHeldUp(one, pending));
    return (
      freeToGoOn.every((one) => {
        const id = LEASES[one.lease ?? -1];
        if (id === undefined || !this.#provider.isClosed(id)) return false;
        return this.#provider.heldAt(id) >= freeToGoOn.filter((other) => other.lease === one.lease).length;
      }) &&
      [...this.#unsettled].every(
        (label) => !label.startsWith("call") || this.#calls.some((call) => call.label === label && call.held),
      )
    );
  }

  #isAsFarAs(other: World): boolean {
    return (
      [...other.#settlements.keys()].every((label) => this.#settlements.has(label)) &&
      this.#eventCount >= other.#eventCount &&
      this.#provider.received >= other.#provider.received
    );
  }

  #event(event: Description): void {
    this.#events.push(event);
    this.#eventCount += 1;
    this.#wake();
  }

  #states(): Description {
    return this.#drivers.map((driver, index) =>
      COMPANIES.map((companyId, company) =>
        KEYS.map((key) =>
          LEASES.map((id, lease) =>
            driver.leaseState(
              { ...this.#ids(companyId), config: this.#config({ driver: index, company, key, lease }, "reuse") },
              id,
            ),
          ),
        ),
      ),
    );
  }

  #options(kind: string, caller: AbortController | undefined): unknown {
    if (kind === "none") return undefined;
    if (kind === "number") return 100_000;
    if (kind === "object") return { timeoutMs: 100_000, signal: null };
    if (kind === "signal") return { signal: caller?.signal };
    if (kind === "sharedSignal") return { timeoutMs: null, signal: this.#shared.signal };
    if (kind === "aborted") return { signal: AbortSignal.abort(new RangeError("aborted before")) };
    if (kind === "badTimeout") return { timeoutMs: 0 };
    if (kind === "badSignal") return { signal: {} };
    return [];
  }

  #trackParams(place: Place, flaw: string | null): unknown {
    const companyId = COMPANIES[place.company] as string;
    const metadata = { ...this.#metadata(companyId), ...(flaw === "foreign" && { environmentId: "another" }) };
    const lease = { providerLeaseId: LEASES[place.lease], metadata };
    const config = this.#config(place, "reuse");
    return { ...this.#ids(companyId), config, lease: flaw === "noLease" ? null : lease };
  }

  #releaseParams(place: Place, mode: string, flaw: string | null): unknown {
    if (flaw === "noObject") return "release";
    const companyId = COMPANIES[place.company] as string;
    const autoPauseAfterSeconds = mode === "autoPauseMissing" ? undefined : mode === "autoPauseDiffers" ? 61 : 60;
    const metadata = this.#metadata(companyId);
    return {
      ...this.#ids(companyId),
      config: this.#config(place, mode),
      providerLeaseId: flaw === "noId" ? null : flaw === "oddId" ? 7 : LEASES[place.lease],
      leaseMetadata: { ...metadata, autoPauseAfterSeconds, ...(flaw === "foreign" && { provider: "other" }) },
    };
  }

  #ids(companyId: string): { companyId: string; environmentId: string } {
    return { companyId, environmentId: "environment" };
  }

  #metadata(companyId: string): object {
    return { provider: "createos", ...this.#ids(companyId), apiUrl: this.#apiUrl };
  }

  // Each driver and company has keys of its own, for the provider keeps a sandbox for each key: whatever is in flight at
  // the same time then asks different sandboxes, and the order of the answers cannot depend on who comes first.
  #config({ driver, company, key }: Place, mode: string): object {
    return {
      apiUrl: `${this.#apiUrl}/v1/`,
      shape: "s",
      apiKey: `key-${driver}-${company}-${key}`,
      reuseLease: mode !== "disposable",
      ...(mode.startsWith("autoPause") && { autoPauseAfterSeconds: 60 }),
    };
  }

  #describe(error: unknown): Description {
    return describeError(this.#subject, error, this.#labels);
  }
}

// A shutdown waits for the releases of its driver too, those that began after it included.
function isHeldUp(one: Closing, pending: readonly Closing[]): boolean {
  if (one.calls.some((call) => call.held)) return true;
  return one.isShutdown && pending.some((other) => !other.isShutdown && other.driver === one.driver);
}

function samePlace(one: Place, other: Place): boolean {
  return one.driver === other.driver && one.company === other.company && one.lease === other.lease;
}
