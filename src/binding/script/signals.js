// Callers' AbortSignals (specification, sections 4 and 6).
(function signals(native, shared) {
  'use strict';

  /** Whether the value behaves as an AbortSignal, of whichever realm. */
  const isSignal = (value) =>
    typeof value === 'object' &&
    value !== null &&
    typeof value.aborted === 'boolean' &&
    typeof value.addEventListener === 'function' &&
    typeof value.removeEventListener === 'function';

  const { AbortController } = globalThis;

  /**
   * Adds a listener, and gives the function that takes it off. Node's own way where there is one: no
   * other listener can stop the event on its way to ours.
   */
  function listen(signal, listener) {
    if (shared.addAbortListener !== undefined) {
      const disposable = shared.addAbortListener(signal, listener);
      return () => disposable[Symbol.dispose]();
    }
    signal.addEventListener('abort', listener, { __proto__: null, once: true });
    return () => signal.removeEventListener('abort', listener);
  }

  /** What waits for each signal. One listener serves all: Node warns of a signal with eleven. */
  const waiting = new WeakMap();

  /**
   * Has `callback` called when the signal is aborted, until the function that comes back is called.
   * A signal that nothing waits for any more has no listener left.
   */
  function onAbort(signal, callback) {
    let callbacks = waiting.get(signal);
    if (callbacks === undefined) {
      callbacks = new Set();
      const all = callbacks;
      const listener = () => {
        // A signal that is not the platform's may not know of `once`.
        all.forget();
        waiting.delete(signal);
        // What one of them throws is no reason not to tell the others.
        for (const each of all) shared.attempt(each, undefined);
      };
      const stop = listen(signal, listener);
      // A signal that refuses to forget has nothing to say about what it was given to.
      all.forget = () => shared.attempt(stop, undefined);
      waiting.set(signal, all);
    }
    // A callback may be given twice, by two calls.
    const entry = () => callback();
    const set = callbacks;
    set.add(entry);
    return () => {
      if (!set.delete(entry) || set.size > 0 || waiting.get(signal) !== set) return;
      waiting.delete(signal);
      set.forget();
    };
  }

  /** Ties a native operation to a caller's signal until `untie` is called. */
  function tie(signal, callback) {
    if (signal === undefined || signal === null) return { cancel: undefined, untie() {} };
    if (!isSignal(signal)) throw new TypeError('signal must be an AbortSignal.');
    if (signal.aborted) throw signal.reason;
    const cancel = native.createCancel();
    const untie = onAbort(signal, () => {
      native.cancel(cancel);
      callback?.();
    });
    return { cancel, untie };
  }

  /** A native failure as the caller sees it: an abort is the signal's own reason. */
  const toReason = (error, signal) => (error === shared.ABORTED ? signal?.reason : error);

  /** Runs what native code has prepared, a microtask later: an abort in this tick comes first. */
  async function run(prepared) {
    await undefined;
    return native.run(prepared);
  }

  /** Runs one native operation, which the signal ends. */
  async function bounded(signal, prepare) {
    const { cancel, untie } = tie(signal);
    try {
      return await run(prepare(cancel));
    } catch (error) {
      throw toReason(error, signal);
    } finally {
      untie();
    }
  }

  /** The reason that the platform gives an abort without one. */
  function defaultReason() {
    const controller = new AbortController();
    controller.abort();
    return controller.signal.reason;
  }

  Object.assign(shared, { bounded, defaultReason, isSignal, onAbort, run, tie, toReason });
})
//# sourceURL=createos-lease/signals.js
