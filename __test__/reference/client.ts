// Section 6 of the specification, as far as releasing a lease needs it, on the platform's fetch and without pacing.
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "./config.js";
import { CreateosApiError, CreateosError, type Fields, isObject } from "./errors.js";

const REDIRECTS = [301, 302, 303, 307, 308];
const MAX_JSON_BYTES = 64 * 1024 * 1024;
const PASSING_STATES = ["creating", "pausing", "resuming", "forking"];
const LOOK_AFTER_MS = [25, 50, 100, 200];
const THEN_LOOK_AFTER_MS = 250;

export class CreateosClient {
  constructor(
    readonly config: Config,
    readonly apiKey: string,
  ) {}

  async getSandbox(id: string, signal?: AbortSignal): Promise<Fields & { id: string; status: string }> {
    const sandbox = await this.#json(sandboxPath(id), "GET", undefined, signal);
    if (sandbox.id !== id || typeof sandbox.status !== "string") {
      throw untrusted("CreateOS sandbox identity or state is invalid.");
    }
    return sandbox as Fields & { id: string; status: string };
  }

  async destroySandbox(id: string, signal?: AbortSignal): Promise<void> {
    await this.#json(sandboxPath(id), "DELETE", undefined, signal);
  }

  async transition(id: string, desired: "running" | "paused", signal: AbortSignal): Promise<void> {
    const [action, from] = desired === "running" ? ["resume", ["paused", "error"]] : ["pause", ["running"]];
    let acceptedIn: string | null = null;
    for (let look = 0; ; look += 1) {
      const { status } = await this.getSandbox(id, signal);
      if (status === desired) return;
      if (acceptedIn === null && from.includes(status)) {
        if (await this.#submit(`${sandboxPath(id)}/${action}`, signal)) acceptedIn = status;
      } else if (status !== acceptedIn && !PASSING_STATES.includes(status)) {
        throw new CreateosError("ERR_CREATEOS_STATE", `CreateOS sandbox did not reach ${desired}.`);
      }
      await sleep(LOOK_AFTER_MS[look] ?? THEN_LOOK_AFTER_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  // 409 says that the state has moved on since it was read, which the next look will show.
  async #submit(path: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#json(path, "POST", {}, signal);
      return true;
    } catch (error) {
      if (isStatus(error, 409)) return false;
      throw error;
    }
  }

  async #json(path: string, method: string, body?: object, signal?: AbortSignal): Promise<Fields> {
    if (signal === undefined) {
      return within(this.config.timeoutMs, (deadline) => this.#json(path, method, body, deadline));
    }
    const response = await this.#send(path, method, body, signal);
    if (!response.ok) {
      await response.body?.cancel();
      throw new CreateosApiError(response.status);
    }
    const envelope = await readJson(response, signal);
    if (envelope.status !== "success") throw untrusted("CreateOS returned an unsuccessful response.");
    if (!isObject(envelope.data) || Array.isArray(envelope.data)) {
      throw untrusted("CreateOS returned an invalid response.");
    }
    return envelope.data;
  }

  async #send(path: string, method: string, body: object | undefined, signal: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.config.apiUrl}/v1${path}`, {
        method,
        headers: { "X-Api-Key": this.apiKey, ...(body && { "Content-Type": "application/json" }) },
        ...(body && { body: JSON.stringify(body) }),
        redirect: "manual",
        signal,
      });
    } catch {
      signal.throwIfAborted();
      throw unreachable();
    }
    if (REDIRECTS.includes(response.status)) {
      await response.body?.cancel();
      throw unreachable();
    }
    return response;
  }
}

export function isStatus(error: unknown, status: number): boolean {
  return error instanceof CreateosApiError && error.status === status;
}

/** Runs something with a deadline of its own; AbortSignal.timeout loses timeouts when it is combined on Node 20. */
export async function within<T>(timeoutMs: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(timeoutReason()), timeoutMs);
  try {
    return await run(controller.signal);
  } finally {
    clearTimeout(timer);
  }
}

export function timeoutReason(): DOMException {
  return new DOMException("The operation was aborted due to timeout", "TimeoutError");
}

async function readJson(response: Response, signal: AbortSignal): Promise<Fields> {
  let value: unknown;
  try {
    const bytes = await response.arrayBuffer();
    if (bytes.byteLength > MAX_JSON_BYTES) throw untrusted("CreateOS returned an oversized response.");
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof CreateosError ? error : untrusted("CreateOS returned invalid JSON.");
  }
  if (!isObject(value) || Array.isArray(value)) throw untrusted("CreateOS returned invalid JSON.");
  return value;
}

function sandboxPath(id: string): string {
  if (!/^[A-Za-z0-9_-]{1,200}$/.test(id)) throw untrusted("CreateOS returned an invalid resource ID.");
  return `/sandboxes/${id}`;
}

function untrusted(message: string): CreateosError {
  return new CreateosError("ERR_CREATEOS_RESPONSE", message);
}

function unreachable(): CreateosError {
  return new CreateosError("ERR_CREATEOS_CONNECTION", "CreateOS connection failed.");
}
