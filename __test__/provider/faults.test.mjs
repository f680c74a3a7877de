// Every fault of the rule engine does what its name says (provider contract, sections 18 and 19).

import http from "node:http";
import { describe, expect, test } from "vitest";

import { caller, frames, idOf, provide } from "./support.mjs";

/** @param {import("./types.mjs").ProviderOptions} [options] */
async function arrange(options = { isolation: "rewrite" }) {
  const provider = await provide(options);
  return { provider, ...caller(provider) };
}

describe("replies", () => {
  test("lost after it took effect, or before", async () => {
    const { provider, raw } = await arrange();
    provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "lostReply" } });
    await expect(raw("POST /v1/sandboxes", { shape: "s-1vcpu-1gb" })).rejects.toThrow();
    expect(provider.sandboxes).toHaveLength(1);
    provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "lostRequest" } });
    await expect(raw("POST /v1/sandboxes", { shape: "s-1vcpu-1gb" })).rejects.toThrow();
    expect(provider.sandboxes).toHaveLength(1);
    expect(provider.requests.map(({ aborted, faults }) => [aborted, faults])).toEqual([
      [true, ["lostReply"]],
      [true, ["lostRequest"]],
    ]);
  });

  test("status, body, headers, times, skip and matching", async () => {
    const { provider, raw } = await arrange();
    const rule = provider.faults.add({
      match: { method: "get", path: /^\/v1\/sandboxes\?limit=/ },
      skip: 1,
      times: 1,
      effect: { type: "status", status: 429, headers: { "retry-after": "1" } },
    });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await raw("GET /v1/sandboxes?limit=1")).status);
    expect(statuses).toEqual([200, 429, 200]);
    expect(rule.hits).toBe(1);
    provider.faults.add({ times: 1, effect: { type: "status", status: 502, body: "<html>bad gateway</html>" } });
    const html = await raw("GET /v1/sandboxes");
    expect([html.status, html.headers.get("content-type")]).toEqual([502, "text/html"]);
    provider.faults.add({
      match: { path: "sandbox.create" },
      times: 1,
      effect: { type: "status", status: 503, when: "after" },
    });
    expect((await raw("POST /v1/sandboxes", { shape: "s-1vcpu-1gb" })).status).toBe(503);
    expect(provider.sandboxes).toHaveLength(1);
  });

  test("hold keeps a request until released", async () => {
    const { provider, raw, create } = await arrange();
    const box = await create();
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "hold" } });
    const reply = raw(`DELETE ${box}`);
    expect((await rule.hit).sandboxId).toBe(idOf(box));
    expect(provider.sandbox(idOf(box))?.status).toBe("running");
    rule.release();
    expect((await reply).status).toBe(200);
  });

  test("redirect names another origin", async () => {
    const { provider, raw } = await arrange();
    provider.faults.add({ effect: { type: "redirect", location: "http://127.0.0.1:1/x", status: 307 } });
    const reply = await raw("GET /v1/sandboxes");
    expect([reply.status, reply.headers.get("location")]).toEqual([307, "http://127.0.0.1:1/x"]);
  });

  test("slow and cut bodies", async () => {
    const { provider, raw } = await arrange();
    provider.faults.add({ times: 1, effect: { type: "slowBody", bytes: 16, everyMs: 1 } });
    expect((await (await raw("GET /v1/rootfs")).text()).length).toBeGreaterThan(100);
    provider.faults.add({ times: 1, effect: { type: "cutBody", after: 5 } });
    await expect(raw("GET /v1/rootfs").then((reply) => reply.text())).rejects.toThrow();
  });

  test("a huge error body, one that echoes the key, invalid JSON, odd envelopes", async () => {
    const { provider, raw } = await arrange();
    provider.faults.add({ times: 1, effect: { type: "hugeError", bytes: 3_000_000 } });
    expect((await (await raw("GET /v1/sandboxes")).arrayBuffer()).byteLength).toBe(3_000_000);
    provider.faults.add({ times: 1, effect: { type: "echoError" } });
    expect(await (await raw("POST /v1/sandboxes", { secret: "in body" })).text()).toContain(provider.apiKey);
    provider.faults.add({ times: 1, effect: { type: "invalidJson" } });
    await expect((await raw("GET /v1/sandboxes")).json()).rejects.toThrow();
    provider.faults.add({ times: 1, effect: { type: "envelope", variant: "nullData" } });
    expect(await (await raw("GET /v1/sandboxes")).json()).toEqual({ status: "success", data: null });
    provider.faults.add({ times: 1, effect: { type: "envelope", variant: "noContent" } });
    expect((await raw("GET /v1/sandboxes")).status).toBe(204);
  });

  test("wrong id, missing field, a tree said to be alive", async () => {
    const { provider, json, create, spawn } = await arrange();
    const box = await create();
    provider.faults.add({ match: { path: "sandbox.get" }, times: 1, effect: { type: "wrongId", id: "sb-other" } });
    expect((await json(`GET ${box}`)).data.id).toBe("sb-other");
    provider.faults.add({ match: { path: "sandbox.get" }, times: 1, effect: { type: "patch", omit: ["status"] } });
    expect((await json(`GET ${box}`)).data).not.toHaveProperty("status");
    const one = await spawn(box, "exit 0");
    provider.faults.add({ match: { path: "process.delete" }, times: 1, effect: { type: "treeAlive" } });
    expect((await json(`DELETE ${box}/processes/${one.process_id}`)).data.tree_exited).toBe(false);
  });
});

