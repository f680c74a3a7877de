// Leases that are not to be used any more (specification, section 8).
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { looseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { EXPIRED, expectResumed, pause, persist, resume, writeMarker } from "./support/resumes.js";
import { rejection, within } from "./support/waiting.js";

describe("told without a request", () => {
  const idle = { autoPauseAfterSeconds: 60 };
  const adapters = { rootfsByAdapter: { "adapter-a": "tpl-a" } };
  const uuid = randomUUID();
  /** What a field that should be text may not be. */
  const noText = [7, true, {}, [], ["s-1vcpu-1gb"], 1n];
  const cases: [string, object, object[]][] = [
    [
      "a marker of another form",
      {},
      [
        "",
        uuid.slice(1),
        `${uuid}0`,
        uuid.toUpperCase().replace(/\d/gu, "A"),
        `${uuid.slice(1)}g`,
        `${uuid.slice(1)}\n`,
        ` ${uuid.slice(1)}`,
        `${uuid.slice(1)}é`,
        `${uuid.slice(1)}\ud800`,
        "0".repeat(35) + "\0",
        undefined,
        null,
        ...noText,
        [uuid],
        new String(uuid),
      ].map((marker) => ({ marker })),
    ],
    [
      "another shape",
      {},
      ["s-2vcpu-2gb", "S-1VCPU-1GB", "s-1vcpu-1gb ", "", null, ...noText].map((shape) => ({ shape })),
    ],
    ["a root filesystem where none is configured", {}, ["tpl-a", "", ...noText].map((rootfs) => ({ rootfs }))],
    [
      "another root filesystem",
      { rootfs: "tpl-a" },
      ["tpl-b", "", null, undefined, ...noText].map((rootfs) => ({ rootfs })),
    ],
    [
      "another root filesystem than the adapter's",
      { rootfs: "tpl", ...adapters },
      [
        { adapterType: "adapter-a", rootfs: "tpl" },
        { adapterType: "adapter-a", rootfs: null },
        { adapterType: "adapter-b", rootfs: "tpl-a" },
        { adapterType: "Adapter-A", rootfs: "tpl-a" },
        { adapterType: null, rootfs: "tpl-a" },
        { adapterType: 7, rootfs: "tpl-a" },
        { adapterType: ["adapter-a"], rootfs: "tpl-a" },
      ],
    ],
    ["a region where none is configured", {}, ["eu", "", ...noText].map((region) => ({ region }))],
    ["another region", { region: "eu" }, ["us", "EU", "", null, undefined, ...noText].map((region) => ({ region }))],
    [
      "an idle timer where none is configured",
      {},
      [60, 0, Number.NaN, "60", true, {}, [60]].map((autoPauseAfterSeconds) => ({ autoPauseAfterSeconds })),
    ],
    [
      "another idle timer",
      idle,
      [61, null, undefined, 60.5, "60", true, {}, [60]].map((autoPauseAfterSeconds) => ({ autoPauseAfterSeconds })),
    ],
    ["an idle timer, and leases are not reused", { ...idle, reuseLease: false }, [{ autoPauseAfterSeconds: 60 }]],
    [
      "other rules of the configuration",
      { egressAllowlist: ["a.example", "b.example"] },
      [
        ["b.example", "a.example"],
        ["a.example", "b.example", "c.example"],
        ["a.example"],
        ["a.example", "b.example", "b.example"],
        ["a.example", "B.example"],
        [],
        null,
        undefined,
        "a.example",
        { 0: "a.example", 1: "b.example", length: 2 },
        ["a.example", 7],
        [["a.example"], "b.example"],
        7,
        true,
      ].map((baseEgressAllowlist) => ({ baseEgressAllowlist })),
    ],
    ["rules where the configuration has none", { egressAllowlist: [] }, [{}, { baseEgressAllowlist: ["x.example"] }]],
    [
      "effective rules that are none",
      {},
      ["run.example", 7, true, {}, ["run.example", 7], ["run.example", null], [["run.example"]], [undefined]].map(
        (effectiveEgressAllowlist) => ({ effectiveEgressAllowlist }),
      ),
    ],
  ];
  test.each(cases)("%s", async (_name, config, records) => {
    const provider = await provide();
    const kept = await persist(provider, { config });
    const start = provider.requests.length;
    const driver = looseDriver();
    for (const metadata of records) {
      const answer = await resume(kept.params({ metadata: { ...metadata } }), driver);
      expect(answer, Object.entries(metadata).map(String).join()).toEqual(EXPIRED);
      // Each a fresh one: a caller may keep it and change it.
      answer.metadata.changed = true;
    }
    expect(routesSince(provider, start)).toEqual([]);
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
  });
});

describe("told after a request", () => {
  const routes = ["sandbox.get", "egress.put", "sandbox.resume", "exec"];

  test.each(routes)("HTTP 404 of %s, whatever its body says", async (route) => {
    const provider = await provide();
    const kept = await persist(provider);
    for (const body of [undefined, '{"status":"success","data":{}}', "<html>500</html>", ""]) {
      await pause(provider, kept.id);
      const effect = { type: "status" as const, status: 404, ...(body === undefined ? {} : { body }) };
      const rule = provider.faults.add({ match: { path: route }, effect });
      const start = provider.requests.length;
      expect(await resume(kept.params())).toEqual(EXPIRED);
      expect(routesSince(provider, start).at(-1)).toBe(route);
      rule.remove();
    }
    // Nothing is removed on the way.
    expect(routesSince(provider, 0)).not.toContain("sandbox.destroy");
    expect(provider.sandbox(kept.id)?.status).not.toBe("destroyed");
  });

  test("HTTP 404 of a later look", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    for (const skip of [1, 2]) {
      await pause(provider, kept.id);
      const effect = { type: "status", status: 404 } as const;
      const rule = provider.faults.add({ match: { path: "sandbox.get" }, skip, effect });
      expect(await resume(kept.params())).toEqual(EXPIRED);
      rule.remove();
    }
  });

  test("a sandbox that nobody knows", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    const start = provider.requests.length;
    expect(await resume(kept.params({ id: "sb-none" }))).toEqual(EXPIRED);
    expect(routesSince(provider, start)).toEqual(["sandbox.get"]);
  });

  test.each([true, false])("a destroyed one, with 404 as the provider's answer: %s", async (destroyedIs404) => {
    const provider = await provide({ switches: { destroyedIs404 } });
    for (const state of ["paused", "running"] as const) {
      const kept = await persist(provider, { state });
      provider.guest.delete(kept.id);
      await provider.waitForState(kept.id, "destroyed");
      const start = provider.requests.length;
      expect(await resume(kept.params())).toEqual(EXPIRED);
      expect(routesSince(provider, start)).toEqual(["sandbox.get"]);
    }
  });

  test("a failed one", async () => {
    const provider = await provide();
    for (const state of ["paused", "running"] as const) {
      const kept = await persist(provider, { state });
      provider.guest.fail(kept.id);
      const start = provider.requests.length;
      expect(await resume(kept.params())).toEqual(EXPIRED);
      expect(routesSince(provider, start)).toEqual(["sandbox.get"]);
    }
  });

  test.each([true, false])("one that is being destroyed, at its end (404: %s)", async (destroyedIs404) => {
    const provider = await provide({ switches: { destroyedIs404 } });
    const kept = await persist(provider);
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "stuck" } });
    await looseDriver().destroy(kept.params());
    expect(rule.hits).toBe(1);
    expect(provider.sandbox(kept.id)?.status).toBe("destroying");
    const mark = provider.mark();
    const start = provider.requests.length;
    const resumed = resume(kept.params());
    await provider.waitForRequest("sandbox.get", { since: mark });
    provider.guest.unstick(kept.id);
    expect(await within(resumed)).toEqual(EXPIRED);
    expect(new Set(routesSince(provider, start))).toEqual(new Set(["sandbox.get"]));
  });

  test.each([true, false])("one that goes between a look and what follows it (404: %s)", async (destroyedIs404) => {
    const provider = await provide({ switches: { destroyedIs404 } });
    for (const route of routes.slice(1)) {
      const kept = await persist(provider);
      const rule = provider.faults.add({ match: { path: route, sandboxId: kept.id }, effect: { type: "guestDelete" } });
      expect(await resume(kept.params()), route).toEqual(EXPIRED);
      expect(rule.hits).toBeGreaterThan(0);
      rule.remove();
    }
  });

  test("one that fails while it resumes", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    provider.faults.add({ match: { path: "sandbox.resume" }, effect: { type: "stuck" } });
    const rule = provider.faults.add({
      match: { path: "sandbox.get", when: () => provider.sandbox(kept.id)?.status === "resuming" },
      effect: { type: "patch", set: { status: "failed" } },
    });
    const start = provider.requests.length;
    expect(await resume(kept.params())).toEqual(EXPIRED);
    expect(rule.hits).toBeGreaterThan(0);
    expect(routesSince(provider, start)).not.toContain("exec");
  });
});

