/// <reference types="node" />
// The built package, with its types. Loaded by Node itself, so that a test sees what a user sees.
import { createRequire } from "node:module";

export type Package = typeof import("../../index.js");

export const { CreateosApiError, CreateosClient, CreateosError, LeaseDriver, parseConfig, release, track } =
  createRequire(__filename)("../../index.js") as Package;

export type Client = InstanceType<Package["CreateosClient"]>;
type Settings = Partial<import("../../index.js").CreateosConfigInput>;

/** Nobody's key, and recognisable wherever it turns up. */
export const KEY = "skp_test_0f3c9a_never_shown";

/** A client of an origin. */
export function clientOf(apiUrl: string, settings: Settings = {}): Client {
  return new CreateosClient({ apiUrl, apiKey: KEY, shape: "s-1vcpu-1gb", timeoutMs: 20_000, ...settings });
}