describe("states", () => {
  test("stuck, then unstuck", async () => {
    const { provider, json, create } = await arrange();
    const box = await create();
    provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "stuck" } });
    await json(`POST ${box}/pause`);
    expect((await json(`GET ${box}`)).data.status).toBe("pausing");
    provider.guest.unstick(idOf(box));
    await provider.waitForState(idOf(box), "paused");
    const rule = provider.faults.add({ match: { path: "sandbox.destroy" }, times: 1, effect: { type: "stuck" } });
    expect((await json(`DELETE ${box}`)).data.status).toBe("destroying");
    await rule.hit;
    await json(`DELETE ${box}`);
    await provider.waitForState(idOf(box), "destroyed");
  });

  test("a resume that ends in error, then succeeds", async () => {
    const { provider, json, create } = await arrange();
    const box = await create();
    await json(`POST ${box}/pause`);
    await provider.waitForState(idOf(box), "paused");
    provider.faults.add({ match: { path: "sandbox.resume" }, times: 1, effect: { type: "resumeError" } });
    expect((await json(`POST ${box}/resume`)).status).toBe(202);
    await provider.waitForState(idOf(box), "error");
    const mark = provider.mark();
    expect((await json(`POST ${box}/resume`)).status).toBe(202);
    await provider.waitForState(idOf(box), "running", { since: mark });
  });

  test("the old state echoes for the asked number of reads", async () => {
    const { provider, json, create } = await arrange();
    const box = await create();
    provider.faults.add({ match: { path: "sandbox.pause" }, effect: { type: "oldState", reads: 2 } });
    await json(`POST ${box}/pause`);
    await provider.waitForState(idOf(box), "paused");
    const seen = [];
    for (let i = 0; i < 3; i += 1) seen.push((await json(`GET ${box}`)).data.status);
    expect(seen).toEqual(["running", "running", "paused"]);
  });

  test("the guest deletes its own sandbox in the middle of a command", async () => {
    const { provider, raw, create } = await arrange();
    const box = await create();
    const running = raw(`POST ${box}/exec`, { cmd: "sleep", args: ["300"] });
    await provider.waitFor((event) => event.type === "process:start");
    provider.guest.delete(idOf(box));
    await expect(running).rejects.toThrow();
    await provider.waitForState(idOf(box), "destroyed");
  });
});

describe("frames", () => {
  const cases = /** @type {const} */ ([
    ["duplicate", '"seq":1.*\\n.*"seq":1'],
    ["gap", '^\\{"type":"exit"'],
    ["malformed", '"seq":\\n'],
    ["unknown", '"telemetry"'],
    ["badStream", '"stdlog"'],
    ["badBase64", "\\*not"],
    ["pty", '"stream":"pty"'],
    ["error", '"type":"error"'],
    ["eof", "^$"],
    ["halfLine", "^[^\\n]+$"],
    ["exitWithoutStatus", '\\{"type":"exit"\\}'],
    ["eofBeforeExit", '"seq":1[^\\n]*\\n$'],
    ["oversized", "A{2097152}"],
  ]);
  test.each(cases)("%s", async (what, pattern) => {
    const { provider, raw, create, json, spawn } = await arrange();
    const box = await create();
    const one = await spawn(box, "echo hi");
    const at = `${box}/processes/${one.process_id}`;
    await json(`GET ${at}/wait?scope=tree`);
    provider.faults.add({ match: { path: "process.connect" }, times: 1, effect: { type: "frame", what } });
    expect(await (await raw(`GET ${at}/connect`)).text()).toMatch(new RegExp(pattern, "s"));
    expect((await frames(await raw(`GET ${at}/connect`))).map((frame) => frame.type)).toEqual(["data", "exit"]);
  });
});

test("a client that goes away is logged as aborted", async () => {
  const { provider } = await arrange();
  const rule = provider.faults.add({ effect: { type: "hold" } });
  const request = http.get(`${provider.url}/healthz`);
  request.on("error", () => {});
  await rule.hit;
  request.destroy();
  const event = await provider.waitFor((one) => one.type === "request:finish");
  expect(/** @type {import("./types.mjs").RequestEvent} */ (event).request.aborted).toBe(true);
});
