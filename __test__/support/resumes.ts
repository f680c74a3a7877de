// Persisted leases, made past the package: a sandbox as a release left it, and what a host has recorded of it.
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import { leaseParams, type Changes, type LeaseParams } from "./leases.js";
import { looseDriver } from "./package.js";
import { makeSandbox } from "./providers.js";

export type Effect = Parameters<Provider["faults"]["add"]>[0]["effect"];
export type OneEffect = Exclude<Effect, readonly unknown[]>;

export interface Resumed {
  providerLeaseId: string | null;
  metadata: Record<string, any>;
}

/** What a resume answers for a lease that is not to be used any more. */
export const EXPIRED = { providerLeaseId: null, metadata: { expired: true } };

/** The configuration's own egress rules, and those that a run was granted besides. */
export const BASE = ["base.example"];
export const EFFECTIVE = ["base.example", "run.example", "10.0.0.0/8"];

export const NOT_OWNED = "CreateOS lease does not belong to this environment.";

/** What a resume is refused with while the lease may not be used. */
export const CLEANUP_FIRST = {
  code: "ERR_CREATEOS_LEASE_CLOSING",
  message: "CreateOS lease cleanup must finish before resume.",
};

/** The states of a lease's sandbox that last. */
type Lasting = "paused" | "running";

export interface Persisted {
  provider: Provider;
  id: string;
  marker: string;
  /** Parameters that fit the sandbox and each other, with changes. */
  params: (changes?: Changes) => LeaseParams;
}

export interface Persisting {
  /** How its host finds it; default: paused, as a release for reuse leaves it. */
  state?: Lasting;
  key?: string;
  config?: object;
  metadata?: object;
}

/** A lease whose sandbox is there. */
export async function persist(provider: Provider, how: Persisting = {}): Promise<Persisted> {
  const { state = "paused", key = provider.apiKey } = how;
  const id = await makeSandbox(provider, key);
  const marker = randomUUID();
  await writeMarker(provider, id, marker);
  if (state === "paused") await pause(provider, id);
  const params = (changes: Changes = {}) =>
    leaseParams({
      provider,
      id,
      ...changes,
      config: { reuseLease: true, egressAllowlist: BASE, apiKey: key, ...how.config, ...changes.config },
      metadata: {
        remoteCwd: "/paperclip-workspace",
        shellCommand: "bash",
        marker,
        shape: "s-1vcpu-1gb",
        rootfs: null,
        region: null,
        reuseLease: true,
        adapterType: null,
        baseEgressAllowlist: BASE,
        effectiveEgressAllowlist: EFFECTIVE,
        autoPauseAfterSeconds: null,
        ...how.metadata,
        ...changes.metadata,
      },
    });
  return { provider, id, marker, params };
}

/** The folder of a sandbox's markers, on this machine. */
const runtimeOf = (provider: Provider, id: string) =>
  path.join(provider.sandbox(id)?.directory ?? "", "paperclip-workspace", ".paperclip-runtime");

/** Puts a marker into a sandbox, past the provider. */
export async function writeMarker(provider: Provider, id: string, content: string): Promise<void> {
  const folder = runtimeOf(provider, id);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, ".paperclip-createos-lease"), content);
}

/** Has a sandbox paused, as the provider's own timer does. */
export async function pause(provider: Provider, id: string): Promise<void> {
  if (provider.sandbox(id)?.status === "resuming") await provider.waitForState(id, "running");
  provider.guest.pause(id);
  await provider.waitForState(id, "paused");
}

/** Resumes, with a driver of its own unless one is given. */
export const resume = (params: unknown, driver = looseDriver(), options?: unknown) =>
  driver.resume(params, options) as Promise<Resumed>;

/** That an answer is the lease itself, marked. */
export function expectResumed(answer: Resumed, { providerLeaseId, leaseMetadata }: LeaseParams): void {
  expect(answer).toEqual({ providerLeaseId, metadata: { ...leaseMetadata, resumedLease: true } });
}

/** Waits until a look at a sandbox has been answered, so that whoever looks pauses before the next. */
export async function lookedAt(provider: Provider, id: string, since: number): Promise<void> {
  await provider.waitFor(
    (event) =>
      event.type === "request:finish" && event.request.route === "sandbox.get" && event.request.sandboxId === id,
    { since },
  );
}

/** An argument as this package's commands carry it. */
export const commandMarker = () => `createos-lease-command-${randomUUID()}`;

/** A process of a running sandbox, made past the driver. By default one that runs until it is ended. */
export async function startProcess(
  { provider, id }: Pick<Persisted, "provider" | "id">,
  args: readonly string[],
  key = provider.apiKey,
): Promise<string> {
  const response = await fetch(`${provider.url}/v1/sandboxes/${id}/processes`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ cmd: "/bin/bash", args }),
  });
  expect(response.status).toBe(201);
  const { data } = (await response.json()) as { data: { process_id: string } };
  return data.process_id;
}

/** Arguments of a command that runs until it is ended. */
export const sleeping = (...more: string[]) => ["-c", "exec sleep 1000", ...more];

/** The processes that still run, leader or not. */
export const alive = (provider: Provider, id: string) =>
  provider
    .processes(id)
    .filter((process) => !process.tree_exited)
    .map((process) => process.process_id);
