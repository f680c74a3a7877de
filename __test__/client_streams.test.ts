// Section 6: an answer's body streams, in bounded memory and no faster than its reader, and ends when nobody wants it.
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { clientOf } from "./support/http_package.js";
import { answer, deferred, drained, reasonOf, serve, serveBytes, settlesWithin, within } from "./support/http_server.js";
import { MIB, nextTo, pattern, standstill, text } from "./support/http_streams.js";

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
}, 15_000);
