// Acquisitions: their parameters, and what the provider saw of them.
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { leaseParams } from "./leases.js";
import { looseDriver } from "./package.js";
import { provide } from "./providers.js";
import { rejection } from "./waiting.js";

export interface Acquired {
  providerLeaseId: string;
  metadata: Record<string, any>;
}

/** Parameters of an acquisition, without a lease's. */
export function acquireParams(provider: Provider, config: object = {}, more: object = {}) {
  const { companyId, environmentId, config: basic } = leaseParams({ provider });
  return { companyId, environmentId, config: { ...basic, ...config }, ...more };
}

export const acquire = (params: unknown, driver = looseDriver()) => driver.acquire(params) as Promise<Acquired>;

/** The body of the creation that an acquisition asks for, whatever becomes of it; without its name. */
export async function asked(config: object = {}, more: object = {}): Promise<Record<string, unknown>> {
  const provider = await provide();
  provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "status", status: 400 } });
  await rejection(acquire(acquireParams(provider, config, more)));
  const { name, ...rest } = provider.requests.find(({ route }) => route === "sandbox.create")?.body ?? {};
  expect(name).toMatch(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?$/);
  return rest;
}
