// The example plugin's execute hook, through the plugin SDK's own harness and validators (specification, section 9).
import { assertEnvironmentError, assertExecutionLifecycle } from "@paperclipai/plugin-sdk";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import {
  bash,
  CANCELLED,
  type Command,
  COMMANDS,
  endedBefore,
  FOREVER,
  left,
  putFile,
  RESULT,
  runIn,
  textOf,
} from "./support/paperclip_commands.js";
import { harnessed, hook } from "./support/paperclip_harness.js";
import { installPlugin, type InstalledPlugin, persist, tenant } from "./support/paperclip_plugin.js";
import { nothingAlive, provide, routesSince } from "./support/providers.js";
import { deferred, rejection, within } from "./support/waiting.js";

let installed: InstalledPlugin;
beforeAll(async () => {
  installed = await installPlugin();
});
afterAll(() => installed.remove());

/** A plugin in the harness with a lease, and what its host hears of its commands. */
async function leased(config: Record<string, unknown> = {}) {
  const provider = await provide();
  const harness = await harnessed(installed);
  const owner = tenant(provider, {}, config);
  const lease = persist(await harness.acquireLease({ ...owner, runId: "run" }));
  const pieces: [stream: string, chunk: string][] = [];
  const spoke = deferred();
  const log = vi.spyOn(harness.ctx.execution, "log").mockImplementation((stream, chunk) => {
    pieces.push([stream, chunk]);
    spoke.resolve();
  });
  const execute = (command: Command) => harness.execute(runIn(owner, lease, command));
  return { provider, harness, owner, lease, pieces, log, execute, spoke: () => within(spoke.promise) };
}

describe("a command", () => {
  test.for(COMMANDS)("%s", async ([_name, command, result]) => {
    const { harness, owner, lease, pieces, execute } = await leased();
    const expected = { ...RESULT, ...result };
    const given = await execute(command);
    // The host has heard all of it by the time it has the result, which travels as JSON.
    expect({ stdout: textOf(pieces, "stdout"), stderr: textOf(pieces, "stderr") }).toEqual({
      stdout: given.stdout,
      stderr: given.stderr,
    });
    expect(JSON.parse(JSON.stringify(given))).toEqual(expected);
    await harness.releaseLease({ ...owner, ...lease });
    const [event, ...more] = assertExecutionLifecycle(harness.environmentEvents, owner.environmentId);
    expect([event?.result, more]).toEqual([given, []]);
  });

  test("is heard while it runs", async () => {
    const { provider, lease, pieces, execute, spoke } = await leased();
    const executed = execute(bash("echo one; until [ -e go-on ]; do sleep 0.01; done; echo two >&2"));
    await spoke();
    expect(pieces).toEqual([["stdout", "one\n"]]);
    putFile(provider, lease, "go-on");
    expect(await executed).toEqual({ ...RESULT, stdout: "one\n", stderr: "two\n" });
    expect(pieces).toEqual([["stdout", "one\n"], ["stderr", "two\n"]]);
  });

  test("that does not end in time is ended with all that it started, and what it said is there", async () => {
    const { provider, lease, execute } = await leased();
    const ended = { ...RESULT, exitCode: null, timedOut: true, stdout: "up\n" };
    expect(await execute({ ...FOREVER, timeoutMs: 2000 })).toEqual(ended);
    expect(left(provider, lease)).toEqual([]);
    // The lease is as good as before.
    expect(await execute(bash("echo next"))).toEqual({ ...RESULT, stdout: "next\n" });
  });

  test("has the configured timeout where the host gives it none", async () => {
    const { provider, lease, execute } = await leased({ timeoutMs: 2000 });
    expect(await execute(FOREVER)).toMatchObject({ timedOut: true, exitCode: null });
    expect(left(provider, lease)).toEqual([]);
  });

  test("leaves its background server running when it ends by itself", async () => {
    const { provider, lease, execute } = await leased();
    expect(await execute(bash("sleep 1000 >/dev/null 2>&1 & echo started"))).toEqual({ ...RESULT, stdout: "started\n" });
    expect(left(provider, lease)).toHaveLength(1);
  });

  test("runs beside others of its lease", async () => {
    const { provider, lease, execute } = await leased();
    const waiting = execute(bash("until [ -e go-on ]; do sleep 0.01; done; echo waited"));
    await provider.waitForRequest("process.stdinClose");
    expect(await execute({ command: "echo", args: ["beside"] })).toEqual({ ...RESULT, stdout: "beside\n" });
    putFile(provider, lease, "go-on");
    expect(await waiting).toEqual({ ...RESULT, stdout: "waited\n" });
  });
});

