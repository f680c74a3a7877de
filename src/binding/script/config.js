// Reading configurations: each property once, in the order of the specification's section 2.
(function config(native, shared, exports) {
  'use strict';

  /** How many configurations are remembered, so that a tracked call need not parse its own again. */
  const REMEMBERED = 8;

  const isObject = (value) => typeof value === 'object' && value !== null;

  /** A flat array of the own enumerable names and values; false for what is no such object. */
  function readPairs(value) {
    if (value === undefined || value === null) return value;
    if (!isObject(value) || Array.isArray(value)) return false;
    const pairs = [];
    for (const name of Object.keys(value)) pairs.push(name, value[name]);
    return pairs;
  }

  /** The longest list that is read. An array may claim billions of elements, and hold none. */
  const LONGEST_LIST = 65_536;

  /** A plain copy of an array; false for what is none, or is too long to be one. */
  function copyList(value, longest) {
    if (value === undefined || value === null) return value;
    if (!Array.isArray(value)) return false;
    const { length } = value;
    if (length > longest) return false;
    const list = [];
    for (let index = 0; index < length; index += 1) list.push(value[index]);
    return list;
  }

  const readList = (value) => copyList(value, LONGEST_LIST);

  const { URL } = globalThis;

  /** The parts of a URL as the platform reads it: what `new URL` accepts is what counts. */
  function locate(apiUrl) {
    if (typeof apiUrl !== 'string') return undefined;
    let url;
    try {
      url = new URL(apiUrl.trim());
    } catch {
      return undefined;
    }
    const { origin, protocol, hostname, pathname, username, password, search, hash } = url;
    return [origin, protocol, hostname, pathname, username + password + search + hash];
  }

  // The last configurations that were parsed, latest first. They are recognised by what they hold,
  // never by identity, since the host may change an object between two calls.
  const remembered = [];

  function remember(entry) {
    remembered.unshift(entry);
    if (remembered.length > REMEMBERED) remembered.pop();
    return entry;
  }

  const NOTHING = Object.freeze({});

  /**
   * Parses a configuration. An entry stands for it: `parsed` is the native handle, `core` the
   * client's, made with the key it was last resolved with.
   */
  function readConfig(raw) {
    const given = isObject(raw) ? raw : NOTHING;
    const apiUrl = given.apiUrl;
    const shape = given.shape;
    const timeoutMs = given.timeoutMs;
    const reuseLease = given.reuseLease;
    const autoPauseAfterSeconds = given.autoPauseAfterSeconds;
    const rootfsByAdapter = readPairs(given.rootfsByAdapter);
    const egressAllowlist = readList(given.egressAllowlist);
    const apiKey = given.apiKey;
    const rootfs = given.rootfs;
    const region = given.region;
    const simple =
      (rootfsByAdapter === undefined || rootfsByAdapter === null) &&
      (egressAllowlist === undefined || egressAllowlist === null);
    if (simple) {
      for (let place = 0; place < remembered.length; place += 1) {
        const entry = remembered[place];
        if (
          entry.apiUrl === apiUrl &&
          entry.shape === shape &&
          entry.timeoutMs === timeoutMs &&
          entry.reuseLease === reuseLease &&
          entry.autoPauseAfterSeconds === autoPauseAfterSeconds &&
          entry.apiKey === apiKey &&
          entry.rootfs === rootfs &&
          entry.region === region
        ) {
          return entry;
        }
      }
    }
    const parsed = native.parseConfig(
      apiUrl,
      shape,
      timeoutMs,
      reuseLease,
      autoPauseAfterSeconds,
      rootfsByAdapter,
      egressAllowlist,
      apiKey,
      rootfs,
      region,
      locate(apiUrl),
    );
    const entry = {
      apiUrl,
      shape,
      timeoutMs,
      reuseLease,
      autoPauseAfterSeconds,
      apiKey,
      rootfs,
      region,
      parsed,
      origin: undefined,
      wantsEnvironmentKey: native.wantsEnvironmentKey(parsed),
      environmentKey: undefined,
      core: undefined,
    };
    return simple ? remember(entry) : entry;
  }

  /** The environment's key, when it may be used: read anew at each call. */
  const readEnvironmentKey = (entry) =>
    entry.wantsEnvironmentKey ? process.env.CREATEOS_API_KEY : undefined;

  /** The native client of a configuration, with the key that holds now. */
  function coreOf(entry) {
    const environmentKey = readEnvironmentKey(entry);
    if (entry.core === undefined || entry.environmentKey !== environmentKey) {
      entry.core = native.createClient(entry.parsed, environmentKey);
      entry.environmentKey = environmentKey;
    }
    return entry.core;
  }

  /** A parsed configuration as an object of its own. */
  function describe(entry) {
    const [
      apiUrl,
      apiKey,
      shape,
      rootfs,
      pairs,
      egressAllowlist,
      region,
      timeoutMs,
      reuseLease,
      autoPauseAfterSeconds,
    ] = native.describe(entry.parsed);
    // `fromEntries` defines properties, so that an adapter called __proto__ is one like any other.
    const rootfsByAdapter = Object.fromEntries(pairs);
    return {
      apiUrl,
      apiKey,
      shape,
      rootfs,
      rootfsByAdapter,
      egressAllowlist,
      region,
      timeoutMs,
      reuseLease,
      autoPauseAfterSeconds,
    };
  }

  exports.parseConfig = function parseConfig(raw) {
    return describe(readConfig(raw));
  };

  exports.resolveApiKey = function resolveApiKey(config) {
    const entry = readConfig(config);
    return native.resolveApiKey(entry.parsed, readEnvironmentKey(entry));
  };

  Object.assign(shared, { copyList, isObject, readList, readPairs, readConfig, coreOf, describe });
})
//# sourceURL=createos-lease/config.js
