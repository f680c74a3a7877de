/**
 * Native lease engine for CreateOS cloud sandboxes.
 *
 * A *lease* is one sandbox handed to one company and environment. `track` runs work under a lease;
 * `release` stops that work, waits until it has cleaned up, and gives the sandbox back.
 *
 * "Section n" in these comments means the behaviour specification that the package implements; the
 * same sections, as plain TypeScript, are the repository's `__test__/reference/`.
 */

/**
 * A field that may hold anything: parameters come from persisted JSON. What is missing or of the
 * wrong type makes a lease "not owned" or a configuration invalid; it never crashes.
 */
type Loose<T> = T | null | undefined;

/** What the host keeps of a lease. Persist `metadata` verbatim: it proves whose lease it is. */
export interface Lease {
  /** The provider's id of the sandbox; null once there is none. */
  providerLeaseId: string | null;
  /** As `acquire` gave it. */
  metadata?: Loose<Record<string, unknown>>;
}

/** Whose call it is. */
export interface OwnerParams {
  /** The company that calls; a non-empty string. */
  companyId: string;
  /** The environment it calls for; a non-empty string. */
  environmentId: string;
  /** The environment's configuration as stored, unparsed: see {@link CreateosConfigInput}. */
  config: Loose<Record<string, unknown> | CreateosConfigInput | CreateosConfig>;
}

/** Parameters of {@link track}. Further fields are ignored. */
export interface TrackParams extends OwnerParams {
  /** The lease to work under. */
  lease: Lease;
}

/** Parameters of {@link release}. Further fields are ignored. */
export interface ReleaseParams extends OwnerParams {
  /** The lease to give back. Null, undefined or empty: there is nothing to release. */
  providerLeaseId: Loose<string>;
  /** The lease's metadata, as `acquire` gave it. */
  leaseMetadata?: Loose<Record<string, unknown>>;
}

/**
 * Parameters of {@link LeaseDriver.validateConfig} and {@link LeaseDriver.probe}. Further fields are
 * ignored.
 */
export interface ConfigParams {
  /** A configuration as it may be stored, unparsed. */
  config: Loose<Record<string, unknown> | CreateosConfigInput | CreateosConfig>;
}

/** Parameters of {@link LeaseDriver.resume}. Further fields are ignored. */
export interface ResumeParams extends OwnerParams {
  /** The lease's id, as `acquire` gave it. */
  providerLeaseId: string;
  /** The lease's metadata, as `acquire` gave it or as an older plugin recorded it. */
  leaseMetadata?: Loose<Record<string, unknown>>;
}

/** Parameters of {@link LeaseDriver.realizeWorkspace}. Further fields are ignored. */
export interface RealizeWorkspaceParams extends OwnerParams {
  /** The lease whose workspace it is. */
  lease: Lease;
}

/** A command and what it is given. Further fields are ignored. */
export interface Command {
  /** A program: a path, or a name that the sandbox's PATH leads to. No shell reads it. */
  command: string;
  /** Its arguments; it receives them byte for byte, lone surrogates as U+FFFD. */
  args?: Loose<readonly string[]>;
  /** Its folder; default: the workspace, from which a relative one is seen. */
  cwd?: Loose<string>;
  /** Variables that are added to the sandbox's own. Names match `[A-Za-z_][A-Za-z0-9_]*`. */
  env?: Loose<Record<string, string>>;
  /** What it reads on its standard input; default: nothing. */
  stdin?: Loose<string>;
  /** Milliseconds, 1 to 86,400,000; default: the configuration's `timeoutMs`. */
  timeoutMs?: Loose<number>;
}

/** Parameters of {@link LeaseDriver.execute}. Further fields are ignored. */
export interface ExecuteParams extends TrackParams, Command {}

/** Parameters of {@link execute}. Further fields are ignored. */
export interface CommandParams extends Command {
  /** The lease whose sandbox it runs in. */
  lease: { providerLeaseId: string | null };
}

/**
 * Is given a command's output while it runs: each piece once, in order, before the command's promise
 * settles. A piece is what has arrived of one stream, whole characters, at most 64 KiB of UTF-8. The
 * next one waits for a promise that it returns, and the sandbox's output for both. What it throws or
 * rejects with ends the command, and is the rejection. It is called in the asynchronous context of
 * whoever runs the command.
 */
