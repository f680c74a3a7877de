// The provider contract, section 9: managed processes, their journal and their tree.

import { describe, expect, test } from "vitest";

import { members } from "./proctree.mjs";
import { caller, firstOutput, frames, idOf, provide, text } from "./support.mjs";

/** @typedef {import("./index.mjs").Provider} Provider */

/** @param {import("./types.mjs").ProviderOptions} [options] */
async function arrange(options) {
  const provider = await provide(options);
  const api = caller(provider);
  const box = await api.create({ envs: { A: "1" } });
  /** @param {{process_id: string}} one */
  const at = (one) => `${box}/processes/${one.process_id}`;
  return { provider, box, at, ...api };
}

/** @param {string} content */
const base64 = (content) => Buffer.from(content).toString("base64");

describe("output", () => {
  test("replays from the start, after a sequence, and ends with exit", async () => {
    const { box, at, raw, json, spawn } = await arrange();
    const one = await spawn(box, "echo out; echo err >&2; exit 3");
    await json(`GET ${at(one)}/wait?scope=tree`);
    const all = await frames(await raw(`GET ${at(one)}/connect?after=0`));
    expect(text(all, "stdout")).toBe("out\n");
    expect(text(all, "stderr")).toBe("err\n");
    expect(all.map((frame) => frame.seq)).toEqual([1, 2, undefined]);
    expect(all.at(-1)).toEqual({ type: "exit", exit_code: 3 });
    expect(await frames(await raw(`GET ${at(one)}/connect?after=2`))).toEqual([{ type: "exit", exit_code: 3 }]);
  });

  test("follows live output with heartbeats", async () => {
    const { box, at, raw, json, spawn } = await arrange({ heartbeatMs: 5 });
    const one = await spawn(box, "read line; echo got $line");
    const response = await raw(`GET ${at(one)}/connect`);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain('{"type":"heartbeat"}');
    expect((await json(`POST ${at(one)}/input`, { data_base64: base64("x\n") })).data).toEqual({ input_seq: 1 });
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read())
      rest += Buffer.from(part.value).toString();
    expect(rest).toContain(base64("got x\n"));
    expect(rest.trimEnd().split("\n").at(-1)).toBe('{"type":"exit","exit_code":0}');
  });

  test("the journal keeps its newest part; an expired cursor is 410, or an error frame", async () => {
    const { provider, box, at, raw, json, spawn } = await arrange({ journalBytes: 4096, frameBytes: 1024 });
    const one = await spawn(box, "head -c 20000 /dev/zero");
    const { data } = await json(`GET ${at(one)}/wait?scope=tree`);
    expect(data.output.newest_seq).toBeGreaterThan(19);
    expect(data.output.bytes).toBeLessThanOrEqual(4096);
    expect((await raw(`GET ${at(one)}/connect?after=1`)).status).toBe(410);
    const kept = await frames(await raw(`GET ${at(one)}/connect`));
    expect(kept[0].seq).toBe(data.output.oldest_seq);
    provider.switches.expiredOutput = "frame";
    expect(await frames(await raw(`GET ${at(one)}/connect?after=1`))).toEqual([
      { type: "error", error: "output_offset_expired", oldest_available_seq: data.output.oldest_seq },
    ]);
  });

  test("a slow reader slows the process and loses nothing", async () => {
    const { box, at, raw, spawn } = await arrange();
    const one = await spawn(box, "read go; head -c 20000000 /dev/zero");
    const response = await raw(`GET ${at(one)}/connect`);
    await raw(`POST ${at(one)}/input`, { data_base64: base64("go\n") });
    let seen = 0;
    let bytes = 0;
    for (const frame of await frames(response)) {
      if (frame.type !== "data") continue;
      expect(frame.seq).toBe(seen + 1);
      seen = frame.seq;
      bytes += Buffer.from(frame.data_base64, "base64").length;
    }
    expect(bytes).toBe(20_000_000);
  });

  test("without backpressure a reader that lags finds its output evicted", async () => {
    const { box, at, raw, json, spawn } = await arrange({ switches: { backpressure: false } });
    const one = await spawn(box, "read go; head -c 50000000 /dev/zero");
    const response = await raw(`GET ${at(one)}/connect`);
    await raw(`POST ${at(one)}/input`, { data_base64: base64("go\n") });
    await json(`GET ${at(one)}/wait?scope=tree`);
    expect((await frames(response)).at(-1)).toMatchObject({ type: "error", error: "output_offset_expired" });
  });

  test("with it, a process whose reader does not read does not end", async () => {
    const { box, at, raw, json, spawn } = await arrange();
    const one = await spawn(box, "read go; head -c 50000000 /dev/zero");
    const response = await raw(`GET ${at(one)}/connect`);
    await raw(`POST ${at(one)}/input`, { data_base64: base64("go\n") });
    expect((await json(`GET ${at(one)}/wait?timeout_ms=200`)).status).toBe(408);
    expect((await frames(response)).at(-1)).toEqual({ type: "exit", exit_code: 0 });
  });

  test("synthetic output has the asked size", async () => {
    const { box, at, raw, json } = await arrange();
    const { data } = await json(`POST ${box}/processes`, { cmd: "createos:synthetic", args: ["100001", "1000"] });
    const all = await frames(await raw(`GET ${at(data)}/connect?after=0`));
    expect(all.slice(0, -1).map((frame) => frame.seq)).toEqual(Array.from({ length: 101 }, (_, index) => index + 1));
    expect(Buffer.byteLength(text(all, "stdout"))).toBe(100_001);
    expect((await json(`GET ${at(data)}/wait?scope=tree`)).data.tree_exited).toBe(true);
  });

  test("with the option, every process gives synthetic output", async () => {
    const { box, at, raw, json } = await arrange({ synthetic: { bytes: 10, frameBytes: 4, text: "ab" } });
    const { data } = await json(`POST ${box}/processes`, { cmd: "/bin/bash", args: ["-lc", "exit 7"] });
    expect((await json(`POST ${at(data)}/stdin/close`)).status).toBe(200);
    const all = await frames(await raw(`GET ${at(data)}/connect?after=0`));
    expect(text(all, "stdout")).toBe("ababababab");
    expect(all.at(-1)).toEqual({ type: "exit", exit_code: 0 });
    expect((await json(`POST ${at(data)}/stdin/close`)).status).toBe(409);
  });
});

