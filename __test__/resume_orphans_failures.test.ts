// A crashed client's command that cannot be confirmed ended costs the lease its sandbox (specification, section 8).
import { describe, expect, test } from "vitest";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import { looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import {
  alive,
  CLEANUP_FIRST,
  commandMarker,
  EXPIRED,
  expectResumed,
  persist,
  resume,
  sleeping,
  startProcess,
  type Effect,
} from "./support/resumes.js";
import { rejection, within } from "./support/waiting.js";

/** A running sandbox in which a crashed client's commands run. */
async function crashed(context?: Parameters<typeof provide>[1], count = 1) {
  const provider = await provide({}, context);
  const kept = await persist(provider, { state: "running" });
  const orphans = await Promise.all(Array.from({ length: count }, () => startProcess(kept, sleeping(commandMarker()))));
  return { provider, kept, orphans, driver: looseDriver(), start: provider.requests.length };
}

const unconfirmed: [string, Effect][] = [
  ["the tree is alive", { type: "treeAlive" }],
  ["whether the tree is alive is not told", { type: "patch", omit: ["tree_exited"] }],
  ["text is no proof", { type: "patch", set: { tree_exited: "true" } }],
  ["a number is no proof", { type: "patch", set: { tree_exited: 1 } }],
  ["another process's end is no proof", { type: "patch", set: { process_id: "proc_other", tree_exited: true } }],
  ["HTTP 500", { type: "status", status: 500 }],
  ["HTTP 403", { type: "status", status: 403 }],
  ["HTTP 409", { type: "status", status: 409 }],
  ["lost requests", { type: "lostRequest" }],
  ["lost replies", { type: "lostReply" }],
  ["invalid JSON", { type: "invalidJson" }],
  ["an answer without anything", { type: "envelope", variant: "noContent" }],
];
describe("a command that cannot be confirmed ended: its sandbox is destroyed, and the lease has expired", () => {
  test.concurrent.for(unconfirmed)("%s", async ([_name, effect], context) => {
    const { provider, kept, driver, start } = await crashed(context);
    const rule = provider.faults.add({ match: { path: "process.delete" }, effect });
    expect(await within(resume(kept.params(), driver))).toEqual(EXPIRED);
    expect(rule.hits).toBeGreaterThan(1);
    expect(routesSince(provider, start).filter((route) => route === "sandbox.destroy")).toHaveLength(1);
    await provider.waitForState(kept.id, "destroyed");
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  });

  test.concurrent("one of several is enough", async (context) => {
    const { provider, kept, driver, orphans } = await crashed(context, 3);
    const path = new RegExp(`/${orphans[1]}\\?`, "u");
    provider.faults.add({ match: { method: "DELETE", path }, effect: { type: "treeAlive" } });
    expect(await within(resume(kept.params(), driver))).toEqual(EXPIRED);
    await provider.waitForState(kept.id, "destroyed");
  });

  test.concurrent("one of which nothing can be asked, since its id is none", async (context) => {
    const { provider, kept, driver } = await crashed(context);
    for (const process_id of ["../x", "", 7, null]) {
      const row = { process_id, args: [commandMarker()], leader_exited: false, tree_exited: false };
      const rule = provider.faults.add({
        match: { path: "process.list" },
        effect: { type: "patch", set: { processes: [row] } },
      });
      const other = await persist(provider, { state: "running" });
      expect(await within(resume(other.params(), driver))).toEqual(EXPIRED);
      await provider.waitForState(other.id, "destroyed");
      rule.remove();
    }
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });

  test.concurrent("a destroy that finds nothing any more counts", async (context) => {
    const { provider, kept, driver } = await crashed(context);
    provider.faults.add({ match: { path: "process.delete" }, effect: { type: "treeAlive" } });
    provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "status", status: 404 } });
    expect(await within(resume(kept.params(), driver))).toEqual(EXPIRED);
  });
});

