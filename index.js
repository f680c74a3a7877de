'use strict';

// The names are written out one by one so that `import { track } from "createos-lease"` finds them:
// Node reads a CommonJS module's names from its text.
const binding = require('./binding.js');

// A deadline's abort runs in its caller's asynchronous context, which only Node can bring back.
binding.useAsyncHooks(require('node:async_hooks'));

module.exports.track = binding.track;
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
