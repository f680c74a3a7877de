// The example plugin as a host runs it: a worker process that is spoken to in JSON-RPC over its pipes, that may be
// killed at any time, and whose successor knows no more than what the host has stored (specification, section 8).
import { JSONRPC_ERROR_CODES, PLUGIN_RPC_ERROR_CODES } from "@paperclipai/plugin-sdk";
import { afterAll, beforeAll, describe, expect, test, type TestContext } from "vitest";
import type { Provider } from "./provider/index.mjs";
import { MESSAGES } from "./support/errors.js";
import { acquire, destroy, destroyed, marked, release, resume, status, stopped } from "./support/paperclip_leases.js";
import {
  installPlugin,
  type InstalledPlugin,
  leaseOf,
  type StoredLease,
  type Tenant,
  tenant,
} from "./support/paperclip_plugin.js";
import { PluginWorker } from "./support/paperclip_worker.js";
import { nothingAlive, provide } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

let installed: InstalledPlugin;
beforeAll(async () => {
  installed = await installPlugin();
});
afterAll(() => installed.remove());

const start = (context: TestContext) => PluginWorker.start(installed, context);

describe.concurrent("a worker", () => {
  test("serves exactly the hooks of the plugin, and asks nothing of the host", async (context) => {
    const worker = await start(context);
    expect(worker.supportedMethods).toEqual([
      "health",
      "shutdown",
      "environmentValidateConfig",
      "environmentProbe",
      "environmentAcquireLease",
      "environmentResumeLease",
      "environmentReleaseLease",
      "environmentDestroyLease",
      "environmentRealizeWorkspace",
      "environmentExecute",
    ]);
    expect(await worker.call("health", {})).toEqual({ status: "ok" });
    await worker.call("shutdown", {});
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect([worker.requests, worker.notifications]).toEqual([[], []]);
  });

  test("takes a lease through its whole life, and ends with the shutdown", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const raw = tenant(provider);
    const validation = await worker.call("environmentValidateConfig", raw);
    expect(validation).toEqual({
      ok: true,
      normalizedConfig: { ...raw.config, rootfsByAdapter: {}, egressAllowlist: [] },
    });
    const owner = { ...raw, config: validation.normalizedConfig ?? {} };

    expect(await worker.call("environmentProbe", owner)).toMatchObject({ ok: true });
    await nothingAlive(provider);

    const lease = await acquire(worker, owner);
    expect(lease.leaseMetadata).toMatchObject({
      provider: "createos",
      companyId: owner.companyId,
      environmentId: owner.environmentId,
    });
    expect(await worker.call("environmentRealizeWorkspace", { ...owner, ...leaseOf(lease) })).toEqual({
      cwd: "/paperclip-workspace",
      metadata: { provider: "createos", remoteCwd: "/paperclip-workspace" },
    });
    expect(await release(worker, owner, lease)).toEqual(stopped(lease));
    expect(status(provider, lease)).toBe("paused");
    const resumed = await resume(worker, owner, lease);
    expect(resumed).toEqual(marked(lease));
    expect(status(provider, lease)).toBe("running");
    expect(await destroy(worker, owner, resumed)).toEqual(destroyed(lease));
    expect(status(provider, lease)).toBe("destroyed");

    expect(await worker.call("shutdown", {})).toBeNull();
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    await nothingAlive(provider);
    expect([worker.requests, worker.notifications]).toEqual([[], []]);
  });

  test("answers with nothing where nothing has ended", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const owner = tenant(provider, {}, { autoPauseAfterSeconds: 60 });
    const lease = await acquire(worker, owner);
    expect(await release(worker, owner, lease)).toBeNull();
    expect(await worker.call("environmentReleaseLease", { ...owner, providerLeaseId: null })).toBeNull();
    await destroy(worker, owner, lease);
    await nothingAlive(provider);
  });

  test("says what is wrong in the exact words, and serves on", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const owner = tenant(provider);
    const { apiKey: _key, ...keyless } = owner.config;
    const refused: [Partial<Tenant> & { requestedExpiresAt?: string }, string][] = [
      [{ config: { ...owner.config, shape: " " } }, "shape must be a non-empty string."],
      [{ config: { ...owner.config, reuseLease: "yes" } }, "reuseLease must be a boolean."],
      [{ config: keyless }, MESSAGES.keyForCustomOrigin],
      [{ config: { ...keyless, apiUrl: "https://api.sb.createos.sh" } }, MESSAGES.noKey],
      [
        { requestedExpiresAt: "2031-01-01T00:00:00.000Z" },
        "CreateOS does not yet support leases with a guaranteed expiration deadline.",
      ],
    ];
    for (const [changes, message] of refused) {
      const error = await worker.refusal("environmentAcquireLease", { ...owner, runId: "run", ...changes });
      expect(error).toMatchObject({ message, code: PLUGIN_RPC_ERROR_CODES.WORKER_ERROR, data: undefined });
    }
    expect(provider.requests).toEqual([]);
    await destroy(worker, owner, await acquire(worker, owner));
    await nothingAlive(provider);
  });

  test("tells what the plugin has no hook for, and what is no hook, from what failed in one", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const sync = { ...tenant(provider), lease: { providerLeaseId: "sb-1" }, operations: [] };
    const unserved = await worker.refusal("environmentSyncIn", sync);
    expect(unserved.code).toBe(PLUGIN_RPC_ERROR_CODES.METHOD_NOT_IMPLEMENTED);
    const unknown = await worker.refusal("environmentTeleport" as "health", {});
    expect(unknown.code).toBe(JSONRPC_ERROR_CODES.METHOD_NOT_FOUND);
  });

  test("takes the plugin's own configuration from every company, since it keeps none", async (context) => {
    const worker = await start(context);
    for (const companyId of ["first", "second"]) {
      expect(await worker.call("configChanged", { companyId, config: { for: companyId } })).toBeNull();
    }
  });

  test("lets no key out in what the provider answers, be that nothing but the key", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const owner = tenant(provider);
    provider.faults.add({ match: { path: "sandbox.create" }, times: 2, effect: { type: "echoError", status: 400 } });
    const error = await worker.refusal("environmentAcquireLease", { ...owner, runId: "run" });
    expect(error.message).toBe("CreateOS request failed (HTTP 400) during sandbox lifecycle.");
    expect(await worker.call("environmentProbe", owner)).toEqual({ ok: false, summary: error.message });
    // That no key has left the worker is looked at after every test.
    await nothingAlive(provider);
  });
});