export type OnOutput = (stream: "stdout" | "stderr", text: string) => unknown;

/** What a command gives. */
export interface ExecuteResult {
  /** Null when a signal has ended it, or its deadline. */
  exitCode: number | null;
  /** The signal that has ended it, such as `SIGKILL`. */
  signal: string | null;
  /** Its deadline has passed: it was ended, with all that it started, and the output is what there was. */
  timedOut: boolean;
  /** The last 4 Mi UTF-16 units; invalid UTF-8 as U+FFFD. */
  stdout: string;
  stderr: string;
  metadata: {
    /** The provider's id of the process; null when the deadline came before there was one. */
    processId: string | null;
    /** `stdout` or `stderr` lacks its beginning. */
    outputTruncated: boolean;
  };
}

/** Parameters of {@link LeaseDriver.acquire}. Further fields are ignored. */
export interface AcquireParams extends OwnerParams {
  /** Whose image to take from the configuration's `rootfsByAdapter`. */
  adapterType?: Loose<string>;
  /** With one of these two, a reusable lease may be left to the provider's idle timer. */
  issueId?: Loose<string>;
  executionWorkspaceId?: Loose<string>;
  /** `networkEgress.allowFqdns` and `.allowCidrs` are granted besides the configuration's list. */
  executionWorkspaceSettings?: Loose<Record<string, unknown>>;
  /** Not supported: `ERR_CREATEOS_UNSUPPORTED`. */
  requestedExpiresAt?: Loose<string>;
}

/** What a lease's metadata holds. No key is ever in it. */
export interface LeaseMetadata {
  provider: "createos";
  /** The API's origin. */
  apiUrl: string;
  companyId: string;
  environmentId: string;
  /** The workspace folder in the sandbox. */
  remoteCwd: "/paperclip-workspace";
  shellCommand: "bash";
  /** A random UUID, which the sandbox holds too: a resume compares them. */
  marker: string;
  shape: string;
  rootfs: string | null;
  region: string | null;
  reuseLease: boolean;
  adapterType: string | null;
  /** The configuration's own egress rules. */
  baseEgressAllowlist: string[];
  /** The rules the sandbox was created with; empty: everything is allowed. */
  effectiveEgressAllowlist: string[];
  /** Seconds until the provider pauses the idle sandbox; null: never. */
  autoPauseAfterSeconds: number | null;
}

/** A lease that {@link LeaseDriver.acquire} gives. */
export interface AcquiredLease {
  /** The provider's id of the sandbox. */
  providerLeaseId: string;
  /** Spread so that it fits any record. */
  metadata: LeaseMetadata & Record<string, unknown>;
}

/** What {@link LeaseDriver.resume} answers. */
export type ResumeResult = ResumedLease | ExpiredLease;

/** A lease that can be worked under again. Persist its metadata in place of the old. */
export interface ResumedLease {
  /** The provider's id of the sandbox, as before. */
  providerLeaseId: string;
  /** The lease's metadata as it was, and the mark. */
  metadata: { resumedLease: true } & Record<string, unknown>;
}

/**
 * A lease that is not to be used any more: the sandbox is gone or is not the one of the lease, or the
 * configuration has changed. The answer removes nothing: what is left, {@link LeaseDriver.destroy}
 * removes, with the old id and metadata.
 */
export interface ExpiredLease {
  providerLeaseId: null;
  metadata: { expired: true };
}

/** What {@link LeaseDriver.validateConfig} answers. */
export type ConfigValidation =
  | {
      ok: true;
      /** As {@link parseConfig} gives it, absent fields null; it holds the key that the configuration holds. */
      normalizedConfig: CreateosConfig & Record<string, unknown>;
    }
  | {
      ok: false;
      /** The message of the first check that failed (section 2). */
      errors: [string];
    };

/** What {@link LeaseDriver.probe} answers. */
export interface ProbeResult {
  /** Whether a sandbox could be created and a command run in it. */
  ok: boolean;
  /** In words, for a person; when it failed, the failure's message. */
  summary: string;
}

/** What {@link LeaseDriver.realizeWorkspace} answers. */
export interface RealizedWorkspace {
  /** The workspace folder in the sandbox. */
  cwd: "/paperclip-workspace";
  metadata: { provider: "createos"; remoteCwd: "/paperclip-workspace" };
}

