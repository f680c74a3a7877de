// Section 6: no deadline but the signal's, or the configured one, cuts a healthy stream. Kernels and libraries have some of
// their own, of 30 s and less. Takes 40 s.
import { expect, test } from "vitest";
import { clientOf } from "./support/http_package.js";
import { answer, serve, settlesWithin, within } from "./support/http_server.js";

const SILENCE_MS = 38_000;
const TEST_MS = 60_000;
const MIB = 1024 * 1024;

const pause = () => new Promise((resolve) => setTimeout(resolve, SILENCE_MS));

test("a silence of 38 s, wherever it is, ends nothing", async () => {
  // One server: the configured timeout has no say where there is a signal, and is long enough where there is none.
  const server = await serve(
    async (req, res) => {
      if (req.url === "/v1/upload") {
        // Its buffers fill up, and then nothing is taken for a long time.
        await pause();
        let read = 0;
        for await (const piece of req) read += (piece as Buffer).length;
        return answer(res, { read });
      }
      req.resume();
      if (req.url === "/v1/head") {
        await pause();
        return answer(res, { late: true });
      }
      res.writeHead(200);
      res.write("one ");
      await pause();
      res.end("two");
    },
    { drain: false },
  );
  const { signal } = new AbortController();
  const short = clientOf(server.origin, { timeoutMs: 100 });
  const long = clientOf(server.origin, { timeoutMs: 50_000 });

  let left = 64;
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left === 0) return controller.close();
      left -= 1;
      controller.enqueue(new Uint8Array(MIB));
    },
  });
  const upload = short
    .request("/upload", { method: "PUT", body: source, duplex: "half", signal })
    .then((response) => response.json() as Promise<{ data: unknown }>);
  const head = short.json("/head", "GET", undefined, signal);
  const signalled = short.request("/body", { signal }).then((response) => response.text());
  const configured = long.request("/body").then((response) => response.text());

  const all = Promise.all([upload, head, signalled, configured]);
  expect(await settlesWithin(Promise.race([upload, head, signalled, configured]), SILENCE_MS - 1_000)).toBe(false);
  expect(await within(all, "the ends", 15_000)).toEqual([
    { status: "success", data: { read: 64 * MIB } },
    { late: true },
    "one two",
    "one two",
  ]);
}, TEST_MS);