describe.concurrent("two companies in one worker", () => {
  const keys = ["skp_of_the_first_company", "skp_of_the_second_company"];
  const withKeys = (provider: Provider): [Tenant, Tenant] => [
    tenant(provider, { companyId: "first", environmentId: "one" }, { apiKey: keys[0] }),
    tenant(provider, { companyId: "second", environmentId: "two" }, { apiKey: keys[1] }),
  ];
  const neighbours: [string, typeof withKeys][] = [
    ["with a key each", withKeys],
    [
      "with the same key",
      (provider) => [
        tenant(provider, { companyId: "first", environmentId: "one" }),
        tenant(provider, { companyId: "second", environmentId: "two" }),
      ],
    ],
    [
      "or one company, with two environments",
      (provider) => [tenant(provider, { environmentId: "one" }), tenant(provider, { environmentId: "two" })],
    ],
  ];

  test.for(neighbours)("%s: each has its own leases, and is refused the other's", async ([_name, pair], context) => {
    const provider = await provide({ apiKeys: keys }, context);
    const worker = await start(context);
    const owners = pair(provider);
    const leases = await Promise.all(owners.map((owner) => acquire(worker, owner)));
    const [mine, theirs] = leases as [StoredLease, StoredLease];
    expect(mine.providerLeaseId).not.toBe(theirs.providerLeaseId);

    const before = provider.requests.length;
    for (const [owner, other] of [[owners[0], theirs], [owners[1], mine]] as const) {
      // The lease as it is, and under one's own id with the other's metadata.
      const own = other === theirs ? mine : theirs;
      for (const stolen of [other, { ...other, providerLeaseId: own.providerLeaseId }]) {
        const hooks = ["environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease"] as const;
        for (const method of hooks) {
          const { message } = await worker.refusal(method, { ...owner, ...stolen });
          expect(message).toBe("CreateOS lease does not belong to this environment.");
        }
        const { message } = await worker.refusal("environmentRealizeWorkspace", { ...owner, ...leaseOf(stolen) });
        expect(message).toBe("CreateOS workspace requires a lease from this environment.");
      }
    }
    // Nothing was asked of the provider, and what was refused has closed neither lease to its owner.
    expect(provider.requests.length).toBe(before);
    expect(leases.map((lease) => status(provider, lease))).toEqual(["running", "running"]);

    expect(await release(worker, owners[0], mine)).toEqual(stopped(mine));
    expect([status(provider, mine), status(provider, theirs)]).toEqual(["paused", "running"]);
    expect(await resume(worker, owners[0], mine)).toEqual(marked(mine));
    expect(await destroy(worker, owners[1], theirs)).toEqual(destroyed(theirs));
    expect([status(provider, mine), status(provider, theirs)]).toEqual(["running", "destroyed"]);
    expect(await destroy(worker, owners[0], mine)).toEqual(destroyed(mine));
    await nothingAlive(provider);
  });

  test("a release of one that hangs holds up no hook of the other", async (context) => {
    const provider = await provide({ apiKeys: keys }, context);
    const worker = await start(context);
    const [first, second] = withKeys(provider);
    const mine = await acquire(worker, first);
    const held = provider.faults.add({ match: { path: "sandbox.pause" }, times: 1, effect: { type: "hold" } });
    const released = release(worker, first, mine);
    await within(held.hit);
    const theirs = await acquire(worker, second);
    expect(await release(worker, second, theirs)).toEqual(stopped(theirs));
    expect(await resume(worker, second, theirs)).toEqual(marked(theirs));
    expect(await destroy(worker, second, theirs)).toEqual(destroyed(theirs));
    held.release();
    expect(await released).toEqual(stopped(mine));
    expect(await destroy(worker, first, mine)).toEqual(destroyed(mine));
    await nothingAlive(provider);
  });

  test("many hooks of both at once: every answer is its own question's", async (context) => {
    const provider = await provide({ apiKeys: keys }, context);
    const worker = await start(context);
    const owners = Array.from({ length: 10 }, (_, index) =>
      tenant(
        provider,
        { companyId: index % 2 === 0 ? "first" : "second", environmentId: `environment ${index}` },
        { apiKey: keys[index % 2] },
      ),
    );
    const leases = await Promise.all(owners.map((owner) => acquire(worker, owner)));
    for (const [index, { leaseMetadata, providerLeaseId }] of leases.entries()) {
      const { companyId, environmentId } = owners[index] as Tenant;
      expect(leaseMetadata).toMatchObject({ companyId, environmentId });
      expect(provider.sandbox(providerLeaseId)?.owner).toBe(`user-${(index % 2) + 1}`);
    }
    const each = <T>(act: (owner: Tenant, lease: StoredLease) => Promise<T>) =>
      Promise.all(leases.map((lease, index) => act(owners[index] as Tenant, lease)));
    expect(await each((owner, lease) => release(worker, owner, lease))).toEqual(leases.map(stopped));
    expect(await each((owner, lease) => resume(worker, owner, lease))).toEqual(leases.map(marked));
    expect(await each((owner, lease) => destroy(worker, owner, lease))).toEqual(leases.map(destroyed));
    await nothingAlive(provider);
  });
});