/** A configuration as it may be stored (section 2). */
export interface CreateosConfigInput {
  /** An HTTPS origin, optionally ending in /v1; HTTP on loopback only. Required. */
  apiUrl: string;
  /** A shape of the provider's catalog. Required. */
  shape: string;
  /** Default: the environment variable CREATEOS_API_KEY, for the provider's own origin only. */
  apiKey?: Loose<string>;
  /** The image; default: the provider's. */
  rootfs?: Loose<string>;
  /** Images by adapter. */
  rootfsByAdapter?: Loose<Record<string, string>>;
  /** Hosts and CIDRs that sandboxes may reach; default: all. */
  egressAllowlist?: Loose<readonly string[]>;
  region?: Loose<string>;
  /** Milliseconds, 1 to 86,400,000; default 300,000. */
  timeoutMs?: Loose<number>;
  /** Pause sandboxes on release instead of destroying them; default false. */
  reuseLease?: Loose<boolean>;
  /** Seconds, 60 to 86,400: the provider pauses idle sandboxes. Default: release pauses them. */
  autoPauseAfterSeconds?: Loose<number>;
}

/** A parsed configuration (section 2). */
export interface CreateosConfig {
  /** The origin, without /v1. */
  apiUrl: string;
  apiKey: string | null;
  shape: string;
  rootfs: string | null;
  rootfsByAdapter: Record<string, string>;
  egressAllowlist: string[];
  region: string | null;
  /** Milliseconds. */
  timeoutMs: number;
  reuseLease: boolean;
  /** Seconds; null: off. */
  autoPauseAfterSeconds: number | null;
}

/** Options of a tracked call. */
export interface TrackOptions {
  /** Milliseconds, 1 to 86,400,000; default: the configuration's `timeoutMs`. */
  timeoutMs?: Loose<number>;
  /** Aborts the call too, with its own reason. */
  signal?: Loose<AbortSignal>;
}

/**
 * The work of a tracked call. The signal is aborted by a release or shutdown (`AbortError`), by the
 * deadline (`TimeoutError`) or by the caller's own signal (its reason), whichever comes first. The
 * client stays usable afterwards: clean-up runs on it.
 */
export type Work<T> = (client: CreateosClient, signal: AbortSignal) => T | PromiseLike<T>;

/**
 * Runs `work` under a lease (section 4). When all checks hold it is called before `track` returns, and
 * what it returns or throws settles the promise: the same value, or the same reason. An abort only
 * tells `work`: the promise never settles before `work` does, so pass the signal on.
 *
 * @param options A timeout in milliseconds, or {@link TrackOptions}.
 * @throws {CreateosError} `ERR_CREATEOS_LEASE_MISMATCH`, `ERR_CREATEOS_CONFIG`,
 * `ERR_CREATEOS_API_KEY`, `ERR_CREATEOS_LEASE_CLOSING`, `ERR_CREATEOS_TIMEOUT_INVALID`, in the order
 * of the checks; a TypeError for a `work` or `signal` that is none. A signal that is aborted already
 * rejects with its reason, and `work` is not called.
 */
export function track<T>(
  params: TrackParams,
  work: Work<T>,
  options?: Loose<number | TrackOptions>,
): Promise<Awaited<T>>;

/**
 * Runs a command in a sandbox (section 9): for a plugin that calls {@link track} itself, with the client
 * and the signal that its work is given. {@link LeaseDriver.execute} does both.
 *
 * What the signal's abort means is told from its reason: a release or shutdown rejects with
 * `ERR_CREATEOS_CANCELLED`, the deadline of a tracked call gives a result with `timedOut`, and any other
 * signal's reason is the rejection. In each case the process and all that it started are ended first,
 * else the rejection is a {@link CreateosCleanupError}, and the lease has to be destroyed.
 *
 * @param signal Without one, and without `params.timeoutMs`, the configured timeout ends the command.
 * @throws {CreateosError} `ERR_CREATEOS_RESPONSE` for a lease id that is none, `ERR_CREATEOS_COMMAND`,
 * `ERR_CREATEOS_TIMEOUT_INVALID`, all before any request; `ERR_CREATEOS_CANCELLED`,
 * `ERR_CREATEOS_OUTPUT`, `ERR_CREATEOS_CLEANUP_UNCONFIRMED`, and what the provider's requests fail with;
 * a TypeError for a client, signal or `onOutput` that is none.
 */
