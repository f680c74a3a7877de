// What is left of an acquisition that fails: nothing, or an error that names it (specification, section 8).
import { describe, expect, test } from "vitest";
import { acquire, acquireParams } from "./support/acquisitions.js";
import { expectCreateosError, expectTimedOut } from "./support/errors.js";
import { lease } from "./support/package.js";
import { makeSandbox, nothingAlive, provide, routesSince } from "./support/providers.js";
import { rejection } from "./support/waiting.js";
import type { Provider } from "./provider/index.mjs";

describe("a failure after the creation removes the sandbox, and is what surfaces", () => {
  type Effect = Parameters<Provider["faults"]["add"]>[0]["effect"];
  const api = (status: number, operation: string) => ({
    name: "CreateosApiError" as const,
    code: "ERR_CREATEOS_API",
    message: `CreateOS request failed (HTTP ${status}) during ${operation}.`,
    extra: { status, operation },
  });
  const unprepared = {
    code: "ERR_CREATEOS_SETUP",
    message: "CreateOS workspace preparation failed; the image must provide Bash.",
  };
  const noJson = { code: "ERR_CREATEOS_RESPONSE", message: "CreateOS returned invalid JSON." };
  const noConnection = { code: "ERR_CREATEOS_CONNECTION", message: "CreateOS connection failed." };
  const result = (fields: object): Effect => ({ type: "patch", set: { result: fields } });
  const failures: [string, string, Effect, Parameters<typeof expectCreateosError>[1]][] = [
    ["looking at it fails", "sandbox.get", { type: "status", status: 500 }, api(500, "sandbox lifecycle")],
    [
      "it is another one",
      "sandbox.get",
      { type: "wrongId" },
      { code: "ERR_CREATEOS_RESPONSE", message: "CreateOS sandbox identity or state is invalid." },
    ],
    [
      "it does not run",
      "sandbox.get",
      { type: "patch", set: { status: "failed" } },
      { code: "ERR_CREATEOS_STATE", message: "CreateOS sandbox did not reach running." },
    ],
    ["the command is refused", "exec", { type: "status", status: 404 }, api(404, "workspace command")],
    ["the command is cut off", "exec", { type: "lostReply" }, noConnection],
    ["the command's answer is unreadable", "exec", { type: "invalidJson" }, noJson],
    ["the command exits with a code", "exec", result({ exit_code: 1, stdout: "", stderr: "" }), unprepared],
    ["the command exits by a signal", "exec", result({ exit_code: 137, stdout: "", stderr: "" }), unprepared],
    ["the command does not start", "exec", result({ exit_code: 0, error: "no such file" }), unprepared],
    ["the command has no exit code", "exec", result({ stdout: "", stderr: "" }), unprepared],
    ["the command's code is text", "exec", result({ exit_code: "0" }), unprepared],
    ["the marker is refused", "files.put", { type: "status", status: 507 }, api(507, "file transfer")],
    ["the marker is cut off", "files.put", { type: "lostRequest" }, noConnection],
    ["the marker is redirected", "files.put", { type: "redirect", location: "/x" }, noConnection],
  ];
  test.each(failures)("%s", async (_name, route, effect, expected) => {
    const provider = await provide();
    provider.faults.add({ match: { path: route }, effect });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), expected);
    expect(routesSince(provider, 0).filter((one) => one === "sandbox.destroy")).toHaveLength(1);
    await nothingAlive(provider);
  });

  test("an image without Bash", async () => {
    const provider = await provide();
    provider.faults.add({
      match: { path: "exec" },
      effect: [
        {
          type: "call",
          run: ({ body }) => {
            expect(body.cmd).toBe("/bin/bash");
            body.cmd = "/no/bash/here";
          },
        },
      ],
    });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), unprepared);
    await nothingAlive(provider);
  });

  test("a creation that fails has nothing to remove", async () => {
    const provider = await provide({ switches: { credit: false } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), api(402, "sandbox lifecycle"));
    expect(routesSince(provider, 0)).toEqual(["sandbox.create"]);
  });

  test("a creation that answers with an id that none can have is found by its name", async () => {
    const provider = await provide();
    for (const id of ["../x", "", 7, null]) {
      const rule = provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "patch", set: { id } } });
      expectCreateosError(await rejection(acquire(acquireParams(provider))), {
        code: "ERR_CREATEOS_RESPONSE",
        message: "CreateOS returned an invalid resource ID.",
      });
      rule.remove();
    }
    expect(new Set(routesSince(provider, 0))).toEqual(new Set(["sandbox.create", "sandbox.list", "sandbox.destroy"]));
    await nothingAlive(provider);
  });

  test("the deadline: the removal has a fresh one", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "exec" }, effect: { type: "hold" } });
    // The removal takes nearly as long as the timeout, so what is left of the first deadline would not do.
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "delay", ms: 250 } });
    expectTimedOut(await rejection(acquire(acquireParams(provider, { timeoutMs: 500 }))));
    await nothingAlive(provider);
  });

  test("a sandbox that has gone meanwhile counts as removed", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "exec" }, effect: [{ type: "guestDelete" }, { type: "status", status: 500 }] });
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 404 } });
    expectCreateosError(await rejection(acquire(acquireParams(provider))), api(500, "workspace command"));
    await nothingAlive(provider);
  });
});

