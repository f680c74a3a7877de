// What a host does with a lease, asked of a worker, and the answers that it gets.
import type { Provider } from "../provider/index.mjs";
import { persist, type StoredLease, type Tenant } from "./paperclip_plugin.js";
import type { PluginWorker } from "./paperclip_worker.js";

export const acquire = async (worker: PluginWorker, owner: Tenant): Promise<StoredLease> =>
  persist(await worker.call("environmentAcquireLease", { ...owner, runId: "run" }));
export const resume = async (worker: PluginWorker, owner: Tenant, lease: StoredLease): Promise<StoredLease> =>
  persist(await worker.call("environmentResumeLease", { ...owner, ...lease }));
export const release = (worker: PluginWorker, owner: Tenant, lease: StoredLease) =>
  worker.call("environmentReleaseLease", { ...owner, ...lease });
export const destroy = (worker: PluginWorker, owner: Tenant, lease: StoredLease) =>
  worker.call("environmentDestroyLease", { ...owner, ...lease });

/** The receipts that there are. */
export const stopped = ({ providerLeaseId }: StoredLease) => ({ providerLeaseId, state: "stopped" });
export const destroyed = ({ providerLeaseId }: StoredLease) => ({ providerLeaseId, state: "destroyed" });

/** A lease as a resume gives it. */
export const marked = ({ providerLeaseId, leaseMetadata }: StoredLease) => ({
  providerLeaseId,
  leaseMetadata: { ...leaseMetadata, resumedLease: true },
});

export const status = (provider: Provider, { providerLeaseId }: StoredLease) =>
  provider.sandbox(providerLeaseId)?.status;
