// A creation that was not answered is looked for, and a removal that fails for a moment is tried again: neither leaves
// anything behind (specification, section 8).
import { describe, expect, test } from "vitest";
import { acquire, acquireParams } from "./support/acquisitions.js";
import { expectCreateosError, expectTimedOut } from "./support/errors.js";
import { NO_CONNECTION, api, left, nothingLeft, type Effect } from "./support/failed_requests.js";
import { makeSandbox, provide, routesSince } from "./support/providers.js";
import { rejection } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

const LIST = "sandbox.list";
const DESTROY = "sandbox.destroy";
const count = (provider: Provider, route: string) => routesSince(provider, 0).filter((one) => one === route).length;

interface Row {
  id: string;
  name: string;
  status: string;
}

/** Answers a part of the list as the rows are by then. */
function page(provider: Provider, offset: number, rows: () => Row[], total: (() => number) | undefined): void {
  const effect = {
    type: "status" as const,
    status: 200,
    get body() {
      const data = rows();
      const pagination = { limit: 500, offset, count: data.length, ...(total && { total: total() }) };
      return { status: "success", data: { data, ...(total && { pagination }) } };
    },
  };
  const isAsked = ({ url }: { url: string }) =>
    new URL(url, provider.url).searchParams.get("offset") === String(offset);
  provider.faults.add({ match: { path: LIST, when: isAsked }, effect });
}
const others = (count: number, from = 0): Row[] =>
  Array.from({ length: count }, (_, index) => {
    const name = `other-${from + index}`;
    return { id: `sb-${name}`, name, status: "running" };
  });

const momentary: [string, Effect][] = [
  ["HTTP 500", { type: "status", status: 500 }],
  ["HTTP 502 in HTML", { type: "status", status: 502, body: "<html>Bad Gateway</html>" }],
  ["HTTP 503", { type: "status", status: 503 }],
  ["a lost request", { type: "lostRequest" }],
  ["a lost reply", { type: "lostReply" }],
];

/** Each once, and some of them twice. */
const tries = [
  ...momentary.map(([name, effect]) => [name, 1, effect] as const),
  ...momentary.slice(2, 4).map(([name, effect]) => [name, 2, effect] as const),
];

describe("a removal that fails for a moment is tried again, and the first failure surfaces", () => {
  const failing = async (context: Parameters<typeof provide>[1], effect: Effect, times: number) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "exec" }, effect: { type: "status", status: 500 } });
    provider.faults.add({ match: { path: DESTROY }, times, effect });
    return { provider, reason: await rejection(acquire(acquireParams(provider))) };
  };

  test.concurrent.for(tries)("%s, %i times", async ([_name, times, effect], context) => {
    const { provider, reason } = await failing(context, effect, times);
    expectCreateosError(reason, api(500, "workspace command"));
    expect(count(provider, DESTROY)).toBe(times + 1);
    await nothingLeft(provider);
  });

  // Half an answer reads as "invalid JSON", but the connection has broken, a little later than with a lost reply.
  test("a connection that breaks in the body", async (context) => {
    const { provider, reason } = await failing(context, { type: "cutBody", after: 10 }, 1);
    expectCreateosError(reason, api(500, "workspace command"));
    await nothingLeft(provider);
  });

  test.concurrent("three times: the error names the sandbox", async (context) => {
    const { provider, reason } = await failing(context, { type: "status", status: 503 }, 3);
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
    expect(count(provider, DESTROY)).toBe(3);
  });

  test.concurrent.for([400, 401, 403])("not HTTP %i, which would not change", async (status, context) => {
    const { provider, reason } = await failing(context, { type: "status", status }, 1);
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
    expect(count(provider, DESTROY)).toBe(1);
  });

  test.concurrent("an answer that never comes is not waited for three times over", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "exec" }, effect: { type: "status", status: 500 } });
    const held = provider.faults.add({ match: { path: DESTROY }, effect: { type: "hold" } });
    const reason = await rejection(acquire(acquireParams(provider, { timeoutMs: 400 })));
    expectCreateosError(reason, left(provider.sandboxes[0]?.id ?? ""));
    expect(held.hits).toBe(1);
    held.remove();
  });

  test.concurrent("HTTP 409 while the sandbox is being created, once that is over", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "stuck" } });
    provider.faults.add({ match: { path: "sandbox.get" }, effect: { type: "status", status: 500 } });
    const isCreating = ({ sandboxId }: { sandboxId: string | undefined }) =>
      provider.sandbox(sandboxId as string)?.status === "creating";
    const refused = provider.faults.add({
      match: { path: DESTROY, when: isCreating },
      effect: [
        { type: "status", status: 409 },
        { type: "call", run: ({ sandboxId }) => provider.guest.unstick(sandboxId as string) },
      ],
    });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), api(500, "sandbox lifecycle"));
    expect([refused.hits, count(provider, DESTROY)]).toEqual([1, 2]);
    await nothingLeft(provider);
  });

  test.concurrent("the deadline of the acquisition does not end it", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    provider.faults.add({ match: { path: DESTROY }, times: 2, effect: { type: "status", status: 500 } });
    expectTimedOut(await rejection(acquire(acquireParams(provider, { timeoutMs: 300 }))));
    await nothingLeft(provider);
  });
});

