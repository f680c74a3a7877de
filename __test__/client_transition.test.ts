// Section 6, transition: which states submit, pass, end; how often; and when the looks come.
import { describe, expect, test } from "vitest";
import { expectApiError, expectRejection, expectResponseError, expectStateError, expectTimeout } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { answer, reasonOf, serve, settlesWithin, within } from "./support/http_server.js";

type Desired = "running" | "paused";
/** What a look finds, in turn; the last one for good. */
type Looks = string[];

interface Course {
  looks: Looks;
  /** What the submits are answered with, in turn; the last one for good. Default: 202. */
  submits?: number[];
}

async function sandbox({ looks, submits = [202] }: Course) {
  const seen: { what: string; at: number }[] = [];
  let looked = 0;
  let submitted = 0;
  const server = await serve(({ method, url }, res) => {
    const what = `${method} ${url?.replace("/v1/sandboxes/sb-1", "")}`.trim();
    seen.push({ what, at: performance.now() });
    if (method === "GET") {
      const status = looks[Math.min(looked, looks.length - 1)];
      looked += 1;
      return answer(res, { id: "sb-1", status });
    }
    const status = submits[Math.min(submitted, submits.length - 1)] ?? 202;
    submitted += 1;
    if (status < 300) answer(res, { id: "sb-1" }, status);
    else res.writeHead(status).end();
  });
  const client = clientOf(server.origin, { timeoutMs: 5_000 });
  return {
    server,
    client,
    seen,
    whats: () => seen.map(({ what }) => what),
    submits: () => seen.filter(({ what }) => what.startsWith("POST")).length,
    run: (desired: Desired, signal?: AbortSignal) => client.transition("sb-1", desired, signal),
  };
}

test.each<Desired>(["running", "paused"])("nothing is submitted when it is %s already", async (desired) => {
  const one = await sandbox({ looks: [desired] });
  await one.run(desired);
  expect(one.whats()).toEqual(["GET"]);
});

describe("is submitted once, and then looked after", () => {
  test.each<[Desired, string, string, Looks]>([
    ["running", "paused", "/resume", ["resuming", "running"]],
    ["running", "error", "/resume", ["resuming", "running"]],
    ["paused", "running", "/pause", ["pausing", "paused"]],
    // The old state may be read for a while; it is no reason to ask again.
    ["running", "paused", "/resume", ["paused", "paused", "resuming", "running"]],
    ["running", "paused", "/resume", ["resuming", "paused", "running"]],
    ["running", "error", "/resume", ["error", "error", "running"]],
    ["paused", "running", "/pause", ["running", "running", "running", "pausing", "running", "paused"]],
    ["running", "paused", "/resume", ["running"]],
  ])("to %s from %s by %s, through %j", async (desired, from, verb, rest) => {
    const one = await sandbox({ looks: [from, ...rest] });
    await within(one.run(desired), "the transition");
    expect(one.whats()).toEqual(["GET", `POST ${verb}`, ...rest.map(() => "GET")]);
  });

  test("with {} as the body", async () => {
    const one = await sandbox({ looks: ["paused", "running"] });
    await one.run("running");
    const submit = one.server.requests.all.find(({ method }) => method === "POST");
    expect((await submit?.body)?.toString()).toBe("{}");
    expect(submit?.headers["content-type"]).toBe("application/json");
  });
});

describe("passes by themselves, without a submit, the states", () => {
  test.each<[Desired, string]>(
    (["running", "paused"] as const).flatMap((desired) =>
      ["creating", "pausing", "resuming", "forking"].map((state): [Desired, string] => [desired, state]),
    ),
  )("on the way to %s: %s", async (desired, state) => {
    const one = await sandbox({ looks: [state, state, state, desired] });
    await within(one.run(desired), "the transition");
    expect(one.whats()).toEqual(["GET", "GET", "GET", "GET"]);
  });

  test("then it submits from where they end", async () => {
    const one = await sandbox({ looks: ["pausing", "paused", "resuming", "running"] });
    await within(one.run("running"), "the transition");
    expect(one.whats()).toEqual(["GET", "GET", "POST /resume", "GET", "GET"]);
  });
});