export function execute(
  client: CreateosClient,
  params: CommandParams,
  signal?: Loose<AbortSignal>,
  onOutput?: Loose<OnOutput>,
): Promise<ExecuteResult>;

/** Options of {@link release}. */
export interface ReleaseOptions {
  /**
   * Wait until the provider shows what has become of the sandbox, and give a receipt; default false: a
   * removal counts once the provider has accepted it.
   */
  confirm?: Loose<boolean>;
}

/** The provider has shown that nothing runs in the sandbox any more. */
export interface TerminationReceipt {
  /** The provider's id of the sandbox. */
  providerLeaseId: string;
  /** `destroyed`: it is destroyed or gone. `stopped`: it is paused. */
  state: "stopped" | "destroyed";
}

/**
 * Gives a lease back (section 5): aborts its calls, waits until each has settled, bounded by twice the
 * longest `config.timeoutMs` among them and 5 s, then destroys the sandbox, or pauses it when the
 * configuration reuses leases and `destroy` is not true.
 *
 * With `confirm` a removed sandbox is looked at until the provider shows it destroyed or gone, within
 * `config.timeoutMs`, and the promise gives a receipt. It gives none where nothing has ended (no lease id,
 * or a sandbox that is left running for the provider to pause), nor where the provider knows no such
 * sandbox from the start (HTTP 404): it is gone, or it is another account's.
 *
 * @throws {CreateosError} `ERR_CREATEOS_LEASE_MISMATCH`, `ERR_CREATEOS_CONFIG`,
 * `ERR_CREATEOS_API_KEY`, `ERR_CREATEOS_RELEASE_IN_PROGRESS`, `ERR_CREATEOS_CLEANUP_UNCONFIRMED`,
 * and what the provider's requests fail with; a DOMException `TimeoutError` when they take longer than
 * `config.timeoutMs`. A failed release may be tried again.
 */
export function release(
  params: ReleaseParams,
  destroy: Loose<boolean>,
  options: { confirm: true },
): Promise<TerminationReceipt | undefined>;
export function release(
  params: ReleaseParams,
  destroy?: Loose<boolean>,
  options?: Loose<{ confirm?: Loose<false> }>,
): Promise<void>;
export function release(
  params: ReleaseParams,
  destroy?: Loose<boolean>,
  options?: Loose<ReleaseOptions>,
): Promise<TerminationReceipt | undefined>;

/**
 * Refuses new calls, aborts all, and resolves when they have settled (each scope within its own
 * bound) and no release is under way. May be repeated; release still works afterwards.
 */
export function shutdown(): Promise<void>;

/** What a lease's scope is in. */
export type LeaseState = "open" | "closing" | "unconfirmed" | "shutdown";

/**
 * The state of a lease as the driver knows it. Asks nobody.
 *
 * @throws {CreateosError} for an invalid configuration or a missing key; a TypeError for ids that
 * are no non-empty strings.
 */
export function leaseState(params: OwnerParams, providerLeaseId: string): LeaseState;

/** Options of a {@link LeaseDriver}. */
export interface LeaseDriverOptions {
  /**
   * Classes whose instances count as a failed cleanup besides {@link CreateosCleanupError} and
   * classes of that name: for bundles that rename classes.
   */
  cleanupErrors?: Loose<readonly (abstract new (...args: never[]) => unknown)[]>;
}