describe("a command that runs while its lease ends", () => {
  const ends = [
    ["release", "sandbox.pause", "releaseLease", "stopped"],
    ["destroy", "sandbox.destroy", "destroyLease", "destroyed"],
  ] as const;
  test.for(ends)("is ended by a %s, with all that it started, before the %s", async ([_name, route, end, state]) => {
    const { provider, harness, owner, lease, execute, spoke } = await leased();
    const executed = rejection(execute(FOREVER));
    await spoke();
    expect(await harness[end]({ ...owner, ...lease })).toMatchObject({ state });
    expectCreateosError(await executed, { code: "ERR_CREATEOS_CANCELLED", message: CANCELLED });
    expect(assertEnvironmentError(harness.environmentEvents, "execute", owner.environmentId).error).toBe(CANCELLED);
    await endedBefore(provider, lease, route);
  });

  test("is ended by a shutdown, and the lease can be released afterwards", async () => {
    const { provider, harness, owner, lease, execute, spoke } = await leased();
    const executed = rejection(execute(FOREVER));
    await spoke();
    await within(hook(harness.plugin, "onShutdown")());
    expectCreateosError(await executed, { code: "ERR_CREATEOS_CANCELLED", message: CANCELLED });
    expect(left(provider, lease)).toEqual([]);
    expectCreateosError(await rejection(execute(bash("true"))), {
      code: "ERR_CREATEOS_LEASE_CLOSING",
      message: MESSAGES.closing,
    });
    expect(await harness.releaseLease({ ...owner, ...lease })).toMatchObject({ state: "stopped" });
  });

  test("and whose end nobody confirms closes the lease until a destroy", async () => {
    const { provider, harness, owner, lease, execute, spoke } = await leased();
    const rule = provider.faults.add({ match: { path: "process.delete" }, effect: { type: "treeAlive" } });
    const executed = rejection(execute(FOREVER));
    await spoke();
    expect((await rejection(harness.releaseLease({ ...owner, ...lease }))).message).toBe(MESSAGES.unconfirmed);
    expect((await executed).message).toBe(MESSAGES.cleanup);
    expect((await rejection(execute(bash("true")))).message).toBe(MESSAGES.closing);
    expect(provider.sandbox(lease.providerLeaseId)?.status).toBe("running");
    rule.remove();
    expect(await harness.destroyLease({ ...owner, ...lease })).toMatchObject({ state: "destroyed" });
    await nothingAlive(provider);
  });
});

describe("a command is refused", () => {
  test("in another's lease, of the same company or not, without a request", async () => {
    const { provider, harness, lease, execute } = await leased();
    const start = provider.requests.length;
    for (const ids of [{ companyId: "other" }, { environmentId: "other" }]) {
      const theirs = tenant(provider, ids);
      const reason = await rejection(harness.execute(runIn(theirs, lease, bash("true"))));
      const [field] = Object.keys(ids);
      expectCreateosError(reason, {
        code: "ERR_CREATEOS_LEASE_MISMATCH",
        message: MESSAGES.notForTrack,
        extra: { mismatches: [field] },
      });
      const { error } = assertEnvironmentError(harness.environmentEvents, "execute", theirs.environmentId);
      expect(error).toBe(MESSAGES.notForTrack);
    }
    expect(routesSince(provider, start)).toEqual([]);
    expect(await execute(bash("echo mine"))).toEqual({ ...RESULT, stdout: "mine\n" });
  });

  const refused: [string, Partial<Command>, string][] = [
    ["no command", { command: "" }, "A sandbox command is required."],
    ["a variable's name", { env: { "A-B": "1" } }, "Invalid sandbox environment variable."],
    ["an argument with a NUL", { args: ["a\0b"] }, "Sandbox command values cannot contain NUL."],
    ["a timeout", { timeoutMs: 0 }, MESSAGES.timeout],
  ];
  test.for(refused)("for %s that can't be, without a request", async ([_name, changes, message]) => {
    const { provider, pieces, execute } = await leased();
    const start = provider.requests.length;
    expect((await rejection(execute({ command: "true", ...changes }))).message).toBe(message);
    expect(routesSince(provider, start)).toEqual([]);
    expect(pieces).toEqual([]);
  });
});

test("commands of many companies run side by side in one plugin, and a release ends only its own", async () => {
  const harness = await harnessed(installed);
  const provider = await provide();
  const begun = ["first", "second", "third"].map(async (companyId) => {
    const owner = tenant(provider, { companyId });
    const lease = persist(await harness.acquireLease({ ...owner, runId: "run" }));
    const script = `until [ -e go-on ]; do sleep 0.01; done; echo ${companyId}`;
    const ended = harness.execute(runIn(owner, lease, bash(script)));
    await provider.waitFor(
      (event) =>
        event.type === "request:finish" &&
        event.request.route === "process.stdinClose" &&
        event.request.sandboxId === lease.providerLeaseId,
    );
    return { owner, lease, ended };
  });
  const [cancelled, ...others] = await Promise.all(begun);
  if (cancelled === undefined) throw new Error("Nothing has begun.");
  const reason = rejection(cancelled.ended);
  await harness.releaseLease({ ...cancelled.owner, ...cancelled.lease });
  expect((await reason).message).toBe(CANCELLED);
  for (const { lease } of others) putFile(provider, lease, "go-on");
  const results = await Promise.all(others.map(({ ended }) => ended));
  expect(results).toEqual(["second\n", "third\n"].map((stdout) => ({ ...RESULT, stdout })));
});

test("a host whose log fails ends the command, and hears of its own failure", async () => {
  const { provider, lease, log, execute } = await leased();
  const broken = new Error("The host's own.");
  log.mockImplementation(() => {
    throw broken;
  });
  expect(await rejection(execute(FOREVER))).toBe(broken);
  expect(left(provider, lease)).toEqual([]);
});