describe("control", () => {
  test("the object echoes the request and tells the exit", async () => {
    const { box, at, json, spawn } = await arrange();
    const one = await spawn(box, "exit 7", {
      args: ["-c", "exit 7", "marker"],
      cwd: "/paperclip-workspace",
      env: { A: "2" },
    });
    expect(one).toMatchObject({
      kind: "process",
      state: "running",
      leader_exited: false,
      cmd: "/bin/bash",
      args: ["-c", "exit 7", "marker"],
      cwd: "/paperclip-workspace",
    });
    expect((await json(`GET ${at(one)}/wait`)).data).toMatchObject({
      leader_exited: true,
      exit_code: 7,
      finished_at: expect.any(String),
    });
    expect((await json(`GET ${box}/processes`)).data.processes).toHaveLength(1);
    expect((await json(`POST ${box}/processes`, { cmd: "/bin/true", env: { B: "1" } })).status).toBe(400);
    expect((await json(`GET ${box}/processes/none`)).status).toBe(404);
  });

  test("wait times out with 408, the process untouched", async () => {
    const { box, at, json, spawn } = await arrange();
    const one = await spawn(box, "sleep 300");
    expect((await json(`GET ${at(one)}/wait?scope=tree&timeout_ms=10`)).status).toBe(408);
    expect((await json(`GET ${at(one)}`)).data.state).toBe("running");
  });

  test("stdin closes once, input after that is 409", async () => {
    const { box, at, json, spawn } = await arrange();
    const one = await spawn(box, "cat; sleep 300");
    expect((await json(`POST ${at(one)}/stdin/close`, null)).data).toEqual({ ok: true });
    expect((await json(`POST ${at(one)}/stdin/close`)).status).toBe(409);
    expect((await json(`POST ${at(one)}/input`, { data_base64: "" })).status).toBe(409);
    expect((await json(`POST ${at(one)}/resize`, { rows: 1, cols: 1 })).status).toBe(409);
  });

  test("a signal ends the group and is told", async () => {
    const { box, at, json, spawn } = await arrange();
    const one = await spawn(box, "sleep 300 & wait");
    expect((await json(`POST ${at(one)}/signal`, { signal: "SIGSTUPID" })).status).toBe(400);
    expect((await json(`POST ${at(one)}/signal`, { signal: "SIGKILL" })).status).toBe(200);
    const { data } = await json(`GET ${at(one)}/wait?scope=tree`);
    expect(data).toMatchObject({ signal: "SIGKILL", tree_exited: true });
    expect(data).not.toHaveProperty("exit_code");
  });

  test("delete ends a tree whose leader ignores SIGTERM and whose child left the session", async () => {
    const { provider, box, at, raw, json, spawn } = await arrange();
    const one = await spawn(box, "trap '' TERM; setsid sleep 300 & echo up; while :; do sleep 300; done");
    await firstOutput(await raw(`GET ${at(one)}/connect`));
    const { data } = await json(`DELETE ${at(one)}?grace_ms=20`);
    expect(data).toMatchObject({ tree_exited: true, leader_exited: true, state: "exited", signal: "SIGKILL" });
    expect(members({ token: `${provider.runToken}/${idOf(box)}/`, leaders: [] })).toEqual([]);
  });

  test("a leader that is gone while a detached child lives", async () => {
    const { box, at, raw, json, spawn } = await arrange();
    const one = await spawn(box, "setsid sleep 300 & disown; exit 0");
    const { data } = await json(`GET ${at(one)}/wait?scope=leader`);
    expect(data.leader_exited).toBe(true);
    expect((await json(`GET ${at(one)}/wait?scope=tree&timeout_ms=30`)).status).toBe(408);
    expect((await frames(await raw(`GET ${at(one)}/connect`))).at(-1)).toEqual({ type: "exit", exit_code: 0 });
    expect((await json(`DELETE ${at(one)}?grace_ms=1000`)).data.tree_exited).toBe(true);
  });

  test("a terminal echoes, resizes and reports its size", async () => {
    const { box, at, raw, json } = await arrange();
    const { data, status } = await json(`POST ${box}/processes`, { pty: { rows: 24, cols: 80 } });
    expect(status).toBe(201);
    expect(data.kind).toBe("pty");
    await json(`POST ${at(data)}/input`, { data_base64: base64("stty size; echo ready\n") });
    const stream = /** @type {ReadableStream<Uint8Array>} */ ((await raw(`GET ${at(data)}/connect`)).body).getReader();
    let output = "";
    /** @param {RegExp} wanted */
    const until = async (wanted) => {
      while (!wanted.test(output)) {
        const part = await stream.read();
        if (part.done) throw new Error(`stream ended after ${output}`);
        for (const line of Buffer.from(part.value).toString().split("\n").filter(Boolean))
          output += Buffer.from(JSON.parse(line).data_base64 ?? "", "base64");
      }
    };
    await until(/24 80\r\nready/);
    expect((await json(`POST ${at(data)}/resize`, { rows: 32, cols: 100 })).status).toBe(200);
    await json(`POST ${at(data)}/input`, { data_base64: base64("stty size; exit\n") });
    await until(/32 100/);
    expect((await json(`GET ${at(data)}/wait?scope=tree&timeout_ms=5000`)).status).toBe(200);
  });
});