/** Leases with a state of their own: calls, closing and unconfirmed marks. */
export class LeaseDriver {
  constructor(options?: Loose<LeaseDriverOptions>);
  /** As {@link track}. */
  track<T>(
    params: TrackParams,
    work: Work<T>,
    options?: Loose<number | TrackOptions>,
  ): Promise<Awaited<T>>;
  /** As {@link release}. */
  release(
    params: ReleaseParams,
    destroy: Loose<boolean>,
    options: { confirm: true },
  ): Promise<TerminationReceipt | undefined>;
  release(
    params: ReleaseParams,
    destroy?: Loose<boolean>,
    options?: Loose<{ confirm?: Loose<false> }>,
  ): Promise<void>;
  release(
    params: ReleaseParams,
    destroy?: Loose<boolean>,
    options?: Loose<ReleaseOptions>,
  ): Promise<TerminationReceipt | undefined>;
  /** {@link release} with `destroy`. */
  destroy(
    params: ReleaseParams,
    options: { confirm: true },
  ): Promise<TerminationReceipt | undefined>;
  destroy(
    params: ReleaseParams,
    options?: Loose<{ confirm?: Loose<false> }>,
  ): Promise<void>;
  destroy(
    params: ReleaseParams,
    options?: Loose<ReleaseOptions>,
  ): Promise<TerminationReceipt | undefined>;
  /** As {@link shutdown}; what is being acquired or probed is given up and removed. */
  shutdown(): Promise<void>;
  /** As {@link leaseState}. */
  leaseState(params: OwnerParams, providerLeaseId: string): LeaseState;
  /**
   * Checks a configuration (sections 2 and 8). Sends nothing, and does not ask for a key: that may come
   * from the environment later.
   */
  validateConfig(params: ConfigParams): Promise<ConfigValidation>;
  /**
   * Tries a configuration out (section 8): acquires a sandbox, runs a command in it, and destroys it.
   * What fails is told in the answer, a driver that is shut down included.
   *
   * @throws {CreateosError} `ERR_CREATEOS_CLEANUP_UNCONFIRMED` with `sandboxId` when the sandbox could
   * not be removed; the reason of a shutdown or of `options.signal`.
   */
  probe(params: ConfigParams, options?: Loose<LifecycleOptions>): Promise<ProbeResult>;
  /**
   * Creates a sandbox and prepares it (section 8), within the configuration's timeout. On failure
   * the sandbox is destroyed, or the error names it: `ERR_CREATEOS_CLEANUP_UNCONFIRMED` with
   * `sandboxId`. A creation that was never answered is looked for, for 2 s more, by its unique name.
   *
   * @throws {CreateosError} `ERR_CREATEOS_UNSUPPORTED`, `ERR_CREATEOS_CONFIG`,
   * `ERR_CREATEOS_API_KEY`, `ERR_CREATEOS_SETUP`, `ERR_CREATEOS_LEASE_CLOSING` after a shutdown, and
   * what the provider's requests fail with; the reason of a shutdown or of `options.signal`; a
   * TypeError for a company or environment that is no non-empty string.
   */
  acquire(params: AcquireParams, options?: Loose<LifecycleOptions>): Promise<AcquiredLease>;
  /**
   * Makes a persisted lease usable again (section 8), within the configuration's timeout: looks whether
   * it still is the lease's sandbox and fits the configuration, sets its egress rules, brings it to
   * running, and ends the commands that a crashed client of this package left running in it. It is a
   * call of the lease: {@link release} and {@link LeaseDriver.destroy} abort it and wait for it.
   *
   * @throws {CreateosError} `ERR_CREATEOS_LEASE_MISMATCH`, `ERR_CREATEOS_CONFIG`,
   * `ERR_CREATEOS_API_KEY`, `ERR_CREATEOS_LEASE_CLOSING` while the lease is closing, unconfirmed or
   * after a shutdown, `ERR_CREATEOS_CLEANUP_UNCONFIRMED` when a command could neither be ended nor its
   * sandbox destroyed, and what the provider's requests fail with, none of which proves the sandbox
   * lost; the reason of a release, shutdown, deadline or of `options.signal`.
   */
  resume(params: ResumeParams, options?: Loose<LifecycleOptions>): Promise<ResumeResult>;
  /**
   * Where the workspace of a lease is (section 8). Sends nothing.
   *
   * @throws {CreateosError} `ERR_CREATEOS_LEASE_MISMATCH`, `ERR_CREATEOS_CONFIG`.
   */
  realizeWorkspace(params: RealizeWorkspaceParams): Promise<RealizedWorkspace>;
  /**
   * Runs a command under a lease (section 9): {@link track} with {@link execute} as its work and
   * `params.timeoutMs` as its deadline. A release aborts it, and waits until the process and all that it
   * started have ended.
   *
   * @throws {CreateosError} What {@link track} refuses and what {@link execute} rejects with; the reason
   * of `options.signal`. After `ERR_CREATEOS_CLEANUP_UNCONFIRMED` the lease is unconfirmed.
   */
  execute(
    params: ExecuteParams,
    onOutput?: Loose<OnOutput>,
    options?: Loose<LifecycleOptions>,
  ): Promise<ExecuteResult>;
}

/**
 * Options of {@link LeaseDriver.acquire}, {@link LeaseDriver.resume}, {@link LeaseDriver.probe} and
 * {@link LeaseDriver.execute}.
 */
