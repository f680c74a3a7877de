// The reference under the names that the package exports, so that a test can drive either through one interface.
import { ReferenceDriver } from "./lease.js";

export { CreateosClient } from "./client.js";
export { parseConfig, resolveApiKey, scopeKey } from "./config.js";
export { CreateosApiError, CreateosCleanupError, CreateosError } from "./errors.js";
export { ReferenceDriver as LeaseDriver } from "./lease.js";
export { canRelease, canUseLease, explainLease, isUsableCreateosLease } from "./ownership.js";

const driver = new ReferenceDriver();

export const track = driver.track.bind(driver) as ReferenceDriver["track"];
export const release = driver.release.bind(driver);
export const shutdown = driver.shutdown.bind(driver);
export const leaseState = driver.leaseState.bind(driver);
