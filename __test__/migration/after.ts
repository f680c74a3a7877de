// The same plugin with its lease logic swapped: no map, no set, no client, no configuration, no commands of its own.
import { lease } from "../support/package.js";
import { host, type LeaseHooks } from "./shared.js";
import { syncIn, syncOut } from "./sync.js";

const { LeaseDriver } = lease;

// readme:after
const driver = new LeaseDriver();

export const hooks: LeaseHooks = {
  onEnvironmentValidateConfig: (params) => driver.validateConfig(params),
  onEnvironmentProbe: (params) => driver.probe(params),
  onEnvironmentAcquireLease: (params) => driver.acquire(params),
  onEnvironmentResumeLease: (params) => driver.resume(params),
  onEnvironmentReleaseLease: (params) => driver.release(params),
  onEnvironmentDestroyLease: (params) => driver.destroy(params),
  onEnvironmentRealizeWorkspace: (params) => driver.realizeWorkspace(params),
  onEnvironmentExecute: (params) =>
    driver.execute(params, (stream, text) => host.execution.log(stream, text)),
  onEnvironmentSyncIn: (params) =>
    driver.track(params, (client, signal) => syncIn(client, params, signal)),
  onEnvironmentSyncOut: (params) =>
    driver.track(params, (client, signal) => syncOut(client, params, signal)),
  onShutdown: () => driver.shutdown(),
};
// readme:end
