// A sandbox provider that answers by counting. Histories need what the full loopback provider cannot give cheaply:
// thousands of sandboxes, a new origin for each history (the package paces requests per origin), answers that depend on
// how many requests came before and not on timers, and a separate course of answers for each API key, so that releases
// under two keys cannot disturb each other's order.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A status code, or a way to answer wrongly. */
export type Reply = "ok" | number | "cut" | "cutBody" | "html" | "fail" | "nullData" | "wrongId" | "noStatus" | "redirect";

export interface Course {
  initial: "running" | "paused" | "creating" | "error" | "failed";
  /** Reads that still show the old state after an accepted pause. */
  oldReads: number;
  /** Reads that show a passing state before the settled one. */
  passingReads: number;
  /** How a destroyed sandbox is read: not at all, or by its state. */
  gone: 404 | "destroyed";
  deletes: Reply[];
  reads: Reply[];
  pauses: Reply[];
}

interface Sandbox {
  course: Course;
  upcoming: string[];
  state: string;
  counts: { deletes: number; reads: number; pauses: number };
}

export class CountingProvider {
  readonly #server = createServer((request, response) => void this.#receive(request, response));
  readonly #sandboxes = new Map<string, Sandbox>();
  readonly #held = new Map<string, (() => void)[]>();
  readonly #closed = new Set<string>();
  /** Requests of each sandbox and key, in order of arrival. */
  readonly requests = new Map<string, string[]>();
  received = 0;
  onRequest: () => void = () => {};

  readonly #courses: Map<string, Course>;

  constructor(courses: Map<string, Course>) {
    this.#courses = courses;
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    // Open servers and idle connections must not keep the test process alive.
    this.#server.unref();
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Ends the connections. The server itself goes on listening, so that no later history gets the same port, whose
   * requests of the last minute would count.
   */
  finish(): void {
    this.#server.closeAllConnections();
  }

  closeGate(id: string): void {
    this.#closed.add(id);
  }

  openGate(id: string): void {
    this.#closed.delete(id);
    for (const goOn of this.#held.get(id) ?? []) goOn();
    this.#held.delete(id);
  }

  isClosed(id: string): boolean {
    return this.#closed.has(id);
  }

  heldAt(id: string): number {
    return this.#held.get(id)?.length ?? 0;
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = request.url ?? "";
    const id = url.split("/")[3] ?? "";
    const key = String(request.headers["x-api-key"]);
    const stream = `${id} ${key}`;
    this.requests.set(stream, [...(this.requests.get(stream) ?? []), `${request.method} ${url}`]);
    this.received += 1;
    request.resume();
    if (this.#closed.has(id)) {
      const open = new Promise<void>((resolve) => this.#held.set(id, [...(this.#held.get(id) ?? []), resolve]));
      this.onRequest();
      await open;
    } else {
      this.onRequest();
    }
    this.#answer(request.method ?? "", url, id, this.#sandbox(id, stream), response);
  }

  #sandbox(id: string, stream: string): Sandbox | undefined {
    const course = this.#courses.get(id);
    let sandbox = this.#sandboxes.get(stream);
    if (sandbox === undefined && course !== undefined) {
      const upcoming = course.initial === "creating" ? [...Array(course.passingReads).fill("creating"), "running"] : [];
      sandbox = { course, upcoming, state: course.initial, counts: { deletes: 0, reads: 0, pauses: 0 } };
      this.#sandboxes.set(stream, sandbox);
    }
    return sandbox;
  }

  #answer(method: string, url: string, id: string, sandbox: Sandbox | undefined, response: ServerResponse): void {
    const kind = method === "DELETE" ? "deletes" : method === "GET" ? "reads" : "pauses";
    if (sandbox === undefined || (sandbox.state === "destroyed" && sandbox.course.gone === 404 && kind !== "deletes")) {
      sendJson(response, 404, { status: "fail", data: "absent" });
      return;
    }
    const reply = sandbox.course[kind][sandbox.counts[kind]++] ?? "ok";
    if (reply !== "ok") {
      sendFault(response, reply, id);
      return;
    }
    if (kind === "deletes") {
      sandbox.upcoming = [];
      sandbox.state = "destroyed";
      sendJson(response, 200, { status: "success", data: { id, status: "destroying" } });
    } else if (kind === "pauses") {
      if (sandbox.state !== "running") {
        sendJson(response, 409, { status: "fail", data: null });
        return;
      }
      const { oldReads, passingReads } = sandbox.course;
      sandbox.upcoming = [...Array(oldReads).fill("running"), ...Array(passingReads).fill("pausing"), "paused"];
      sendJson(response, 202, { status: "success", data: { id, status: "pausing" } });
    } else {
      sandbox.state = sandbox.upcoming.shift() ?? sandbox.state;
      sendJson(response, 200, { status: "success", data: { id, status: sandbox.state } });
    }
  }
}

function sendFault(response: ServerResponse, reply: Reply, id: string): void {
  if (typeof reply === "number") sendJson(response, reply, { status: "fail", data: "a body that must not be shown" });
  else if (reply === "cut") response.destroy();
  else if (reply === "cutBody") {
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": 1_000 });
    response.write('{"status":"success","data":{', () => response.destroy());
  } else if (reply === "html") response.writeHead(200, { "Content-Type": "text/html" }).end("<html>");
  else if (reply === "fail") sendJson(response, 200, { status: "fail", data: { id } });
  else if (reply === "nullData") sendJson(response, 200, { status: "success", data: null });
  else if (reply === "wrongId") sendJson(response, 200, { status: "success", data: { id: `${id}x`, status: "paused" } });
  else if (reply === "noStatus") sendJson(response, 200, { status: "success", data: { id } });
  // Whoever follows this is noticed by the second request.
  else response.writeHead(302, { Location: `/v1/sandboxes/${id}` }).end();
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}
