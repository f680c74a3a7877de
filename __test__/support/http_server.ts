/// <reference types="node" />
// Small loopback servers, each for one odd behaviour on the wire. What they saw is an event to wait for.
import http from "node:http";
import net from "node:net";
import { onTestFinished } from "vitest";

/** How long anything in these tests may take unless it says otherwise, in ms. */
export const PATIENCE_MS = 10_000;

export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** The promise, or a failure that says what was waited for in vain. */
export async function within<T>(promise: PromiseLike<T>, what: string, ms = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${ms} ms in vain: ${what}.`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the promise settles within so many milliseconds: for what must NOT happen. */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the promise rejects with, untouched, whatever it is. Resolving is a failure. */
export async function reasonOf(promise: Promise<unknown>, ms = PATIENCE_MS): Promise<unknown> {
  const outcome = await within(
    promise.then(
      (value) => ({ value }),
      (reason: unknown) => ({ reason }),
    ),
    "a rejection",
    ms,
  );
  if (!("reason" in outcome)) throw new Error("It resolved, and should have been rejected.");
  return outcome.reason;
}

/** A list that can be waited on. */
export class Watched<T> {
  readonly all: T[] = [];
  #waiting = new Set<() => void>();

  push(item: T): void {
    this.all.push(item);
    for (const look of this.#waiting) look();
  }

  get length(): number {
    return this.all.length;
  }

  /** The item at a place, once it is there. */
  async at(place: number, what = `item ${place}`, ms = PATIENCE_MS): Promise<T> {
    await this.count(place + 1, what, ms);
    return this.all[place] as T;
  }

  /** Resolves once so many are there. */
  async count(wanted: number, what = `${wanted} items`, ms = PATIENCE_MS): Promise<void> {
    if (this.all.length >= wanted) return;
    const there = deferred();
    const look = () => {
      if (this.all.length >= wanted) there.resolve();
    };
    this.#waiting.add(look);
    try {
      await within(there.promise, `${what} (${this.all.length} so far)`, ms);
    } finally {
      this.#waiting.delete(look);
    }
  }
}

export interface Seen {
  method: string;
  /** As on the wire. */
  url: string;
  headers: http.IncomingHttpHeaders;
  rawHeaders: string[];
  /** performance.now() when the head was there. */
  at: number;
  /** The whole body; rejects when it broke off. */
  body: Promise<Buffer>;
  /** Resolves when the answer is through or the connection is gone: true for the latter. */
  closed: Promise<boolean>;
  req: http.IncomingMessage;
  res: http.ServerResponse;
}

export interface HttpServer {
  origin: string;
  port: number;
  requests: Watched<Seen>;
  connections: Watched<net.Socket>;
  server: http.Server;
  close(): Promise<void>;
}

/** Puts an end to a server and everything connected to it. */
function closing(server: net.Server, sockets: Iterable<net.Socket>): () => Promise<void> {
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
}

/** Starts an HTTP server on 127.0.0.1 and closes it after the test. `drain: false`: the handler reads the body itself. */
export async function serve(
  handler: (req: http.IncomingMessage, res: http.ServerResponse, seen: Seen) => unknown,
  { drain = true, keep = false }: { drain?: boolean; keep?: boolean } = {},
): Promise<HttpServer> {
  const requests = new Watched<Seen>();
  const connections = new Watched<net.Socket>();
  const server = http.createServer({ keepAliveTimeout: 60_000, requestTimeout: 0 }, (req, res) => {
    const body = deferred<Buffer>();
    const closed = deferred<boolean>();
    req.on("error", body.reject);
    res.on("error", () => {});
    res.once("close", () => closed.resolve(!res.writableFinished));
    if (drain) {
      const pieces: Buffer[] = [];
      req.on("data", (piece: Buffer) => pieces.push(piece));
      req.once("end", () => body.resolve(Buffer.concat(pieces)));
      req.once("close", () => body.reject(new Error("The request broke off.")));
    }
    const { method = "", url = "", headers, rawHeaders } = req;
    const at = performance.now();
    const seen: Seen = { method, url, headers, rawHeaders, at, body: body.promise, closed: closed.promise, req, res };
    requests.push(seen);
    handler(req, res, seen);
  });
  server.on("connection", (socket) => {
    socket.on("error", () => {});
    connections.push(socket);
  });
  server.on("clientError", (_, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = closing(server, connections.all);
  if (!keep) onTestFinished(close);
  const { port } = server.address() as net.AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port, requests, connections, server, close };
}

export interface RawServer {
  origin: string;
  port: number;
  connections: Watched<net.Socket>;
  /** Everything that came in, of all connections. */
  received(): string;
  close(): Promise<void>;
}

/** Starts a bare TCP server on 127.0.0.1 and closes it after the test. */
export async function serveRaw(onConnection: (socket: net.Socket) => unknown): Promise<RawServer> {
  const connections = new Watched<net.Socket>();
  const pieces: Buffer[] = [];
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.on("data", (piece: Buffer) => pieces.push(piece));
    connections.push(socket);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = closing(server, connections.all);
  onTestFinished(close);
  const { port } = server.address() as net.AddressInfo;
  const received = () => Buffer.concat(pieces).toString("latin1");
  return { origin: `http://127.0.0.1:${port}`, port, connections, received, close };
}

/** A raw server that answers each request head with exactly these bytes, then ends the connection or keeps it. */
export function serveBytes(answer: string | Buffer, then: "end" | "keep" | "reset" = "end"): Promise<RawServer> {
  return serveRaw((socket) => {
    let text = "";
    socket.on("data", (piece: Buffer) => {
      text += piece.toString("latin1");
      if (!text.includes("\r\n\r\n")) return;
      text = "";
      socket.write(answer, () => {
        if (then === "end") socket.end();
        if (then === "reset") socket.resetAndDestroy();
      });
    });
  });
}

/** A port on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** A success envelope. */
export function success(data: unknown = {}): string {
  return JSON.stringify({ status: "success", data });
}

/** Answers with a success envelope. */
export function answer(res: http.ServerResponse, data: unknown = {}, status = 200): void {
  const text = success(data);
  res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  res.end(text);
}

/** Resolves once the answer takes more, or its connection is gone. */
export function drained(res: http.ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (res.destroyed || !res.writableNeedDrain) return resolve();
    const go = () => {
      res.off("drain", go).off("close", go);
      resolve();
    };
    res.on("drain", go).on("close", go);
  });
}
