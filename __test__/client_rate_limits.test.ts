// Section 6, pacing: what a 429 leads to. It was not processed, so it is sent again; when it is not, it surfaces.
import { describe, expect, test } from "vitest";
import { expectApiError, expectRejection, expectTimeout } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, deferred, type HttpServer, reasonOf, serve, settlesWithin, within } from "./support/http_server.js";

/** Refuses the first requests with these headers, in turn, and takes all later ones. */
function refusing(...refusals: (Record<string, string> | (() => Record<string, string>))[]): Promise<HttpServer> {
  let seen = 0;
  return serve((_, res) => {
    const refusal = refusals[seen];
    seen += 1;
    if (refusal === undefined) return answer(res, { id: "sb-1", status: "running" });
    res.writeHead(429, typeof refusal === "function" ? refusal() : refusal).end("secret-refusal");
  });
}

const pauses = (server: HttpServer) =>
  server.requests.all.slice(1).map(({ at }, place) => at - (server.requests.all[place]?.at ?? 0));

function expectPauses(server: HttpServer, ...wanted: number[]) {
  const found = pauses(server);
  expect(found.length).toBe(wanted.length);
  for (const [place, pause] of found.entries()) {
    expect(pause).toBeGreaterThanOrEqual((wanted[place] ?? 0) - 5);
    expect(pause).toBeLessThan((wanted[place] ?? 0) + 300);
  }
}

describe("is sent again", () => {
  test("after Retry-After seconds", async () => {
    const server = await refusing({ "retry-after": "1" });
    const response = await clientOf(server.origin).request("/x");
    expect(response.status).toBe(200);
    expectPauses(server, 1000);
  });

  test("after Retry-After seconds, as often as it takes", async () => {
    const server = await refusing({ "retry-after": "1" }, { "retry-after": "2" });
    await clientOf(server.origin).json("/x");
    expectPauses(server, 1000, 2000);
  });

  test("at the moment of an HTTP date", async () => {
    let date = 0;
    const server = await refusing(() => {
      date = Math.floor(Date.now() / 1000) * 1000 + 2000;
      return { "retry-after": new Date(date).toUTCString() };
    });
    const waited = server.requests.at(1).then(() => Date.now());
    await clientOf(server.origin).json("/x");
    expect((await waited) - date).toBeGreaterThanOrEqual(-5);
    expect((await waited) - date).toBeLessThan(300);
  });

  test.each([
    ["0", "0"],
    ["a date that has passed", "Wed, 21 Oct 2015 07:28:00 GMT"],
  ])("at once after %s", async (_, value) => {
    const server = await refusing({ "retry-after": value });
    await clientOf(server.origin).json("/x");
    expectPauses(server, 0);
  });

  test("after 1 s, then 2 s, without a Retry-After", async () => {
    const server = await refusing({}, {});
    await clientOf(server.origin).json("/x");
    expectPauses(server, 1000, 2000);
  });

  test.each(["soon", "-1", "1.5", "", "1e0", "0x1", "1 second", "Wed, 99 Foo 2015"])(
    "after 1 s with %j, which is no Retry-After",
    async (value) => {
      const server = await refusing({ "retry-after": value });
      await clientOf(server.origin).json("/x");
      expectPauses(server, 1000);
    },
  );

  test("whole: method, path, headers and body are the same each time", async () => {
    const server = await refusing({ "retry-after": "0" });
    const client = clientOf(server.origin);
    await client.request("/x?y", { method: "PATCH", body: new Blob(["blob"], { type: "x/blob" }), headers: { "x-mine": "1" } });
    const [first, second] = await Promise.all(
      server.requests.all.map(async ({ method, url, headers, body }) => [method, url, { ...headers }, (await body).toString()]),
    );
    expect(first).toEqual(["PATCH", "/v1/x?y", expect.objectContaining({ "x-mine": "1", "content-type": "x/blob" }), "blob"]);
    expect(second).toEqual(first);
  });

  test.each<[string, (server: HttpServer) => Promise<unknown>]>([
    ["json", (server) => clientOf(server.origin).json("/x", "POST", { a: 1 })],
    ["getSandbox", (server) => clientOf(server.origin).getSandbox("sb-1")],
    ["createSandbox", (server) => clientOf(server.origin).createSandbox()],
    ["destroySandbox", (server) => clientOf(server.origin).destroySandbox("sb-1")],
    ["transition", (server) => clientOf(server.origin).transition("sb-1", "running")],
    ["upload", (server) => clientOf(server.origin).upload("sb-1", "/x", "content")],
    ["setEgress", (server) => clientOf(server.origin).setEgress("sb-1", [])],
    ["request with a form", (server) => clientOf(server.origin).request("/x", { method: "POST", body: new URLSearchParams("a=1") })],
  ])("for %s", async (_, call) => {
    const server = await refusing({ "retry-after": "0" });
    await within(call(server), "the call");
    expect(server.requests.length).toBe(2);
    const [first, second] = await Promise.all(server.requests.all.map(({ body }) => body));
    expect(second?.equals(first ?? Buffer.of(1))).toBe(true);
  });

  test("and what comes then counts", async () => {
    const server = await serve((_, res) => {
      if (server.requests.length === 1) res.writeHead(429, { "retry-after": "0" }).end();
      else res.writeHead(503).end();
    });
    expectApiError(await reasonOf(clientOf(server.origin).json("/sandboxes/sb-1/exec", "POST")), 503, "workspace command");
  });
});

