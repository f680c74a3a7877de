// What the host reads before it starts the worker: who this is, and how an environment is configured.
import type { JsonSchema, PaperclipPluginManifestV1 } from "@paperclipai/plugin-sdk";

/** Environments name their provider by it; a lease's metadata has the same name for its provider. */
export const DRIVER_KEY = "createos";

/** Groups fields that few need under "Advanced options". */
const advanced = (group: string) => ({ "x-paperclip-advanced": true, "x-paperclip-group": group });

/** Not blank: a field that is there has to say something. */
const text = { type: "string", pattern: "\\S" };

/** An environment's configuration. The worker checks it again, and says what is wrong in words. */
const configSchema: JsonSchema = {
  type: "object",
  required: ["apiUrl", "shape"],
  properties: {
    apiUrl: {
      ...text,
      title: "API URL",
      description: "The provider's HTTPS origin, optionally ending in /v1. Plain HTTP is allowed on loopback only.",
      default: "https://api.sb.createos.sh",
    },
    apiKey: {
      type: "string",
      // The host keeps the value as a secret, and hands it to the worker only when a hook needs it.
      format: "secret-ref",
      title: "API key",
      description:
        "Without one, the worker takes CREATEOS_API_KEY from its own environment, for the default API URL only.",
    },
    shape: {
      ...text,
      title: "Shape",
      description: "Size of the sandbox, from the provider's shape catalog, such as s-1vcpu-1gb.",
    },
    rootfs: {
      ...text,
      title: "Root filesystem",
      description: "The image of the sandbox; it must provide Bash. Default: the provider's.",
    },
    reuseLease: {
      type: "boolean",
      title: "Reuse sandboxes",
      description: "Pause a sandbox at the end of a run and resume it for the next one, instead of destroying it.",
      default: false,
    },
    autoPauseAfterSeconds: {
      type: "integer",
      minimum: 60,
      maximum: 86_400,
      title: "Auto-pause after (seconds)",
      description:
        "Leave reused sandboxes running at the end of a run; the provider pauses them once idle for so long.",
      ...advanced("Lifecycle"),
    },
    timeoutMs: {
      type: "integer",
      minimum: 1,
      maximum: 86_400_000,
      title: "Timeout (milliseconds)",
      description: "Bounds an acquisition, a resume, a release or a command.",
      default: 300_000,
      ...advanced("Lifecycle"),
    },
    rootfsByAdapter: {
      type: "object",
      additionalProperties: text,
      title: "Root filesystems by adapter",
      description: "Takes precedence over the root filesystem for runs of the adapters named here.",
      ...advanced("Sandbox"),
    },
    region: {
      ...text,
      title: "Region",
      description: "Default: the provider's.",
      ...advanced("Sandbox"),
    },
    egressAllowlist: {
      type: "array",
      items: text,
      title: "Egress allowlist",
      description: "Hosts and CIDRs that sandboxes may reach. Default: all.",
      ...advanced("Network"),
    },
  },
};

const manifest: PaperclipPluginManifestV1 = {
  id: "createos-lease.paperclip-plugin-example",
  apiVersion: 1,
  version: "0.1.0",
  displayName: "CreateOS sandboxes (example)",
  description: "Runs environments in CreateOS cloud sandboxes, on the lease engine createos-lease.",
  author: "createos-lease",
  categories: ["automation"],
  capabilities: ["environment.drivers.register"],
  entrypoints: { worker: "./dist/worker.js" },
  environmentDrivers: [
    {
      driverKey: DRIVER_KEY,
      kind: "sandbox_provider",
      displayName: "CreateOS",
      description: "A cloud sandbox for each lease; paused between runs where leases are reused.",
      // Hosts keep a lease across runs only where a provider declares it and its worker has resume, release and
      // destroy. The flag is for hosts that do not know the capabilities below it.
      supportsReusableLeases: true,
      // That commands run here the host reads off the worker, which has a hook for them; this tells how. They run side by
      // side, and their output comes while they do, but each is a process of its own: no session is kept. A host takes
      // what is left out here from the worker's hooks, so what it would infer from them is denied in words; the rest is
      // denied by being left out.
      sandboxCapabilities: {
        reusableLeases: true,
        nativeSyncIn: false,
        nativeSyncOut: false,
        persistentProcessSessions: false,
        independentControlCommands: true,
        incrementalSessionOutput: true,
      },
      configSchema,
    },
  ],
};

export default manifest;