describe("pause", () => {
  test("in the middle of an exec cuts the call, and the command goes on after the resume", async () => {
    const { provider, box, raw, json, bash } = await arrange();
    const script = "echo $$ > /tmp/pid; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo done > /tmp/result";
    const running = raw(`POST ${box}/exec`, { cmd: "bash", args: ["-c", script] });
    await provider.waitFor((event) => event.type === "process:start");
    provider.guest.pause(idOf(box));
    await expect(running).rejects.toThrow();
    await provider.waitForState(idOf(box), "paused");
    await json(`POST ${box}/resume`);
    await provider.waitForState(idOf(box), "running");
    const ended = provider.waitFor((event) => event.type === "process:exit", { since: provider.mark() });
    await raw(`PUT ${box}/files?path=/tmp/go`, Buffer.from(""));
    await ended;
    expect((await bash(box, "cat /tmp/result")).stdout).toBe("done\n");
  });

  test("stops processes and cuts streams; resume continues them where they were", async () => {
    const { provider, box, at, raw, json, spawn } = await arrange();
    const one = await spawn(box, "read line; echo $line");
    const response = await raw(`GET ${at(one)}/connect`);
    await json(`POST ${box}/pause`);
    await provider.waitForState(idOf(box), "paused");
    await expect(response.text()).rejects.toThrow();
    const states = members({ token: `${provider.runToken}/${idOf(box)}/`, leaders: [] }).map(({ state }) => state);
    if (process.platform === "linux") expect(states).toEqual(["T"]);
    const mark = provider.mark();
    await json(`POST ${box}/resume`);
    await provider.waitForState(idOf(box), "running", { since: mark });
    await json(`POST ${at(one)}/input`, { data_base64: base64("on\n") });
    expect(text(await frames(await raw(`GET ${at(one)}/connect`)), "stdout")).toBe("on\n");
  });
});
