// The provider contract, sections 2 to 7 and 14, by raw requests.

import { describe, expect, test } from "vitest";

import { next, statuses } from "./state.mjs";
import { caller, idOf, provide } from "./support.mjs";

describe("state machine", () => {
  test("every illegal event leaves no state, and terminal states stay", () => {
    for (const state of statuses) {
      if (state !== "running" && state !== "paused") expect(next(state, "pause")).toBeUndefined();
      if (!["paused", "error", "running"].includes(state)) expect(next(state, "resume")).toBeUndefined();
      expect(next(state, "destroy")).toBeDefined();
    }
    expect(next("destroyed", "destroy")).toBe("destroyed");
    expect(next("running", "resume")).toBe("running");
  });
});

describe("admission", () => {
  test("a missing, unknown or shadowed key is 401, open routes need none", async () => {
    const provider = await provide();
    const { raw } = caller(provider);
    expect((await raw("GET /v1/sandboxes", undefined, { headers: { "x-api-key": "wrong" } })).status).toBe(401);
    expect((await fetch(`${provider.url}/v1/sandboxes`)).status).toBe(401);
    expect((await raw("GET /v1/sandboxes", undefined, { headers: { authorization: "Bearer x" } })).status).toBe(401);
    for (const path of ["/healthz", "/readyz", "/v1/shapes", "/v1/rootfs"])
      expect((await fetch(provider.url + path)).status).toBe(200);
  });

  test("a foreign sandbox does not exist", async () => {
    const provider = await provide({ apiKeys: { "key-a": "a", "key-b": "b" } });
    const mine = caller(provider, { key: "key-a" });
    const other = caller(provider, { key: "key-b" });
    const box = await mine.create({ name: "same" });
    await other.create({ name: "same" });
    for (const call of [`GET ${box}`, `DELETE ${box}`, `POST ${box}/pause`, `GET ${box}/egress`, `POST ${box}/exec`]) {
      expect((await other.raw(call)).status).toBe(404);
    }
    expect((await other.json("GET /v1/sandboxes")).data.pagination.total).toBe(1);
    expect(JSON.stringify(provider.requests)).not.toContain("key-a");
  });

  test("the rate limit answers 429 with Retry-After and records violations", async () => {
    const provider = await provide({ rateLimit: { requests: 3, windowMs: 60_000 } });
    const { raw } = caller(provider);
    for (let i = 0; i < 3; i += 1) expect((await raw("GET /v1/sandboxes")).status).toBe(200);
    const refused = await raw("GET /v1/sandboxes");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(provider.rateLimit.violations).toHaveLength(1);
  });

  test("strictBody refuses a pause without JSON, bodies {} and null pass", async () => {
    const provider = await provide({ switches: { strictBody: true } });
    const { raw, create } = caller(provider);
    const box = await create();
    expect((await raw(`POST ${box}/pause`)).status).toBe(411);
    expect((await raw(`POST ${box}/resume`, null)).status).toBe(200);
    expect((await raw(`POST ${box}/pause`, {})).status).toBe(202);
    expect(provider.requests.at(-1)).toMatchObject({
      route: "sandbox.pause",
      contentType: "application/json",
      body: {},
    });
  });
});

