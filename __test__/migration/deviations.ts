// The table, last part: what the specification wants different from the logic that the package replaces, one by one.
import { expect, vi } from "vitest";
import { watch } from "../support/waiting.js";
import { type Host, told } from "./host.js";
import { DONE, failCleanup, FOREVER, MESSAGES, RESULT, type Scenario } from "./scenario.js";

export interface Deviation extends Omit<Scenario, "run" | "outcome"> {
  /** Of the specification. */
  section: number;
  /** Both plugins play at the same time, each on a provider of its own; `peer` is the other one's host. */
  run(host: Host, peer: Host): Promise<unknown>;
  before: unknown;
  after: unknown;
}

export const deviations: Deviation[] = [
  {
    section: 2,
    name: "the environment's key goes to the provider's own origin only",
    provider: { apiKeys: ["key-of-the-environment"] },
    config: { apiKey: undefined },
    async run(host) {
      vi.stubEnv("CREATEOS_API_KEY", "key-of-the-environment");
      const acquired = Object.entries(Object(await told(host.acquire())));
      return acquired.map(([outcome, what]) => (outcome === "value" ? "acquired" : what));
    },
    before: ["acquired"],
    after: [
      "Custom CreateOS API endpoints require an explicit environment API key; " +
        "the host fallback is only available for https://api.sb.createos.sh.",
    ],
  },
  {
    section: 3,
    name: "ids that are missing on both sides do not match, nor do empty ones",
    async run(host) {
      const lease = await host.acquire();
      const without = (ids: { companyId: string } | { environmentId: string }) =>
        told(host.execute({ ...lease, metadata: { ...lease.metadata, ...ids } }, "true", ids));
      // What comes out of a database need not be what its types say.
      const nothing: { companyId: string } = { companyId: JSON.parse("{}").companyId };
      return [await without(nothing), await without({ companyId: "" }), await without({ environmentId: "" })];
    },
    before: Array(3).fill({ value: RESULT }),
    after: Array(3).fill({ error: MESSAGES.notToUse }),
  },
  {
    section: 4,
    name: "a clean-up that failed counts as the cause of an error, too",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      failCleanup(host);
      const postUploadCommands = [{ command: "echo one; sleep 600" }];
      const operations = [{ operationId: "1", files: [], postUploadCommands }];
      const sync = await told(host.syncIn(lease, { operations }));
      return { sync, next: await told(host.execute(lease, "true")), released: await told(host.release(lease)) };
    },
    before: { sync: { error: "CreateOS transfer command failed." }, next: { value: RESULT }, released: DONE },
    after: {
      sync: { error: "CreateOS transfer command failed." },
      next: { error: MESSAGES.closing },
      released: { error: MESSAGES.unconfirmed },
    },
  },
  {
    section: 5,
    name: "a destroy waits for a call that does not end only so long: twice its configured timeout, and 5 s",
    async run(host, peer) {
      const lease = await host.acquire();
      const config = { ...host.config, timeoutMs: 1 };
      const command = told(host.execute(lease, FOREVER, { config, timeoutMs: 60_000 }));
      await host.said("up");
      const cleanup = host.provider.faults.add({ match: { path: "process.delete" }, effect: { type: "hold" } });
      const destroyed = watch(told(host.destroy(lease)));
      // The bound has passed when the first of the two goes on.
      const goesOn = ({ provider }: Host) => provider.waitForRequest("sandbox.destroy", { timeoutMs: 20_000 });
      const [own, other] = [goesOn(host), goesOn(peer)];
      await Promise.race([own, other]);
      const wentOn = host.asked().includes("sandbox.destroy");
      if (wentOn) await destroyed.promise;
      cleanup.release();
      return { wentOn, destroyed: await destroyed.promise, command: await command };
    },
    before: { wentOn: false, destroyed: DONE, command: { error: MESSAGES.cancelled } },
    // What the call says of itself is true: nobody has confirmed the end of its processes.
    after: { wentOn: true, destroyed: DONE, command: { error: MESSAGES.stillAlive } },
  },
  {
    section: 5,
    name: "a destroy under a new key ends the calls under the old one as well, before the sandbox goes",
    provider: { apiKeys: { "old-key": "owner", "new-key": "owner" } },
    async run(host) {
      const lease = await host.acquire();
      const command = told(host.execute(lease, FOREVER));
      await host.said("up");
      const destroyed = await told(host.destroy(lease, { config: { ...host.config, apiKey: "new-key" } }));
      const outcome = await command;
      const order = host.asked().filter((route) => /destroy|delete/.test(route ?? ""));
      return { destroyed, command: outcome, order };
    },
    before: {
      destroyed: DONE,
      command: { error: MESSAGES.stillAlive },
      order: ["sandbox.destroy", "process.delete"],
    },
    after: { destroyed: DONE, command: { error: MESSAGES.cancelled }, order: ["process.delete", "sandbox.destroy"] },
  },
  {
    section: 6,
    name: "an abort while JSON is read is told as the abort that it is",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      const slow = { type: "slowBody", bytes: 1, everyMs: 100 } as const;
      host.provider.faults.add({ match: { path: "sandbox.get" }, effect: slow });
      return told(host.release(lease, { config: { ...host.config, timeoutMs: 500 } }));
    },
    before: { error: "CreateOS returned invalid JSON." },
    after: { aborted: "TimeoutError" },
  },
  {
    section: 9,
    name: "a clean-up that the provider does not answer as it should is tried again",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      failCleanup(host, { type: "status", status: 500 });
      const failed = await told(host.execute(lease, "echo one; sleep 600"));
      return { failed, left: host.running(lease), next: await told(host.execute(lease, "true")) };
    },
    before: { failed: { error: MESSAGES.stillAlive }, left: 1, next: { error: MESSAGES.closing } },
    after: { failed: { error: "CreateOS returned an invalid process frame." }, left: 0, next: { value: RESULT } },
  },
  {
    section: 9,
    name: "a result tells which process it is of, and whether its output is whole",
    async run(host) {
      const lease = await host.acquire();
      const { metadata } = await host.hooks.onEnvironmentExecute({ ...host.owner(), lease, command: "true" });
      return metadata;
    },
    before: undefined,
    after: { processId: expect.stringMatching(/^proc_\w+$/), outputTruncated: false },
  },
];
