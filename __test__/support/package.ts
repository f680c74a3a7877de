// The package as a user gets it, and the same without its types for the values that callers must not hand in.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

export type Package = typeof import("../../index.js");

/** Where the package is, for programs that run in a process of their own. */
export const packagePath = fileURLToPath(new URL("../../index.js", import.meta.url));

export const lease: Package = createRequire(import.meta.url)(packagePath);

/** A driver, or the package itself with its default driver, taking whatever it is given. */
export interface LooseDriver {
  track(params?: unknown, work?: unknown, options?: unknown): Promise<unknown>;
  release(params?: unknown, destroy?: unknown, options?: unknown): Promise<unknown>;
  destroy(params?: unknown, options?: unknown): Promise<unknown>;
  shutdown(): Promise<unknown>;
  leaseState(params?: unknown, providerLeaseId?: unknown): string;
  acquire(params?: unknown, options?: unknown): Promise<unknown>;
  validateConfig(params?: unknown): Promise<unknown>;
  probe(params?: unknown, options?: unknown): Promise<unknown>;
  resume(params?: unknown, options?: unknown): Promise<unknown>;
  realizeWorkspace(params?: unknown): Promise<unknown>;
}

/** A driver of its own, untyped. */
export function looseDriver(options?: unknown): LooseDriver {
  const LeaseDriver = lease.LeaseDriver as unknown as new (options?: unknown) => LooseDriver;
  return new LeaseDriver(options);
}
