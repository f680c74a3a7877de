// The table, first part: a configuration is checked and tried out, and a lease acquired.
import { expect } from "vitest";
import { MARKER, told } from "./host.js";
import { ID, METADATA, refusal, type Scenario } from "./scenario.js";

export const acquireScenarios: Scenario[] = [
  {
    name: "a configuration is normalised, or refused with the message of the first check that fails",
    async run({ hooks, config }) {
      const validate = (changes: object) =>
        told(hooks.onEnvironmentValidateConfig({ driverKey: "createos", config: { ...config, ...changes } }));
      return {
        small: await validate({ apiUrl: "https://createos.example/v1/", apiKey: undefined }),
        full: await validate({
          apiUrl: " https://createos.example ",
          apiKey: "key",
          rootfs: " debian:13 ",
          rootfsByAdapter: { " adapter-a ": "ubuntu:26.04" },
          egressAllowlist: ["a.example", " b.example ", "a.example"],
          region: "eu",
          reuseLease: true,
          autoPauseAfterSeconds: 90,
        }),
        refused: await Promise.all(
          [
            { apiUrl: null, shape: null },
            { apiUrl: "createos" },
            { apiUrl: "http://createos.example" },
            { shape: " ", timeoutMs: 0 },
            { shape: undefined },
            { timeoutMs: 0.5 },
            { reuseLease: "yes", autoPauseAfterSeconds: 59 },
            { autoPauseAfterSeconds: 59 },
            { rootfsByAdapter: [] },
            { rootfsByAdapter: { "adapter-a": "" } },
            { egressAllowlist: ["a\nb"], apiKey: "" },
            { apiKey: "" },
          ].map(validate),
        ),
      };
    },
    outcome: {
      small: {
        value: {
          ok: true,
          normalizedConfig: {
            apiUrl: "https://createos.example",
            apiKey: null,
            shape: "s-1vcpu-1gb",
            rootfs: null,
            rootfsByAdapter: {},
            egressAllowlist: [],
            region: null,
            timeoutMs: 20_000,
            reuseLease: false,
            autoPauseAfterSeconds: null,
          },
        },
      },
      full: {
        value: {
          ok: true,
          normalizedConfig: {
            apiUrl: "https://createos.example",
            apiKey: "key",
            shape: "s-1vcpu-1gb",
            rootfs: "debian:13",
            rootfsByAdapter: { "adapter-a": "ubuntu:26.04" },
            egressAllowlist: ["a.example", "b.example"],
            region: "eu",
            timeoutMs: 20_000,
            reuseLease: true,
            autoPauseAfterSeconds: 90,
          },
        },
      },
      refused: [
        "CreateOS requires an API URL.",
        "CreateOS API URL is invalid.",
        "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
        "shape must be a non-empty string.",
        "CreateOS requires a shape from its shape catalog.",
        "timeoutMs must be an integer between 1 and 86400000.",
        "reuseLease must be a boolean.",
        "autoPauseAfterSeconds must be an integer between 60 and 86400.",
        "rootfsByAdapter must be an object of adapter names to root filesystems.",
        "rootfsByAdapter must contain non-empty adapter and root filesystem strings.",
        "egressAllowlist must be an array of non-empty host or CIDR strings.",
        "apiKey must be a non-empty string.",
      ].map((message) => ({ value: { ok: false, errors: [message] } })),
    },
  },
  {
    name: "a lease is a running sandbox with a workspace and a marker, and records no key",
    async run(host) {
      const lease = await host.acquire();
      return {
        lease,
        status: host.status(lease),
        isMarked: (await host.read(lease, MARKER)) === lease.metadata.marker,
        hasKey: JSON.stringify(lease).includes(host.provider.apiKey),
        asked: host.asked(),
        workspace: await told(host.realizeWorkspace(lease)),
      };
    },
    outcome: {
      lease: { providerLeaseId: ID, metadata: METADATA },
      status: "running",
      isMarked: true,
      hasKey: false,
      asked: ["sandbox.create", "exec", "files.put"],
      workspace: {
        value: { cwd: "/paperclip-workspace", metadata: { provider: "createos", remoteCwd: "/paperclip-workspace" } },
      },
    },
  },
  {
    name: "image, region, egress and idle timer are what configuration and run ask for",
    config: {
      rootfs: "debian:13",
      rootfsByAdapter: { "adapter-a": "ubuntu:26.04" },
      region: "eu",
      egressAllowlist: ["*", "a.example"],
      reuseLease: true,
      autoPauseAfterSeconds: 90,
    },
    async run(host) {
      const networkEgress = { allowFqdns: [" b.example "], allowCidrs: ["10.0.0.0/8", "a.example"] };
      const executionWorkspaceSettings = { networkEgress };
      const lease = await host.acquire({ adapterType: "adapter-a", issueId: "issue", executionWorkspaceSettings });
      const { name: _name, ...body } = host.provider.requests[0]?.body ?? {};
      return { lease, body };
    },
    outcome: {
      lease: {
        providerLeaseId: ID,
        metadata: {
          ...METADATA,
          rootfs: "ubuntu:26.04",
          region: "eu",
          reuseLease: true,
          adapterType: "adapter-a",
          baseEgressAllowlist: ["*", "a.example"],
          effectiveEgressAllowlist: ["a.example", "b.example", "10.0.0.0/8"],
          autoPauseAfterSeconds: 90,
        },
      },
      body: {
        shape: "s-1vcpu-1gb",
        rootfs: "ubuntu:26.04",
        region: "eu",
        egress: ["a.example", "b.example", "10.0.0.0/8"],
        auto_pause_after_seconds: 90,
        ingress_enabled: false,
      },
    },
  },
  {
    name: "an acquisition that can't be carried out is refused before any request",
    async run(host) {
      const networkEgress = (rules: unknown) => ({ executionWorkspaceSettings: { networkEgress: rules } });
      return {
        refused: [
          await told(host.acquire({ requestedExpiresAt: "2030-01-01T00:00:00Z" })),
          await told(host.acquire(networkEgress("*"))),
          await told(host.acquire(networkEgress({ allowFqdns: [""] }))),
          await told(host.acquire({ config: { ...host.config, shape: "" } })),
        ],
        asked: host.asked(),
      };
    },
    outcome: {
      refused: [
        { error: "CreateOS does not yet support leases with a guaranteed expiration deadline." },
        { error: "networkEgress must be an object." },
        { error: "networkEgress allowlists must contain non-empty strings." },
        { error: "shape must be a non-empty string." },
      ],
      asked: [],
    },
  },
  {
    name: "a sandbox that can't be prepared is removed, or the error names it",
    async run(host) {
      const { faults } = host.provider;
      const failed = { result: { stdout: "", stderr: "", exit_code: 1 } };
      faults.add({ match: { path: "exec" }, effect: { type: "patch", set: failed } });
      const removed = await told(host.acquire());
      const asked = host.asked();
      faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 500 } });
      const left = await told(host.acquire());
      const last = host.provider.sandboxes.at(-1)?.id;
      return { removed, asked, left, isNamed: JSON.stringify(left).includes(`for sandbox ${last}.`) };
    },
    outcome: {
      removed: { error: "CreateOS workspace preparation failed; the image must provide Bash." },
      asked: ["sandbox.create", "exec", "sandbox.destroy"],
      left: {
        error: expect.stringMatching(/^CreateOS setup failed and cleanup is unconfirmed for sandbox sb-\w+\.$/),
      },
      isNamed: true,
    },
  },
  {
    name: "a probe runs a command in a sandbox of its own, and removes it whatever came of that",
    async run(host) {
      const { faults } = host.provider;
      const probe = (config = host.config) => told(host.hooks.onEnvironmentProbe({ ...host.owner(), config }));
      const invalid = await probe({ ...host.config, shape: "" });
      const works = await probe();
      const asked = host.asked();
      const failed = { result: { stdout: "", stderr: "", exit_code: 1 } };
      const isEcho = (entry: { body: unknown }) => JSON.stringify(entry.body).includes("/bin/echo");
      faults.add({ match: { path: "exec", when: isEcho }, times: 1, effect: { type: "patch", set: failed } });
      const echo = await probe();
      faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "status", status: 402 } });
      const create = await probe();
      for (const { id } of host.provider.sandboxes) await host.provider.waitForState(id, "destroyed");
      faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 500 } });
      // Which words it rejects with is not said anywhere.
      return { invalid, works, asked, echo, create, left: Object.keys(Object(await probe())) };
    },
    outcome: {
      invalid: { value: { ok: false, summary: "shape must be a non-empty string." } },
      works: { value: { ok: true, summary: expect.stringMatching(/\S/) } },
      asked: ["sandbox.create", "exec", "files.put", "exec", "sandbox.destroy"],
      echo: { value: { ok: false, summary: "CreateOS command probe failed." } },
      create: { value: { ok: false, summary: refusal(402, "sandbox lifecycle").error } },
      left: ["error"],
    },
  },
];
