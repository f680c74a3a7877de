// The table, second part: a lease is refused to strangers, and found again or not.
import { MARKER, type Recorded, told } from "./host.js";
import { DONE, EXPIRED, MESSAGES, METADATA, refusal, RESULT, type Scenario } from "./scenario.js";

/** How each hook refuses the lease of someone else. */
const FOREIGN = {
  execute: { error: MESSAGES.notToUse },
  syncIn: { error: MESSAGES.notToUse },
  syncOut: { error: MESSAGES.notToUse },
  realizeWorkspace: { error: MESSAGES.noWorkspace },
  resume: { error: MESSAGES.notToRelease },
  release: { error: MESSAGES.notToRelease },
  destroy: { error: MESSAGES.notToRelease },
};

export const leaseScenarios: Scenario[] = [
  {
    name: "a lease of someone else is refused everywhere, before the configuration is looked at, without a request",
    async run(host) {
      const lease = await host.acquire();
      const start = host.provider.requests.length;
      const attempts = async (metadata: object, more: object = {}) => {
        const theirs = { ...lease, metadata: { ...lease.metadata, ...metadata } };
        const hooks = ["execute", "syncIn", "syncOut", "realizeWorkspace", "resume", "release", "destroy"] as const;
        const attempt = (hook: (typeof hooks)[number]) =>
          hook === "execute" ? host.execute(theirs, "true", more) : host[hook](theirs, more);
        return Object.fromEntries(await Promise.all(hooks.map(async (hook) => [hook, await told(attempt(hook))])));
      };
      const broken = { config: { ...host.config, shape: "" } };
      return {
        provider: await attempts({ provider: "other" }),
        company: await attempts({ companyId: "theirs" }),
        environment: await attempts({ environmentId: "theirs" }),
        origin: await attempts({ apiUrl: "https://createos.example" }),
        unsaid: await attempts({ provider: undefined }),
        foreignFirst: await attempts({ companyId: "theirs" }, broken),
        configurationThen: await attempts({}, broken),
        asked: host.asked(start),
        nothing: await told(host.hooks.onEnvironmentReleaseLease({ ...host.owner(), providerLeaseId: null })),
        unnamed: [
          await told(host.execute({ ...lease, providerLeaseId: "" }, "true")),
          await told(host.realizeWorkspace({ ...lease, providerLeaseId: "" })),
          await told(host.resume({ ...lease, providerLeaseId: "" })),
          await told(host.release({ ...lease, providerLeaseId: "" })),
        ],
      };
    },
    outcome: {
      provider: FOREIGN,
      company: FOREIGN,
      environment: FOREIGN,
      origin: FOREIGN,
      unsaid: FOREIGN,
      foreignFirst: FOREIGN,
      configurationThen: Object.fromEntries(
        Object.keys(FOREIGN).map((hook) => [hook, { error: "shape must be a non-empty string." }]),
      ),
      asked: [],
      nothing: DONE,
      unnamed: [
        { error: MESSAGES.notToUse },
        { error: MESSAGES.noWorkspace },
        { error: MESSAGES.notToRelease },
        // There is nothing to release.
        DONE,
      ],
    },
  },
  {
    name: "a lease that was released runs again, with its files and its egress rules, which come first",
    config: { reuseLease: true, egressAllowlist: ["a.example"] },
    async run(host) {
      const lease = await host.acquire();
      await host.execute(lease, "echo kept > file");
      await host.release(lease);
      const paused = host.status(lease);
      const start = host.provider.requests.length;
      const resumed = await host.resume(lease);
      const changes = host.asked(start).filter((route) => /egress|resume/.test(route ?? ""));
      return {
        paused,
        isSame: resumed.providerLeaseId === lease.providerLeaseId && resumed.metadata?.marker === lease.metadata.marker,
        metadata: resumed.metadata,
        changes,
        rules: host.provider.requests.find(({ route }) => route === "egress.put")?.body,
        ran: await told(host.execute(lease, "cat file")),
      };
    },
    outcome: {
      paused: "paused",
      isSame: true,
      metadata: {
        ...METADATA,
        reuseLease: true,
        baseEgressAllowlist: ["a.example"],
        effectiveEgressAllowlist: ["a.example"],
        resumedLease: true,
      },
      changes: ["egress.put", "sandbox.resume"],
      rules: { egress: ["a.example"] },
      ran: { value: { ...RESULT, stdout: "kept\n" } },
    },
  },
  {
    name: "a lease that the configuration no longer fits has expired: nothing is asked, and nothing removed",
    config: { reuseLease: true, rootfsByAdapter: { "adapter-a": "ubuntu:26.04" }, egressAllowlist: ["a.example"] },
    async run(host) {
      const lease = await host.acquire({ adapterType: "adapter-a" });
      const start = host.provider.requests.length;
      const changed = (changes: object) => told(host.resume(lease, { config: { ...host.config, ...changes } }));
      const marked = (marker: unknown) => told(host.resume({ ...lease, metadata: { ...lease.metadata, marker } }));
      return {
        changed: await Promise.all(
          [
            { shape: "s-1vcpu-2gb" },
            { region: "eu" },
            { rootfsByAdapter: {} },
            { rootfsByAdapter: { "adapter-a": "debian:13" } },
            { egressAllowlist: [] },
            { egressAllowlist: ["a.example", "b.example"] },
            { autoPauseAfterSeconds: 90 },
          ].map(changed),
        ),
        marked: await Promise.all([undefined, null, 7, "", "x".repeat(36), "0".repeat(35)].map(marked)),
        asked: host.asked(start),
        // Another image for everybody else, another timeout: they concern no lease that is there.
        fits: Object.keys(Object(await changed({ rootfs: "debian:13", timeoutMs: 10_000 }))),
        destroyed: await told(host.destroy(lease)),
      };
    },
    outcome: {
      changed: Array(7).fill(EXPIRED),
      marked: Array(6).fill(EXPIRED),
      asked: [],
      fits: ["value"],
      destroyed: DONE,
    },
  },
  {
    name: "a sandbox that is gone, failed or another has expired; that the provider can't tell just now proves nothing",
    config: { reuseLease: true },
    async run(host) {
      const { provider } = host;
      const after = async (happens: (lease: Recorded) => unknown) => {
        const lease = await host.acquire();
        await happens(lease);
        return told(host.resume(lease));
      };
      const fault = (path: string, status: number) => () =>
        provider.faults.add({ match: { path }, times: 1, effect: { type: "status", status } });
      return {
        destroyed: await after(async ({ providerLeaseId: id }) => {
          provider.guest.delete(id);
          await provider.waitForState(id, "destroyed");
        }),
        failed: await after(({ providerLeaseId: id }) => provider.guest.fail(id)),
        unknown: await after(fault("sandbox.get", 404)),
        another: await after((lease) => host.execute(lease, `echo other > ${MARKER}`)),
        unmarked: await after((lease) => host.execute(lease, `rm ${MARKER}`)),
        refused: await after(fault("sandbox.get", 403)),
        unpaid: await after(async (lease) => {
          await host.release(lease);
          fault("sandbox.resume", 402)();
        }),
      };
    },
    outcome: {
      destroyed: EXPIRED,
      failed: EXPIRED,
      unknown: EXPIRED,
      another: EXPIRED,
      unmarked: EXPIRED,
      refused: refusal(403, "sandbox lifecycle"),
      unpaid: refusal(402, "sandbox lifecycle"),
    },
  },
];
