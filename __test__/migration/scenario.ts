// What a scenario of the table is, and what most of them share.
import { expect } from "vitest";
import type { Effect } from "../provider/faults.mjs";
import type { startProvider } from "../provider/index.mjs";
import type { Host } from "./host.js";

export interface Scenario {
  /** What must hold. */
  name: string;
  config?: object;
  provider?: Parameters<typeof startProvider>[0];
  /** Plays the scenario and tells what came of it. */
  run(host: Host): Promise<unknown>;
  /** What must come of it, whichever logic is in the plugin. */
  outcome: unknown;
}

export const MESSAGES = {
  notToUse: "CreateOS execution requires a lease from this environment.",
  notToRelease: "CreateOS lease does not belong to this environment.",
  noWorkspace: "CreateOS workspace requires a lease from this environment.",
  closing: "CreateOS lease is closing or requires cleanup.",
  inProgress: "CreateOS lease cleanup is already in progress.",
  unconfirmed: "CreateOS process cleanup is unconfirmed; destroy this lease before reusing it.",
  notToResume: "CreateOS lease cleanup must finish before resume.",
  cancelled: "CreateOS command was cancelled.",
  stillAlive: "CreateOS command cleanup failed; process termination is unconfirmed.",
} as const;

const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/);
export const ID = expect.stringMatching(/^sb-\w+$/);
const LOOPBACK = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/);

/** What an acquired lease records, as far as the configuration does not change it. */
export const METADATA = {
  provider: "createos",
  apiUrl: LOOPBACK,
  companyId: "company",
  environmentId: "environment",
  remoteCwd: "/paperclip-workspace",
  shellCommand: "bash",
  marker: UUID,
  shape: "s-1vcpu-1gb",
  rootfs: null,
  region: null,
  reuseLease: false,
  adapterType: null,
  baseEgressAllowlist: [],
  effectiveEgressAllowlist: [],
  autoPauseAfterSeconds: null,
};

/** What a command gives that says nothing and ends well. */
export const RESULT = { exitCode: 0, signal: null, timedOut: false, stdout: "", stderr: "" };

/** A script that ends when it is made to, and leaves a child of its own behind unless its whole tree is ended. */
export const FOREVER = "echo up; sleep 600 & wait";

export const DONE = { value: undefined };
export const EXPIRED = { value: { providerLeaseId: null, metadata: { expired: true } } };

/** A refusal by the provider. */
export const refusal = (status: number, operation: string) => ({
  error: `CreateOS request failed (HTTP ${status}) during ${operation}.`,
});

/** Makes the next command fail in a way that its clean-up can't mend. */
export function failCleanup({ provider: { faults } }: Host, effect: Effect = { type: "treeAlive" }): void {
  faults.add({ match: { path: "process.connect" }, times: 1, effect: { type: "frame", what: "malformed" } });
  faults.add({ match: { path: "process.delete" }, times: 1, effect });
}
