// A provider of one process each, whose every answer is scripted, byte by byte where it is the output stream.
import type http from "node:http";
import { expect } from "vitest";
import { executor, expectNoSecret, isUnconfirmed, type Executor, type Piece, type Result } from "./executes.js";
import { outcomeOf, type Outcome } from "./failed_requests.js";
import { answer, serve, type HttpServer } from "./http_server.js";
import { leaseParams } from "./leases.js";
import { turns, within } from "./waiting.js";

/** One output stream. */
export interface Stream {
  /** Default 200. A stream of another status is no stream. */
  status?: number;
  headers?: Record<string, string>;
  /** Each on its way before the next is sent. */
  chunks?: readonly (string | Buffer)[];
  /** What comes then: its proper end, the default; the connection breaks; nothing, until the client leaves. */
  last?: "end" | "cut" | "stay";
}

/** An answer: its data, or a status that is a failure. */
export type Reply = { data: object } | number;

/** What the provider does for one command, by its number among the requests of its kind. Default: as it should. */
export interface Script {
  streams: (after: number, nth: number) => Stream;
  wait?: (nth: number) => Reply;
  end?: (nth: number) => Reply;
  close?: (nth: number) => Reply;
  /** Whether the process goes on until it is ended. Default: it is over once its input is closed. */
  goesOn?: boolean;
}

/** What a command came to, and what it asked for. */
export interface Run {
  outcome: Outcome<Result>;
  pieces: Piece[];
  /** From which sequence on each stream was asked for. */
  afters: number[];
  closes: number;
  waits: number;
  ends: number;
}

interface Playing {
  script: Script;
  afters: number[];
  closes: number;
  waits: number;
  ends: number;
  isOver: boolean;
}

/** What a caller sets besides. */
export interface Asking {
  timeoutMs?: number;
  onOutput?: (...piece: Piece) => unknown;
  signal?: AbortSignal;
}

export class ScriptedProvider {
  readonly apiKey = "skp_scripted_canary";
  readonly driver: Executor = executor();
  #server: HttpServer;
  #playing = new Map<string, Playing>();
  #count = 0;

  private constructor(server: HttpServer) {
    this.#server = server;
  }

  /** Starts one, which ends with its test. */
  static async start(context: { onTestFinished(end: () => Promise<void>): void }): Promise<ScriptedProvider> {
    let provider: ScriptedProvider | undefined;
    const server = await serve((req, res) => provider?.handle(req, res), { keep: true });
    context.onTestFinished(() => server.close());
    provider = new ScriptedProvider(server);
    return provider;
  }

  get url(): string {
    return this.#server.origin;
  }

  /** Runs a command under a lease of its own, and looks whether it is accounted for. */
  async run(script: Script, { onOutput, signal, ...asked }: Asking = {}): Promise<Run> {
    this.#count += 1;
    const id = `sb-scripted-${this.#count}`;
    const playing: Playing = { script, afters: [], closes: 0, waits: 0, ends: 0, isOver: false };
    this.#playing.set(id, playing);
    const { url, apiKey, driver } = this;
    const changes = { id, config: { apiUrl: url, apiKey, reuseLease: true }, metadata: { apiUrl: url } };
    const params = { ...leaseParams(changes), command: "scripted", ...asked };
    const pieces: Piece[] = [];
    const give = (...piece: Piece) => {
      pieces.push(piece);
      return onOutput?.(...piece);
    };
    const outcome = await within(outcomeOf(driver.execute(params, give, { signal })), 20_000, "The command");
    const given = pieces.length;
    const state = driver.leaseState(params, id);
    // Never neither: the process is over, or the driver says that it may not be.
    expect({ isOver: playing.isOver || state === "unconfirmed", state }).toEqual({
      isOver: true,
      state: isUnconfirmed(outcome.reason) ? "unconfirmed" : "open",
    });
    if (outcome.reason !== undefined) expectNoSecret(outcome.reason, { provider: this, id });
    await turns(2);
    expect(pieces.length).toBe(given);
    const { afters, closes, waits, ends } = playing;
    return { outcome, pieces, afters, closes, waits, ends };
  }

  handle(req: http.IncomingMessage, res: http.ServerResponse): void {
    const url = new URL(req.url ?? "", this.url);
    const [, , , id = "", , process, ...verb] = url.pathname.split("/");
    const playing = this.#playing.get(id);
    const route = `${req.method} ${verb.join("/")}`;
    if (playing === undefined || req.headers["x-api-key"] !== this.apiKey) return refuse(res, 401);
    if (process === undefined) return answer(res, this.#view(playing), 201);
    const { script } = playing;
    switch (route) {
      case "GET connect": {
        const after = Number(url.searchParams.get("after"));
        playing.afters.push(after);
        void send(res, script.streams(after, playing.afters.length));
        return;
      }
      case "POST stdin/close":
        playing.closes += 1;
        playing.isOver ||= script.goesOn !== true;
        return reply(res, script.close?.(playing.closes) ?? { data: { ok: true } });
      case "GET wait":
        playing.waits += 1;
        return reply(res, script.wait?.(playing.waits) ?? { data: this.#view(playing) });
      case "DELETE ":
        playing.ends += 1;
        playing.isOver = true;
        return reply(res, script.end?.(playing.ends) ?? { data: this.#view(playing) });
      default:
        return refuse(res, 404);
    }
  }

  #view({ isOver }: Playing): object {
    return { process_id: "proc_scripted", leader_exited: isOver, tree_exited: isOver, state: isOver ? "exited" : "running" };
  }
}

function reply(res: http.ServerResponse, what: Reply): void {
  if (typeof what === "number") refuse(res, what);
  else answer(res, what.data);
}

function refuse(res: http.ServerResponse, status: number): void {
  res.writeHead(status, { "content-type": "application/json" });
  res.end(JSON.stringify({ status: "fail", data: { reason: "injected" } }));
}

async function send(res: http.ServerResponse, { status = 200, headers, chunks = [], last = "end" }: Stream): Promise<void> {
  res.writeHead(status, { "content-type": "application/x-ndjson", ...headers });
  res.flushHeaders();
  for (const chunk of chunks) {
    if (res.destroyed) return;
    if (chunk.length > 0) await new Promise<void>((resolve) => res.write(chunk, () => resolve()));
  }
  if (last === "end") res.end();
  if (last === "cut") res.socket?.destroy();
}
