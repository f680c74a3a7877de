// Clients that end in the middle of a command: what they leave running is ended by whoever resumes the lease, or, where
// only a worker thread ends, by the process that it was in; nothing else is ended (specification, sections 1, 8 and 9).
import { describe, expect, test } from "vitest";
import {
  BEGINS,
  bash,
  commandsOf,
  hasBegun,
  hold,
  Home,
  type Left,
  LONG,
  settled,
  theCommand,
  treeGone,
  usable,
} from "./support/execute_crash.js";
import { lease } from "./support/package.js";
import { pause } from "./support/resumes.js";
import { turns, watch, within } from "./support/waiting.js";

const { LeaseDriver } = lease;

/** A process that has begun the long command. */
async function running(home: Home, context: Parameters<typeof settled>[1]): Promise<Left & { command: string }> {
  const left = await settled(home, context);
  expect(await home.call("execute", { ...left.claim, ...LONG }).said).toBe("up\n");
  return { ...left, command: theCommand(left) };
}

const marked = ({ claim }: Left) => ({
  providerLeaseId: claim.providerLeaseId,
  metadata: { ...claim.leaseMetadata, resumedLease: true },
});

/** How a process comes to its end in the middle of a command. */
const ENDS: [name: string, end: (home: Home) => Promise<unknown>, exit: unknown][] = [
  ["is killed", (home) => home.end(), "SIGKILL"],
  ["calls process.exit", (home) => home.exit(3), 3],
];

describe.concurrent.for(ENDS)("a process that %s in the middle of a command", ([_name, end, exit]) => {
  describe.concurrent.for(["running", "paused"] as const)("leaves a sandbox that is found %s", (state) => {
    test("a new driver ends the command with all that it started before it hands the lease out", async (context) => {
      const home = Home.process(context);
      const left = await running(home, context);
      expect(await end(home)).toBe(exit);
      if (state === "paused") await pause(left.provider, left.id);
      const driver = new LeaseDriver();
      const resumed = await driver.resume(left.claim);
      expect(commandsOf(left)).toEqual([]);
      expect(resumed).toEqual(marked(left));
      await treeGone(left, left.command);
      await usable(left, driver);
    });

    test("another process does", async (context) => {
      const home = Home.process(context);
      const left = await running(home, context);
      await end(home);
      if (state === "paused") await pause(left.provider, left.id);
      const next = Home.process(context);
      expect(await next.call("resume", left.claim).answer).toEqual(marked(left));
      expect(commandsOf(left)).toEqual([]);
      const ran = await next.call("execute", { ...left.claim, ...bash("echo next; cat", { stdin: "input" }) }).answer;
      expect(ran).toMatchObject({ exitCode: 0, stdout: "next\ninput" });
      await usable(left, new LeaseDriver());
    });
  });
});

test("many commands that a process ran side by side are all ended", async (context) => {
  const home = Home.process(context);
  const left = await settled(home, context);
  const commands = Array.from({ length: 5 }, () => home.call("execute", { ...left.claim, ...LONG }));
  await Promise.all(commands.map(({ said }) => said));
  expect(commandsOf(left)).toHaveLength(5);
  await home.end();
  const driver = new LeaseDriver();
  expect(await driver.resume(left.claim)).toEqual(marked(left));
  expect(commandsOf(left)).toEqual([]);
  await usable(left, driver);
});

test("a lease is not handed out while the end of the command is not confirmed", async (context) => {
  const home = Home.process(context);
  const left = await running(home, context);
  await home.end();
  const held = hold(left, "process.delete", "after");
  const driver = new LeaseDriver();
  const resumed = watch(driver.resume(left.claim));
  await held.reached;
  await turns();
  expect(resumed.state).toBe("pending");
  held.release();
  expect(await within(resumed.promise)).toEqual(marked(left));
  await usable(left, driver);
});

describe.concurrent("a process that is killed in the middle of the resume that ends the command", () => {
  test.for(["before", "after"] as const)("is succeeded by a third, %s it was ended", async (when, context) => {
    const first = Home.process(context);
    const left = await running(first, context);
    await first.end();
    const held = hold(left, "process.delete", when);
    const second = Home.process(context);
    second.call("resume", left.claim);
    await held.reached;
    await second.end();
    expect(commandsOf(left)).toEqual(when === "before" ? [left.command] : []);
    const driver = new LeaseDriver();
    expect(await driver.resume(left.claim)).toEqual(marked(left));
    expect(commandsOf(left)).toEqual([]);
    held.release();
    await usable(left, driver);
  });
});

