// track, release and the rest of a driver (specification, sections 4, 5 and 8). What is decided,
// native code decides; here are the properties, promises and AbortControllers.
(function driver(native, shared, exports) {
  'use strict';

  const {
    CreateosClient,
    PARSED,
    coreOf,
    defaultReason,
    fields,
    isObject,
    isSignal,
    meansCleanupFailed,
    onAbort,
    own,
    readConfig,
    readList,
    requireIds,
    toReason,
  } = shared;

  /** What `begin` answers instead of a slot. */
  const WORK_IS_NO_FUNCTION = -1;
  const SIGNAL_IS_NONE = -2;
  const SIGNAL_IS_ABORTED = -3;

  /** The AbortController of each running call, by its slot. */
  const controllers = [];

  /** What each running call's deadline runs in, by its slot: its caller's asynchronous context. */
  const contexts = [];

  /** Destroyed by hand when the call settles: leaving it to the collector would cost a finalizer. */
  const CONTEXT_OPTIONS = Object.freeze({ requireManualDestroy: true });

  let AsyncResource;

  /** Called by the loader: only there can Node's own modules be required. */
  exports.useNode = function useNode(hooks, events) {
    AsyncResource = hooks.AsyncResource;
    // Since Node 20.5.
    shared.addAbortListener = events.addAbortListener;
  };

  const NO_CLASSES = Object.freeze([]);

  const { AbortController, DOMException } = globalThis;

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
    for (const controller of aborted) abort(controller, reason);
  }

  /** Called by native code when a call's deadline has passed. */
  shared.expire = function expire(slot) {
    const controller = controllers[slot];
    if (controller === undefined) return;
    const reason = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    contexts[slot].runInAsyncScope(abort, undefined, controller, reason);
  };

  /** The timeout and the signal that a call was given besides the configuration's timeout. */
  function readOptions(options) {
    if (!isObject(options) || Array.isArray(options)) return { timeout: options, signal: undefined };
    const timeout = options.timeoutMs;
    const signal = options.signal;
    return { timeout, signal: signal === null ? undefined : signal };
  }

  async function track(driver, params, work, options) {
    const state = stateOf(driver);
    const given = fields(params);
    const lease = fields(given.lease);
    const providerLeaseId = lease.providerLeaseId;
    const metadata = lease.metadata;
    const { id, companyId, environmentId, entry } = own(false, providerLeaseId, metadata, given);
    const core = coreOf(entry);
    // Options that are an object may do anything while they are read, so the checks before come
    // first; reading a number or nothing takes no such care.
    if (isObject(options)) native.admit(state.handle, core, companyId, environmentId, id);
    const { timeout, signal } = readOptions(options);
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
    let context;
    let untie;
    let cleanupFailed = false;
    try {
      const controller = new AbortController();
      controllers[slot] = controller;
      context = new AsyncResource('CreateosLease', CONTEXT_OPTIONS);
      contexts[slot] = context;
      if (signal !== undefined) untie = onAbort(signal, () => abort(controller, signal.reason));
      return await work(new CreateosClient(PARSED, entry, core), controller.signal);
    } catch (error) {
      cleanupFailed = meansCleanupFailed(error, state.cleanupErrors);
      throw error;
    } finally {
      controllers[slot] = undefined;
      contexts[slot] = undefined;
      native.end(slot, cleanupFailed);
      context?.emitDestroy();
      untie?.();
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

  async function release(driver, params, destroy) {
    const state = stateOf(driver);
    if (!isObject(params)) throw native.refuse(true, 0b1111);
    const providerLeaseId = params.providerLeaseId;
    if (providerLeaseId === undefined || providerLeaseId === null || providerLeaseId === '') return;
    const metadata = params.leaseMetadata;
    const claim = own(true, providerLeaseId, metadata, params);
    const { id, companyId, environmentId, entry } = claim;
    const core = coreOf(entry);
    // What the lease was acquired with matters only where the configuration wants idle leases.
    const wanted = entry.reuseLease === true ? (entry.autoPauseAfterSeconds ?? null) : null;
    const recorded = wanted !== null && metadata.autoPauseAfterSeconds === wanted;
    if (destroy !== undefined && destroy !== null && typeof destroy !== 'boolean') {
      throw new TypeError('destroy must be a boolean.');
    }
    const [begun, slots] = native.beginRelease(
      state.handle,
      core,
      companyId,
      environmentId,
      id,
      destroy === true,
      recorded,
    );
    abortAll(slots);
    await native.finishRelease(begun, core, id);
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

  /** The run's own egress rules: two arrays, or nothing where they are not in their form. */
  function readEgress(settings) {
    const networkEgress = fields(settings).networkEgress;
    if (networkEgress === undefined || networkEgress === null) return [[], []];
    if (!isObject(networkEgress) || Array.isArray(networkEgress)) return [];
    const lists = [networkEgress.allowFqdns, networkEgress.allowCidrs].map(readList);
    // What is no list holds no strings: it is refused as a list of something else is.
    return lists.map((list) => (list === false ? [undefined] : (list ?? [])));
  }

  async function acquire(driver, params) {
    const state = stateOf(driver);
    const given = fields(params);
    const { companyId, environmentId, requestedExpiresAt } = given;
    if (requestedExpiresAt !== undefined && requestedExpiresAt !== null && requestedExpiresAt !== '') {
      throw native.refuseExpiry();
    }
    requireIds({ companyId, environmentId });
    const { adapterType, issueId, executionWorkspaceId, executionWorkspaceSettings } = given;
    const entry = readConfig(given.config);
    const core = coreOf(entry);
    const [fqdns, cidrs] = readEgress(executionWorkspaceSettings);
    const adapter = typeof adapterType === 'string' && adapterType !== '' ? adapterType : null;
    const reusable = Boolean(issueId || executionWorkspaceId);
    const config = shared.describe(entry);
    // Only a shutdown gives an acquisition up, with the reason that it gives calls.
    const acquired = native.acquire(state.handle, core, adapter, fqdns, cidrs, reusable);
    const [providerLeaseId, marker, rootfs, effectiveEgressAllowlist, autoPauseAfterSeconds] =
      await acquired.catch((error) => {
        throw toReason(error, { reason: defaultReason() });
      });
    return {
      providerLeaseId,
      metadata: {
        provider: 'createos',
        apiUrl: config.apiUrl,
        companyId,
        environmentId,
        remoteCwd: '/paperclip-workspace',
        shellCommand: 'bash',
        marker,
        shape: config.shape,
        rootfs,
        region: config.region,
        reuseLease: config.reuseLease,
        adapterType: adapter,
        baseEgressAllowlist: config.egressAllowlist,
        effectiveEgressAllowlist,
        autoPauseAfterSeconds,
      },
    };
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

    release(params, destroy) {
      return release(this, params, destroy);
    }

    destroy(params) {
      return release(this, params, true);
    }

    shutdown() {
      return shutdown(this);
    }

    leaseState(params, providerLeaseId) {
      return leaseState(this, params, providerLeaseId);
    }

    acquire(params) {
      return acquire(this, params);
    }
  }

  const defaultDriver = new LeaseDriver();

  Object.assign(exports, {
    LeaseDriver,
    track(params, work, options) {
      return track(defaultDriver, params, work, options);
    },
    release(params, destroy) {
      return release(defaultDriver, params, destroy);
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
