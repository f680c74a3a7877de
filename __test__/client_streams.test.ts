// Section 6: bodies stream both ways, in bounded memory and no faster than the slower side; an empty answer has a body.
import { getEventListeners } from "node:events";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createHash, randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { expectConnectionFailed, expectRejection, expectApiError } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, deferred, drained, reasonOf, serve, serveBytes, settlesWithin, success, within } from "./support/http_server.js";

const MIB = 1024 * 1024;
type Body = NonNullable<NonNullable<Parameters<ReturnType<typeof clientOf>["request"]>[1]>["body"]>;

/** Bytes that tell where they are. */
const pattern = (length: number, from = 0) => Uint8Array.from({ length }, (_, index) => (from + index) % 251);
const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
const nextTo = <T>(reader: { read(): Promise<T> } | undefined): Promise<T> =>
  within(reader?.read() ?? Promise.reject(new Error("no body")), "a piece");

/** Where something counts up, the value at which it has stood still for `ms`. */
async function standstill(count: () => number, ms = 300): Promise<number> {
  for (let last = -1; ; last = count()) {
    if (last === count()) return last;
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

describe("an upload", () => {
  const view = new Uint16Array([0x4142, 0x4344, 0x4546]).subarray(1, 2);
  const inner = new Uint8Array(Buffer.from("..inside..").buffer.slice(0));
  const bodies: [string, () => Body, string | Uint8Array, string | undefined][] = [
    ["a string", () => "é☃", "é☃", "text/plain;charset=UTF-8"],
    ["an empty string", () => "", "", "text/plain;charset=UTF-8"],
    ["a string with a lone surrogate", () => "a\ud800b", "a\ufffdb", "text/plain;charset=UTF-8"],
    ["a Uint8Array", () => pattern(300), pattern(300), undefined],
    ["a Uint8Array with an offset", () => pattern(300).subarray(7, 99), pattern(92, 7), undefined],
    ["a view of wider elements with an offset", () => view, new Uint8Array(view.buffer.slice(2, 4)), undefined],
    ["a DataView with an offset", () => new DataView(pattern(10).buffer, 2, 3), pattern(3, 2), undefined],
    ["a Buffer out of the pool", () => Buffer.from("from the pool") as unknown as Body, "from the pool", undefined],
    ["an ArrayBuffer", () => pattern(64).buffer, pattern(64), undefined],
    ["an empty view", () => inner.subarray(3, 3), "", undefined],
    ["a Blob with a type", () => new Blob(["bl", pattern(2, 111)], { type: "text/x-blob" }), "blop", "text/x-blob"],
    ["a Blob without one", () => new Blob(["blob"]), "blob", undefined],
    ["URLSearchParams", () => new URLSearchParams({ a: "1 2", b: "é&" }), "a=1+2&b=%C3%A9%26", "application/x-www-form-urlencoded;charset=UTF-8"],
    ["a ReadableStream", () => new Blob(["stream"]).stream(), "stream", undefined],
    [
      "an async iterable",
      () =>
        (async function* () {
          yield Buffer.from("one ");
          await turn();
          yield Buffer.from("two");
        })(),
      "one two",
      undefined,
    ],
    ["a Node stream as a web one", () => Readable.toWeb(Readable.from([Buffer.from("no"), Buffer.from("de")])) as Body, "node", undefined],
    [
      "a stream with an empty piece in it",
      () =>
        new ReadableStream<Uint8Array>({
          start(controller) {
            for (const piece of ["a", "", "b"]) controller.enqueue(Buffer.from(piece));
            controller.close();
          },
        }),
      "ab",
      undefined,
    ],
    ["a stream without anything", () => new ReadableStream({ start: (controller) => controller.close() }), "", undefined],
    ["another client's Response body", () => new Response("of a response").body as Body, "of a response", undefined],
  ];

  test.each(bodies)("of %s arrives byte for byte", async (_, make, expected, type) => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    await client.request("/up", { method: "PUT", body: make(), duplex: "half" });
    await client.request("/up", { method: "PUT", body: make(), headers: { "Content-Type": "x/own" } });
    const [first, second] = server.requests.all;
    const wanted = Buffer.from(expected as string).toString("hex");
    expect((await first?.body)?.toString("hex")).toBe(wanted);
    expect((await second?.body)?.toString("hex")).toBe(wanted);
    expect(first?.headers["content-type"]).toBe(type);
    expect(second?.headers["content-type"]).toBe("x/own");
    // What is known beforehand says its length, as fetch does.
    const streamed = first?.headers["transfer-encoding"] === "chunked";
    expect(streamed ? undefined : first?.headers["content-length"]).toBe(streamed ? undefined : String(wanted.length / 2));
  });

  test("of FormData arrives with its boundary", async () => {
    const server = await serve((_, res) => answer(res));
    const form = new FormData();
    form.set("field", "välue");
    form.set("file", new Blob([pattern(100)], { type: "x/y" }), "näme.bin");
    await clientOf(server.origin).request("/up", { method: "POST", body: form });
    const seen = await server.requests.at(0);
    const type = seen.headers["content-type"] ?? "";
    expect(type).toMatch(/^multipart\/form-data; boundary=/);
    const read = await new Response(new Uint8Array(await seen.body), { headers: { "content-type": type } }).formData();
    expect(read.get("field")).toBe("välue");
    const file = read.get("file") as File;
    expect([file.name, file.type]).toEqual(["näme.bin", "x/y"]);
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(pattern(100));
  });

  test("of a file's stream arrives whole, several MiB of it", async () => {
    const directory = await mkdtemp(path.join(tmpdir(), "client-streams-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const content = randomBytes(5 * MIB + 13);
    await writeFile(path.join(directory, "file"), content);
    const server = await serve((_, res) => answer(res));
    const body = Readable.toWeb(createReadStream(path.join(directory, "file"))) as Body;
    await clientOf(server.origin).request("/up", { method: "PUT", body, duplex: "half" });
    expect((await (await server.requests.at(0)).body).equals(content)).toBe(true);
  });

  test("begins before its source has ended: the first piece arrives while the second is not there yet", async () => {
    const first = deferred();
    const second = deferred();
    const server = await serve(
      (req, res) => {
        req.once("data", () => first.resolve());
        req.on("end", () => answer(res));
      },
      { drain: false },
    );
    async function* source() {
      yield Buffer.from("first");
      await second.promise;
      yield Buffer.from("second");
    }
    const call = clientOf(server.origin).request("/up", { method: "PUT", body: source(), duplex: "half" });
    await within(first.promise, "the first piece");
    second.resolve();
    expect((await within(call, "the answer")).status).toBe(200);
  });

  test("is held back by a server that does not read, and goes on when it does", async () => {
    const total = 192 * MIB;
    const readOn = deferred();
    const hash = createHash("sha256");
    const server = await serve(
      async (req, res) => {
        await readOn.promise;
        for await (const piece of req) hash.update(piece as Buffer);
        answer(res);
      },
      { drain: false },
    );
    const piece = pattern(256 * 1024);
    const wanted = createHash("sha256");
    let given = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (given === total) return controller.close();
          wanted.update(piece);
          given += piece.length;
          controller.enqueue(piece.slice());
        },
      },
      { highWaterMark: 0 },
    );
    const before = process.memoryUsage().rss;
    const call = clientOf(server.origin, { timeoutMs: 60_000 }).request("/up", { method: "PUT", body, duplex: "half" });
    await server.requests.at(0);
    const held = await standstill(() => given);
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(32 * MIB);
    readOn.resolve();
    expect((await within(call, "the answer", 25_000)).status).toBe(200);
    expect(hash.digest("hex")).toBe(wanted.digest("hex"));
    expect(process.memoryUsage().rss - before).toBeLessThan(120 * MIB);
  });

  test.each<[string, (fail: Error) => Body]>([
    [
      "a stream",
      (fail) => {
        let pulls = 0;
        return new ReadableStream<Uint8Array>({
          pull(controller) {
            pulls += 1;
            if (pulls > 3) controller.error(fail);
            else controller.enqueue(pattern(1000));
          },
        });
      },
    ],
    [
      "an iterable",
      async function* (fail) {
        yield pattern(1000);
        throw fail;
      },
    ],
    ["a Node stream", (fail) => {
      const readable = Readable.from([pattern(1000), pattern(10)], { highWaterMark: 1 });
      readable.once("data", () => readable.destroy(fail));
      return Readable.toWeb(readable) as Body;
    }],
  ])("of %s that fails midway is a failed connection, and never looks whole to the server", async (_, make) => {
    const server = await serve((_, res, seen) => void seen.body.then(() => answer(res), () => {}));
    const body = make(new Error("secret-source-failure"));
    const call = clientOf(server.origin).request("/up", { method: "PUT", body, duplex: "half" });
    expectConnectionFailed(await reasonOf(call), "secret-source-failure");
    if (server.requests.length > 0) expect(await reasonOf((await server.requests.at(0)).body)).toBeInstanceOf(Error);
  });

  test("of pieces that are no bytes is refused, and cancels the source", async () => {
    const server = await serve((_, res, seen) => void seen.body.then(() => answer(res), () => {}));
    const cancelled = deferred<unknown>();
    const body = new ReadableStream({ pull: (controller) => controller.enqueue("text"), cancel: cancelled.resolve });
    expectConnectionFailed(await reasonOf(clientOf(server.origin).request("/up", { method: "PUT", body })));
    expect(await within(cancelled.promise, "the source's cancellation")).toBeInstanceOf(TypeError);
  });

  test("of a stream that is locked or was read is a TypeError, without a request", async () => {
    const server = await serve((_, res) => answer(res));
    const locked = new Blob(["x"]).stream();
    locked.getReader();
    const used = new Response("x");
    await used.text();
    for (const body of [locked, used.body as Body]) {
      expect(await reasonOf(clientOf(server.origin).request("/up", { method: "PUT", body }))).toBeInstanceOf(TypeError);
    }
    expect(server.connections.length).toBe(0);
  });

  test("aborted midway ends with the reason, cancels the source with it, and the connection", async () => {
    const server = await serve(() => {});
    const controller = new AbortController();
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({
      // One piece, then silence: the source itself has nothing to notice.
      start: (source) => source.enqueue(pattern(10)),
      cancel: cancelled.resolve,
    });
    const call = clientOf(server.origin).request("/up", { method: "PUT", body, duplex: "half", signal: controller.signal });
    const seen = await server.requests.at(0);
    const reason = { mine: true };
    controller.abort(reason);
    await expectRejection(call, reason);
    expect(await within(cancelled.promise, "the source's cancellation")).toBe(reason);
    expect(await within(seen.closed, "the connection's end")).toBe(true);
    expect(await reasonOf(seen.body)).toBeInstanceOf(Error);
  });

  test("aborted midway returns an iterable, whose clean-up runs", async () => {
    const server = await serve(() => {});
    const controller = new AbortController();
    const cleaned = deferred();
    async function* source() {
      try {
        for (;;) {
          yield pattern(10);
          await turn();
        }
      } finally {
        cleaned.resolve();
      }
    }
    const call = clientOf(server.origin).request("/up", { method: "PUT", body: source(), signal: controller.signal });
    await server.requests.at(0);
    controller.abort("stop");
    await expectRejection(call, "stop");
    await within(cleaned.promise, "the iterable's clean-up");
  });

  test("that the server breaks off cancels the source", async () => {
    const server = await serve((req) => req.once("data", () => req.socket.destroy()), { drain: false });
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({ start: (source) => source.enqueue(pattern(10)), cancel: cancelled.resolve });
    expectConnectionFailed(await reasonOf(clientOf(server.origin).request("/up", { method: "PUT", body })));
    await within(cancelled.promise, "the source's cancellation");
  });

  test("that is refused early ends with the status, and cancels the source", async () => {
    const server = await serve((_, res) => res.writeHead(413, { connection: "close" }).end(), { drain: false });
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({ start: (source) => source.enqueue(pattern(10)), cancel: cancelled.resolve });
    const call = clientOf(server.origin).request("/sandboxes/sb-1/files?path=/x", { method: "PUT", body });
    expectApiError(await reasonOf(call), 413, "file transfer");
    await within(cancelled.promise, "the source's cancellation");
  });

  test("goes on behind an early answer: both directions at once", async () => {
    const server = await serve(
      (req, res) => {
        res.writeHead(200);
        req.on("data", (piece: Buffer) => res.write(piece.toString().toUpperCase()));
        req.on("end", () => res.end());
      },
      { drain: false },
    );
    let source!: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (given) => void (source = given) });
    const call = clientOf(server.origin).request("/echo", { method: "POST", body, duplex: "half" });
    source.enqueue(Buffer.from("one"));
    const reader = (await within(call, "the head")).body?.getReader();
    expect(text((await nextTo(reader)).value)).toBe("ONE");
    source.enqueue(Buffer.from("two"));
    expect(text((await nextTo(reader)).value)).toBe("TWO");
    source.close();
    expect((await nextTo(reader)).done).toBe(true);
  });

  test("behind an early answer is aborted too, and its source is cancelled", async () => {
    const server = await serve((_, res) => void (res.writeHead(200), res.write("early")));
    const controller = new AbortController();
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({
      // A silent source is only noticed to be unwanted with its next piece, as with fetch.
      pull: async (source) => {
        await turn();
        source.enqueue(pattern(64 * 1024));
      },
      cancel: cancelled.resolve,
    });
    const init = { method: "PUT", body, signal: controller.signal };
    const response = await within(clientOf(server.origin).request("/up", init), "the head");
    controller.abort("stop");
    await expectRejection(response.text(), "stop");
    await within(cancelled.promise, "the source's cancellation");
    expect(await within((await server.requests.at(0)).closed, "the connection's end")).toBe(true);
  });

  // fetch cancels its source here. The package leaves it alone, so that a file's stream keeps its descriptor.
  test.fails("under a signal that is aborted already cancels its source with the reason, unread", async () => {
    const server = await serve((_, res) => answer(res));
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({ start: (source) => source.enqueue(pattern(10)), cancel: cancelled.resolve });
    const signal = AbortSignal.abort("never");
    await expectRejection(clientOf(server.origin).request("/up", { method: "PUT", body, signal }), "never");
    expect(server.connections.length).toBe(0);
    expect(await within(cancelled.promise, "the source's cancellation", 1_000)).toBe("never");
  });

  // fetch takes a copy within the call. The package only does so a moment later, after the caller has gone on.
  test.fails("of bytes that change after the call sends what they were at the call", async () => {
    const server = await serve((_, res) => answer(res));
    const bytes = new Uint8Array(Buffer.from("before"));
    const call = clientOf(server.origin).request("/up", { method: "PUT", body: bytes });
    bytes.set(Buffer.from("behind"));
    await call;
    expect((await (await server.requests.at(0)).body).toString()).toBe("before");
  });

  test("with client.upload of bytes that change after the call sends what they were", async () => {
    const server = await serve((_, res) => answer(res));
    const bytes = new Uint8Array(Buffer.from("before"));
    const call = clientOf(server.origin).upload("sb-1", "/x", bytes);
    bytes.set(Buffer.from("behind"));
    await call;
    expect((await (await server.requests.at(0)).body).toString()).toBe("before");
  });

  test("of a path that leads elsewhere cancels its source", async () => {
    const server = await serve((_, res) => answer(res));
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({ start: (source) => source.enqueue(pattern(10)), cancel: cancelled.resolve });
    expectConnectionFailed(await reasonOf(clientOf(server.origin).request("/../up", { method: "PUT", body })));
    await within(cancelled.promise, "the source's cancellation");
  });

  test("client.upload sends strings and bytes to the file's path", async () => {
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    const odd = "/tmp/ä b/?&#%+=\\..";
    await client.upload("sb-1", odd, "é");
    await client.upload("sb-1", "/x", pattern(9).subarray(2, 5));
    await client.upload("sb-1", "/y", pattern(4).buffer);
    await client.upload("sb-1", "/z", "");
    const seen = await Promise.all(
      server.requests.all.map(async (one) => [one.method, one.headers["content-type"], (await one.body).toString("hex")]),
    );
    const octets = "application/octet-stream";
    expect(seen).toEqual([
      ["PUT", octets, "c3a9"],
      ["PUT", octets, "020304"],
      ["PUT", octets, "00010203"],
      ["PUT", octets, ""],
    ]);
    const urls = server.requests.all.map(({ url }) => new URL(url, server.origin));
    expect(urls.map(({ pathname }) => pathname)).toEqual(Array(4).fill("/v1/sandboxes/sb-1/files"));
    expect(urls.map(({ searchParams }) => [...searchParams])).toEqual([odd, "/x", "/y", "/z"].map((one) => [["path", one]]));
  });
});