describe("sandbox calls", () => {
  test("create answers a running sandbox and validates", async () => {
    const { json, create } = caller(await provide());
    const made = await json("POST /v1/sandboxes", {
      shape: "s-1vcpu-1gb",
      name: "n",
      future_field: 1,
      envs: { A: "secret" },
      ingress_enabled: true,
    });
    expect(made).toMatchObject({
      status: 200,
      data: { status: "running", name: "n", bandwidth_quota_bytes: expect.any(Number) },
    });
    const view = await json(`GET /v1/sandboxes/${made.data.id}`);
    expect(view.data).toMatchObject({
      id: made.data.id,
      status: "running",
      envs: ["A"],
      created_at: expect.any(String),
      ingress_enabled: true,
    });
    expect(JSON.stringify(view.data)).not.toContain("secret");
    expect((await json("POST /v1/sandboxes", { shape: "s-1vcpu-1gb", name: "n" })).status).toBe(409);
    for (const bad of [
      {},
      { shape: "nope" },
      { auto_pause_after_seconds: 59 },
      { bandwidth_quota_bytes: 1 },
      { envs: { 1: "x" } },
      { egress: ["http://x"] },
      { region: "moon" },
      { rootfs: "nope" },
    ]) {
      expect(
        (
          await json("POST /v1/sandboxes", {
            ...("shape" in bad || Object.keys(bad).length === 0 ? {} : { shape: "s-1vcpu-1gb" }),
            ...bad,
          })
        ).status,
      ).toBe(400);
    }
    expect(await create()).toMatch(/sb-/);
  });

  test("the name is free again after destruction", async () => {
    const provider = await provide();
    const { json, create } = caller(provider);
    const box = await create({ name: "n" });
    await json(`DELETE ${box}`);
    await provider.waitForState(idOf(box), "destroyed");
    expect((await json("POST /v1/sandboxes", { shape: "s-1vcpu-1gb", name: "n" })).status).toBe(200);
  });

  test("list pages, clamps at 500 and filters before the limit", async () => {
    const provider = await provide({ isolation: "rewrite" });
    const { json, create } = caller(provider);
    const boxes = await Promise.all([create(), create(), create()]);
    await json(`POST ${boxes[0]}/pause`, {});
    await provider.waitForState(idOf(/** @type {string} */ (boxes[0])), "paused");
    expect((await json("GET /v1/sandboxes?limit=9999")).data.pagination).toEqual({
      total: 3,
      limit: 500,
      offset: 0,
      count: 3,
    });
    expect((await json("GET /v1/sandboxes?limit=2&offset=2")).data.data).toHaveLength(1);
    expect((await json("GET /v1/sandboxes?status=paused&limit=1")).data).toMatchObject({
      pagination: { total: 1 },
      data: [{ id: idOf(/** @type {string} */ (boxes[0])) }],
    });
    expect((await json("GET /v1/whoami")).data.stats).toEqual({ running: 2, paused: 1, other: 0, total: 3 });
  });

  test("pause 202, 200, 409 and resume 202, 200, 409, with the poll hint", async () => {
    const provider = await provide();
    const { json, create } = caller(provider);
    const box = await create();
    const id = idOf(box);
    // Transitions last until the test has looked.
    provider.faults.add({ match: { path: ["sandbox.pause", "sandbox.resume"] }, effect: { type: "stuck" } });
    const first = await json(`POST ${box}/pause`, {});
    expect(first).toMatchObject({ status: 202, data: { status: "pausing", vcpu: 1 } });
    expect(first.headers.get("x-poll-after")).toBe("1");
    expect((await json(`POST ${box}/pause`)).status).toBe(409);
    expect((await json(`POST ${box}/resume`)).status).toBe(409);
    provider.guest.unstick(id);
    await provider.waitForState(id, "paused");
    expect((await json(`POST ${box}/pause`)).status).toBe(200);
    expect((await json(`POST ${box}/exec`, { cmd: "true" })).status).toBe(409);
    expect((await json(`PUT ${box}/egress`, { egress: ["a.example"] })).data.egress).toEqual(["a.example"]);
    expect((await json(`POST ${box}/resume`)).status).toBe(202);
    expect((await json(`POST ${box}/pause`)).status).toBe(409);
    provider.guest.unstick(id);
    await provider.waitForState(id, "running");
    expect((await json(`POST ${box}/resume`)).status).toBe(200);
    expect(provider.sandbox(id)?.history.map((one) => one.status)).toEqual([
      "creating",
      "running",
      "pausing",
      "paused",
      "resuming",
      "running",
    ]);
  });

  test("delete answers destroying, then destroyed, again and again", async () => {
    const provider = await provide();
    const { json, create } = caller(provider);
    const box = await create();
    provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "stuck" } });
    expect(await json(`DELETE ${box}`)).toMatchObject({ status: 200, data: { id: idOf(box), status: "destroying" } });
    expect((await json(`DELETE ${box}`)).data.status).toBe("destroying");
    await provider.waitForState(idOf(box), "destroyed");
    expect((await json(`GET ${box}`)).data).toMatchObject({ status: "destroyed", destroyed_at: expect.any(String) });
    expect((await json(`DELETE ${box}`)).data.status).toBe("destroyed");
    provider.switches.destroyedIs404 = true;
    expect((await json(`GET ${box}`)).status).toBe(404);
  });

  test("patch sets and clears auto-pause, and an idle sandbox pauses by itself", async () => {
    const provider = await provide({ autoPauseScale: 0.001 });
    const { json, create } = caller(provider);
    const box = await create();
    expect((await json(`PATCH ${box}`, { auto_pause_after_seconds: 90_000 })).status).toBe(400);
    expect(
      (await json(`PATCH ${box}`, { auto_pause_after_seconds: 80_000, disable_auto_pause: false })).data
        .auto_pause_after_seconds,
    ).toBe(80_000);
    expect((await json(`PATCH ${box}`, { disable_auto_pause: true })).data).not.toHaveProperty(
      "auto_pause_after_seconds",
    );
    await json(`PATCH ${box}`, { auto_pause_after_seconds: 60 });
    await provider.waitForState(idOf(box), "paused");
  });

  test("a fork of a paused sandbox has its files, and a life of its own", async () => {
    const provider = await provide();
    const { json, raw, create } = caller(provider);
    const box = await create({ envs: { A: "1" } });
    await raw(`PUT ${box}/files?path=/tmp/x`, Buffer.from("shared"));
    expect((await json(`POST ${box}/fork`)).status).toBe(409);
    await json(`POST ${box}/pause`);
    await provider.waitForState(idOf(box), "paused");
    const { data } = await json(`POST ${box}/fork`, {});
    expect(data).toMatchObject({ status: "forking", forked_from: idOf(box), envs: ["A"] });
    await provider.waitForState(data.id, "running");
    expect(await (await raw(`GET /v1/sandboxes/${data.id}/files?path=/tmp/x`)).text()).toBe("shared");
  });

  test("the smaller calls: by address, bandwidth, keys, disk", async () => {
    const { json } = caller(await provide());
    const { data } = await json("POST /v1/sandboxes", { shape: "s-1vcpu-1gb" });
    const box = `/v1/sandboxes/${data.id}`;
    expect((await json(`GET /v1/sandboxes/by-ip/${data.ip}`)).data.id).toBe(data.id);
    expect((await json("GET /v1/sandboxes/by-ip/10.0.0.1")).status).toBe(404);
    const { data: before } = await json(`GET ${box}/bandwidth`);
    expect((await json(`POST ${box}/bandwidth/recharge`, { add_bytes: 5 })).data.quota_bytes).toBe(
      before.quota_bytes + 5,
    );
    expect((await json(`POST ${box}/ssh-pubkeys`, { keys: ["a", "a", "b"] })).data).toEqual({ count: 2 });
    expect((await json(`POST ${box}/resize`, { disk_mib: data.disk_mib - 1 })).status).toBe(400);
    expect((await json(`POST ${box}/resize`, { disk_mib: data.disk_mib * 2 })).data.disk_mib).toBe(data.disk_mib * 2);
  });

  test("402 without credit, and failure bodies in every form", async () => {
    const provider = await provide({ switches: { credit: false } });
    const { json, raw } = caller(provider);
    expect((await json("POST /v1/sandboxes", { shape: "s-1vcpu-1gb" })).status).toBe(402);
    provider.switches.failData = "string";
    expect((await json("GET /v1/sandboxes/none")).envelope).toEqual({ status: "fail", data: "sandbox not found" });
    provider.switches.failData = "null";
    expect((await json("GET /v1/sandboxes/none")).data).toBeNull();
    provider.switches.failData = "html";
    expect((await raw("GET /v1/sandboxes/none")).headers.get("content-type")).toBe("text/html");
  });
});
