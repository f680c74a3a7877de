// Waiting for events, never for time: every wait is bounded, and a bound that passes says what did not come.

/** A promise and what settles it. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason?: unknown) => void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: Deferred<T>["resolve"];
  let reject!: Deferred<T>["reject"];
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** The promise, or a failure when it is still pending after `ms`. */
export async function within<T>(promise: PromiseLike<T>, ms = 10_000, what = "The promise"): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} was still pending after ${ms} ms.`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a promise rejects with; fails where it resolves or stays pending. */
export async function rejection(promise: PromiseLike<unknown>, ms?: number): Promise<any> {
  let value: unknown;
  try {
    value = await within(promise, ms);
  } catch (reason) {
    return reason;
  }
  throw new Error(`Expected a rejection, got the value ${typeof value}.`);
}

/** What a function throws; fails where it returns. */
export function thrown(act: () => unknown): any {
  try {
    act();
  } catch (reason) {
    return reason;
  }
  throw new Error("Expected an exception.");
}

/** A promise whose state can be looked at. */
export interface Watched<T> {
  promise: Promise<T>;
  state: "pending" | "resolved" | "rejected";
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { promise, state: "pending" };
  promise.then(
    () => (watched.state = "resolved"),
    () => (watched.state = "rejected"),
  );
  return watched;
}

/** Resolves with the reason once a signal is aborted. */
export function abortion(signal: AbortSignal, ms = 10_000): Promise<any> {
  const aborted = new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
  return within(aborted, ms, "The signal");
}

/** One turn of the event loop, after everything that is ready by now: what should not happen has had its chance. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A few turns, for what takes the way over another thread. */
export async function turns(count = 20): Promise<void> {
  for (let left = count; left > 0; left -= 1) await turn();
}
