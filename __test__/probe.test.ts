// Trying a configuration out: what it answers, and what it does for that (specification, section 8).
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { acquireParams } from "./support/acquisitions.js";
import { configFaults, faultyFrom, sound } from "./support/config_faults.js";
import { MESSAGES } from "./support/errors.js";
import { NOT_RUNNING, NO_CONNECTION, NO_DATA, NO_JSON, api } from "./support/failed_requests.js";
import { badAnswers, nothingLeft, refusals, type Effect } from "./support/failed_requests.js";
import { looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { rejection, within } from "./support/waiting.js";

const OK = { ok: true, summary: "CreateOS created a sandbox and ran a command in it." };
const PROBE = "CreateOS command probe failed.";
const SETUP = "CreateOS workspace preparation failed; the image must provide Bash.";
const ROUTES = ["sandbox.create", "sandbox.get", "exec", "files.put", "exec", "sandbox.destroy"];

const failed = (summary: string) => ({ ok: false, summary });
const probe = (params: unknown, options?: unknown) => within(looseDriver().probe(params, options), 20_000);

describe("a provider that works", () => {
  test.concurrent("is told so; the sandbox was prepared like any, ran a command, and is removed", async (context) => {
    const provider = await provide({}, context);
    expect(await probe(acquireParams(provider))).toEqual(OK);
    expect(routesSince(provider, 0)).toEqual(ROUTES);
    const [prepared, echoed] = provider.requests.filter(({ route }) => route === "exec").map(({ body }) => body);
    expect(prepared.cmd).toBe("/bin/bash");
    expect(echoed).toEqual({ cmd: "/bin/echo", args: [expect.stringMatching(/\S/u)] });
    await nothingLeft(provider);
  });

  test.concurrent("is asked for what a lease would have: shape, image, region, egress", async (context) => {
    const provider = await provide({ region: "us" }, context);
    const rootfsByAdapter = { "adapter-a": "alpine:3.20" };
    const config = { rootfs: "debian:13", region: "us", egressAllowlist: ["a.example"], rootfsByAdapter };
    // What a run would add is nothing to a probe.
    const more = { adapterType: "adapter-a", requestedExpiresAt: "2030", executionWorkspaceSettings: 1 };
    expect(await probe(acquireParams(provider, config, more))).toEqual(OK);
    const { name, ...body } = provider.requests[0]?.body ?? {};
    expect(name).toMatch(/^createos-lease-/u);
    expect(body).toEqual({
      shape: "s-1vcpu-1gb",
      rootfs: "debian:13",
      region: "us",
      egress: ["a.example"],
      ingress_enabled: false,
    });
    await nothingLeft(provider);
  });

  test.concurrent("keeps nothing for reuse: no idle timer, and the sandbox is removed, not paused", async (context) => {
    const provider = await provide({}, context);
    const config = { reuseLease: true, autoPauseAfterSeconds: 60 };
    expect(await probe(acquireParams(provider, config, { issueId: "i", executionWorkspaceId: "w" }))).toEqual(OK);
    expect(provider.requests[0]?.body).not.toHaveProperty("auto_pause_after_seconds");
    expect(routesSince(provider, 0)).toEqual(ROUTES);
    await nothingLeft(provider);
  });

  test.concurrent("is tried without ids, and by several at once", async (context) => {
    const provider = await provide({}, context);
    const { config } = acquireParams(provider);
    const driver = looseDriver();
    expect(await within(Promise.all([1, 2, 3].map(() => driver.probe({ config }))))).toEqual([OK, OK, OK]);
    expect(provider.sandboxes).toHaveLength(3);
    await nothingLeft(provider);
  });

  test.concurrent("a sandbox that is gone before it is removed was removed", async (context) => {
    const provider = await provide({ switches: { destroyedIs404: true } }, context);
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "status", status: 404 } });
    expect(await probe(acquireParams(provider))).toEqual(OK);
  });

  test.concurrent("a removal that fails for a moment is tried again", async (context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "status", status: 502 } });
    expect(await probe(acquireParams(provider))).toEqual(OK);
    await nothingLeft(provider);
  });
});