export interface LifecycleOptions {
  /** Gives it up, with its own reason. */
  signal?: Loose<AbortSignal>;
}

/** A sandbox as the provider shows it. */
export interface Sandbox {
  id: string;
  /** `creating`, `running`, `pausing`, `paused`, `resuming`, `forking`, `error`, and so on. */
  status: string;
}

/** Options of {@link CreateosClient.request}: those of fetch that apply. */
export interface RequestOptions {
  /** Default `GET`. */
  method?: string | undefined;
  headers?: RequestInit["headers"];
  /** Whatever fetch takes, streams included. A POST without one sends `{}`. */
  body?: RequestInit["body"] | AsyncIterable<Uint8Array>;
  /** Bounds the request, body included. Default: the configured timeout does. */
  signal?: AbortSignal | null | undefined;
  /** Accepted, as fetch wants it for streams. */
  duplex?: "half" | undefined;
}

/** Options of {@link CreateosClient.createSandbox}. */
export interface CreateSandboxOptions {
  rootfs?: string | null;
  /** Hosts and CIDRs; empty: all. */
  egress?: readonly string[];
  /** Seconds; null: never. */
  autoPauseAfterSeconds?: number | null;
}

/**
 * The provider, as one account sees it (section 6). Paths are relative to `<apiUrl>/v1`. Requests of
 * the whole process keep to 300 a minute for each origin. Redirects are never followed.
 *
 * Methods reject with {@link CreateosApiError} for an answer that is no success, with
 * `ERR_CREATEOS_CONNECTION` where there was no answer, with `ERR_CREATEOS_RESPONSE` for one that
 * can't be trusted, and with the signal's own reason once that is aborted.
 */
export class CreateosClient {
  /** @throws {CreateosError} `ERR_CREATEOS_CONFIG`, `ERR_CREATEOS_API_KEY`. */
  constructor(config: CreateosConfigInput | CreateosConfig);
  /** The parsed configuration, frozen. Its `apiKey` can be read but is not enumerable. */
  get config(): Readonly<CreateosConfig>;
  /** The key in use. Not enumerable. */
  get apiKey(): string;
  /** Sends a request. The Response's body fails with a TypeError when the connection breaks. */
  request(path: string, init?: RequestOptions): Promise<Response>;
  /**
   * Sends a request and gives the answer's `data`, an object. `body` is sent as JSON. `T` is what the
   * caller takes the data for; nothing checks its fields.
   */
  json<T extends object = Record<string, unknown>>(
    path: string,
    method?: string,
    body?: unknown,
    signal?: AbortSignal | null,
  ): Promise<T>;
  getSandbox(id: string, signal?: AbortSignal | null): Promise<Sandbox>;
  /** Creates a sandbox of the configured shape and region, under a name of its own. */
  createSandbox(signal?: AbortSignal | null, options?: CreateSandboxOptions): Promise<{ id: string }>;
  /** Removes a sandbox; one that is gone already (HTTP 404) counts as removed. */
  destroySandbox(id: string, signal?: AbortSignal | null): Promise<void>;
  /** Brings a sandbox to a state. @throws {CreateosError} `ERR_CREATEOS_STATE`. */
  transition(id: string, desired: "running" | "paused", signal?: AbortSignal | null): Promise<void>;
  /** Replaces a sandbox's egress rules. */
  setEgress(id: string, egress: readonly string[], signal?: AbortSignal | null): Promise<void>;
  /** Writes a file at an absolute path of the sandbox. */
  upload(
    id: string,
    path: string,
    content: string | ArrayBuffer | ArrayBufferView,
    signal?: AbortSignal | null,
  ): Promise<void>;
}

/** The stable codes of {@link CreateosError.code} (section 7). */
export type CreateosErrorCode =
  | "ERR_CREATEOS_LEASE_MISMATCH"
  | "ERR_CREATEOS_LEASE_CLOSING"
  | "ERR_CREATEOS_RELEASE_IN_PROGRESS"
  | "ERR_CREATEOS_CLEANUP_UNCONFIRMED"
  | "ERR_CREATEOS_UNSUPPORTED"
  | "ERR_CREATEOS_SETUP"
  | "ERR_CREATEOS_COMMAND"
  | "ERR_CREATEOS_OUTPUT"
  | "ERR_CREATEOS_TIMEOUT_INVALID"
  | "ERR_CREATEOS_CONFIG"
  | "ERR_CREATEOS_API_KEY"
  | "ERR_CREATEOS_API"
  | "ERR_CREATEOS_CONNECTION"
  | "ERR_CREATEOS_RESPONSE"
  | "ERR_CREATEOS_STATE"
  | "ERR_CREATEOS_CANCELLED"
  | "ERR_CREATEOS_TRANSFER";

