// Running calls (specification, section 4): the AbortController of each, its deadline's context, and its
// caller's own signal. Native code knows a call by its slot.
(function calls(native, shared, exports) {
  'use strict';

  const { defaultReason, meansCleanupFailed, onAbort, peek } = shared;

  /** The AbortController of each running call, by its slot. */
  const controllers = [];

  /** What each running call's deadline runs in, by its slot: its caller's asynchronous context. */
  const contexts = [];

  /** Destroyed by hand when the call settles: leaving it to the collector would cost a finalizer. */
  const CONTEXT_OPTIONS = Object.freeze({ requireManualDestroy: true });

  /** Why calls were aborted: the reasons of releases and shutdowns, and those of deadlines. */
  const releases = new WeakSet();
  const deadlines = new WeakSet();

  let AsyncResource;

  /** Called by the loader: only there can Node's own modules be required. */
  exports.useNode = function useNode(hooks, events) {
    AsyncResource = hooks.AsyncResource;
    // Since Node 20.5.
    shared.addAbortListener = events.addAbortListener;
  };

  const { DOMException } = globalThis;

  /**
   * Aborts one call. A work that has frozen or broken its own signal cannot be told, which is no
   * reason to spare the others: whoever waits for it does so within its bound.
   */
  function abort(controller, reason) {
    try {
      controller.abort(reason);
    } catch {
      // Not even told of this: its own doing.
    }
  }

  /** Aborts calls in the order given. Listeners run at once, and may call anything. */
  function abortAll(slots) {
    if (slots.length === 0) return;
    // Taken before the first listener runs: it may settle a call, and its slot be used again.
    const aborted = slots.map((slot) => controllers[slot]);
    const reason = defaultReason();
    releases.add(reason);
    for (const controller of aborted) abort(controller, reason);
  }

  /** Called by native code when a call's deadline has passed. */
  shared.expire = function expire(slot) {
    const controller = controllers[slot];
    if (controller === undefined) return;
    const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    deadlines.add(reason);
    contexts[slot].runInAsyncScope(abort, undefined, controller, reason);
  };

  /**
   * A call that has been registered under a slot. `leave` has to be called when it has settled,
   * whatever `enter` did.
   */
  class Call {
    #slot;
    #context;
    #untie;
    #cleanupFailed = false;

    constructor(slot) {
      this.#slot = slot;
    }

    /** Has the controller aborted by releases, by the deadline, and by the caller's own signal. */
    enter(controller, signal) {
      controllers[this.#slot] = controller;
      const context = new AsyncResource('CreateosLease', CONTEXT_OPTIONS);
      this.#context = context;
      contexts[this.#slot] = context;
      if (signal === undefined) return;
      this.#untie = onAbort(signal, () => abort(controller, peek(signal, 'reason')));
    }

    /** What it rejects with may mean that something still runs. */
    failed(error, cleanupErrors) {
      this.#cleanupFailed = meansCleanupFailed(error, cleanupErrors);
    }

    leave() {
      controllers[this.#slot] = undefined;
      contexts[this.#slot] = undefined;
      native.end(this.#slot, this.#cleanupFailed);
      this.#context?.emitDestroy();
      this.#untie?.();
    }
  }

  /** Whether a signal's reason is that a release or shutdown has aborted a call, or its deadline. */
  const isRelease = (reason) => releases.has(reason);
  const isDeadline = (reason) => deadlines.has(reason);

  Object.assign(shared, { Call, abort, abortAll, isDeadline, isRelease });
})
//# sourceURL=createos-lease/calls.js
