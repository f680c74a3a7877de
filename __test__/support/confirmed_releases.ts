// Releases that ask for a receipt: who offers them, and leases to try them with.
import { leaseParams, type LeaseParams } from "./leases.js";
import { lease, looseDriver, type LooseDriver } from "./package.js";
import { makeSandbox, provide } from "./providers.js";
import type { Provider } from "../provider/index.mjs";

export interface Arranged {
  provider: Provider;
  id: string;
  params: LeaseParams;
  driver: LooseDriver;
  /** How many requests there were before. */
  start: number;
}

/** A running sandbox and a driver that knows nothing of it. */
export async function arrange(
  context: Parameters<typeof provide>[1],
  { config = {}, metadata = {}, ...options }: NonNullable<Parameters<typeof provide>[0]> & Record<string, object> = {},
): Promise<Arranged> {
  const provider = await provide(options, context);
  const id = await makeSandbox(provider);
  const params = leaseParams({ provider, id, config: { ...config }, metadata: { ...metadata } });
  return { provider, id, params, driver: looseDriver(), start: provider.requests.length };
}

/** A release of one kind, with whatever options. */
export type Ask = (driver: LooseDriver, params: unknown, options?: unknown) => Promise<unknown>;

const CONFIRM = { confirm: true };

/** Everyone who gives a lease back and removes its sandbox. */
export const destroyers: [string, Ask][] = [
  ["driver.destroy", (driver, params, options = CONFIRM) => driver.destroy(params, options)],
  ["driver.release with destroy", (driver, params, options = CONFIRM) => driver.release(params, true, options)],
  [
    "driver.release where leases are not reused",
    (driver, params, options = CONFIRM) => driver.release(params, undefined, options),
  ],
  [
    "the package's release",
    (_driver, params, options = CONFIRM) => (lease as unknown as LooseDriver).release(params, true, options),
  ],
];

export const destroyed = (providerLeaseId: string) => ({ providerLeaseId, state: "destroyed" });
export const stopped = (providerLeaseId: string) => ({ providerLeaseId, state: "stopped" });
