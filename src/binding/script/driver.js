// track, release and the rest of a driver (specification, sections 4 and 5). What is decided, native
// code decides; here are the properties, promises and AbortControllers.
(function driver(native, shared, exports) {
  'use strict';

  const {
    ACTION,
    Call,
    CreateosClient,
    PARSED,
    abortAll,
    coreOf,
    fields,
    isObject,
    isSignal,
    own,
    readConfig,
    readList,
    readOptions,
    requireIds,
    runCommand,
  } = shared;
  const { acquire, probe, realizeWorkspace, resume, validateConfig } = shared.lifecycle;

  /** What `begin` answers instead of a slot. */
  const WORK_IS_NO_FUNCTION = -1;
  const SIGNAL_IS_NONE = -2;
  const SIGNAL_IS_ABORTED = -3;

  const NO_CLASSES = Object.freeze([]);

  const { AbortController } = globalThis;

  /** The timeout and the signal that a call was given besides the configuration's timeout. */
  function readTerms(options) {
    if (!isObject(options) || Array.isArray(options)) return { timeout: options, signal: undefined };
    const timeout = options.timeoutMs;
    const signal = options.signal;
    return { timeout, signal: signal === null ? undefined : signal };
  }

  /** How a caller's work begins. */
  const callWork = (work, signal, entry, core) =>
    work(new CreateosClient(PARSED, entry, core), signal);

  async function track(driver, params, work, options, start = callWork) {
    const state = stateOf(driver);
    const given = fields(params);
    const lease = fields(given.lease);
    const providerLeaseId = lease.providerLeaseId;
    const metadata = lease.metadata;
    const { id, companyId, environmentId, entry } = own(ACTION.track, providerLeaseId, metadata, given);
    const core = coreOf(entry);
    // Options that are an object may do anything while they are read, so the checks before come
    // first; reading a number or nothing takes no such care.
    if (isObject(options)) native.admit(state.handle, core, companyId, environmentId, id);
    const { timeout, signal } = readTerms(options);
    const slot = native.begin(
      state.handle,
      core,
      companyId,
      environmentId,
      id,
      timeout,
      work,
      signal === undefined || isSignal(signal),
      signal !== undefined && signal.aborted === true,
    );
    if (slot < 0) throw refusal(slot, signal);
    const call = new Call(slot);
    try {
      const controller = new AbortController();
      call.enter(controller, signal);
      return await start(work, controller.signal, entry, core, id);
    } catch (error) {
      call.failed(error, state.cleanupErrors);
      throw error;
    } finally {
      call.leave();
    }
  }

  function refusal(slot, signal) {
    switch (slot) {
      case WORK_IS_NO_FUNCTION:
        return new TypeError('work must be a function.');
      case SIGNAL_IS_NONE:
        return new TypeError('options.signal must be an AbortSignal.');
      case SIGNAL_IS_ABORTED:
        return signal.reason;
      default:
        return new Error('CreateOS lease engine failed.');
    }
  }

  /** How a command begins, which is a call like any other. */
  const callCommand = (command, signal, entry, core, id) => command(core, id, signal);

  async function execute(driver, params, onOutput, options) {
    const given = fields(params);
    const command = (core, id, signal) => runCommand(core, id, given, signal, onOutput);
    // Read when their turn comes, as those of a call are.
    const terms = {
      get timeoutMs() {
        return given.timeoutMs;
      },
      get signal() {
        return readOptions(options).signal;
      },
    };
    return track(driver, given, command, terms, callCommand);
  }

  /** A boolean that may be absent. */
  function requireFlag(name, value) {
    if (value === undefined || value === null) return false;
    if (typeof value !== 'boolean') throw new TypeError(`${name} must be a boolean.`);
    return value;
  }

  async function release(driver, params, destroy, options) {
    const state = stateOf(driver);
    if (!isObject(params)) throw native.refuse(ACTION.release, 0b1111);
    const providerLeaseId = params.providerLeaseId;
    if (providerLeaseId === undefined || providerLeaseId === null || providerLeaseId === '') return;
    const metadata = params.leaseMetadata;
    const claim = own(ACTION.release, providerLeaseId, metadata, params);
    const { id, companyId, environmentId, entry } = claim;
    const core = coreOf(entry);
    // What the lease was acquired with matters only where the configuration wants idle leases.
    const wanted = entry.reuseLease === true ? (entry.autoPauseAfterSeconds ?? null) : null;
    const recorded = wanted !== null && metadata.autoPauseAfterSeconds === wanted;
    const destroys = requireFlag('destroy', destroy);
    const confirm = requireFlag('confirm', readOptions(options).confirm);
    const [begun, slots] = native.beginRelease(
      state.handle,
      core,
      companyId,
      environmentId,
      id,
      destroys,
      recorded,
    );
    abortAll(slots);
    const proof = await native.finishRelease(begun, core, id, confirm);
    return confirm && proof !== undefined ? { providerLeaseId: id, state: proof } : undefined;
  }

  async function shutdown(driver) {
    const state = stateOf(driver);
    const [begun, slots] = native.beginShutdown(state.handle);
    abortAll(slots);
    await native.finishShutdown(begun);
  }

  function leaseState(driver, params, providerLeaseId) {
    const state = stateOf(driver);
    const { companyId, environmentId, config } = fields(params);
    requireIds({ companyId, environmentId, providerLeaseId });
    const core = coreOf(readConfig(config));
    return native.leaseState(state.handle, core, companyId, environmentId, providerLeaseId);
  }

  /** The classes that a driver counts as cleanup errors besides the package's own. */
  function readClasses(options) {
    const { cleanupErrors } = fields(options);
    if (cleanupErrors === undefined || cleanupErrors === null) return NO_CLASSES;
    const classes = readList(cleanupErrors);
    if (!classes || !classes.every((type) => typeof type === 'function' && type.prototype)) {
      throw new TypeError('cleanupErrors must be an array of classes.');
    }
    return classes;
  }

  let stateOf;

  class LeaseDriver {
    #state;

    static {
      // Read inside the async functions, so that a method called on anything else rejects.
      stateOf = (driver) => driver.#state;
    }

    constructor(options) {
      this.#state = { cleanupErrors: readClasses(options), handle: native.createDriver() };
    }

    track(params, work, options) {
      return track(this, params, work, options);
    }

    release(params, destroy, options) {
      return release(this, params, destroy, options);
    }

    destroy(params, options) {
      return release(this, params, true, options);
    }

    shutdown() {
      return shutdown(this);
    }

    leaseState(params, providerLeaseId) {
      return leaseState(this, params, providerLeaseId);
    }

    async validateConfig(params) {
      return validateConfig(params);
    }

    async probe(params, options) {
      return probe(this.#state, params, options);
    }

    async acquire(params, options) {
      return acquire(this.#state, params, options);
    }

    async resume(params, options) {
      return resume(this.#state, params, options);
    }

    async realizeWorkspace(params) {
      return realizeWorkspace(params);
    }

    execute(params, onOutput, options) {
      return execute(this, params, onOutput, options);
    }
  }

  const defaultDriver = new LeaseDriver();

  Object.assign(exports, {
    LeaseDriver,
    track(params, work, options) {
      return track(defaultDriver, params, work, options);
    },
    release(params, destroy, options) {
      return release(defaultDriver, params, destroy, options);
    },
    shutdown() {
      return shutdown(defaultDriver);
    },
    leaseState(params, providerLeaseId) {
      return leaseState(defaultDriver, params, providerLeaseId);
    },
  });
})
//# sourceURL=createos-lease/driver.js
