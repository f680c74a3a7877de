/// <reference types="node" />
// What is compared with what: two implementations behind one interface. Nothing here is typed more closely than the tests
// need, because they hand in values of every type on purpose.
import { createRequire } from "node:module";
import * as referenceModule from "../reference/index.js";

export interface Driver {
  track(params: unknown, work: unknown, options?: unknown): Promise<unknown>;
  release(params: unknown, destroy?: boolean): Promise<void>;
  destroy(params: unknown): Promise<void>;
  shutdown(): Promise<void>;
  leaseState(params: unknown, providerLeaseId: unknown): string;
}

type Class = new (...args: never[]) => object;

export interface Subject {
  LeaseDriver: new (options?: { cleanupErrors?: unknown[] }) => Driver;
  CreateosError: Class;
  CreateosApiError: new (status: number, operation?: string) => Error;
  CreateosCleanupError: new (message?: string) => Error;
  parseConfig(raw: unknown): unknown;
  resolveApiKey(config: unknown): string;
  scopeKey(params: unknown, providerLeaseId: unknown): string;
  isUsableCreateosLease(lease: unknown): boolean;
  canUseLease(lease: unknown, params: unknown, apiUrl?: unknown): boolean;
  canRelease(params: unknown, apiUrl?: unknown): boolean;
  explainLease(params: unknown): unknown;
}

export const reference = referenceModule as unknown as Subject;

/**
 * The implementation under test: the built package, or with DIFFERENTIAL_SUBJECT=reference the reference once more, which
 * tells a fault of the harness from a fault of the package. There is no silent fallback, so that a package that does not
 * load fails every test.
 */
export function loadSubject(): Subject {
  if (process.env.DIFFERENTIAL_SUBJECT === "reference") return reference;
  return createRequire(import.meta.url)("../../index.js") as Subject;
}
