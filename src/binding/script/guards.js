// Whose lease it is (specification, section 3): reading the fields, and the host's own guards.
(function guards(native, shared, exports) {
  'use strict';

  const { attempt, coreOf, isObject, peek, readConfig } = shared;

  const NOTHING = Object.freeze({});

  /** Not even what an Object.prototype has been given. */
  const NO_OPTIONS = Object.freeze({ __proto__: null });

  /** A call's options, which may be absent. */
  function readOptions(options) {
    if (options === undefined || options === null) return NO_OPTIONS;
    if (isObject(options) && !Array.isArray(options)) return options;
    throw new TypeError('options must be an object.');
  }

  /** What a lease is wanted for, which decides the refusal's message. */
  const ACTION = Object.freeze({ track: 0, release: 1, workspace: 2 });

  /** What is there to read properties of: the value, or an object without any. */
  const fields = (value) => (isObject(value) ? value : NOTHING);

  /**
   * Reads what a lease is recognised by, in the order of the checks. `mask` has a bit for each
   * field that does not match; the metadata's `apiUrl` is read later, once the configuration is.
   */
  function readClaim(id, metadata, params) {
    const recorded = fields(metadata);
    const provider = recorded.provider;
    const recordedCompany = recorded.companyId;
    const companyId = params.companyId;
    const recordedEnvironment = recorded.environmentId;
    const environmentId = params.environmentId;
    const mask = native.claim(
      id,
      provider,
      recordedCompany,
      companyId,
      recordedEnvironment,
      environmentId,
    );
    return { mask, id, companyId, environmentId, entry: undefined };
  }

  /** Checks ownership whole, and gives the claim with its configuration. Throws the refusal. */
  function own(action, id, metadata, params) {
    const claim = readClaim(id, metadata, params);
    if (claim.mask !== 0) throw native.refuse(action, claim.mask);
    const entry = readConfig(params.config);
    const recorded = metadata.apiUrl;
    // What was found right for this very configuration before is right again.
    if (recorded !== entry.origin) {
      if (!native.isOrigin(entry.parsed, recorded)) throw native.refuse(action, 0);
      entry.origin = recorded;
    }
    claim.entry = entry;
    return claim;
  }

  /** The same without throwing: for guards, which are total. */
  function owns(id, metadata, params, apiUrl) {
    try {
      const given = fields(params);
      if (readClaim(id, metadata, given).mask !== 0) return false;
      const recorded = metadata.apiUrl;
      if (typeof apiUrl === 'string') return recorded === apiUrl;
      return native.isOrigin(readConfig(given.config).parsed, recorded);
    } catch {
      return false;
    }
  }

  exports.isUsableCreateosLease = function isUsableCreateosLease(lease) {
    try {
      const { providerLeaseId: id, metadata } = fields(lease);
      return typeof id === 'string' && id !== '' && fields(metadata).provider === 'createos';
    } catch {
      return false;
    }
  };

  exports.canUseLease = function canUseLease(lease, params, apiUrl) {
    try {
      const { providerLeaseId: id, metadata } = fields(lease);
      return owns(id, metadata, params, apiUrl);
    } catch {
      return false;
    }
  };

  exports.canRelease = function canRelease(params, apiUrl) {
    try {
      const { providerLeaseId: id, leaseMetadata: metadata } = fields(params);
      return owns(id, metadata, params, apiUrl);
    } catch {
      return false;
    }
  };

  /** A URL's user and password are nobody's business. */
  const withoutCredentials = (text) =>
    text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/iu, '$1***@');

  /** A value as a person may see it: never a key, never more than a word of a structure. */
  function show(value, keys) {
    switch (typeof value) {
      case 'string':
        return keys.some((key) => value.includes(key)) ? '***' : withoutCredentials(value);
      case 'number':
      case 'boolean':
      case 'undefined':
        return value;
      default:
        return value === null ? null : typeof value;
    }
  }

  /** Reads every field of a configuration once, into an object of our own. */
  function copyConfig(config) {
    const given = fields(config);
    const copy = { isUnreadable: config === UNREADABLE };
    for (const name of CONFIG_FIELDS) {
      const value = attempt(() => given[name], UNREADABLE);
      if (value === UNREADABLE) copy.isUnreadable = true;
      else copy[name] = value;
    }
    return copy;
  }

  /** What reading a property gave that threw. */
  const UNREADABLE = Symbol('unreadable');

  const CONFIG_FIELDS = [
    'apiUrl',
    'shape',
    'timeoutMs',
    'reuseLease',
    'autoPauseAfterSeconds',
    'rootfsByAdapter',
    'egressAllowlist',
    'apiKey',
    'rootfs',
    'region',
  ];

  /** The keys that may have strayed into a lease: they are not shown. */
  function keysOf(config) {
    const keys = [config.apiKey, process.env.CREATEOS_API_KEY];
    return keys
      .filter((key) => typeof key === 'string')
      .map((key) => key.trim())
      .filter((key) => key !== '');
  }

  const isId = (value) => typeof value === 'string' && value !== '';

  const peekField = (value, name) => (isObject(value) ? peek(value, name) : undefined);

  exports.explainLease = function explainLease(params) {
    const lease = peekField(params, 'lease');
    const isTracked = isObject(lease);
    const id = peekField(isTracked ? lease : params, 'providerLeaseId');
    const metadata = isTracked ? peekField(lease, 'metadata') : peekField(params, 'leaseMetadata');
    const config = copyConfig(attempt(() => fields(params).config, UNREADABLE));
    const keys = keysOf(config);
    const mismatches = [];
    const compare = (field, expected, actual, matches) => {
      if (matches) return;
      mismatches.push({ field, expected: show(expected, keys), actual: show(actual, keys) });
    };
    const provider = peekField(metadata, 'provider');
    compare('providerLeaseId', 'a non-empty string', id, isId(id));
    compare('provider', 'createos', provider, provider === 'createos');
    for (const field of ['companyId', 'environmentId']) {
      const expected = peekField(params, field);
      const actual = peekField(metadata, field);
      compare(field, expected, actual, isId(expected) && expected === actual);
    }
    const explained = { usable: false, mismatches };
    try {
      if (config.isUnreadable) throw new TypeError('config cannot be read');
      const entry = readConfig(config);
      const [origin] = native.describe(entry.parsed);
      const actual = peekField(metadata, 'apiUrl');
      compare('apiUrl', origin, actual, actual === origin);
      coreOf(entry);
      explained.usable = mismatches.length === 0;
    } catch (error) {
      const isOurs = error instanceof shared.CreateosError;
      explained.config = isOurs ? error.message : 'The configuration could not be read.';
    }
    return explained;
  };

  /** Refuses ids that are none, by their names. */
  function requireIds(ids) {
    for (const [name, value] of Object.entries(ids)) {
      if (!isId(value)) throw new TypeError(`${name} must be a non-empty string.`);
    }
  }

  exports.scopeKey = function scopeKey(params, providerLeaseId) {
    const { companyId, environmentId, config } = fields(params);
    requireIds({ companyId, environmentId, providerLeaseId });
    return native.scopeKey(coreOf(readConfig(config)), companyId, environmentId, providerLeaseId);
  };

  Object.assign(shared, { ACTION, fields, own, readOptions, requireIds });
})
//# sourceURL=createos-lease/guards.js