/** Where a process is with its command when it is killed: it waits for the answer to a request. */
interface Moment {
  path: string;
  when: "before" | "after";
  /** Whether the command has begun by then, and whether there is a process for it. */
  has: "nothing" | "process" | "begun";
}

const MOMENTS: Moment[] = [
  { path: "files.put", when: "before", has: "nothing" },
  { path: "files.put", when: "after", has: "nothing" },
  { path: "process.create", when: "before", has: "nothing" },
  { path: "process.create", when: "after", has: "process" },
  { path: "process.connect", when: "before", has: "process" },
  { path: "process.stdinClose", when: "before", has: "process" },
  { path: "process.stdinClose", when: "after", has: "begun" },
];

describe.concurrent("a process that is killed while it begins a command", () => {
  test.for(MOMENTS)("at $path, $when it took effect", async ({ path, when, has }, context) => {
    const home = Home.process(context);
    const left = await settled(home, context);
    const held = hold(left, path, when);
    home.call("execute", { ...left.claim, ...BEGINS, stdin: "input" });
    await held.reached;
    expect(await home.end()).toBe("SIGKILL");
    expect(commandsOf(left)).toHaveLength(has === "nothing" ? 0 : 1);
    const driver = new LeaseDriver();
    expect(await driver.resume(left.claim)).toEqual(marked(left));
    expect(commandsOf(left)).toEqual([]);
    // A command whose output nobody could have read never began.
    if (has !== "begun") expect(hasBegun(left)).toBe(false);
    await usable(left, driver);
  });

  test("whose creation takes effect only after a resume: it does not begin, and the next resume ends it", async (context) => {
    const home = Home.process(context);
    const left = await settled(home, context);
    const held = hold(left, "process.create");
    home.call("execute", { ...left.claim, ...BEGINS });
    await held.reached;
    await home.end();
    const driver = new LeaseDriver();
    expect(await driver.resume(left.claim)).toEqual(marked(left));
    const since = left.provider.mark();
    held.release();
    await left.provider.waitFor((event) => event.type === "process:start", { since });
    await turns();
    const late = theCommand(left);
    // Others run beside it meanwhile, from their beginning to their end.
    expect(await driver.execute({ ...left.claim, ...bash("echo beside") })).toMatchObject({ stdout: "beside\n" });
    expect(await driver.resume(left.claim)).toEqual(marked(left));
    await treeGone(left, late);
    expect(hasBegun(left)).toBe(false);
    await usable(left, driver);
  });
});

describe("a worker thread that ends in the middle of a command", () => {
  test.for([
    ["is terminated", (home: Home) => home.end(), 1],
    ["calls process.exit", (home: Home) => home.exit(4), 4],
  ] as const)("as it %s: this process ends the command, with all that it started", async ([_name, end, exit], context) => {
    const home = Home.worker(context);
    const left = await running(home, context);
    expect(await end(home)).toBe(exit);
    await treeGone(left, left.command);
    expect(commandsOf(left)).toEqual([]);
    const deleted = left.provider.requests.filter(({ route }) => route === "process.delete");
    expect(deleted.map(({ path }) => path.split("/").at(-1))).toEqual([left.command]);
    // No other thread has to resume the lease first.
    await usable(left, new LeaseDriver());
  });

  test("with many commands, while another thread's go on", async (context) => {
    const home = Home.worker(context);
    const left = await settled(home, context);
    const other = Home.worker(context);
    const kept = await running(other, context);
    const commands = Array.from({ length: 5 }, () => home.call("execute", { ...left.claim, ...LONG }));
    await Promise.all(commands.map(({ said }) => said));
    const begun = commandsOf(left);
    expect(begun).toHaveLength(5);
    await home.end();
    await Promise.all(begun.map((command) => treeGone(left, command)));
    expect(commandsOf(left)).toEqual([]);
    expect(theCommand(kept)).toBe(kept.command);
    for (const place of [left, kept]) await new LeaseDriver().destroy(place.claim, { confirm: true });
  });

  const moments = MOMENTS.filter(({ path }) => path !== "files.put");
  test.for(moments)("while it begins one, at $path, $when it took effect", async ({ path, when, has }, context) => {
    const home = Home.worker(context);
    const left = await settled(home, context);
    const held = hold(left, path, when);
    home.call("execute", { ...left.claim, ...BEGINS });
    await held.reached;
    const since = left.provider.mark();
    await home.end();
    // Only the answer to the creation tells what is to be ended.
    if (path === "process.create") held.release();
    await left.provider.waitFor((event) => event.type === "process:tree-exit", { since });
    expect(commandsOf(left)).toEqual([]);
    if (has !== "begun") expect(hasBegun(left)).toBe(false);
    held.release();
    await usable(left, new LeaseDriver());
  });
});
