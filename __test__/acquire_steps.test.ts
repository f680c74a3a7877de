// Whatever fails at whichever step of an acquisition: a lease comes back, or nothing is left behind, or the error names
// what may be (specification, section 8).
import { describe, expect, test } from "vitest";
import { acquire, acquireParams } from "./support/acquisitions.js";
import { expectCreateosError, expectTimedOut, type Expected } from "./support/errors.js";
import {
  NO_CONNECTION,
  NO_DATA,
  NO_ID,
  NO_IDENTITY,
  NOT_RUNNING,
  UNSUCCESSFUL,
  api,
  badAnswers,
  expectNothingBehind,
  left,
  nothingLeft,
  outcomeOf,
  refusals,
  type Effect,
  type Operation,
} from "./support/failed_requests.js";
import { provide, routesSince } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

const LOOKS = ["sandbox.list", "sandbox.list", "sandbox.list"];

/** The sandbox's first looks show it as it is while it is being created. */
function create(provider: Provider, looks: number): void {
  const effect: Effect = { type: "patch", set: { status: "creating" } };
  if (looks > 0) provider.faults.add({ match: { path: "sandbox.get" }, times: looks, effect });
}

/** The steps after the creation; a look may be the first or a later one. */
const steps: [string, string, Operation, number][] = [
  ["the first look", "sandbox.get", "sandbox lifecycle", 0],
  ["the second look, while it is created", "sandbox.get", "sandbox lifecycle", 1],
  ["the fifth look, while it is created", "sandbox.get", "sandbox lifecycle", 4],
  ["making the folders", "exec", "workspace command", 0],
  ["writing the marker", "files.put", "file transfer", 0],
];

describe.each(steps)("%s", (_step, path, operation, looks) => {
  const fail = async (context: Parameters<typeof provide>[1], effect: Effect) => {
    const provider = await provide({}, context);
    create(provider, looks);
    provider.faults.add({ match: { path }, skip: looks, times: 1, effect });
    return { provider, outcome: await outcomeOf(within(acquire(acquireParams(provider, { timeoutMs: 20_000 })))) };
  };
  const removals = (provider: Provider) =>
    routesSince(provider, 0).filter((route) => route === "sandbox.destroy" || route === "sandbox.list");

  test.concurrent.for(refusals)("%s", async ([_name, effect, expected], context) => {
    const { provider, outcome } = await fail(context, effect);
    await expectNothingBehind(provider, outcome, expected(operation));
    expect(removals(provider)).toEqual(["sandbox.destroy"]);
  });

  test.concurrent.for(badAnswers)("%s", async ([_name, effect, expected], context) => {
    const { provider, outcome } = await fail(context, effect);
    // The marker has been written once the status says so: what follows it differs from server to server.
    const isWritten = path === "files.put" && expected !== NO_CONNECTION && expected !== UNSUCCESSFUL;
    await expectNothingBehind(provider, outcome, isWritten ? "lease" : expected);
    expect(removals(provider)).toEqual(isWritten ? [] : ["sandbox.destroy"]);
  });
});

describe("a look that shows", () => {
  const shown: [string, Effect, Expected | "lease"][] = [
    ["no id", { type: "patch", omit: ["id"] }, NO_IDENTITY],
    ["no state", { type: "patch", omit: ["status"] }, NO_IDENTITY],
    ["a state that is no text", { type: "patch", set: { status: 7 } }, NO_IDENTITY],
    ["another sandbox", { type: "wrongId" }, NO_IDENTITY],
    ["a state that nobody knows", { type: "patch", set: { status: "hibernating" } }, NOT_RUNNING],
    ["its removal by somebody else", { type: "patch", set: { status: "destroying" } }, NOT_RUNNING],
    ["its end", { type: "patch", set: { status: "destroyed" } }, NOT_RUNNING],
    ["that it cannot be found", { type: "status", status: 404 }, api(404, "sandbox lifecycle")],
    // The provider resumes from there, so the sandbox is asked to.
    ["an error that has passed when it is resumed", { type: "patch", set: { status: "error" } }, "lease"],
    ["a passing state", { type: "patch", set: { status: "forking" } }, "lease"],
  ];
  const places: [string, number][] = [["at first", 0], ["while it is created", 2]];
  describe.each(places)("%s", (_place, looks) => {
    test.concurrent.for(shown)("%s", async ([_name, effect, expected], context) => {
      const provider = await provide({}, context);
      create(provider, looks);
      provider.faults.add({ match: { path: "sandbox.get" }, skip: looks, times: 1, effect });
      await expectNothingBehind(provider, await outcomeOf(acquire(acquireParams(provider))), expected);
    });
  });
});

