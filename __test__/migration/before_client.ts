// The provider's client of the plugin of the old shape: fetch, and what can be said of its answers.
import { setTimeout as sleep } from "node:timers/promises";
import { type Config, isRecord, resolveApiKey } from "./before_config.js";
import { statusOf } from "./shared.js";

export class CreateosApiError extends Error {
  constructor(
    readonly status: number,
    operation: string,
  ) {
    super(`CreateOS request failed (HTTP ${status}) during ${operation}.`);
  }
}

export interface Sandbox {
  id: string;
  status: string;
}

const PASSING = ["creating", "pausing", "resuming", "forking"];

export class CreateosClient {
  readonly apiKey: string;

  constructor(readonly config: Config) {
    this.apiKey = resolveApiKey(config);
  }

  async request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("X-Api-Key", this.apiKey);
    const signal = init.signal ?? AbortSignal.timeout(this.config.timeoutMs);
    let response: Response;
    try {
      response = await fetch(`${this.config.apiUrl}/v1${path}`, { ...init, headers, redirect: "manual", signal });
    } catch {
      // The error of fetch names the host, so it is not passed on.
      signal.throwIfAborted();
      throw new Error("CreateOS connection failed.");
    }
    if (response.ok) return response;
    await response.body?.cancel();
    if ([301, 302, 303, 307, 308].includes(response.status)) throw new Error("CreateOS connection failed.");
    throw new CreateosApiError(response.status, operationOf(path));
  }

  async json(
    path: string,
    method = "GET",
    body: unknown = method === "POST" ? {} : undefined,
    signal?: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const init: RequestInit = { method, ...(signal && { signal }) };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      init.headers = { "Content-Type": "application/json" };
    }
    const response = await this.request(path, init);
    const envelope: unknown = await response.json().catch(() => undefined);
    if (!isRecord(envelope)) throw new Error("CreateOS returned invalid JSON.");
    if (envelope.status !== "success") throw new Error("CreateOS returned an unsuccessful response.");
    if (!isRecord(envelope.data)) throw new Error("CreateOS returned an invalid response.");
    return envelope.data;
  }

  async getSandbox(id: string, signal?: AbortSignal): Promise<Sandbox> {
    const { id: found, status } = await this.json(sandboxPath(id), "GET", undefined, signal);
    if (found === id && typeof status === "string") return { id, status };
    throw new Error("CreateOS sandbox identity or state is invalid.");
  }

  async createSandbox(body: object, signal?: AbortSignal): Promise<string> {
    const { id } = await this.json("/sandboxes", "POST", body, signal);
    sandboxPath(String(id));
    return String(id);
  }

  /** One that is gone already counts as removed. */
  async destroySandbox(id: string, signal?: AbortSignal): Promise<void> {
    await this.json(sandboxPath(id), "DELETE", undefined, signal).catch(unlessGone);
  }

  async setEgress(id: string, egress: unknown[], signal?: AbortSignal): Promise<void> {
    await this.json(`${sandboxPath(id)}/egress`, "PUT", { egress }, signal);
  }

  /** Looks until a sandbox is in no passing state any more. */
  async settled(id: string, signal: AbortSignal): Promise<Sandbox> {
    for (let wait = 25; ; wait = Math.min(2 * wait, 250)) {
      const sandbox = await this.getSandbox(id, signal);
      if (!PASSING.includes(sandbox.status)) return sandbox;
      await pause(wait, signal);
    }
  }

  async transition(id: string, desired: "running" | "paused", signal: AbortSignal): Promise<void> {
    const [action, from] = desired === "running" ? ["resume", ["paused", "error"]] : ["pause", ["running"]];
    let accepted: string | undefined;
    for (let wait = 25; ; wait = Math.min(2 * wait, 250)) {
      const { status } = await this.getSandbox(id, signal);
      if (status === desired) return;
      if (accepted === undefined && from.includes(status)) {
        // A conflict says that the state has moved on since it was read.
        const submitted = this.json(`${sandboxPath(id)}/${action}`, "POST", {}, signal).then(() => status);
        accepted = await submitted.catch((error) => (statusOf(error) === 409 ? undefined : Promise.reject(error)));
      } else if (status !== accepted && !PASSING.includes(status)) {
        throw new Error(`CreateOS sandbox did not reach ${desired}.`);
      }
      await pause(wait, signal);
    }
  }

  async upload(id: string, path: string, content: string | Uint8Array, signal?: AbortSignal): Promise<void> {
    const headers = { "Content-Type": "application/octet-stream" };
    const body = Buffer.from(content);
    const url = `${sandboxPath(id)}/files?path=${encodeURIComponent(path)}`;
    const response = await this.request(url, { method: "PUT", headers, body, ...(signal && { signal }) });
    await response.body?.cancel();
  }
}

/** A sandbox that is not there any more is what was wanted. */
export function unlessGone(error: unknown): void {
  if (statusOf(error) !== 404) throw error;
}

function sandboxPath(id: string): string {
  if (/^[A-Za-z0-9_-]{1,200}$/.test(id)) return `/sandboxes/${id}`;
  throw new Error("CreateOS returned an invalid resource ID.");
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

function operationOf(path: string): string {
  const known: [RegExp, string][] = [
    [/\/files\?/, "file transfer"],
    [/\/stdin\/close/, "stdin close"],
    [/\/connect\?/, "output connection"],
    [/\/processes$/, "process creation"],
    [/\/processes\//, "process cleanup"],
    [/\/exec$/, "workspace command"],
  ];
  return known.find(([pattern]) => pattern.test(path))?.[1] ?? "sandbox lifecycle";
}