describe("a look for a lost creation", () => {
  const lose = async (context: Parameters<typeof provide>[1], options: Parameters<typeof provide>[0] = {}) => {
    const provider = await provide(options, context);
    provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "lostReply" } });
    return provider;
  };

  test.concurrent.for(tries)(
    "that fails for a moment is tried again: %s, %i times",
    async ([_name, times, effect], context) => {
      const provider = await lose(context);
      provider.faults.add({ match: { path: LIST }, times, effect });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
      expect(count(provider, LIST)).toBe(times + 1);
      await nothingLeft(provider);
    },
  );

  test("that fails for a moment is tried again: a connection that breaks in the body", async (context) => {
    const provider = await lose(context);
    provider.faults.add({ match: { path: LIST }, times: 1, effect: { type: "cutBody", after: 10 } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
    await nothingLeft(provider);
  });

  const hopeless: [string, Effect, number][] = [
    ...momentary.slice(2, 4).map(([name, effect]): [string, Effect, number] => [name, effect, 3]),
    ["HTTP 401", { type: "status", status: 401 }, 1],
    ["HTTP 403", { type: "status", status: 403 }, 1],
    ["no JSON", { type: "invalidJson" }, 1],
    ["no list in it", { type: "patch", set: { data: "none" } }, 1],
    ["a list of another kind", { type: "patch", set: { sandboxes: [] }, omit: ["data"] }, 1],
  ];
  test.concurrent.for([7, null, "../x"])(
    "that shows it without an id (%j): the error names it by its unique name",
    async (id, context) => {
      const provider = await lose(context);
      const effect = {
        type: "status" as const,
        status: 200,
        get body() {
          const [lost] = provider.sandboxes;
          return { status: "success", data: { data: [{ id, name: lost?.name, status: "running" }] } };
        },
      };
      provider.faults.add({ match: { path: LIST }, effect });
      const reason = await rejection(acquire(acquireParams(provider)));
      expectCreateosError(reason, left(provider.sandboxes[0]?.name ?? ""));
    },
  );

  test.concurrent.for(hopeless)(
    "that never succeeds: the error names the sandbox by its unique name: %s",
    async ([_name, effect, looks], context) => {
      const provider = await lose(context);
      const rule = provider.faults.add({ match: { path: LIST }, effect });
      const reason = await rejection(acquire(acquireParams(provider)));
      const [lost] = provider.sandboxes;
      expect(lost?.name).toMatch(/^createos-lease-[0-9a-f]{32}$/u);
      expectCreateosError(reason, left(lost?.name ?? ""));
      expect([rule.hits, count(provider, DESTROY)]).toEqual([looks, 0]);
    },
  );

  test.concurrent("whose last one fails does not count as having shown that there is none", async (context) => {
    const provider = await provide({}, context);
    const create = provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostRequest" } });
    provider.faults.add({ match: { path: LIST }, skip: 2, effect: { type: "status", status: 500 } });
    const reason = await rejection(acquire(acquireParams(provider)));
    expectCreateosError(reason, left((await create.hit).body.name));
  });

  test.concurrent("that shows none: the first failure surfaces, after the last of them", async (context) => {
    const provider = await provide({}, context);
    await makeSandbox(provider);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostRequest" } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
    expect([count(provider, LIST), count(provider, DESTROY)]).toEqual([3, 0]);
    expect(provider.sandboxes).toMatchObject([{ status: "running" }]);
  });

  // The gateway has given up, and the provider gets to it later.
  test.concurrent.for([1, 2])(
    "finds one that took effect after its connection broke, between looks %i and the next",
    async (looks, context) => {
      const provider = await provide({}, context);
      let seen = 0;
      let held: { release(): void } | undefined;
      provider.on("request:finish", ({ request }) => {
        if (request.route === LIST && ++seen === looks) held?.release();
      });
      held = provider.faults.add({
        match: { path: "sandbox.create" },
        effect: [{ type: "call", run: () => setImmediate(() => provider.dropConnections()) }, { type: "hold" }],
      });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
      expect([count(provider, LIST), count(provider, DESTROY)]).toEqual([looks + 1, 1]);
      expect(provider.sandboxes).toHaveLength(1);
      await nothingLeft(provider);
    },
  );

  test.concurrent("finds one that the deadline had given up", async (context) => {
    const provider = await provide({ delays: { create: 600 } }, context);
    expectTimedOut(await rejection(acquire(acquireParams(provider, { timeoutMs: 200 }))));
    expect(provider.sandboxes).toHaveLength(1);
    await nothingLeft(provider);
  });

  test.concurrent.for(["destroying", "destroyed", "failed"])("leaves one alone that is %s", async (status, context) => {
    const provider = await lose(context);
    page(provider, 0, () => provider.sandboxes.map(({ id, name }) => ({ id, name, status })), () => 1);
    expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
    expect([count(provider, LIST), count(provider, DESTROY)]).toEqual([3, 0]);
  });

  test.concurrent("removes none of another name, whatever else is alike", async (context) => {
    const provider = await lose(context);
    const names: string[] = [];
    provider.faults.add({
      match: { path: LIST },
      times: 1,
      effect: {
        type: "call",
        run: async () => {
          const { name } = provider.sandboxes[0] ?? { name: "" };
          names.push(`${name}0`, name.slice(0, -1), name.toUpperCase());
          const headers = { "x-api-key": provider.apiKey, "content-type": "application/json" };
          for (const other of names) {
            const body = JSON.stringify({ shape: "s-1vcpu-1gb", name: other });
            await fetch(`${provider.url}/v1/sandboxes`, { method: "POST", headers, body });
          }
        },
      },
    });
    await rejection(acquire(acquireParams(provider)));
    const [lost, ...others] = provider.sandboxes;
    await provider.waitForState(lost?.id ?? "", "destroyed");
    expect(others.map(({ name, status }) => [name, status])).toEqual(names.map((name) => [name, "running"]));
  });
});