describe.concurrent("a worker that is killed", () => {
  test("is succeeded by one that resumes the stored leases, of both companies, and destroys them", async (context) => {
    const provider = await provide({}, context);
    const owners = [tenant(provider, { companyId: "first" }), tenant(provider, { companyId: "second" })] as const;
    const first = await start(context);
    const [paused, running] = [await acquire(first, owners[0]), await acquire(first, owners[1])];
    await release(first, owners[0], paused);
    expect(await first.kill()).toEqual({ code: null, signal: "SIGKILL" });
    expect([status(provider, paused), status(provider, running)]).toEqual(["paused", "running"]);

    const second = await start(context);
    const { message } = await second.refusal("environmentResumeLease", { ...owners[1], ...paused });
    expect(message).toBe("CreateOS lease does not belong to this environment.");
    const resumed = [await resume(second, owners[0], paused), await resume(second, owners[1], running)] as const;
    expect(resumed).toEqual([marked(paused), marked(running)]);
    expect([status(provider, paused), status(provider, running)]).toEqual(["running", "running"]);
    expect(await release(second, owners[0], resumed[0])).toEqual(stopped(paused));
    expect(await destroy(second, owners[1], resumed[1])).toEqual(destroyed(running));
    await second.kill();

    const third = await start(context);
    expect(await resume(third, owners[0], resumed[0])).toEqual(marked(paused));
    expect(await destroy(third, owners[0], resumed[0])).toEqual(destroyed(paused));
    await nothingAlive(provider);
  });

  test("leaves leases that its successor releases and destroys without resuming them", async (context) => {
    const provider = await provide({}, context);
    const owner = tenant(provider);
    const first = await start(context);
    const leases = [await acquire(first, owner), await acquire(first, owner)] as const;
    await first.kill();
    const second = await start(context);
    expect(await release(second, owner, leases[0])).toEqual(stopped(leases[0]));
    expect(await destroy(second, owner, leases[1])).toEqual(destroyed(leases[1]));
    expect(await destroy(second, owner, leases[0])).toEqual(destroyed(leases[0]));
    await nothingAlive(provider);
  });

  /** Where a worker is when it is killed: it waits for the answer to a request that has taken effect, or not yet. */
  interface Moment {
    path: string;
    when: "before" | "after";
  }
  const reading = (path: string): Moment[] => [{ path, when: "after" }];
  const writing = (path: string): Moment[] => [
    { path, when: "before" },
    { path, when: "after" },
  ];

  /** A worker that is killed in the middle of a hook, and its successor. */
  async function killedIn(
    context: TestContext,
    act: (worker: PluginWorker, owner: Tenant, lease: StoredLease) => Promise<unknown>,
    { path, when }: Moment,
    config: Record<string, unknown> = {},
    prepare: typeof act = async () => {},
  ) {
    // Transitions take a while, so that the successor may come into the middle of one.
    const provider = await provide({ delays: { pause: 100, resume: 100, destroy: 100 } }, context);
    const owner = tenant(provider, {}, config);
    const worker = await start(context);
    const lease = await acquire(worker, owner);
    await prepare(worker, owner, lease);
    const held = provider.faults.add({ match: { path }, times: 1, effect: { type: "hold", when } });
    const unanswered = rejection(act(worker, owner, lease));
    await within(held.hit);
    await worker.kill();
    expect((await unanswered).message).toMatch(/^The worker ended \(SIGKILL\) before it answered environment/);
    return { provider, owner, lease, held, worker: await start(context) };
  }

  test.for([...reading("sandbox.get"), ...writing("sandbox.pause")])(
    "while a release hangs at $path, $when it took effect: the next one finishes it",
    async (moment, context) => {
      const { provider, owner, lease, worker } = await killedIn(context, release, moment);
      expect(await release(worker, owner, lease)).toEqual(stopped(lease));
      expect(status(provider, lease)).toBe("paused");
      expect(await resume(worker, owner, lease)).toEqual(marked(lease));
      expect(await destroy(worker, owner, lease)).toEqual(destroyed(lease));
      await nothingAlive(provider);
    },
  );

  test.for([...writing("sandbox.destroy"), ...reading("sandbox.get")])(
    "while a release that destroys hangs at $path, $when it took effect: the next one gives the receipt",
    async (moment, context) => {
      const { provider, owner, lease, worker } = await killedIn(context, release, moment, { reuseLease: false });
      expect(await release(worker, owner, lease)).toEqual(destroyed(lease));
      await nothingAlive(provider);
    },
  );

  test.for(writing("sandbox.destroy"))(
    "while a destroy hangs, $when it took effect: the next one gives the receipt",
    async (moment, context) => {
      const { provider, owner, lease, worker } = await killedIn(context, destroy, moment);
      expect(await destroy(worker, owner, lease)).toEqual(destroyed(lease));
      await nothingAlive(provider);
    },
  );

  const resuming = [
    ...reading("sandbox.get"),
    ...writing("egress.put"),
    ...writing("sandbox.resume"),
    ...reading("exec"),
    ...reading("process.list"),
  ];
  test.for(resuming)(
    "while a resume hangs at $path, $when it took effect: the next one resumes the lease",
    async (moment, context) => {
      const config = { egressAllowlist: ["a.example"] };
      const { provider, owner, lease, worker } = await killedIn(context, resume, moment, config, release);
      expect(await resume(worker, owner, lease)).toEqual(marked(lease));
      expect(status(provider, lease)).toBe("running");
      expect(await release(worker, owner, lease)).toEqual(stopped(lease));
      expect(await destroy(worker, owner, lease)).toEqual(destroyed(lease));
      await nothingAlive(provider);
    },
  );

  test("while a resume hangs, which takes effect only when the next one has destroyed the lease", async (context) => {
    const moment: Moment = { path: "sandbox.resume", when: "before" };
    const { provider, owner, lease, held, worker } = await killedIn(context, resume, moment, {}, release);
    expect(await destroy(worker, owner, lease)).toEqual(destroyed(lease));
    held.release();
    expect(await resume(worker, owner, lease)).toEqual({ providerLeaseId: null, leaseMetadata: { expired: true } });
    await nothingAlive(provider);
  });
});

