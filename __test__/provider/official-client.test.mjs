// The official TypeScript client drives the provider through a whole life. It has no managed processes; those are
// judged by the wire forms of the official Rust client.

import { CreateosSandboxClient, CreateosSandboxError } from "@nodeops-createos/sandbox";
import { expect, test } from "vitest";

import { provide } from "./support.mjs";

/** @param {import("./index.mjs").Provider} provider @param {string} [apiKey] */
const connect = (provider, apiKey = provider.apiKey) =>
  new CreateosSandboxClient({ baseUrl: provider.url, apiKey, retry: false });

test("create, run, transfer, pause, resume, destroy", async () => {
  const provider = await provide({ delays: { create: 5, pause: 5, resume: 5, destroy: 5 } });
  const client = connect(provider);
  expect(await client.healthz()).toEqual({ up: true });
  expect(await client.readyz()).toMatchObject({ ready: true });
  expect((await client.listShapes()).map(({ id }) => id)).toContain("s-1vcpu-1gb");
  expect((await client.listRootfs()).default).toBe("devbox:1");

  const sandbox = await client.createSandbox({ shape: "s-1vcpu-1gb", name: "judge", envs: { GREETING: "hello" } });
  expect(sandbox.status).toBe("running");
  expect((await sandbox.runCommand("printenv", ["GREETING"])).result).toEqual({
    stdout: "hello\n",
    stderr: "",
    exit_code: 0,
  });
  await expect(sandbox.sh("exit 3")).rejects.toThrow(CreateosSandboxError);

  const content = new Uint8Array([0, 1, 255, 10, 13, 0]);
  await sandbox.files.upload("/paperclip-workspace/data.bin", content);
  expect(new Uint8Array(await sandbox.files.download("/paperclip-workspace/data.bin"))).toEqual(content);
  expect((await sandbox.sh("wc -c < /paperclip-workspace/data.bin")).result.stdout.trim()).toBe("6");

  const events = [];
  for await (const event of sandbox.streamCommand("bash", ["-c", "echo out; echo err >&2; exit 4"])) events.push(event);
  expect(events).toContainEqual({ type: "stdout", data: "out\n" });
  expect(events).toContainEqual({ type: "stderr", data: "err\n" });
  expect(events.at(-1)).toEqual({ type: "exit", exitCode: 4 });

  await sandbox.pause();
  expect(sandbox.status).toBe("pausing");
  await sandbox.waitUntilPaused();
  await sandbox.setEgress(["registry.example"]);
  await sandbox.resume();
  await sandbox.waitUntilRunning();
  expect((await sandbox.getEgress()).egress).toEqual(["registry.example"]);
  expect((await sandbox.sh("cat /paperclip-workspace/data.bin | wc -c")).result.stdout.trim()).toBe("6");
  await sandbox.setAutoPause(600);
  expect(sandbox.data.auto_pause_after_seconds).toBe(600);

  expect((await client.listSandboxes({ status: "running" })).map(({ id }) => id)).toEqual([sandbox.id]);
  expect((await client.getSandbox(sandbox.id)).name).toBe("judge");
  await sandbox.destroy();
  await sandbox.waitUntilDestroyed();
  expect((await client.whoami()).stats.total).toBe(0);
});

test("failures arrive as the client's own errors", async () => {
  const provider = await provide();
  const client = connect(provider);
  await expect(client.createSandbox({ shape: "none" })).rejects.toMatchObject({ statusCode: 400 });
  await expect(client.getSandbox("sb-none")).rejects.toMatchObject({ statusCode: 404 });
  await expect(connect(provider, "wrong").listSandboxes()).rejects.toMatchObject({ statusCode: 401 });
  provider.faults.add({
    match: { path: "sandbox.list" },
    times: 1,
    effect: { type: "status", status: 429, headers: { "retry-after": "7" } },
  });
  await expect(client.listSandboxes()).rejects.toMatchObject({ statusCode: 429 });
});