/** The fields by which a lease is recognised. */
export type LeaseField = "providerLeaseId" | "provider" | "companyId" | "environmentId" | "apiUrl";

/** Every error of this package. Branch on `code`. */
export class CreateosError extends Error {
  constructor(message: string, code: CreateosErrorCode);
  readonly code: CreateosErrorCode;
  /** With `ERR_CREATEOS_LEASE_MISMATCH`: the fields that do not match. */
  readonly mismatches?: LeaseField[];
  /** With `ERR_CREATEOS_CONFIG`: the field at fault. */
  readonly field?: string;
  /** With `ERR_CREATEOS_API`: the HTTP status. */
  readonly status?: number;
  /** With `ERR_CREATEOS_API`: what the request was for, in a word or two. */
  readonly operation?: string | undefined;
  /** With `ERR_CREATEOS_CLEANUP_UNCONFIRMED`: the sandbox that an acquisition could not remove. */
  readonly sandboxId?: string;
}

/** The provider answered with a failure. Its body is never kept: it may echo keys or input. */
export class CreateosApiError extends CreateosError {
  constructor(status: number, operation?: string);
  readonly code: "ERR_CREATEOS_API";
  /** The HTTP status. */
  readonly status: number;
  /** What the request was for, in a word or two. */
  readonly operation: string | undefined;
}

/** Something may still run in the sandbox that nobody can vouch for. Destroy the lease. */
export class CreateosCleanupError extends CreateosError {
  constructor(message?: string);
  readonly code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED";
  /** The sandbox that an acquisition could not remove. */
  readonly sandboxId?: string;
}

/** Parses a configuration (section 2). @throws {CreateosError} `ERR_CREATEOS_CONFIG`. */
export function parseConfig(raw: unknown): CreateosConfig;

/**
 * The key that requests under a configuration carry: its own, else the environment's for the
 * provider's own origin. @throws {CreateosError} `ERR_CREATEOS_CONFIG`, `ERR_CREATEOS_API_KEY`.
 */
export function resolveApiKey(config: unknown): string;

/** The key under which a lease's calls are kept (section 4). Holds a hash of the API key. */
export function scopeKey(params: OwnerParams, providerLeaseId: string): string;

/** A lease that can be used: it has an id, and is CreateOS's. */
export interface UsableLease {
  providerLeaseId: string;
  metadata: { provider: "createos" } & Record<string, unknown>;
}

/** Whether a lease has an id and is CreateOS's. Never throws. */
export function isUsableCreateosLease(lease: unknown): lease is UsableLease;

/**
 * Whether {@link track} would take the lease for the caller's own. Never throws.
 *
 * @param apiUrl The API's origin; default: the one in `params.config`.
 */
export function canUseLease(lease: unknown, params: unknown, apiUrl?: string): boolean;

/**
 * Whether {@link release} would take the lease for the caller's own. Never throws.
 *
 * @param apiUrl The API's origin; default: the one in `params.config`.
 */
export function canRelease(params: unknown, apiUrl?: string): boolean;

/** One field of a lease that does not match. */
export interface LeaseMismatch {
  field: LeaseField;
  /** What the caller's side has. */
  expected: string | number | boolean | null | undefined;
  /** What the lease has; for a structure only its type. */
  actual: string | number | boolean | null | undefined;
}

/** Why a lease was refused, for a person to read. It never holds a key. */
export interface LeaseExplanation {
  usable: boolean;
  mismatches: LeaseMismatch[];
  /** What is wrong with the configuration or its key. */
  config?: string;
}

/**
 * Explains whose lease it is and whether the configuration can be used, all fields at once; whether a
 * lease of one's own is closing or unconfirmed tells {@link leaseState}. Takes the parameters of
 * {@link track} or of {@link release}. Never throws.
 */
export function explainLease(params: unknown): LeaseExplanation;
