// Everything at once: servers that do anything, callers that give up at any moment. Every call settles in one of the ways
// the specification knows, and nothing is left.
import { getEventListeners } from "node:events";
import type http from "node:http";
import { expect, test } from "vitest";
import { clientOf, CreateosError } from "./support/http_package.js";
import { answer, serve, within } from "./support/http_server.js";

/** A fixed sequence of numbers from 0 to 1: the choices are the same each time, though the moments are not. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const STOP = { stop: "the reason" };

function misbehave(random: () => number, res: http.ServerResponse): void {
  const ways: (() => void)[] = [
    () => answer(res, { a: "x".repeat(100_000) }),
    () => answer(res),
    () => void setTimeout(() => answer(res), random() * 40),
    () => res.destroy(),
    () => void res.socket?.resetAndDestroy(),
    () => res.writeHead(500).end("failed"),
    () => res.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
    () => res.writeHead(204).end(),
    () => void res.writeHead(200).write("never ends"),
    () => void res.writeHead(200).write("cut", () => res.destroy()),
    () => res.end("not json"),
    () => {},
    () => {
      res.writeHead(200);
      const drip = setInterval(() => res.write("drip"), 3);
      res.once("close", () => clearInterval(drip));
    },
  ];
  ways[Math.floor(random() * ways.length)]?.();
}

test.each([11, 12, 13, 14, 15, 16])("storm %i", async (seed) => {
  const random = numbers(seed);
  const server = await serve((_, res) => misbehave(random, res));
  const client = clientOf(server.origin, { timeoutMs: 300 });
  const common = new AbortController();
  const known = (reason: unknown) =>
    reason === STOP ||
    reason instanceof CreateosError ||
    (reason instanceof TypeError && reason.message !== "") ||
    (reason instanceof DOMException && reason.name === "TimeoutError");

  async function one(number: number): Promise<unknown> {
    const kind = Math.floor(random() * 7);
    const own = new AbortController();
    // Some share a signal, some have their own, some have none and end with the configured timeout.
    const signal = [common.signal, own.signal, null][number % 3] ?? null;
    const timer = setTimeout(() => own.abort(STOP), random() * 60);
    try {
      if (kind === 0) return await client.json(`/${number}`, "POST", { number }, signal);
      if (kind === 1) return await client.transition("sb-1", "running", signal);
      const body = kind === 2 ? new Blob(["x".repeat(200_000)]).stream() : kind === 3 ? "text" : undefined;
      const response = await client.request(`/${number}`, { method: body ? "PUT" : "GET", body, signal });
      if (kind === 4) return await response.body?.cancel("enough");
      if (kind === 5) {
        const reader = response.body?.getReader({ mode: "byob" });
        const pending = reader?.read(new Uint8Array(7));
        await reader?.cancel();
        return await pending;
      }
      return await response.text();
    } finally {
      if (number % 3 !== 1) clearTimeout(timer);
    }
  }

  const calls = Array.from({ length: 120 }, (_, number) => one(number));
  setTimeout(() => common.abort(STOP), 150);
  const outcomes = await within(Promise.allSettled(calls), "the end of the storm", 20_000);
  const unknown = outcomes.filter((outcome) => outcome.status === "rejected" && !known(outcome.reason));
  expect(unknown).toEqual([]);
  expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
  expect(getEventListeners(common.signal, "abort")).toEqual([]);
  // Whatever was still coming has been given up; the rest are idle connections.
  const open = () => server.requests.all.filter(({ res }) => !res.closed);
  await expect.poll(() => open().length, { timeout: 5_000 }).toBe(0);
});