describe("surfaces at once", () => {
  test.each([
    ["a wait of more than 60 s", "61"],
    ["a wait beyond all numbers", "9".repeat(40)],
    ["a date more than 60 s away", new Date(Date.now() + 3_600_000).toUTCString()],
  ])("with %s", async (_, value) => {
    const server = await refusing({ "retry-after": value });
    const client = clientOf(server.origin, { timeoutMs: 86_400_000 });
    const error = await reasonOf(client.request("/sandboxes/sb-1/exec", { method: "POST" }), 2_000);
    expectApiError(error, 429, "workspace command", "secret-refusal");
    expect(server.requests.length).toBe(1);
    // Nobody else waits for that long either.
    await within(client.json("/x"), "the next request", 2_000);
  });

  test.each([["a Retry-After", { "retry-after": "1" }], ["none", {}]])(
    "when the deadline comes before the end of the wait, with %s",
    async (_, headers: Record<string, string>) => {
      const server = await refusing(headers);
      const began = performance.now();
      expectApiError(await reasonOf(clientOf(server.origin, { timeoutMs: 900 }).json("/sandboxes")), 429, "sandbox lifecycle");
      expect(performance.now() - began).toBeLessThan(600);
      expect(server.requests.length).toBe(1);
    },
  );

  test.each<[string, () => BodyInit | AsyncIterable<Uint8Array>]>([
    ["a stream", () => new Blob(["x"]).stream()],
    [
      "an iterable",
      async function* () {
        yield Buffer.from("x");
      },
    ],
  ])("with %s as the body, which can't be sent twice", async (_, body) => {
    const server = await refusing({ "retry-after": "0" });
    const init = { method: "PUT", body: body(), duplex: "half" } as const;
    const error = await reasonOf(clientOf(server.origin).request("/sandboxes/sb-1/files?path=/x", init), 2_000);
    expectApiError(error, 429, "file transfer");
    expect(server.requests.length).toBe(1);
  });
});

test("streams of the platform's own survive being refused at their end, again and again", async () => {
  // An exception out of one of them is nobody's to catch: the test runner reports it as this file's.
  const server = await serve((_, res) => res.writeHead(429, { "retry-after": "0" }).end());
  const client = clientOf(server.origin);
  async function* iterable() {
    yield Buffer.from("x");
  }
  for (let round = 0; round < 50; round += 1) {
    const bodies = [new Blob(["x"]).stream(), iterable()];
    const calls = bodies.map((body) => reasonOf(client.request("/x", { method: "PUT", body, duplex: "half" })));
    for (const error of await Promise.all(calls)) expectApiError(error, 429, "sandbox lifecycle");
  }
});

describe("aborted during the wait", () => {
  test.each<[string, Record<string, string>]>([
    ["after a Retry-After", { "retry-after": "30" }],
    ["after a Retry-After of the longest kind", { "retry-after": "60" }],
    ["after none", {}],
  ])("%s surfaces as the 429, which tells that nothing was done", async (_, headers) => {
    const server = await refusing(headers);
    const controller = new AbortController();
    const call = clientOf(server.origin).request("/sandboxes/sb-1/processes", { method: "POST", signal: controller.signal });
    const seen = await server.requests.at(0);
    await seen.closed;
    expect(await settlesWithin(call, 200)).toBe(false);
    controller.abort("enough");
    const began = performance.now();
    expectApiError(await reasonOf(call), 429, "process creation");
    expect(performance.now() - began).toBeLessThan(500);
    expect(server.requests.length).toBe(1);
  });

  test("by AbortSignal.timeout, which no one can look into: the 429 too", async () => {
    const server = await refusing({ "retry-after": "5" });
    const error = await reasonOf(clientOf(server.origin).json("/x", "POST", {}, AbortSignal.timeout(300)), 2_000);
    expectApiError(error, 429, "sandbox lifecycle");
  });

  test("but one that is sent again, and then aborted, may have been done: the reason", async () => {
    const server = await serve((_, res) => {
      if (server.requests.length === 1) res.writeHead(429, { "retry-after": "0" }).end();
    });
    const controller = new AbortController();
    const call = clientOf(server.origin).request("/x", { method: "POST", signal: controller.signal });
    await server.requests.at(1);
    controller.abort("enough");
    await expectRejection(call, "enough");
  });
});