describe("does not reach", () => {
  test.each<[Desired, string]>([
    ["running", "destroying"],
    ["running", "destroyed"],
    ["running", "failed"],
    ["running", "hibernating"],
    ["running", ""],
    ["running", "Paused"],
    ["running", "RUNNING"],
    ["paused", "error"],
    ["paused", "destroying"],
    ["paused", "destroyed"],
    ["paused", "failed"],
    ["paused", "stopped"],
    ["paused", "__proto__"],
  ])("%s from %j, and asks nothing", async (desired, from) => {
    const one = await sandbox({ looks: [from] });
    expectStateError(await reasonOf(one.run(desired)), desired);
    expect(one.whats()).toEqual(["GET"]);
  });

  test.each<[Desired, Looks]>([
    // After an accepted submit: another state that would start it again is none of the old one.
    ["running", ["paused", "error"]],
    ["running", ["paused", "resuming", "error"]],
    ["running", ["error", "paused"]],
    ["running", ["paused", "destroyed"]],
    ["running", ["paused", "resuming", "failed"]],
    ["paused", ["running", "error"]],
    ["paused", ["running", "pausing", "destroying"]],
    ["paused", ["creating", "failed"]],
  ])("%s through %j, and is submitted at most once", async (desired, looks) => {
    const one = await sandbox({ looks });
    expectStateError(await reasonOf(one.run(desired)), desired);
    expect(one.submits()).toBeLessThanOrEqual(1);
    expect(one.seen.filter(({ what }) => what === "GET").length).toBe(looks.length);
  });
});

describe("HTTP 409", () => {
  test("means look again, and then done", async () => {
    const one = await sandbox({ looks: ["paused", "running"], submits: [409] });
    await within(one.run("running"), "the transition");
    expect(one.whats()).toEqual(["GET", "POST /resume", "GET"]);
  });

  test("was not accepted, so it is submitted again", async () => {
    const one = await sandbox({ looks: ["running", "running", "running", "pausing", "paused"], submits: [409, 409, 202] });
    await within(one.run("paused"), "the transition");
    expect(one.whats()).toEqual(["GET", "POST /pause", "GET", "POST /pause", "GET", "POST /pause", "GET", "GET"]);
  });

  test("and then a state from where there is no way", async () => {
    const one = await sandbox({ looks: ["paused", "destroyed"], submits: [409] });
    expectStateError(await reasonOf(one.run("running")), "running");
  });

  test("for ever ends with the deadline", async () => {
    const one = await sandbox({ looks: ["paused"], submits: [409] });
    expectTimeout(await reasonOf(clientOf(one.server.origin, { timeoutMs: 400 }).transition("sb-1", "running")));
    expect(one.submits()).toBeGreaterThan(2);
  });
});

describe("another failure of a submit surfaces at once", () => {
  test.each([400, 402, 403, 404, 410, 500, 503])("HTTP %i", async (status) => {
    const one = await sandbox({ looks: ["paused"], submits: [status] });
    expectApiError(await reasonOf(one.run("running")), status, "sandbox lifecycle");
    expect(one.whats()).toEqual(["GET", "POST /resume"]);
  });

  test("as does one of a look", async () => {
    const server = await serve((_, res) => res.writeHead(404).end());
    expectApiError(await reasonOf(clientOf(server.origin).transition("sb-1", "paused")), 404, "sandbox lifecycle");
    expect(server.requests.length).toBe(1);
  });

  test("and an answer about another sandbox", async () => {
    const server = await serve((_, res) => answer(res, { id: "sb-2", status: "paused" }));
    const message = "CreateOS sandbox identity or state is invalid.";
    expectResponseError(await reasonOf(clientOf(server.origin).transition("sb-1", "paused")), message);
  });
});

describe("the looks", () => {
  // The specification can be read as moments or as pauses: what either allows is a look no earlier than the moments and no
  // later than the pauses add up to. From the fifth on both say 250 ms.
  const MOMENTS = [25, 50, 100, 200, 450, 700, 950];
  const PAUSES = [25, 75, 175, 375, 625, 875, 1125];
  const EARLY = 4;
  const LATE = 60;
  // A busy machine delays both ends of a pause, so one quiet round is enough.
  const options = { retry: 4 };

  function expectTimes(times: number[], from: number) {
    for (const [place, at] of times.entries()) {
      expect(at - from, `look ${place + 1}`).toBeGreaterThanOrEqual((MOMENTS[place] ?? NaN) - EARLY);
      expect(at - from, `look ${place + 1}`).toBeLessThan((PAUSES[place] ?? NaN) + LATE);
    }
    for (let place = 4; place < times.length; place += 1) {
      const pause = (times[place] ?? NaN) - (times[place - 1] ?? NaN);
      expect(pause, `pause ${place + 1}`).toBeGreaterThanOrEqual(250 - 4 * EARLY);
      expect(pause, `pause ${place + 1}`).toBeLessThan(250 + LATE);
    }
  }

  test("come after 25, 50, 100, 200, then every 250 ms", options, async () => {
    const one = await sandbox({ looks: [...Array<string>(7).fill("creating"), "running"] });
    await within(one.run("running"), "the transition");
    const [first = NaN, ...later] = one.seen.map(({ at }) => at);
    expect(later.length).toBe(7);
    expectTimes(later, first);
  });

  test("do so after a submit, which follows its look at once", options, async () => {
    const one = await sandbox({ looks: ["paused", "paused", ...Array<string>(4).fill("resuming"), "running"] });
    await within(one.run("running"), "the transition");
    const [look = NaN, submit = NaN, ...later] = one.seen.map(({ at }) => at);
    expect(one.whats()[1]).toBe("POST /resume");
    expect(submit - look).toBeLessThan(LATE);
    expect(later.length).toBe(6);
    expectTimes(later, submit);
  });
});