describe("a removal that fails as well names the sandbox", () => {
  const effects: Parameters<Provider["faults"]["add"]>[0]["effect"][] = [
    { type: "status", status: 500 },
    { type: "status", status: 403 },
    { type: "lostRequest" },
    { type: "lostReply" },
    { type: "redirect", location: "/x" },
  ];
  test.each(effects)("%j", async (effect) => {
    const provider = await provide();
    provider.faults.add({ match: { path: "files.put" }, effect: { type: "status", status: 500 } });
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect });
    const reason = await rejection(acquire(acquireParams(provider)));
    const [{ id } = { id: "" }] = provider.sandboxes;
    expectCreateosError(reason, {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: `CreateOS setup failed and cleanup is unconfirmed for sandbox ${id}.`,
      extra: { sandboxId: id },
    });
    provider.faults.clear();
    // The name is good for a later removal.
    const { config } = acquireParams(provider);
    await new lease.CreateosClient(config as never).destroySandbox(reason.sandboxId);
    await nothingAlive(provider);
  });

  test("when the removal takes longer than the timeout", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "exec" }, effect: { type: "status", status: 500 } });
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "hold" } });
    const reason = await rejection(acquire(acquireParams(provider, { timeoutMs: 400 })));
    expect(reason).toMatchObject({ sandboxId: provider.sandboxes[0]?.id });
    rule.remove();
    await nothingAlive(provider);
  });
});

describe("a creation whose answer is lost", () => {
  test.each([
    ["the connection breaks", { type: "lostReply" }],
    ["a gateway answers for the provider", { type: "status", status: 502, when: "after" }],
    ["the answer is no JSON", { type: "invalidJson" }],
  ] as const)("%s: the sandbox is found by its name and removed, and the failure surfaces", async (_, effect) => {
    const provider = await provide();
    // Others of the same account are left alone.
    await makeSandbox(provider);
    provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect });
    const failure = (await rejection(acquire(acquireParams(provider)))) as { code?: string };
    expect(failure.code).toMatch(/^ERR_CREATEOS_(?:CONNECTION|API|RESPONSE)$/u);
    const [other, lost, ...more] = provider.sandboxes;
    expect(more).toEqual([]);
    expect(other?.status).toBe("running");
    await provider.waitForState(lost?.id ?? "", "destroyed");
  });

  test("a creation that the provider refused is not looked for", async () => {
    const provider = await provide();
    provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "status", status: 402 } });
    await rejection(acquire(acquireParams(provider)));
    expect(provider.requests.map(({ route }) => route)).toEqual(["sandbox.create"]);
  });
});