describe.concurrent("a shutdown", () => {
  const steps = ["sandbox.create", "sandbox.get", "exec", "files.put"];
  test.for(steps)("ends while an acquisition is under way at %s, and its sandbox is removed", async (path, context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const held = provider.faults.add({ match: { path }, times: 1, effect: { type: "hold" } });
    const refused = worker.refusal("environmentAcquireLease", { ...tenant(provider), runId: "run" });
    await within(held.hit);
    const down = worker.call("shutdown", {});
    // A creation that is under way is waited for: only its answer tells what there is to be removed.
    if (path === "sandbox.create") held.release();
    expect(await down).toBeNull();
    // The host hears of the acquisition's end before the worker is gone.
    expect((await refused).message).toBe("This operation was aborted");
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect(worker.answered.slice(-2)).toEqual(["environmentAcquireLease", "shutdown"]);
    held.remove();
    await nothingAlive(provider);
  });

  test("ends while a probe is under way, and its sandbox is removed", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const held = provider.faults.add({ match: { path: "files.put" }, times: 1, effect: { type: "hold" } });
    const refused = worker.refusal("environmentProbe", tenant(provider));
    await within(held.hit);
    await worker.call("shutdown", {});
    expect((await refused).message).toBe("This operation was aborted");
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect(worker.answered.slice(-2)).toEqual(["environmentProbe", "shutdown"]);
    await nothingAlive(provider);
  });

  test("ends while a resume is under way, which the next worker can take up", async (context) => {
    const provider = await provide({}, context);
    const owner = tenant(provider);
    const worker = await start(context);
    const lease = await acquire(worker, owner);
    await release(worker, owner, lease);
    const held = provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "hold" } });
    const refused = worker.refusal("environmentResumeLease", { ...owner, ...lease });
    await within(held.hit);
    await worker.call("shutdown", {});
    expect((await refused).message).toBe("This operation was aborted");
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect(worker.answered.slice(-2)).toEqual(["environmentResumeLease", "shutdown"]);
    const next = await start(context);
    expect(await resume(next, owner, lease)).toEqual(marked(lease));
    expect(await destroy(next, owner, lease)).toEqual(destroyed(lease));
    held.remove();
    await nothingAlive(provider);
  });

  test("lets the releases that are under way finish, and the host hears of them first", async (context) => {
    const provider = await provide({}, context);
    const worker = await start(context);
    const [kept, removed] = [tenant(provider), tenant(provider, { environmentId: "other" }, { reuseLease: false })];
    const leases = [await acquire(worker, kept), await acquire(worker, removed)] as const;
    const paths = ["sandbox.pause", "sandbox.destroy"];
    const rules = paths.map((path) => provider.faults.add({ match: { path }, times: 1, effect: { type: "hold" } }));
    const released = Promise.all([release(worker, kept, leases[0]), release(worker, removed, leases[1])]);
    await within(Promise.all(rules.map(({ hit }) => hit)));
    const down = worker.call("shutdown", {});
    for (const rule of rules) rule.release();
    expect(await released).toEqual([stopped(leases[0]), destroyed(leases[1])]);
    await down;
    expect(worker.answered.at(-1)).toBe("shutdown");
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect(await destroy(await start(context), kept, leases[0])).toEqual(destroyed(leases[0]));
    await nothingAlive(provider);
  });

  test("of an idle worker ends at once, leases or not, and its successor goes on with them", async (context) => {
    const provider = await provide({}, context);
    const owner = tenant(provider);
    const worker = await start(context);
    const lease = await acquire(worker, owner);
    await worker.call("shutdown", {});
    expect(await within(worker.exited)).toEqual({ code: 0, signal: null });
    expect(status(provider, lease)).toBe("running");
    const next = await start(context);
    expect(await resume(next, owner, lease)).toEqual(marked(lease));
    expect(await destroy(next, owner, lease)).toEqual(destroyed(lease));
    await nothingAlive(provider);
  });
});
