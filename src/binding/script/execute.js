// Commands in a sandbox (specification, section 9): what is JavaScript's about them, which is the way of
// their output to the caller, and what an abort means.
(function execute(native, shared, exports) {
  'use strict';

  const {
    CreateosCleanupError,
    coreOfClient,
    fields,
    isDeadline,
    isRelease,
    isSignal,
    onAbort,
    readList,
    readPairs,
  } = shared;

  /** How a command ended. */
  const EXITED = 0;
  const CANCELLED = 1;

  /** The streams, by their numbers. */
  const STREAMS = Object.freeze(['stdout', 'stderr']);

  /** So much is handed over in one turn of the event loop: characters, and some for each piece. */
  const MOST_AT_ONCE = 262_144;
  const PIECE = 512;

  /** Instead of an answer: there was nothing to hand over. */
  const NONE = Symbol('none');

  const { setImmediate } = globalThis;

  /** The event loop's next turn. */
  const turn = () =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });

  /** Whether a value may be a promise, of whichever kind. */
  const mayWait = (value) =>
    (typeof value === 'object' && value !== null) || typeof value === 'function';

  /** Hands a command's output to its caller, in that caller's own asynchronous context. */
  class Delivery {
    #output;
    #onOutput;
    #onError;
    #given = 0;
    #isStopped = false;
    #isOver = false;
    #stopWaiting;
    #running;

    constructor(output, onOutput, onError) {
      this.#output = output;
      this.#onOutput = onOutput;
      this.#onError = onError;
      this.#running = this.#run();
    }

    /** Nothing more is handed over. */
    stop() {
      this.#isStopped = true;
      this.#stopWaiting?.();
    }

    /** The command is over: what is left is handed over, as far as nobody has to be waited for. */
    async finish() {
      this.#isOver = true;
      this.#stopWaiting?.();
      await this.#running;
    }

    async #run() {
      const output = this.#output;
      try {
        for (;;) {
          if (this.#isStopped) return;
          const answer = this.#handOver();
          if (answer === NONE) {
            if (!(await native.awaitOutput(output))) return;
          } else if (mayWait(answer) && !(await this.#hasSettled(answer))) return;
          // However fast output comes, everything else gets its turn.
          if (answer === NONE || this.#given >= MOST_AT_ONCE) {
            this.#given = 0;
            await turn();
          }
        }
      } catch (error) {
        this.#onError(error);
      } finally {
        native.dropOutput(output);
      }
    }

    /**
     * Hands the next piece over, and gives what its caller answers. In a frame of its own, in which the
     * text is forgotten with it: what a collection finds alive makes V8's young generation grow.
     */
    #handOver() {
      const piece = native.takeOutput(this.#output);
      if (piece === undefined) return NONE;
      const [stream, text] = piece;
      this.#given += PIECE + text.length;
      const onOutput = this.#onOutput;
      return onOutput(STREAMS[stream], text);
    }

    /** Waits for the caller's promise. False when it is not waited for any more. */
    #hasSettled(answer) {
      return new Promise((resolve, reject) => {
        this.#stopWaiting = () => resolve(false);
        Promise.resolve(answer).then(() => resolve(true), reject);
        if (this.#isOver || this.#isStopped) this.#stopWaiting();
      });
    }
  }

  /** What a command that was ended by an abort gives: nothing where that is an error. */
  function checkReason(signal) {
    const { reason } = signal;
    if (!isDeadline(reason)) throw isRelease(reason) ? native.refuseCancelled() : reason;
  }

  /** A result as the plugin contract has it. */
  function toResult(timedOut, [processId, exitCode, signal, stdout, stderr, outputTruncated]) {
    return {
      exitCode,
      signal,
      timedOut,
      stdout,
      stderr,
      metadata: { processId, outputTruncated },
    };
  }

  /** The result of a command that was over before it began. */
  const unbegun = () => toResult(true, [null, null, null, '', '', false]);

  /** Runs a command. The signal is a call's own, or any caller's; without one the timeout holds. */
  async function run(core, id, params, signal, onOutput, timeout) {
    const command = params.command;
    const args = readList(params.args);
    const cwd = params.cwd;
    const env = readPairs(params.env);
    const stdin = params.stdin;
    const hasSignal = signal !== undefined && signal !== null;
    const prepared = native.prepareCommand(
      core,
      id,
      command,
      args,
      env,
      cwd,
      stdin,
      timeout,
      hasSignal,
    );
    const wantsOutput = onOutput !== undefined && onOutput !== null;
    if (wantsOutput && typeof onOutput !== 'function') {
      throw new TypeError('onOutput must be a function.');
    }
    const cancel = native.createCancel();
    let delivery;
    const untie = hasSignal
      ? onAbort(signal, () => {
          native.cancel(cancel);
          if (!isDeadline(signal.reason)) delivery?.stop();
        })
      : undefined;
    let thrown;
    try {
      // An abort in this tick comes first: nothing is begun then.
      await undefined;
      if (hasSignal && signal.aborted) {
        checkReason(signal);
        return unbegun();
      }
      const [output, finished] = native.execute(prepared, cancel, wantsOutput);
      if (wantsOutput) {
        delivery = new Delivery(output, onOutput, (error) => {
          thrown = { error };
          native.cancel(cancel);
        });
      }
      let ended;
      try {
        ended = await finished;
      } finally {
        await delivery?.finish();
      }
      if (thrown !== undefined) throw thrown.error;
      const [end, ...rest] = ended;
      if (end === CANCELLED) checkReason(signal);
      return toResult(end !== EXITED, rest);
    } catch (error) {
      throw thrown === undefined || error instanceof CreateosCleanupError ? error : thrown.error;
    } finally {
      untie?.();
    }
  }

  exports.execute = async function execute(client, params, signal, onOutput) {
    const core = coreOfClient(client);
    if (core === undefined) throw new TypeError('client must be a CreateosClient.');
    if (signal !== undefined && signal !== null && !isSignal(signal)) {
      throw new TypeError('signal must be an AbortSignal.');
    }
    const given = fields(params);
    const { providerLeaseId } = fields(given.lease);
    return run(core, providerLeaseId, given, signal, onOutput, given.timeoutMs);
  };

  shared.runCommand = run;
})
//# sourceURL=createos-lease/execute.js