describe("a configuration that will not do is told of in its own words", () => {
  test.each(configFaults)("$field: $message", async ({ field, message, values }) => {
    for (const value of values) expect(await probe({ config: { ...sound, [field]: value } })).toEqual(failed(message));
  });

  test("the first of several", async () => {
    for (const [place, { message }] of configFaults.entries())
      expect(await probe({ config: faultyFrom(place) })).toEqual(failed(message));
  });

  test("no configuration, or no parameters", async () => {
    for (const nothing of [undefined, null, 1, "text", {}, [], Symbol("s"), () => {}]) {
      expect(await probe({ config: nothing })).toEqual(failed(MESSAGES.noUrl));
      expect(await probe(nothing)).toEqual(failed(MESSAGES.noUrl));
    }
  });

  test("a key that is missing or illegal", async () => {
    const before = process.env.CREATEOS_API_KEY;
    delete process.env.CREATEOS_API_KEY;
    try {
      const config = { ...sound, apiKey: null };
      expect(await probe({ config })).toEqual(failed(MESSAGES.keyForCustomOrigin));
      const official = { ...config, apiUrl: "https://api.sb.createos.sh" };
      expect(await probe({ config: official })).toEqual(failed(MESSAGES.noKey));
      expect(await probe({ config: { ...sound, apiKey: "a\nb" } })).toEqual(failed(MESSAGES.noKey));
    } finally {
      if (before !== undefined) process.env.CREATEOS_API_KEY = before;
    }
  });

  test.concurrent("a key that no header takes, or that the provider does not know", async (context) => {
    const provider = await provide({}, context);
    expect(await probe(acquireParams(provider, { apiKey: "ключ" }))).toEqual(failed(NO_CONNECTION.message));
    expect(provider.requests).toEqual([]);
    const unknown = failed(api(401, "sandbox lifecycle").message);
    expect(await probe(acquireParams(provider, { apiKey: "unknown" }))).toEqual(unknown);
  });

  test.concurrent("a provider that is not there", async () => {
    expect(await probe({ config: { ...sound, apiUrl: "http://127.0.0.1:1" } })).toEqual(failed(NO_CONNECTION.message));
  });
});

