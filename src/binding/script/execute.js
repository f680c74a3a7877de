// Commands in a sandbox (specification, section 9): what is JavaScript's about them, which is the way of
// their output to the caller, and what an abort means.
(function execute(native, shared, exports) {
  'use strict';

  const {
    CreateosCleanupError,
    copyList,
    coreOfClient,
    fields,
    isDeadline,
    isRelease,
    isSignal,
    onAbort,
    peek,
    readPairs,
  } = shared;

  /** How a command ended. */
  const EXITED = 0;
  const CANCELLED = 1;

  /** The streams, by their numbers. */
  const STREAMS = Object.freeze(['stdout', 'stderr']);

  /** So much is handed over in one turn of the event loop: characters, some for each piece, and ms. */
  const MOST_AT_ONCE = 262_144;
  const PIECE = 512;
  const LONGEST_TURN = 5;

  /** More arguments than Linux takes. */
  const MOST_ARGUMENTS = 1_048_576;

  /** Instead of an answer: there was nothing to hand over. */
  const NONE = Symbol('none');

  const { Promise, performance, setImmediate } = globalThis;

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
    #isFinished = false;
    #isOver = false;
    #stopWaiting;
    #running;

    constructor(output, onOutput, onError) {
      this.#output = output;
      this.#onOutput = onOutput;
      this.#onError = onError;
      this.#running = this.#run();
    }

    /** Nothing more is handed over: an abort. */
    stop() {
      this.#isStopped = true;
      this.#stopWaiting?.();
    }

    /** Whether an abort came before all of the output had been handed over. */
    get isCut() {
      return this.#isStopped && !this.#isOver;
    }

    /** Nothing more is handed over from when this resolves on. */
    async finish() {
      this.#isFinished = true;
      native.dropOutput(this.#output);
      this.#stopWaiting?.();
      await this.#running;
    }

    async #run() {
      const output = this.#output;
      try {
        let began = performance.now();
        while (!this.#isStopped && !this.#isFinished) {
          const answer = this.#handOver();
          if (answer === NONE) {
            if (!(await native.awaitOutput(output))) {
              this.#isOver = !this.#isStopped;
              return;
            }
          } else if (mayWait(answer)) await this.#settled(answer);
          // However fast output comes and however slowly it is taken, everything else gets its turn.
          const isEnough = answer === NONE || this.#given >= MOST_AT_ONCE;
          if (isEnough || performance.now() - began >= LONGEST_TURN) {
            await turn();
            this.#given = 0;
            began = performance.now();
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
      const text = piece[1];
      this.#given += PIECE + text.length;
      const onOutput = this.#onOutput;
      return onOutput(STREAMS[piece[0]], text);
    }

    /** Waits for the caller's promise, unless nothing more is to be handed over. */
    #settled(answer) {
      return new Promise((resolve, reject) => {
        this.#stopWaiting = resolve;
        Promise.resolve(answer).then(resolve, reject);
        if (this.#isStopped || this.#isFinished) resolve();
      });
    }
  }

  /** Why a command that was ended by an abort rejects; returns where it is given a result all the same. */
  function checkReason(signal) {
    const { reason } = signal;
    if (!isDeadline(reason)) throw isRelease(reason) ? native.refuseCancelled() : reason;
  }

  /** The result of a command that was over before it began. */
  const UNBEGUN = Object.freeze([CANCELLED, null, null, null, '', '', false]);

  /** A result as the plugin contract has it. */
  function toResult(ended) {
    return {
      exitCode: ended[2],
      signal: ended[3],
      timedOut: ended[0] !== EXITED,
      stdout: ended[4],
      stderr: ended[5],
      metadata: { processId: ended[1], outputTruncated: ended[6] },
    };
  }

  /** Runs a command. The signal is a call's own, or any caller's; without one the timeout holds. */
  async function run(core, id, params, signal, onOutput, timeout) {
    const command = params.command;
    const args = copyList(params.args, MOST_ARGUMENTS);
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
          // After the deadline the output that there was is still wanted.
          if (!isDeadline(peek(signal, 'reason'))) delivery?.stop();
        })
      : undefined;
    try {
      // An abort in this tick comes first: nothing is begun then.
      await undefined;
      if (hasSignal && signal.aborted) {
        checkReason(signal);
        return toResult(UNBEGUN);
      }
      const output = wantsOutput ? native.createOutput() : undefined;
      const finished = native.execute(prepared, cancel, output);
      let thrown;
      if (wantsOutput) {
        delivery = new Delivery(output, onOutput, (error) => {
          thrown = { error };
          native.cancel(cancel);
        });
      }
      let ended;
      let failure;
      try {
        ended = await finished;
      } catch (error) {
        failure = { error };
      }
      // It has ended when all has been handed over, or when that was given up.
      await delivery?.finish();
      const isUnconfirmed = failure?.error instanceof CreateosCleanupError;
      if (thrown !== undefined && !isUnconfirmed) throw thrown.error;
      if (failure !== undefined) throw failure.error;
      const isCut = hasSignal && signal.aborted && delivery?.isCut === true;
      if (ended[0] === CANCELLED || isCut) checkReason(signal);
      return toResult(ended);
    } finally {
      // Whatever has gone wrong here: no command goes on that nobody waits for.
      native.cancel(cancel);
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
