// Commands that a crashed client of the package left running are ended before a resumed lease is handed out
// (specification, section 8).
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hold } from "./support/leases.js";
import { looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import {
  alive,
  commandMarker,
  expectResumed,
  pause,
  persist,
  resume,
  sleeping,
  startProcess,
  type Persisted,
} from "./support/resumes.js";
import { within } from "./support/waiting.js";

/** Processes of every kind: those that a resume has to end, and those that are none of its business. */
async function crowd(kept: Persisted): Promise<{ orphans: string[]; others: string[] }> {
  const uuid = randomUUID();
  const orphans = [
    sleeping(commandMarker()),
    sleeping("first", commandMarker(), "last"),
    ["-lc", "sleep 1000 & wait", commandMarker()],
    ["-c", "trap '' TERM; sleep 1000 & wait", commandMarker()],
  ];
  const others = [
    sleeping(),
    sleeping("createos-lease-command-"),
    sleeping(`createos-lease-command-${uuid.toUpperCase().replace(/\d/gu, "A")}`),
    sleeping(`createos-lease-command-${uuid.replaceAll("-", "")}`),
    sleeping(`createos-lease-command-{${uuid}}`),
    sleeping(`createos-lease-command-${uuid.slice(1)}`),
    sleeping(`createos-lease-command-${uuid} `),
    sleeping(` createos-lease-command-${uuid}`),
    sleeping(`--marker=createos-lease-command-${uuid}`),
    sleeping(`Createos-lease-command-${uuid}`),
    sleeping(`createos-lease-commands-${uuid}`),
    sleeping(`createos-lease-${uuid}`),
    sleeping(uuid),
    sleeping("createos-lease-command-", uuid),
  ];
  const start = (all: string[][]) => Promise.all(all.map((args) => startProcess(kept, args)));
  return { orphans: await start(orphans), others: await start(others) };
}

describe.each(["running", "paused"] as const)("in a sandbox that is found %s", (state) => {
  test("exactly those are ended that run and carry a whole marker among their arguments", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const { orphans, others } = await crowd(kept);
    if (state === "paused") await pause(provider, kept.id);
    const start = provider.requests.length;
    const began = performance.now();
    expectResumed(await resume(kept.params()), kept.params());
    // One of them takes its whole second to be killed; the others do not wait for it, nor it for them.
    expect(performance.now() - began).toBeLessThan(4000);
    expect(new Set(alive(provider, kept.id))).toEqual(new Set(others));
    const ended = provider.requests.slice(start).filter(({ route }) => route === "process.delete");
    expect(new Set(ended.map(({ path }) => path.split("/").at(-1)))).toEqual(new Set(orphans));
    for (const { url } of ended) expect(url).toContain("?grace_ms=1000");
  });
});

test("what a command that has ended left in the background stays", async () => {
  const provider = await provide();
  const kept = await persist(provider, { state: "running" });
  const server = await startProcess(kept, ["-c", "sleep 1000 >/dev/null 2>&1 & exit 0", commandMarker()]);
  await provider.waitFor((event) => event.type === "process:exit" && event.id === server);
  const over = await startProcess(kept, ["-c", "exit 3", commandMarker()]);
  await provider.waitFor((event) => event.type === "process:tree-exit" && event.id === over);
  const start = provider.requests.length;
  expectResumed(await resume(kept.params()), kept.params());
  expect(routesSince(provider, start)).not.toContain("process.delete");
  expect(alive(provider, kept.id)).toEqual([server]);
});

test("a command's background server goes with the command that still runs", async () => {
  const provider = await provide();
  const kept = await persist(provider, { state: "running" });
  await startProcess(kept, ["-c", "sleep 1000 & sleep 1000 & wait", commandMarker()]);
  expectResumed(await resume(kept.params()), kept.params());
  expect(alive(provider, kept.id)).toEqual([]);
});

test("several that do not go by themselves end together, not one grace after the other", async () => {
  const provider = await provide();
  const kept = await persist(provider, { state: "running" });
  const stubborn = ["-c", "trap '' TERM; echo ready; while :; do sleep 1000 & wait $!; done", commandMarker()];
  await Promise.all(Array.from({ length: 6 }, () => startProcess(kept, stubborn)));
  const rule = provider.faults.add({ match: { path: "process.delete" }, effect: { type: "hold" } });
  const resumed = resume(kept.params());
  // All are asked for before any is answered.
  await within(provider.waitFor(() => rule.hits === 6));
  rule.release();
  expectResumed(await within(resumed), kept.params());
  expect(alive(provider, kept.id)).toEqual([]);
});

describe("with a call of this driver in the sandbox nothing is ended", () => {
  test("one that began before, and one that began during the resume and may have ended", async () => {
    const provider = await provide();
    for (const when of ["before", "during", "during, and over"]) {
      const kept = await persist(provider, { state: "running" });
      const process = await startProcess(kept, sleeping(commandMarker()));
      const driver = looseDriver();
      const before = when === "before" ? hold(driver, kept.params()) : undefined;
      const match = { path: "process.list", sandboxId: kept.id };
      const rule = provider.faults.add({ match, times: 1, effect: { type: "hold", when: "after" } });
      const resumed = resume(kept.params(), driver);
      await within(rule.hit);
      const during = before ?? hold(driver, kept.params());
      if (when === "during, and over") {
        during.resolve();
        await during.promise;
      }
      rule.release();
      expectResumed(await within(resumed), kept.params());
      expect(alive(provider, kept.id), when).toEqual([process]);
      during.resolve();
      await during.promise;
      // With nobody there any more, it is an orphan.
      expectResumed(await resume(kept.params(), driver), kept.params());
      expect(alive(provider, kept.id), when).toEqual([]);
    }
  });

  test("one under another key of the same company, in the same sandbox", async () => {
    const provider = await provide({ apiKeys: { old: "owner", new: "owner" } });
    const kept = await persist(provider, { state: "running", key: "old" });
    const process = await startProcess(kept, sleeping(commandMarker()), "old");
    const driver = looseDriver();
    const call = hold(driver, kept.params({ config: { apiKey: "new" } }));
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(alive(provider, kept.id)).toEqual([process]);
    call.resolve();
  });

  test("a call in another lease, of another driver, or one that has ended does not count", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const driver = looseDriver();
    const calls = [hold(driver, kept.params({ id: "sb-other" })), hold(looseDriver(), kept.params())];
    await driver.track(kept.params(), () => "over");
    await startProcess(kept, sleeping(commandMarker()));
    expectResumed(await resume(kept.params(), driver), kept.params());
    expect(alive(provider, kept.id)).toEqual([]);
    for (const call of calls) call.resolve();
  });

  test("another resume is no call", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    await startProcess(kept, sleeping(commandMarker()));
    const driver = looseDriver();
    const answers = await within(Promise.all([resume(kept.params(), driver), resume(kept.params(), driver)]));
    for (const answer of answers) expectResumed(answer, kept.params());
    expect(alive(provider, kept.id)).toEqual([]);
  });
});

test("nothing is listed or ended in a sandbox with another marker", async () => {
  const provider = await provide();
  const kept = await persist(provider, { state: "running" });
  const process = await startProcess(kept, sleeping(commandMarker()));
  const start = provider.requests.length;
  expect((await resume(kept.params({ metadata: { marker: randomUUID() } }))).providerLeaseId).toBeNull();
  expect(routesSince(provider, start)).not.toContain("process.list");
  expect(alive(provider, kept.id)).toEqual([process]);
});