describe("a download", () => {
  /** Sends pieces as long as the client takes them; tells how many bytes left. */
  async function endless(total = Infinity) {
    const state = { sent: 0, closed: deferred() };
    const server = await serve(async (_, res) => {
      res.once("close", () => state.closed.resolve());
      res.writeHead(200);
      const piece = Buffer.alloc(256 * 1024, "x");
      while (state.sent < total && !res.destroyed) {
        state.sent += piece.length;
        if (!res.write(piece)) await drained(res);
      }
      res.end();
    });
    return { server, state };
  }

  test("is not read ahead: a reader that takes its time stops the server, and memory stays flat", async () => {
    const { server, state } = await endless(256 * MIB);
    const before = process.memoryUsage().rss;
    const response = await clientOf(server.origin, { timeoutMs: 60_000 }).request("/down");
    const held = await standstill(() => state.sent);
    expect(held).toBeLessThan(32 * MIB);
    let read = 0;
    let peak = 0;
    for await (const piece of response.body ?? []) {
      read += piece.byteLength;
      peak = Math.max(peak, process.memoryUsage().rss);
    }
    expect(read).toBe(256 * MIB);
    expect(peak - before).toBeLessThan(120 * MIB);
  });

  test.each<[string, (response: Response) => Promise<unknown>]>([
    ["cancel() of an unread body", async (response) => response.body?.cancel()],
    [
      "cancel() of a reader between reads",
      async (response) => {
        const reader = response.body?.getReader();
        await reader?.read();
        await reader?.cancel("enough");
      },
    ],
    [
      "leaving a for await",
      async (response) => {
        for await (const _ of response.body ?? []) break;
      },
    ],
  ])("%s ends the connection", async (_, cancel) => {
    const { server, state } = await endless();
    const response = await clientOf(server.origin).request("/down");
    await within(cancel(response) ?? Promise.resolve(), "the cancellation");
    await within(state.closed.promise, "the connection's end");
  });

  test("cancel() while a read is pending ends both the read and the connection", async () => {
    const server = await serve((_, res) => void (res.writeHead(200), res.write("first")));
    const response = await clientOf(server.origin).request("/down");
    const reader = response.body?.getReader();
    await nextTo(reader);
    const pending = nextTo(reader);
    await reader?.cancel();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(await within((await server.requests.at(0)).closed, "the connection's end", 2_000)).toBe(true);
  });

  test("cancel() while a read is pending ends the connection with a caller's signal too", async () => {
    const server = await serve((_, res) => void (res.writeHead(200), res.write("first")));
    const { signal } = new AbortController();
    const reader = (await clientOf(server.origin).request("/down", { signal })).body?.getReader();
    await nextTo(reader);
    const pending = nextTo(reader);
    await reader?.cancel();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(await within((await server.requests.at(0)).closed, "the connection's end", 2_000)).toBe(true);
  });

  test("cancel() after an error or the end is fine", async () => {
    const whole = await (await serveWhole()).request("/x");
    await whole.text();
    await expect(whole.body?.cancel()).rejects.toBeInstanceOf(TypeError); // Locked, as fetch's.
    const broken = await serveBytes("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx");
    const reader = (await clientOf(broken.origin).request("/x")).body?.getReader();
    await nextTo(reader);
    await reasonOf(nextTo(reader));
    await expect(reader?.cancel()).rejects.toBeInstanceOf(TypeError);
  });

  async function serveWhole() {
    return clientOf((await serve((_, res) => answer(res, { a: 1 }))).origin);
  }

  test("is read piece by piece as it comes", async () => {
    const next = deferred();
    const server = await serve(async (_, res) => {
      res.writeHead(200);
      res.write("one");
      await next.promise;
      res.end("two");
    });
    const reader = (await clientOf(server.origin).request("/down")).body?.getReader();
    expect(text((await nextTo(reader)).value)).toBe("one");
    next.resolve();
    expect(text((await nextTo(reader)).value)).toBe("two");
    expect(await nextTo(reader)).toEqual({ done: true, value: undefined });
    await within(reader?.closed ?? Promise.reject(), "the end");
  });

  test("fills a reader's own buffers", async () => {
    const content = Buffer.from(pattern(100_003));
    const server = await serve((_, res) => res.end(content));
    const reader = (await clientOf(server.origin).request("/down")).body?.getReader({ mode: "byob" });
    const pieces: Buffer[] = [];
    for (;;) {
      const { done, value } = await within(reader?.read(new Uint8Array(1000)) ?? Promise.reject(), "a piece");
      if (done) break;
      expect(value.byteLength).toBeLessThanOrEqual(1000);
      pieces.push(Buffer.from(value));
    }
    expect(Buffer.concat(pieces).equals(content)).toBe(true);
  });

  test.each<[string, (response: Response) => Promise<Uint8Array>]>([
    ["arrayBuffer", async (response) => new Uint8Array(await response.arrayBuffer())],
    ["blob", async (response) => new Uint8Array(await (await response.blob()).arrayBuffer())],
    ["Readable.fromWeb", async (response) => {
      const pieces: Buffer[] = [];
      const readable = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
      for await (const piece of readable) pieces.push(piece as Buffer);
      return Buffer.concat(pieces);
    }],
    ["both branches of a tee", async (response) => {
      const [one, two] = response.body?.tee() ?? [];
      const [first, second] = await Promise.all([new Response(one).arrayBuffer(), new Response(two).arrayBuffer()]);
      expect(Buffer.from(first).equals(Buffer.from(second))).toBe(true);
      return new Uint8Array(first);
    }],
    ["a clone and the original", async (response) => {
      const clone = response.clone();
      const [first, second] = await Promise.all([response.arrayBuffer(), clone.arrayBuffer()]);
      expect(Buffer.from(first).equals(Buffer.from(second))).toBe(true);
      return new Uint8Array(first);
    }],
    ["a transform", async (response) => {
      const through = response.body?.pipeThrough(new TransformStream());
      return new Uint8Array(await new Response(through).arrayBuffer());
    }],
  ])("is whole through %s", async (_, readAll) => {
    const content = randomBytes(3 * MIB + 7);
    const server = await serve((_, res) => res.end(content));
    const found = await within(readAll(await clientOf(server.origin).request("/down")), "the content");
    expect(Buffer.from(found).equals(content)).toBe(true);
  });

  test("text() decodes across pieces, and drops a byte order mark", async () => {
    const content = Buffer.from("\ufeffäö😀".repeat(100));
    const server = await serve(async (_, res) => {
      for (const byte of content) await new Promise((resolve) => res.write(Buffer.of(byte), resolve));
      res.end();
    });
    const found = await (await clientOf(server.origin).request("/down")).text();
    expect(found).toBe(new TextDecoder().decode(content));
  });

  test("the bytes stay as they came, whatever the server says they are encoded with", async () => {
    const server = await serve((_, res) => res.writeHead(200, { "content-encoding": "gzip" }).end("not gzip"));
    const response = await clientOf(server.origin).request("/down");
    expect(await response.text()).toBe("not gzip");
    expect((await server.requests.at(0)).headers["accept-encoding"]).toBe("identity");
  });

  test("many at once do not mix", async () => {
    const server = await serve((req, res) => res.end(Buffer.alloc(MIB, req.url?.split("/")[2] ?? "")));
    const client = clientOf(server.origin);
    const names = Array.from({ length: 30 }, (_, index) => String.fromCharCode((index < 15 ? 65 : 97 - 15) + index));
    const found = await Promise.all(names.map(async (name) => (await client.request(`/${name}`)).text()));
    for (const [index, name] of names.entries()) expect(found[index] === name.repeat(MIB)).toBe(true);
  });

  test("reads that are asked for at once come in order", async () => {
    const goOn = deferred();
    const server = await serve(async (_, res) => {
      res.writeHead(200).flushHeaders();
      await goOn.promise;
      for (const word of ["one", "two", "three"]) await new Promise((resolve) => res.write(word, resolve));
      res.end();
    });
    const reader = (await clientOf(server.origin).request("/down")).body?.getReader();
    const reads = Array.from({ length: 8 }, () => nextTo(reader));
    goOn.resolve();
    const found = await within(Promise.all(reads), "the reads");
    expect(found.map(({ value }) => text(value)).join("")).toBe("onetwothree");
    expect(found.at(-1)?.done).toBe(true);
  });
});

