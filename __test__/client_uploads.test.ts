// Section 6: a request's body may be whatever fetch takes, streams included, and goes no faster than the server takes it.
import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { expectApiError, expectConnectionFailed, expectRejection } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, deferred, reasonOf, serve, within } from "./support/http_server.js";
import { type Body, MIB, nextTo, pattern, standstill, text } from "./support/http_streams.js";

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
  test("under a signal that is aborted already cancels its source with the reason, unread", async () => {
    const server = await serve((_, res) => answer(res));
    const cancelled = deferred<unknown>();
    const body = new ReadableStream<Uint8Array>({ start: (source) => source.enqueue(pattern(10)), cancel: cancelled.resolve });
    const signal = AbortSignal.abort("never");
    await expectRejection(clientOf(server.origin).request("/up", { method: "PUT", body, signal }), "never");
    expect(server.connections.length).toBe(0);
    expect(await within(cancelled.promise, "the source's cancellation", 1_000)).toBe("never");
  });

  // fetch takes a copy within the call. The package only does so a moment later, after the caller has gone on.
  test("of bytes that change after the call sends what they were at the call", async () => {
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
