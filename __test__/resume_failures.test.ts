// A failure that proves nothing surfaces, and leaves the lease as it was (specification, section 8).
import { describe, expect, test } from "vitest";
import { expectCreateosError, expectTimedOut } from "./support/errors.js";
import { looseDriver } from "./support/package.js";
import { provide } from "./support/providers.js";
import { expectResumed, persist, resume, type Effect } from "./support/resumes.js";
import { rejection } from "./support/waiting.js";

type Expected = Parameters<typeof expectCreateosError>[1];

const connection: Expected = { code: "ERR_CREATEOS_CONNECTION", message: "CreateOS connection failed." };
const response = (message: string): Expected => ({ code: "ERR_CREATEOS_RESPONSE", message });
const api = (status: number, operation: string): Expected => ({
  name: "CreateosApiError",
  code: "ERR_CREATEOS_API",
  message: `CreateOS request failed (HTTP ${status}) during ${operation}.`,
  extra: { status, operation },
});
const noJson = response("CreateOS returned invalid JSON.");
const noData = response("CreateOS returned an invalid response.");
const noSuccess = response("CreateOS returned an unsuccessful response.");

/** The operation by which an error names each route. */
const OPERATIONS = {
  "sandbox.get": "sandbox lifecycle",
  "egress.put": "sandbox lifecycle",
  "sandbox.resume": "sandbox lifecycle",
  exec: "workspace command",
  "process.list": "process creation",
};

type Route = keyof typeof OPERATIONS;
const ROUTES = Object.keys(OPERATIONS) as Route[];

/** What can go wrong with any of them, and what surfaces. */
const anywhere: [string, Effect, (route: Route) => Expected][] = [
  ["HTTP 500", { type: "status", status: 500 }, (route) => api(500, OPERATIONS[route])],
  ["HTTP 500, though done", { type: "status", status: 500, when: "after" }, (route) => api(500, OPERATIONS[route])],
  ["a gateway's HTTP 502", { type: "status", status: 502, body: "<html>" }, (route) => api(502, OPERATIONS[route])],
  ["HTTP 401", { type: "status", status: 401 }, (route) => api(401, OPERATIONS[route])],
  ["HTTP 402", { type: "status", status: 402 }, (route) => api(402, OPERATIONS[route])],
  ["HTTP 403", { type: "status", status: 403 }, (route) => api(403, OPERATIONS[route])],
  ["HTTP 410, which is not 404", { type: "status", status: 410 }, (route) => api(410, OPERATIONS[route])],
  ["a lost request", { type: "lostRequest" }, () => connection],
  ["a lost reply", { type: "lostReply" }, () => connection],
  ["a redirect", { type: "redirect", location: "/elsewhere" }, () => connection],
  ["invalid JSON", { type: "invalidJson" }, () => noJson],
  ["a refusal under HTTP 200", { type: "envelope", variant: "fail" }, () => noSuccess],
  ["an error under HTTP 200", { type: "envelope", variant: "error" }, () => noSuccess],
];

describe.each(ROUTES)("%s", (route) => {
  test.concurrent.for(anywhere)("%s", async ([_name, effect, expected], context) => {
    await surfaces(route, effect, expected(route), context);
  });
});

const particular: [string, Route, Effect, Expected][] = [
  ["another sandbox", "sandbox.get", { type: "wrongId" }, response("CreateOS sandbox identity or state is invalid.")],
  [
    "no state",
    "sandbox.get",
    { type: "patch", omit: ["status"] },
    response("CreateOS sandbox identity or state is invalid."),
  ],
  ["nothing where data has to be", "sandbox.get", { type: "envelope", variant: "noContent" }, noJson],
  ["an array for a sandbox", "sandbox.get", { type: "envelope", variant: "arrayData" }, noData],
  [
    "a state that nobody knows",
    "sandbox.get",
    { type: "patch", set: { status: "hibernated" } },
    { code: "ERR_CREATEOS_STATE", message: "CreateOS sandbox did not reach running." },
  ],
  ["no result", "exec", { type: "patch", omit: ["result"] }, noData],
  ["a result that is none", "exec", { type: "patch", set: { result: "done" } }, noData],
  ["no list", "process.list", { type: "patch", omit: ["processes"] }, noData],
  ["a list that is none", "process.list", { type: "patch", set: { processes: { 0: {} } } }, noData],
  ["a row that is none", "process.list", { type: "patch", set: { processes: ["process"] } }, noData],
  ["a row that is null", "process.list", { type: "patch", set: { processes: [null] } }, noData],
  ["a row that is an array", "process.list", { type: "patch", set: { processes: [[]] } }, noData],
];
test.concurrent.for(particular)("%s, by %s", async ([_name, route, effect, expected], context) => {
  await surfaces(route, effect, expected, context);
});

/** Resumes under a fault, whose error surfaces, and then without it. */
async function surfaces(
  route: Route,
  effect: Effect,
  expected: Expected,
  context: { onTestFinished(end: () => Promise<void>): void },
): Promise<void> {
  const provider = await provide({}, context);
  const kept = await persist(provider);
  const driver = looseDriver();
  const rule = provider.faults.add({ match: { path: route }, effect });
  expectCreateosError(await rejection(resume(kept.params(), driver)), expected);
  expect(rule.hits).toBeGreaterThan(0);
  expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  rule.remove();
  expectResumed(await resume(kept.params(), driver), kept.params());
  expect(provider.requests.map((request) => request.route)).not.toContain("sandbox.destroy");
}

test("a refusal to be asked so often is waited out (429)", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const headers = { "retry-after": "0" };
  for (const route of ROUTES)
    provider.faults.add({ match: { path: route }, times: 1, effect: { type: "status", status: 429, headers } });
  expectResumed(await resume(kept.params()), kept.params());
});

test("a body that breaks off is no answer", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  for (const route of ["sandbox.get", "exec", "process.list"]) {
    const rule = provider.faults.add({ match: { path: route }, effect: { type: "cutBody", after: 5 } });
    expectCreateosError(await rejection(resume(kept.params())), noJson);
    rule.remove();
  }
  expectResumed(await resume(kept.params()), kept.params());
});

test("a body that trickles on and on is ended by the deadline", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const stdout = kept.marker + "0".repeat(500);
  // Piece after piece comes in less than the second for which an aborted resume still waits for an answer.
  provider.faults.add({
    match: { path: "exec" },
    times: 1,
    effect: [
      { type: "patch", set: { result: { exit_code: 0, stdout } } },
      { type: "slowBody", bytes: 1, everyMs: 50 },
    ],
  });
  const began = performance.now();
  expectTimedOut(await rejection(resume(kept.params({ config: { timeoutMs: 600 } }))));
  expect(performance.now() - began).toBeLessThan(4000);
  expectResumed(await resume(kept.params()), kept.params());
});

test("nobody listens where the configuration points", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const apiUrl = "http://127.0.0.1:1";
  const params = kept.params({ config: { apiUrl }, metadata: { apiUrl } });
  expectCreateosError(await rejection(resume(params)), connection);
});

test("a key that the provider does not know proves nothing", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const refused = await rejection(resume(kept.params({ config: { apiKey: "skp_unknown" } })));
  expectCreateosError(refused, api(401, "sandbox lifecycle"));
});