describe("when that destroy fails too", () => {
  const failing: [string, Effect][] = [
    ["HTTP 500", { type: "status", status: 500 }],
    ["HTTP 403", { type: "status", status: 403 }],
    ["a lost request", { type: "lostRequest" }],
    ["a redirect", { type: "redirect", location: "/elsewhere" }],
  ];
  test.concurrent.for(failing)("%s: the lease is unconfirmed until a destroy cures it", async (fault, context) => {
    const [, effect] = fault;
    const { provider, kept, driver } = await crashed(context);
    const rules = [
      provider.faults.add({ match: { path: "process.delete" }, effect: { type: "treeAlive" } }),
      provider.faults.add({ match: { path: "sandbox.destroy" }, effect }),
    ];
    expectCreateosError(await rejection(resume(kept.params(), driver)), {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: MESSAGES.cleanup,
    });
    for (const rule of rules) rule.remove();
    expect(driver.leaseState(kept.params(), kept.id)).toBe("unconfirmed");
    expectCreateosError(await rejection(resume(kept.params(), driver)), CLEANUP_FIRST);
    expect(await rejection(driver.release(kept.params()))).toMatchObject({ code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" });
    expect(provider.sandbox(kept.id)?.status).toBe("running");
    await within(driver.destroy(kept.params()));
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
    await provider.waitForState(kept.id, "destroyed");
    expect(await resume(kept.params(), driver)).toEqual(EXPIRED);
  });
});

describe("a failure that is not the last word", () => {
  const passing: Effect[] = [
    { type: "status", status: 500 },
    { type: "lostRequest" },
    { type: "lostReply" },
    { type: "treeAlive" },
    { type: "invalidJson" },
  ];
  test.concurrent.for(passing)("%j of one try: another follows", async (effect, context) => {
    const { provider, kept, driver, start } = await crashed(context);
    provider.faults.add({ match: { path: "process.delete" }, times: 1, effect });
    expectResumed(await within(resume(kept.params(), driver)), kept.params());
    expect(alive(provider, kept.id)).toEqual([]);
    expect(routesSince(provider, start).filter((route) => route === "process.delete")).toHaveLength(2);
    expect(routesSince(provider, start)).not.toContain("sandbox.destroy");
  });

  test.concurrent("a process that nobody knows any more (404) has ended", async (context) => {
    const { provider, kept, driver, start } = await crashed(context);
    provider.faults.add({ match: { path: "process.delete" }, effect: { type: "status", status: 404 } });
    expectResumed(await within(resume(kept.params(), driver)), kept.params());
    expect(routesSince(provider, start).filter((route) => route === "process.delete")).toHaveLength(1);
  });
});

describe("the list", () => {
  test("a provider without one (404) is fine", async () => {
    const { provider, kept, driver, orphans } = await crashed();
    provider.faults.add({ match: { path: "process.list" }, effect: { type: "status", status: 404 } });
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(alive(provider, kept.id)).toEqual(orphans);
  });

  test("that fails surfaces, and nothing is ended or destroyed for it", async () => {
    const { provider, kept, driver, orphans, start } = await crashed();
    const rule = provider.faults.add({ match: { path: "process.list" }, effect: { type: "status", status: 500 } });
    expect(await rejection(resume(kept.params(), driver))).toMatchObject({ code: "ERR_CREATEOS_API", status: 500 });
    expect(routesSince(provider, start)).not.toContain("process.delete");
    expect(alive(provider, kept.id)).toEqual(orphans);
    rule.remove();
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(alive(provider, kept.id)).toEqual([]);
  });

  test("rows that say less than they should are read as far as they go", async () => {
    const { provider, kept, driver, start } = await crashed();
    const marker = commandMarker();
    const rows = [
      {},
      { process_id: "proc_1" },
      { process_id: "proc_2", args: null },
      { process_id: "proc_3", args: marker },
      { process_id: "proc_4", args: { 0: marker } },
      { process_id: "proc_5", args: [7, null, [marker]] },
      { process_id: "proc_6", args: [marker], leader_exited: true },
    ];
    provider.faults.add({ match: { path: "process.list" }, effect: { type: "patch", set: { processes: rows } } });
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(routesSince(provider, start)).not.toContain("process.delete");
  });

  test("a row that does not tell that its leader has exited is one that runs", async () => {
    const { provider, kept, driver, orphans } = await crashed();
    const rows = [{ process_id: orphans[0], args: [7, commandMarker()] }];
    provider.faults.add({ match: { path: "process.list" }, effect: { type: "patch", set: { processes: rows } } });
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(alive(provider, kept.id)).toEqual([]);
  });
});

test("a list that is not there because the sandbox has gone meanwhile: expired", async () => {
  const { provider, kept } = await crashed();
  const effect: Effect = [{ type: "guestDelete" }, { type: "status", status: 404 }];
  provider.faults.add({ match: { path: "process.list" }, effect });
  expect(await within(resume(kept.params()))).toEqual(EXPIRED);
});