describe("a step that fails is told of, and the sandbox is removed", () => {
  const steps = [
    ["the creation", "sandbox.create", "sandbox lifecycle", 0],
    ["the look", "sandbox.get", "sandbox lifecycle", 0],
    ["making the folders", "exec", "workspace command", 0],
    ["writing the marker", "files.put", "file transfer", 0],
    ["the command", "exec", "workspace command", 1],
  ] as const;
  describe.each(steps)("%s", (_step, path, operation, skip) => {
    // Failures of a creation that are looked behind take their time: acquire_steps.test.ts has them.
    const here = refusals.filter(([name]) => path !== "sandbox.create" || /4\d\d/u.test(name));
    test.concurrent.for(here)("%s", async ([_name, effect, expected], context) => {
      const provider = await provide({}, context);
      provider.faults.add({ match: { path }, skip, times: 1, effect });
      expect(await probe(acquireParams(provider))).toEqual(failed(expected(operation).message));
      await nothingLeft(provider);
      expect(routesSince(provider, 0).includes("sandbox.destroy")).toBe(path !== "sandbox.create");
    });

    test.concurrent.for(path === "files.put" ? [] : badAnswers)("%s", async ([_name, effect, expected], context) => {
      const provider = await provide({}, context);
      provider.faults.add({ match: { path }, skip, times: 1, effect });
      expect(await probe(acquireParams(provider))).toEqual(failed(expected.message));
      expect(routesSince(provider, 0).at(-1)).toBe("sandbox.destroy");
      await nothingLeft(provider);
    });
  });

  const shown = (fields: object): Effect => ({ type: "patch", set: { result: fields } });
  const said = { exit_code: 0, stdout: "createos-lease-ready\n", stderr: "" };
  const others: [string, string, number, Effect, string][] = [
    ["no credit", "sandbox.create", 0, { type: "status", status: 402 }, api(402, "sandbox lifecycle").message],
    ["a sandbox that fails", "sandbox.get", 0, { type: "patch", set: { status: "failed" } }, NOT_RUNNING.message],
    ["an image without Bash", "exec", 0, shown({ exit_code: 127, stdout: "", stderr: "" }), SETUP],
    ["a command that prints nothing", "exec", 1, shown({ ...said, stdout: "" }), PROBE],
    ["a command that prints something else", "exec", 1, shown({ ...said, stdout: "ready\n" }), PROBE],
    ["a command that prints something before", "exec", 1, shown({ ...said, stdout: ` ${said.stdout}` }), PROBE],
    ["a command that prints more", "exec", 1, shown({ ...said, stdout: `${said.stdout}more\n` }), PROBE],
    ["a command that prints to stderr", "exec", 1, shown({ ...said, stdout: "", stderr: said.stdout }), PROBE],
    ["a command without output", "exec", 1, shown({ exit_code: 0 }), PROBE],
    ["output that is no text", "exec", 1, shown({ ...said, stdout: [said.stdout] }), PROBE],
    ["a command that exits with a code", "exec", 1, shown({ ...said, exit_code: 1 }), PROBE],
    ["a command that a signal ends", "exec", 1, shown({ ...said, exit_code: 137 }), PROBE],
    ["a command without an exit code", "exec", 1, shown({ ...said, exit_code: null }), PROBE],
    ["an exit code that is text", "exec", 1, shown({ ...said, exit_code: "0" }), PROBE],
    ["a command that does not start", "exec", 1, shown({ ...said, error: "no such file" }), PROBE],
    ["no result", "exec", 1, { type: "patch", omit: ["result"] }, NO_DATA.message],
    ["a result of another kind", "exec", 1, { type: "patch", set: { result: "done" } }, NO_DATA.message],
    ["half an answer", "exec", 1, { type: "cutBody", after: 20 }, NO_JSON.message],
  ];
  test.concurrent.for(others)("%s", async ([_name, path, skip, effect, summary], context) => {
    const provider = await provide({}, context);
    provider.faults.add({ match: { path }, skip, effect });
    expect(await probe(acquireParams(provider))).toEqual(failed(summary));
    await nothingLeft(provider);
  });

  test.concurrent("more output than the word is none, but white space at its end is", async (context) => {
    const provider = await provide({}, context);
    const effect = shown({ ...said, stdout: "createos-lease-ready \r\n\n", error: null });
    provider.faults.add({ match: { path: "exec" }, skip: 1, effect });
    expect(await probe(acquireParams(provider))).toEqual(OK);
  });
});

describe("the parameters", () => {
  test("what a getter throws is the rejection: it is no outcome of the probe", async () => {
    const own = new Error("own");
    const throwing = (target: object, name: string) =>
      Object.defineProperty({ ...target }, name, {
        get() {
          throw own;
        },
      });
    expect(await rejection(looseDriver().probe(throwing({}, "config")))).toBe(own);
    expect(await rejection(looseDriver().probe({ config: throwing(sound, "shape") }))).toBe(own);
    expect(await rejection(looseDriver().probe({ config: sound }, throwing({}, "signal")))).toBe(own);
  });

  test.concurrent("options that are none are TypeErrors, and nothing is asked", async (context) => {
    const provider = await provide({}, context);
    const wrong = [1, "signal", true, [], Symbol("s"), () => {}, { signal: 1 }, { signal: { aborted: true } }];
    for (const options of wrong) {
      const reason = await rejection(looseDriver().probe(acquireParams(provider), options));
      expect(reason.constructor).toBe(TypeError);
    }
    expect(provider.requests).toEqual([]);
  });

  test.concurrent("options that are nothing are fine, and a signal keeps no listener", async (context) => {
    const provider = await provide({}, context);
    const { signal } = new AbortController();
    for (const options of [undefined, null, {}, { signal: null }, { signal }])
      expect(await probe(acquireParams(provider), options)).toEqual(OK);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await nothingLeft(provider);
  });
});
