'use strict';

// The names are written out one by one so that `import { track } from "createos-lease"` finds them:
// Node reads a CommonJS module's names from its text.
const { version } = require('./package.json');

// One for each JavaScript environment, however often and from wherever it is loaded: a release has to
// see the calls that were tracked through a module that a test runner has dropped from its cache since.
const LOADED = Symbol.for(`createos-lease@${version}`);
if (globalThis[LOADED] === undefined) {
  const loaded = require('./binding.js');
  // A deadline's abort runs in its caller's asynchronous context, which only Node can bring back.
  loaded.useNode(require('node:async_hooks'), require('node:events'));
  Object.defineProperty(globalThis, LOADED, { value: loaded });
}
const binding = globalThis[LOADED];

module.exports.track = binding.track;
module.exports.execute = binding.execute;
module.exports.release = binding.release;
module.exports.shutdown = binding.shutdown;
module.exports.leaseState = binding.leaseState;
module.exports.LeaseDriver = binding.LeaseDriver;
module.exports.CreateosClient = binding.CreateosClient;
module.exports.CreateosError = binding.CreateosError;
module.exports.CreateosApiError = binding.CreateosApiError;
module.exports.CreateosCleanupError = binding.CreateosCleanupError;
module.exports.parseConfig = binding.parseConfig;
module.exports.resolveApiKey = binding.resolveApiKey;
module.exports.scopeKey = binding.scopeKey;
module.exports.canUseLease = binding.canUseLease;
module.exports.canRelease = binding.canRelease;
module.exports.isUsableCreateosLease = binding.isUsableCreateosLease;
module.exports.explainLease = binding.explainLease;
