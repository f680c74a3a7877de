// The rest of a lease's life (specification, section 8): validateConfig, probe, acquire, resume,
// realizeWorkspace.
(function lifecycle(native, shared) {
  'use strict';

  const {
    ABORTED,
    ACTION,
    Call,
    CreateosCleanupError,
    CreateosError,
    abort,
    coreOf,
    defaultReason,
    describe,
    fields,
    isObject,
    isSignal,
    onAbort,
    own,
    peek,
    readConfig,
    readList,
    readOptions,
    requireIds,
    toReason,
  } = shared;

  const { AbortController } = globalThis;

  /** The folder of a lease's files in its sandbox. */
  const WORKSPACE = '/paperclip-workspace';

  /** The caller's own signal, if there is one. */
  function readSignal(options) {
    const { signal } = readOptions(options);
    if (signal === undefined || signal === null) return undefined;
    if (!isSignal(signal)) throw new TypeError('options.signal must be an AbortSignal.');
    return signal;
  }

  /**
   * Runs what only a shutdown and the caller's signal give up: the one with the reason that it gives
   * calls, the other with its own.
   */
  async function cancellable(signal, start) {
    const cancel = native.createCancel();
    // Before anything begins: a signal that can't be listened to is refused.
    const untie = signal === undefined ? undefined : onAbort(signal, () => native.cancel(cancel));
    try {
      return await start(cancel);
    } catch (error) {
      throw toReason(error, signal?.aborted ? signal : { reason: defaultReason() });
    } finally {
      untie?.();
    }
  }

  async function validateConfig(params) {
    try {
      return { ok: true, normalizedConfig: describe(readConfig(fields(params).config)) };
    } catch (error) {
      if (error instanceof CreateosError) return { ok: false, errors: [error.message] };
      throw error;
    }
  }

  /** The answer of a probe that failed. What is no failure of the environment's is thrown. */
  function toAnswer(error) {
    if (!(error instanceof CreateosError) && error?.name !== 'TimeoutError') throw error;
    return { ok: false, summary: error.message };
  }

  /** What a probe rejects with: it was given up, or a sandbox may be left that has to be heard of. */
  const isRejection = (error) => error === ABORTED || error instanceof CreateosCleanupError;

  async function probe(state, params, options) {
    const { config } = fields(params);
    const signal = readSignal(options);
    let core;
    try {
      core = coreOf(readConfig(config));
    } catch (error) {
      return toAnswer(error);
    }
    if (signal?.aborted) throw signal.reason;
    const failure = await cancellable(signal, (cancel) =>
      native.probe(state.handle, core, cancel).catch((error) => {
        if (isRejection(error)) throw error;
        return error;
      }),
    );
    if (failure !== undefined) return toAnswer(failure);
    return { ok: true, summary: 'CreateOS created a sandbox and ran a command in it.' };
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

  async function acquire(state, params, options) {
    const { handle } = state;
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
    const config = describe(entry);
    const signal = readSignal(options);
    if (signal?.aborted) throw signal.reason;
    const [providerLeaseId, marker, rootfs, effectiveEgressAllowlist, autoPauseAfterSeconds] =
      await cancellable(signal, (cancel) =>
        native.acquire(handle, core, cancel, adapter, fqdns, cidrs, reusable),
      );
    return {
      providerLeaseId,
      metadata: {
        provider: 'createos',
        apiUrl: config.apiUrl,
        companyId,
        environmentId,
        remoteCwd: WORKSPACE,
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

  /** The fields of a lease's metadata by which a resume decides. */
  const RECORDED = [
    'provider',
    'companyId',
    'environmentId',
    'apiUrl',
    'marker',
    'shape',
    'rootfs',
    'region',
    'adapterType',
    'autoPauseAfterSeconds',
    'baseEgressAllowlist',
    'effectiveEgressAllowlist',
  ];

  /**
   * A copy of metadata, since all of it comes back and each property is read once. What is inherited
   * counts too where it matters, as it does for every other call.
   */
  function copyMetadata(metadata) {
    const given = fields(metadata);
    const own = Object.keys(given);
    const inherited = RECORDED.filter((name) => !own.includes(name) && name in given);
    // `fromEntries` defines properties, so that a field called __proto__ is one like any other.
    return Object.fromEntries([...own, ...inherited].map((name) => [name, given[name]]));
  }

  const expired = () => ({ providerLeaseId: null, metadata: { expired: true } });

  async function resume(state, params, options) {
    const given = fields(params);
    const providerLeaseId = given.providerLeaseId;
    const metadata = copyMetadata(given.leaseMetadata);
    const claim = own(ACTION.release, providerLeaseId, metadata, given);
    const { id, companyId, environmentId, entry } = claim;
    const core = coreOf(entry);
    const signal = readSignal(options);
    const controller = new AbortController();
    const cancel = native.createCancel();
    onAbort(controller.signal, () => native.cancel(cancel));
    // Before anything begins: a signal that can't be listened to is refused.
    const untie =
      signal === undefined ? undefined : onAbort(signal, () => abort(controller, peek(signal, 'reason')));
    let call;
    try {
      const begun = native.resume(
        state.handle,
        core,
        companyId,
        environmentId,
        id,
        cancel,
        signal?.aborted === true,
        metadata.marker,
        metadata.shape,
        metadata.rootfs,
        metadata.region,
        metadata.adapterType,
        metadata.autoPauseAfterSeconds,
        readList(metadata.baseEgressAllowlist),
        readList(metadata.effectiveEgressAllowlist),
      );
      if (begun === undefined) return expired();
      if (begun === null) throw signal.reason;
      const [slot, resumed] = begun;
      call = new Call(slot);
      call.enter(controller);
      const isReady = await resumed;
      // Whoever has aborted it acts next, so that what it found out holds no more.
      if (controller.signal.aborted) throw controller.signal.reason;
      return isReady ? { providerLeaseId: id, metadata: { ...metadata, resumedLease: true } } : expired();
    } catch (error) {
      const isGivenUp = controller.signal.aborted && !(error instanceof CreateosCleanupError);
      const reason = isGivenUp ? controller.signal.reason : error;
      call?.failed(reason, state.cleanupErrors);
      throw reason;
    } finally {
      call?.leave();
      untie?.();
    }
  }

  async function realizeWorkspace(params) {
    const given = fields(params);
    const lease = fields(given.lease);
    const providerLeaseId = lease.providerLeaseId;
    const metadata = lease.metadata;
    own(ACTION.workspace, providerLeaseId, metadata, given);
    return { cwd: WORKSPACE, metadata: { provider: 'createos', remoteCwd: WORKSPACE } };
  }

  shared.lifecycle = { acquire, probe, realizeWorkspace, resume, validateConfig };
})
//# sourceURL=createos-lease/lifecycle.js