describe("another marker in the sandbox", () => {
  const contents: [string, (marker: string) => string | undefined][] = [
    ["another", () => randomUUID()],
    ["none", () => undefined],
    ["an empty one", () => ""],
    ["the same and a line break", (marker) => `${marker}\n`],
    ["the same after a space", (marker) => ` ${marker}`],
    ["the same in upper case", (marker) => `${marker.slice(1)}F`.toUpperCase()],
  ];
  test.each(contents)("%s: a sandbox found paused is paused again", async (_name, contentOf) => {
    const provider = await provide();
    const kept = await persist(provider);
    const directory = provider.sandbox(kept.id)?.directory ?? "";
    const content = contentOf(kept.marker);
    if (content === undefined) await rm(path.join(directory, "paperclip-workspace"), { recursive: true });
    else await writeMarker(provider, kept.id, content);
    const start = provider.requests.length;
    expect(await resume(kept.params())).toEqual(EXPIRED);
    const routes = routesSince(provider, start);
    expect(routes.slice(routes.indexOf("exec"))).toContain("sandbox.pause");
    expect(routes).not.toContain("sandbox.destroy");
    expect(provider.sandbox(kept.id)?.status).toBe("paused");
  });

  test("one found running is left running, one found in error is too", async () => {
    const provider = await provide();
    for (const crashed of [false, true]) {
      const kept = await persist(provider, { state: "running" });
      await writeMarker(provider, kept.id, randomUUID());
      if (crashed) provider.guest.crash(kept.id);
      const start = provider.requests.length;
      expect(await resume(kept.params())).toEqual(EXPIRED);
      expect(routesSince(provider, start).at(-1)).toBe("exec");
      expect(provider.sandbox(kept.id)?.status).toBe("running");
    }
  });

  test("a command that ran and could not read it: expired", async () => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const result = { exit_code: 1, stdout: kept.marker, stderr: "no such file" };
    provider.faults.add({ match: { path: "exec" }, effect: { type: "patch", set: { result } } });
    expect(await resume(kept.params())).toEqual(EXPIRED);
  });

  test.each([
    ["that could not start", { exit_code: 0, stdout: "", error: "no memory" }, "ERR_CREATEOS_SETUP"],
    ["that was not found", { exit_code: 127, stdout: "" }, "ERR_CREATEOS_SETUP"],
    ["that was killed", { exit_code: 137, stdout: "" }, "ERR_CREATEOS_SETUP"],
    ["whose exit is not told", { stdout: "" }, "ERR_CREATEOS_RESPONSE"],
    ["whose output is not told", { exit_code: 0 }, "ERR_CREATEOS_RESPONSE"],
  ])("a command %s proves nothing", async (_name, result, code) => {
    const provider = await provide();
    const kept = await persist(provider, { state: "running" });
    const rule = provider.faults.add({ match: { path: "exec" }, effect: { type: "patch", set: { result } } });
    expect(await rejection(resume(kept.params()))).toMatchObject({ code });
    rule.remove();
    expectResumed(await resume(kept.params()), kept.params());
  });

  test("when pausing it again fails, that surfaces, and nothing is proven", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    await writeMarker(provider, kept.id, randomUUID());
    const rule = provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "status", status: 500 } });
    expect(await rejection(resume(kept.params()))).toMatchObject({ code: "ERR_CREATEOS_API", status: 500 });
    rule.remove();
    await pause(provider, kept.id);
    await writeMarker(provider, kept.id, kept.marker);
    expectResumed(await resume(kept.params()), kept.params());
  });

  test("a sandbox that has gone when it is to be paused again has expired", async () => {
    const provider = await provide();
    const kept = await persist(provider);
    await writeMarker(provider, kept.id, randomUUID());
    provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "guestDelete" } });
    expect(await resume(kept.params())).toEqual(EXPIRED);
    await provider.waitForState(kept.id, "destroyed");
  });
});

test("an expired lease can be destroyed with the old id and metadata", async () => {
  const provider = await provide();
  const kept = await persist(provider);
  const driver = looseDriver();
  const params = kept.params({ config: { shape: "s-2vcpu-2gb" } });
  expect(await resume(params, driver)).toEqual(EXPIRED);
  await within(driver.destroy(params));
  await provider.waitForState(kept.id, "destroyed");
});