describe("a sandbox that is stuck", () => {
  test.each<[Desired, Looks]>([
    ["running", ["resuming"]],
    ["paused", ["pausing"]],
    ["running", ["paused"]],
    ["paused", ["running"]],
    ["running", ["error"]],
  ])("on the way to %s, reading %j for ever, ends with the deadline, submitted at most once", async (desired, looks) => {
    const one = await sandbox({ looks });
    const began = performance.now();
    expectTimeout(await reasonOf(clientOf(one.server.origin, { timeoutMs: 600 }).transition("sb-1", desired)));
    expect(performance.now() - began).toBeGreaterThanOrEqual(590);
    expect(performance.now() - began).toBeLessThan(1_500);
    expect(one.submits()).toBeLessThanOrEqual(1);
    const { length } = one.seen;
    expect(await settlesWithin(one.server.requests.count(length + 1, "another look", 400), 300)).toBe(false);
  });

  test("ends with the caller's signal and its reason, in the middle of a pause, and is looked at no more", async () => {
    const one = await sandbox({ looks: ["resuming"] });
    const controller = new AbortController();
    const call = one.run("running", controller.signal);
    await one.server.requests.count(5);
    // The fifth pause is 250 ms long: this is its beginning.
    const began = performance.now();
    controller.abort("enough");
    await expectRejection(call, "enough");
    expect(performance.now() - began).toBeLessThan(150);
    const { length } = one.seen;
    expect(await settlesWithin(one.server.requests.count(length + 1, "another look", 400), 350)).toBe(false);
  });

  test("with a caller's signal outlives the configured timeout", async () => {
    const one = await sandbox({ looks: [...Array<string>(5).fill("resuming"), "running"] });
    const { signal } = new AbortController();
    await within(clientOf(one.server.origin, { timeoutMs: 20 }).transition("sb-1", "running", signal), "the transition");
  });

  test("ends with the signal in the middle of a submit", async () => {
    const server = await serve(({ method }, res) => {
      if (method === "GET") answer(res, { id: "sb-1", status: "paused" });
    });
    const controller = new AbortController();
    const call = clientOf(server.origin).transition("sb-1", "running", controller.signal);
    const submit = await server.requests.at(1);
    controller.abort("enough");
    await expectRejection(call, "enough");
    expect(await within(submit.closed, "the connection's end")).toBe(true);
  });
});

test.each(["", "Running", "destroyed", undefined, null, 1])("%j is no state to be brought to: a TypeError, and no request", async (desired) => {
  const server = await serve((_, res) => answer(res));
  const call = clientOf(server.origin).transition("sb-1", desired as Desired);
  expect(await reasonOf(call)).toBeInstanceOf(TypeError);
  expect(server.connections.length).toBe(0);
});

test("many sandboxes at once do not mix", async () => {
  const states = new Map<string, Looks>();
  const submits: string[] = [];
  const server = await serve(({ method, url = "" }, res) => {
    const [, , , id = "", verb] = url.split("/");
    if (method === "POST") submits.push(`${id} ${verb}`);
    const looks = states.get(id) ?? [];
    answer(res, { id, status: method === "GET" && looks.length > 1 ? looks.shift() : looks[0] });
  });
  const client = clientOf(server.origin);
  const all = Array.from({ length: 20 }, (_, index) => `sb-${index}`);
  for (const id of all) states.set(id, ["paused", "resuming", "resuming", "running"]);
  await within(Promise.all(all.map((id) => client.transition(id, "running"))), "the transitions");
  expect(submits.sort()).toEqual(all.map((id) => `${id} resume`).sort());
});