describe("an empty answer still has a body", () => {
  test.each<[string, string, number, string]>([
    ["of length 0", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, "OK"],
    ["of no chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, "OK"],
    ["that ends with its connection", "HTTP/1.1 200 OK\r\n\r\n", 200, "OK"],
    ["204", "HTTP/1.1 204 No Content\r\n\r\n", 204, "No Content"],
    ["205", "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n", 205, "Reset Content"],
    ["202 with a phrase of its own", "HTTP/1.1 202 In a while\r\ncontent-length: 0\r\n\r\n", 202, "In a while"],
  ])("%s", async (_, bytes, status, statusText) => {
    const server = await serveBytes(bytes);
    const client = clientOf(server.origin);
    const response = await client.request("/x", { method: "POST" });
    expect(response).toBeInstanceOf(Response);
    expect([response.status, response.statusText, response.ok]).toEqual([status, statusText, true]);
    expect(response.body).toBeInstanceOf(ReadableStream);
    const reader = response.body?.getReader();
    expect(await nextTo(reader)).toEqual({ done: true, value: undefined });
    expect(await (await client.request("/x")).text()).toBe("");
    expect((await (await client.request("/x")).arrayBuffer()).byteLength).toBe(0);
    const own = (await client.request("/x")).body?.getReader({ mode: "byob" });
    expect((await within(own?.read(new Uint8Array(4)) ?? Promise.reject(), "the end")).done).toBe(true);
    await within((await client.request("/x")).body?.cancel() ?? Promise.reject(), "the cancellation");
  });

  // The platform makes no Response with a body of status 204, so the package puts the status on one of 200, and a clone
  // shows what is below.
  test.fails("whose clone has the same status", async () => {
    const server = await serveBytes("HTTP/1.1 204 No Content\r\n\r\n");
    const response = await clientOf(server.origin).request("/x");
    expect(response.clone().status).toBe(204);
  });

  test("HEAD, whatever length it announces", async () => {
    const server = await serveBytes("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n");
    const response = await clientOf(server.origin).request("/x", { method: "HEAD" });
    expect(response.headers.get("content-length")).toBe("99");
    expect(response.body).toBeInstanceOf(ReadableStream);
    expect(await within(response.text(), "the end")).toBe("");
  });
});

describe("a long-lived signal", () => {
  const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

  test("is left alone by every call that is through", async () => {
    const server = await serve((req, res) => {
      if (req.url === "/v1/error") res.writeHead(500).end();
      else if (req.url === "/v1/break") req.socket.destroy();
      else answer(res, { id: "sb-1", status: "running" });
    });
    const client = clientOf(server.origin);
    const { signal } = new AbortController();
    await client.json("/x", "GET", undefined, signal);
    await client.getSandbox("sb-1", signal);
    await client.transition("sb-1", "running", signal);
    await reasonOf(client.request("/error", { signal }));
    await reasonOf(client.request("/break", { signal }));
    await (await client.request("/x", { signal })).text();
    await (await client.request("/x", { signal })).body?.cancel();
    await reasonOf(client.getSandbox("no id!", signal));
    await reasonOf(client.request("/x", { signal, method: "PUT", body: {} as Body, headers: { "a b": "c" } }));
    expect(listeners(signal)).toBe(0);
  });

  test("gathers one listener for each Response in use, and none for those collected unread", async () => {
    const gc = globalThis.gc ?? (await collector());
    const server = await serve((_, res) => answer(res));
    const client = clientOf(server.origin);
    const { signal } = new AbortController();
    for (let round = 0; round < 20; round += 1) await client.request("/x", { signal, method: "DELETE" });
    for (let round = 0; round < 20 && listeners(signal) > 1; round += 1) {
      gc();
      await turn();
    }
    expect(listeners(signal)).toBeLessThanOrEqual(1);
  });

  // fetch lifts the limit for its signal. Here the eleventh request in flight under one signal prints a
  // MaxListenersExceededWarning, though nothing leaks.
  test.fails("takes many requests at a time without a warning", async () => {
    const warnings: string[] = [];
    const note = (warning: Error) => void warnings.push(warning.name);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const server = await serve((_, res) => answer(res));
    const { signal } = new AbortController();
    const client = clientOf(server.origin);
    await Promise.all(Array.from({ length: 12 }, () => client.json("/x", "GET", undefined, signal)));
    await turn();
    expect(listeners(signal)).toBe(0);
    expect(warnings).toEqual([]);
  });

  test("a body goes on after its Response is collected", async () => {
    const gc = globalThis.gc ?? (await collector());
    const goOn = deferred();
    const server = await serve(async (_, res) => {
      res.writeHead(200);
      res.write("one");
      await goOn.promise;
      res.end("two");
    });
    const controller = new AbortController();
    const { body } = await clientOf(server.origin).request("/x", { signal: controller.signal });
    const collect = async () => {
      for (let round = 0; round < 10; round += 1) {
        gc();
        await turn();
      }
    };
    await collect();
    const reader = body?.getReader();
    expect(text((await nextTo(reader)).value)).toBe("one");
    const pending = nextTo(reader);
    await collect();
    goOn.resolve();
    expect(text((await pending).value)).toBe("two");
    await collect();
    expect((await nextTo(reader)).done).toBe(true);
  });

  test("still ends a body whose Response is collected", async () => {
    const gc = globalThis.gc ?? (await collector());
    const server = await serve((_, res) => void (res.writeHead(200), res.write("one")));
    const controller = new AbortController();
    const { body } = await clientOf(server.origin).request("/x", { signal: controller.signal });
    const reader = body?.getReader();
    await nextTo(reader);
    for (let round = 0; round < 10; round += 1) {
      gc();
      await turn();
    }
    const pending = nextTo(reader);
    gc();
    controller.abort("stop");
    await expectRejection(pending, "stop");
  });

  test("and memory let go of a Response that nobody read, and so does its connection", async () => {
    const gc = globalThis.gc ?? (await collector());
    const server = await serve((_, res) => void (res.writeHead(200), res.write("never read")));
    let closed = false;
    await clientOf(server.origin).request("/x");
    void (await server.requests.at(0)).closed.then(() => (closed = true));
    for (let round = 0; round < 100 && !closed; round += 1) {
      gc();
      await turn();
    }
    expect(closed).toBe(true);
  });

  async function collector(): Promise<() => void> {
    const [{ setFlagsFromString }, { runInNewContext }] = await Promise.all([import("node:v8"), import("node:vm")]);
    setFlagsFromString("--expose-gc");
    return runInNewContext("gc") as () => void;
  }
});

test("a stream without any deadline of its own is not cut while it is silent", async () => {
  const goOn = deferred();
  const server = await serve(async (_, res) => {
    res.writeHead(200);
    res.write("one");
    await goOn.promise;
    res.end("two");
  });
  const { signal } = new AbortController();
  const reader = (await clientOf(server.origin, { timeoutMs: 100 }).request("/x", { signal })).body?.getReader();
  await nextTo(reader);
  const pending = nextTo(reader);
  expect(await settlesWithin(pending, 6_000)).toBe(false);
  goOn.resolve();
  expect(text((await pending).value)).toBe("two");
  expect(success()).toContain("success");
}, 15_000);
