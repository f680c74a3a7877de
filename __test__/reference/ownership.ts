// Section 3 of the specification: which leases belong to the caller, as a check that throws and as guards that do not.
import { type Config, parseConfig, resolveApiKey } from "./config.js";
import { attempt, CreateosError, type Fields, isObject } from "./errors.js";

export interface OwnedLease {
  companyId: string;
  environmentId: string;
  providerLeaseId: string;
  metadata: Fields;
  config: Config;
}

export interface LeaseExplanation {
  usable: boolean;
  mismatches: { field: string; expected: unknown; actual: unknown }[];
  config?: string;
}

export function requireTrackable(params: unknown): OwnedLease {
  const message = "CreateOS execution requires a lease from this environment.";
  if (!isObject(params)) throw mismatch(message, ALL_IDS);
  const { lease } = params;
  const { providerLeaseId, metadata } = isObject(lease) ? lease : {};
  return requireOwned(message, params, providerLeaseId, metadata);
}

/** The lease to release, or null when the parameters name none, so that there is nothing to do. */
export function requireReleasable(params: unknown): OwnedLease | null {
  const message = "CreateOS lease does not belong to this environment.";
  if (!isObject(params)) throw mismatch(message, ALL_IDS);
  const id = params.providerLeaseId;
  if (id === null || id === undefined || id === "") return null;
  return requireOwned(message, params, id, params.leaseMetadata);
}

export function isUsableCreateosLease(lease: unknown): lease is { providerLeaseId: string; metadata: Fields } {
  return total(() => isObject(lease) && isId(lease.providerLeaseId) && isCreateos(lease.metadata));
}

export function canUseLease(lease: unknown, params: unknown, apiUrl?: unknown): boolean {
  return total(() => isObject(lease) && isOwned(params, lease.providerLeaseId, lease.metadata, apiUrl));
}

export function canRelease(params: unknown, apiUrl?: unknown): boolean {
  return total(() => isObject(params) && isOwned(params, params.providerLeaseId, params.leaseMetadata, apiUrl));
}

/** Why track, or without a lease release, would refuse these parameters; what cannot be read counts as missing. */
export function explainLease(params: unknown): LeaseExplanation {
  const read = (from: unknown, field: string) => attempt(() => (isObject(from) ? from[field] : undefined));
  const lease = read(params, "lease");
  const metadata = isObject(lease) ? read(lease, "metadata") : read(params, "leaseMetadata");
  const id = read(isObject(lease) ? lease : params, "providerLeaseId");
  const mismatches: LeaseExplanation["mismatches"] = [];
  if (!isId(id)) mismatches.push({ field: "providerLeaseId", expected: "a non-empty string", actual: id });
  const provider = read(metadata, "provider");
  if (provider !== "createos") mismatches.push({ field: "provider", expected: "createos", actual: provider });
  for (const field of ["companyId", "environmentId"]) {
    const actual = read(metadata, field);
    const expected = read(params, field);
    if (!isSameId(actual, expected)) mismatches.push({ field, expected, actual });
  }
  try {
    const config = parseConfig(read(params, "config"));
    const actual = read(metadata, "apiUrl");
    if (actual !== config.apiUrl) mismatches.push({ field: "apiUrl", expected: config.apiUrl, actual });
    resolveApiKey(config);
    return { usable: mismatches.length === 0, mismatches };
  } catch (error) {
    const ours = error instanceof CreateosError;
    return { usable: false, mismatches, config: ours ? error.message : "The configuration cannot be read." };
  }
}

const ALL_IDS = ["providerLeaseId", "provider", "companyId", "environmentId"];

function requireOwned(message: string, params: Fields, providerLeaseId: unknown, given: unknown): OwnedLease {
  const mismatches = isId(providerLeaseId) ? [] : ["providerLeaseId"];
  // A lease without metadata has none of the fields, which makes every one of them a mismatch.
  const metadata = isObject(given) ? given : {};
  if (!isCreateos(metadata)) mismatches.push("provider");
  const actualCompany = metadata.companyId;
  const companyId = params.companyId;
  if (!isSameId(actualCompany, companyId)) mismatches.push("companyId");
  const actualEnvironment = metadata.environmentId;
  const environmentId = params.environmentId;
  if (!isSameId(actualEnvironment, environmentId)) mismatches.push("environmentId");
  if (mismatches.length > 0) throw mismatch(message, mismatches);
  // The configuration is looked at last, so that a stranger's lease never gets a configuration error.
  const config = parseConfig(params.config);
  if (metadata.apiUrl !== config.apiUrl) throw mismatch(message, ["apiUrl"]);
  return {
    companyId: companyId as string,
    environmentId: environmentId as string,
    providerLeaseId: providerLeaseId as string,
    metadata,
    config,
  };
}

function isOwned(params: unknown, providerLeaseId: unknown, metadata: unknown, apiUrl: unknown): boolean {
  return (
    isId(providerLeaseId) &&
    isObject(params) &&
    isObject(metadata) &&
    isCreateos(metadata) &&
    isSameId(metadata.companyId, params.companyId) &&
    isSameId(metadata.environmentId, params.environmentId) &&
    metadata.apiUrl === (apiUrl ?? parseConfig(params.config).apiUrl)
  );
}

function isCreateos(metadata: unknown): boolean {
  return isObject(metadata) && metadata.provider === "createos";
}

function isId(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

// An id that is missing on both sides proves nothing, so equality alone is not enough.
function isSameId(actual: unknown, expected: unknown): boolean {
  return isId(actual) && actual === expected;
}

function total(guard: () => boolean): boolean {
  return attempt(guard) ?? false;
}

function mismatch(message: string, mismatches: string[]): CreateosError {
  return new CreateosError("ERR_CREATEOS_LEASE_MISMATCH", message, { mismatches });
}