describe("the sandbox itself", () => {
  const fates = ["fail", "crash", "delete", "pause"] as const;
  const cases = ["sandbox.get", "exec", "files.put"].flatMap((path) =>
    fates.flatMap((fate) => (["before", "after"] as const).map((when) => [fate, when, path] as const)),
  );
  // It can be resumed from there. Later, whoever is talking to it is cut off, and nobody knows what it has still done.
  const survived = new Set(["crash before sandbox.get", "pause before sandbox.get"]);
  test.concurrent.for(cases)("meets its fate (%s) %s %s", async ([fate, when, path], context) => {
    const provider = await provide({}, context);
    const run = ({ sandboxId }: { sandboxId: string | undefined }) => provider.guest[fate](sandboxId as string);
    provider.faults.add({ match: { path }, times: 1, effect: { type: "call", run, when } });
    const { value, reason } = await outcomeOf(within(acquire(acquireParams(provider))));
    expect(value !== undefined).toBe(survived.has(`${fate} ${when} ${path}`));
    if (value !== undefined) return;
    const codes = ["STATE", "API", "CONNECTION", "RESPONSE"].map((code) => `ERR_CREATEOS_${code}`);
    expect(codes).toContain((reason as { code?: string }).code);
    await nothingLeft(provider);
  });

  test.concurrent("stays in creating until the deadline", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "stuck" } });
    expectTimedOut(await rejection(acquire(acquireParams(provider, { timeoutMs: 700 }))));
    await nothingLeft(provider);
    expect(routesSince(provider, 0).filter((route) => route === "sandbox.get").length).toBeGreaterThan(3);
  });

  test.concurrent("is removed by fate while it is created", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "stuck" } });
    const acquired = rejection(acquire(acquireParams(provider)));
    const { sandboxId } = await provider.waitForRequest("sandbox.get");
    provider.guest.delete(sandboxId as string);
    expectCreateosError(await acquired, NOT_RUNNING);
    await nothingLeft(provider);
  });
});

describe("the creation", () => {
  describe("fails before it took effect", () => {
    test.concurrent.for(refusals)("%s", async ([_name, effect, expected], context) => {
      const provider = await provide({}, context);
      provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect });
      const failure = expected("sandbox lifecycle");
      expectCreateosError(await rejection(acquire(acquireParams(provider))), failure);
      // What the provider itself has refused is not looked for, but where that may say that the name is taken, once;
      // all else may have taken effect.
      const status = Number(failure.extra?.status ?? 0);
      const isRefused = status >= 400 && status < 500;
      const looks = status === 409 ? LOOKS.slice(0, 1) : isRefused ? [] : LOOKS;
      expect(routesSince(provider, 0)).toEqual(["sandbox.create", ...looks]);
      expect(provider.sandboxes).toEqual([]);
    });
  });

  describe("fails after it took effect", () => {
    const broken: [string, Effect, Expected][] = [
      ...badAnswers,
      ["a redirect", { type: "redirect", location: "/elsewhere", when: "after" }, NO_CONNECTION],
      ["no id", { type: "patch", omit: ["id"] }, NO_ID],
      ["an id that is no text", { type: "patch", set: { id: 7 } }, NO_ID],
      ["data that is null", { type: "envelope", variant: "nullData" }, NO_DATA],
      ...[500, 502, 503, 504].map((status): [string, Effect, Expected] => [
        `HTTP ${status}`,
        { type: "status", status, when: "after" },
        api(status, "sandbox lifecycle"),
      ]),
    ];
    test.concurrent.for(broken)("%s: found and removed", async ([_name, effect, expected], context) => {
      const provider = await provide({}, context);
      provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), expected);
      expect(routesSince(provider, 0)).toEqual(["sandbox.create", "sandbox.list", "sandbox.destroy"]);
      expect(provider.sandboxes).toHaveLength(1);
      await nothingLeft(provider);
    });

    test.concurrent("stuck in creating: found and removed", async (context) => {
      const provider = await provide({}, context);
      provider.faults.add({ match: { path: "sandbox.create" }, effect: [{ type: "stuck" }, { type: "lostReply" }] });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
      await nothingLeft(provider);
    });

    // These two do not say that nothing was done. A gateway that sends a POST again whose answer it lost is told that
    // the name is taken, and no other sandbox has this name; a 408 is the gateway's own deadline.
    test.for([409, 408])("HTTP %i: found and removed", async (status, context) => {
      const provider = await provide({}, context);
      provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "status", status, when: "after" } });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), api(status, "sandbox lifecycle"));
      expect(routesSince(provider, 0)).toEqual(["sandbox.create", "sandbox.list", "sandbox.destroy"]);
    });
  });

  test.concurrent("is never sent twice", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "status", status: 503 } });
    await rejection(acquire(acquireParams(provider)));
    expect(routesSince(provider, 0).filter((route) => route === "sandbox.create")).toHaveLength(1);
  });
});

describe("what fails at every step and cannot be removed either is named", () => {
  test.concurrent.for(steps)("%s", async ([_name, path], context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path }, effect: { type: "status", status: 500 } });
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 401 } });
    const reason = await rejection(acquire(acquireParams(provider)));
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
  });
});
