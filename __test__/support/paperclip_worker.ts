// The host's side of a plugin worker: starts it as Paperclip's server does, and speaks to it in the SDK's own messages.
import { fork, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import {
  createErrorResponse,
  createRequest,
  type HostToWorkerMethodName,
  type HostToWorkerMethods,
  isJsonRpcErrorResponse,
  isJsonRpcNotification,
  isJsonRpcRequest,
  isJsonRpcResponse,
  JSONRPC_ERROR_CODES,
  JsonRpcCallError,
  type JsonRpcId,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  parseMessage,
  type PluginEnvironmentExecuteParams,
  type PluginEnvironmentExecuteResult,
  serializeMessage,
} from "@paperclipai/plugin-sdk";
import { expect } from "vitest";
import type { InstalledPlugin } from "./paperclip_plugin.js";
import { type Deferred, deferred, within } from "./waiting.js";

type Params<M extends HostToWorkerMethodName> = HostToWorkerMethods[M][0];
type Result<M extends HostToWorkerMethodName> = HostToWorkerMethods[M][1];

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** What a host has heard of a command. */
export interface Execution {
  /** Its output, piece by piece as it came. */
  readonly pieces: [stream: string, chunk: string][];
  /** Resolves once its output has said something. */
  said(text: string): Promise<void>;
  /** Its result, or a JsonRpcCallError. */
  readonly answer: Promise<PluginEnvironmentExecuteResult>;
}

interface Call {
  method: HostToWorkerMethodName;
  response: Deferred<JsonRpcResponse>;
  invocation: string;
  /** Takes a piece of its output. */
  hear?: (stream: string, chunk: string) => void;
}

/** Where a test says what to do when it has ended: its context. */
interface TestContext {
  onTestFinished(end: () => Promise<void>): void;
}

/** A worker process. It does not outlive its test, at whose end it must not have let any key out. */
export class PluginWorker {
  readonly #child: ChildProcess;
  readonly #calls = new Map<JsonRpcId, Call>();
  readonly #keys = new Set<string>();
  /** Everything it wrote but the answers to validateConfig, which hold the key they were asked about. */
  readonly #written: string[] = [];
  /** The methods that were answered, in the order of the answers. */
  readonly answered: HostToWorkerMethodName[] = [];
  /** What it told the host unasked, but for the output of commands that run: its log. */
  readonly notifications: JsonRpcNotification[] = [];
  /** What it asked of the host. */
  readonly requests: JsonRpcRequest[] = [];
  /** Methods it says it serves, once it has been initialised. */
  supportedMethods: string[] = [];
  readonly exited: Promise<Exit>;
  #nextId = 1;

  private constructor(entry: string) {
    // Of its own environment the host hands on no more than this.
    const { HOME = "", PATH = "" } = process.env;
    const env = { HOME, PATH, NODE_ENV: "production", TZ: "UTC", PAPERCLIP_PLUGIN_ID: "plugin" };
    this.#child = fork(entry, [], { stdio: ["pipe", "pipe", "pipe", "ipc"], execArgv: [], env });
    const { stdout, stderr, stdin } = this.#child;
    if (stdin === null || stdout === null || stderr === null) throw new Error("The worker has no pipes.");
    // A worker that was killed does not read any more.
    stdin.on("error", () => {});
    createInterface({ input: stdout }).on("line", (line) => this.#read(line));
    createInterface({ input: stderr }).on("line", (line) => this.#written.push(line));
    this.exited = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        for (const { method, response } of this.#calls.values()) {
          response.reject(new Error(`The worker ended (${signal ?? code}) before it answered ${method}.`));
        }
        this.#calls.clear();
        resolve({ code, signal });
      });
    });
  }

  /** A worker that has been initialised. */
  static async start({ worker: entry, manifest }: InstalledPlugin, context: TestContext): Promise<PluginWorker> {
    const worker = new PluginWorker(entry);
    context.onTestFinished(async () => {
      await worker.kill();
      worker.#expectNoKeys();
    });
    const instanceInfo = { instanceId: "instance", hostVersion: "1.0.0" };
    const answer = await worker.call("initialize", { manifest, config: {}, instanceInfo, apiVersion: 1 });
    expect(answer.ok).toBe(true);
    worker.supportedMethods = answer.supportedMethods ?? [];
    return worker;
  }

  /** Calls a method: its result, or a JsonRpcCallError. */
  async call<M extends HostToWorkerMethodName>(method: M, params: Params<M>, ms = 20_000): Promise<Result<M>> {
    const response = await within(this.#send(method, params), ms, method);
    if (isJsonRpcErrorResponse(response)) throw new JsonRpcCallError(response.error);
    return response.result as Result<M>;
  }

  /** What a call fails with. */
  async refusal<M extends HostToWorkerMethodName>(method: M, params: Params<M>): Promise<JsonRpcCallError> {
    const answer = await this.call(method, params).catch((error: unknown) => error);
    if (answer instanceof JsonRpcCallError) return answer;
    throw answer instanceof Error ? answer : new Error(`${method} was not refused.`);
  }

  /** Ends it as a crash does, without a word. */
  async kill(): Promise<Exit> {
    this.#child.kill("SIGKILL");
    return within(this.exited, 10_000, "The worker");
  }

  /** Runs a command. Whoever awaits its answer sees a failure. */
  execute(params: PluginEnvironmentExecuteParams): Execution {
    const pieces: Execution["pieces"] = [];
    let spoke = deferred();
    const response = this.#send("environmentExecute", params, (stream, chunk) => {
      pieces.push([stream, chunk]);
      spoke.resolve();
      spoke = deferred();
    });
    const answer = within(response, 20_000, "environmentExecute").then((message) => {
      if (isJsonRpcErrorResponse(message)) throw new JsonRpcCallError(message.error);
      return message.result as PluginEnvironmentExecuteResult;
    });
    answer.catch(() => {});
    const heard = () => pieces.map(([, chunk]) => chunk).join("");
    const said = async (text: string) => {
      while (!heard().includes(text)) await within(spoke.promise, 10_000, `"${text}"`);
    };
    return { pieces, said, answer };
  }

  #expectNoKeys(): void {
    for (const key of this.#keys) for (const line of this.#written) expect(line).not.toContain(key);
  }

  #send<M extends HostToWorkerMethodName>(
    method: M,
    params: Params<M>,
    hear?: Call["hear"],
  ): Promise<JsonRpcResponse> {
    const id = this.#nextId++;
    const { companyId, config } = params as { companyId?: string; config?: { apiKey?: unknown } };
    if (typeof config?.apiKey === "string") this.#keys.add(config.apiKey);
    const invocation = `invocation-${id}`;
    const call: Call = { method, response: deferred(), invocation, ...(hear && { hear }) };
    // Whoever awaits the call sees it; a test that kills the worker need not.
    call.response.promise.catch(() => {});
    this.#calls.set(id, call);
    const scope = companyId === undefined ? {} : { companyId };
    this.#write({ ...createRequest(method, params, id), paperclipInvocation: { id: invocation, scope } });
    return call.response.promise;
  }

  /**
   * Whether it is the output of a command that runs: a host finds that by the invocation, and drops what comes after the
   * answer, what is empty, and what is longer than a million characters.
   */
  #heard(message: JsonRpcNotification & { paperclipInvocationId?: string }): boolean {
    if (message.method !== "execute.log") return false;
    const { stream, chunk } = message.params as { stream: string; chunk: string };
    const call = [...this.#calls.values()].find(({ invocation }) => invocation === message.paperclipInvocationId);
    if (call?.hear === undefined || chunk.length === 0 || chunk.length > 1_000_000) return false;
    call.hear(stream, chunk);
    return true;
  }

  #write(message: object): void {
    this.#child.stdin?.write(serializeMessage(message as Parameters<typeof serializeMessage>[0]));
  }

  #read(line: string): void {
    const message: unknown = parseMessage(line);
    if (isJsonRpcResponse(message)) {
      const call = this.#calls.get(message.id ?? "");
      if (call === undefined) throw new Error(`An answer to nothing: ${line}`);
      this.#calls.delete(message.id ?? "");
      if (call.method !== "environmentValidateConfig") this.#written.push(line);
      this.answered.push(call.method);
      call.response.resolve(message);
      return;
    }
    this.#written.push(line);
    if (isJsonRpcNotification(message) && !this.#heard(message)) this.notifications.push(message);
    if (!isJsonRpcRequest(message)) return;
    this.requests.push(message);
    this.#write(createErrorResponse(message.id, JSONRPC_ERROR_CODES.METHOD_NOT_FOUND, "The host has no such method."));
  }
}