describe("a list of more than one page", () => {
  for (const [how, hasTotal] of [["with a total", true], ["without one", false]] as const) {
    test.concurrent(`${how}: the lost one is found on the last of three`, async (context) => {
      const provider = await provide({}, context);
      const total = hasTotal ? () => 1001 : undefined;
      for (const offset of [0, 500]) page(provider, offset, () => others(500, offset), total);
      page(provider, 1000, () => provider.sandboxes, total);
      provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostReply" } });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
      expect(routesSince(provider, 0)).toEqual(["sandbox.create", LIST, LIST, LIST, DESTROY]);
      await nothingLeft(provider);
    });

    test.concurrent(`${how}: pages may be shorter than was asked for`, async (context) => {
      const provider = await provide({}, context);
      for (let left = 3; left > 0; left -= 1) await makeSandbox(provider);
      for (const offset of [0, 1, 2, 3]) {
        const rows = () => provider.sandboxes.slice(offset, offset + 1);
        page(provider, offset, rows, hasTotal ? () => provider.sandboxes.length : undefined);
      }
      provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostReply" } });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
      expect([count(provider, LIST), count(provider, DESTROY)]).toEqual([4, 1]);
      expect(provider.sandboxes.slice(0, 3).map(({ status }) => status)).toEqual(["running", "running", "running"]);
      await provider.waitForState(provider.sandboxes[3]?.id ?? "", "destroyed");
    });

    test.concurrent(`${how}: it ends where the lost one is on no page`, async (context) => {
      const provider = await provide({}, context);
      const total = hasTotal ? () => 750 : undefined;
      page(provider, 0, () => others(500), total);
      page(provider, 500, () => others(250, 500), total);
      page(provider, 750, () => [], total);
      provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostRequest" } });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
      expect(count(provider, LIST)).toBe(3 * (hasTotal ? 2 : 3));
    });
  }

  test.concurrent.for([
    // A server that knows no pages: short, the page is all there is; full, there may be more than it shows.
    [3, NO_CONNECTION],
    [500, undefined],
  ] as const)("of %i rows that is the same at each offset is not read for ever", async ([rows, failure], context) => {
    const provider = await provide({}, context);
    for (const offset of [0, rows]) page(provider, offset, () => others(rows), undefined);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostReply" } });
    const reason = await rejection(acquire(acquireParams(provider)));
    expectCreateosError(reason, failure ?? left(provider.sandboxes[0]?.name ?? ""));
    expect(count(provider, LIST)).toBe(failure === undefined ? 2 : 6);
  });

  test.concurrent("that never ends is read for the configured timeout", async (context) => {
    const provider = await provide({}, context);
    let row = 0;
    const effect = {
      type: "status" as const,
      status: 200,
      get body() {
        row += 1;
        return { status: "success", data: { data: others(1, row), pagination: { total: 1e9 } } };
      },
    };
    provider.faults.add({ match: { path: LIST }, effect });
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostReply" } });
    const reason = await rejection(acquire(acquireParams(provider, { timeoutMs: 300 })));
    expectCreateosError(reason, left(provider.sandboxes[0]?.name ?? ""));
  });

  test.concurrent("a later page that fails makes the whole look fail, and the next begins again", async (context) => {
    const provider = await provide({}, context);
    page(provider, 0, () => others(500), () => 501);
    const isSecond = ({ url }: { url: string }) => url.includes("offset=500");
    provider.faults.add({ match: { path: LIST, when: isSecond }, times: 1, effect: { type: "lostRequest" } });
    page(provider, 500, () => provider.sandboxes, () => 501);
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "lostReply" } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), NO_CONNECTION);
    const offsets = provider.requests.filter(({ route }) => route === LIST).map(({ url }) => url.split("offset=")[1]);
    expect(offsets).toEqual(["0", "500", "0", "500"]);
    await nothingLeft(provider);
  });
});
