// Imports every name, as a user's module does. Run by modules.test.ts.
import { createRequire } from "node:module";
import whole, {
  canRelease,
  canUseLease,
  CreateosApiError,
  CreateosCleanupError,
  CreateosClient,
  CreateosError,
  execute,
  explainLease,
  isUsableCreateosLease,
  LeaseDriver,
  leaseState,
  parseConfig,
  release,
  resolveApiKey,
  scopeKey,
  shutdown,
  track,
} from "../../../index.js";

/** @type {any} */
const required = createRequire(import.meta.url)("../../../index.js");
/** @type {any} */
const byDefault = whole;
const named = {
  CreateosApiError,
  CreateosCleanupError,
  CreateosClient,
  CreateosError,
  LeaseDriver,
  canRelease,
  canUseLease,
  execute,
  explainLease,
  isUsableCreateosLease,
  leaseState,
  parseConfig,
  release,
  resolveApiKey,
  scopeKey,
  shutdown,
  track,
};
const rows = Object.entries(named).map(([name, value]) => [
  name,
  typeof value,
  value === required[name],
  value === byDefault[name],
]);
console.log(JSON.stringify(rows));