describe("the origin's other requests", () => {
  test("wait too after a Retry-After, and then come in the order of the calls", async () => {
    const server = await refusing({ "retry-after": "1" });
    const client = clientOf(server.origin);
    const refused = client.json("/refused");
    await (await server.requests.at(0)).closed;
    // The client knows a moment later than the server; a call that is known to come after is one that waits for it.
    const known = deferred();
    setTimeout(known.resolve, 100);
    await known.promise;
    // Another client, and another account.
    const others = [client.json("/other"), clientOf(server.origin, { apiKey: "another" }).json("/other")];
    await within(Promise.all([refused, ...others]), "all of them");
    const [first, ...rest] = server.requests.all;
    expect(rest.length).toBe(3);
    for (const { at } of rest) expect(at - (first?.at ?? 0)).toBeGreaterThanOrEqual(995);
  });

  // A call of `request` takes its place in the queue a moment after the call, behind calls of `json` that come later.
  test("are served in the order of the calls, whatever kind of call", async () => {
    const server = await refusing({ "retry-after": "1" });
    const client = clientOf(server.origin);
    const refused = client.json("/refused");
    await (await server.requests.at(0)).closed;
    const known = deferred();
    setTimeout(known.resolve, 100);
    await known.promise;
    const first = client.request("/first", { method: "PUT", body: "x" });
    const later = Array.from({ length: 40 }, (_, index) => client.json(`/later/${index}`));
    await within(Promise.all([refused, first, ...later]), "all of them");
    // Those that depart together need not arrive in order; but the first of 40 does not come last.
    const place = server.requests.all.findIndex(({ url }) => url === "/v1/first");
    expect(place).toBeLessThan(30);
  });

  test("do not wait without one: it may be a quota of that request alone", async () => {
    const server = await refusing({});
    const client = clientOf(server.origin);
    const refused = client.json("/refused");
    await (await server.requests.at(0)).closed;
    const began = performance.now();
    for (let round = 0; round < 10; round += 1) await client.json("/other");
    expect(performance.now() - began).toBeLessThan(600);
    await within(refused, "the refused one");
    expect(server.requests.all.map(({ url }) => url).lastIndexOf("/v1/refused")).toBe(11);
  });

  test("of another origin do not wait", async () => {
    const [server, other] = await Promise.all([refusing({ "retry-after": "2" }), refusing()]);
    const refused = clientOf(server.origin).json("/x");
    await (await server.requests.at(0)).closed;
    await within(clientOf(other.origin).json("/x"), "the other origin's", 1_000);
    await within(refused, "the refused one");
  });

  test("may be given up while they wait: with the reason or the timeout, and unsent", async () => {
    const server = await refusing({ "retry-after": "2" });
    const refused = clientOf(server.origin).json("/refused");
    await (await server.requests.at(0)).closed;
    await new Promise((resolve) => setTimeout(resolve, 100));
    const controller = new AbortController();
    const waiting = clientOf(server.origin).request("/aborted", { method: "POST", signal: controller.signal });
    expectTimeout(await reasonOf(clientOf(server.origin, { timeoutMs: 200 }).json("/timed-out")));
    controller.abort("enough");
    await expectRejection(waiting, "enough");
    await within(refused, "the refused one");
    await clientOf(server.origin).json("/last");
    expect(server.requests.all.map(({ url }) => url)).toEqual(["/v1/refused", "/v1/refused", "/v1/last"]);
  });

  test("wait after a refused stream too, which itself surfaces", async () => {
    const server = await refusing({ "retry-after": "1" });
    const init = { method: "PUT", body: new Blob(["x"]).stream() };
    expectApiError(await reasonOf(clientOf(server.origin).request("/x", init)), 429, "sandbox lifecycle");
    await clientOf(server.origin).json("/next");
    expectPauses(server, 1000);
  });
});
