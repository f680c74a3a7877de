// Nothing of a provider outlives it: no process, no directory, whichever way it ends.

import { spawn } from "node:child_process";
import { existsSync, watch } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

import { members } from "./proctree.mjs";
import { startProvider } from "./index.mjs";
import { caller, firstOutput, idOf, provide } from "./support.mjs";

const stubborn =
  "trap '' TERM HUP INT; setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep 300; done' & echo up; while :; do sleep 300; done";

test("close ends processes that ignore signals, and is idempotent", async () => {
  const provider = await startProvider();
  const { create, spawn: run, raw, json } = caller(provider);
  const box = await create();
  const one = await run(box, stubborn);
  await firstOutput(await raw(`GET ${box}/processes/${one.process_id}/connect`));
  const held = raw(`GET ${box}/processes/${one.process_id}/wait?scope=tree`).catch(() => undefined);
  await provider.waitForRequest("process.wait");
  const pausedBox = await create();
  await run(pausedBox, "sleep 300");
  await json(`POST ${pausedBox}/pause`);
  await provider.waitForState(idOf(pausedBox), "paused");
  await Promise.all([provider.close(), provider.close()]);
  await held;
  expect(members({ token: provider.runToken, leaders: [] })).toEqual([]);
  expect(existsSync(provider.directory)).toBe(false);
  await expect(fetch(`${provider.url}/healthz`)).rejects.toThrow();
});

test("destroying a sandbox ends what runs in it, even with an emptied environment in another session", async () => {
  const provider = await provide();
  const { create, spawn: run, raw, json, bash } = caller(provider);
  const box = await create();
  const one = await run(box, stubborn);
  await firstOutput(await raw(`GET ${box}/processes/${one.process_id}/connect`));
  await bash(box, "env -i setsid sleep 300 > /dev/null 2>&1 < /dev/null &");
  const directory = provider.sandbox(idOf(box))?.directory ?? "";
  await json(`DELETE ${box}`);
  await provider.waitForState(idOf(box), "destroyed");
  expect(existsSync(directory)).toBe(false);
  expect(members({ token: `${provider.runToken}/${idOf(box)}/`, leaders: [], root: directory })).toEqual([]);
});

test.each(/** @type {const} */ (["SIGKILL", "SIGTERM", "stdin"]))(
  "a provider process ended by %s leaves nothing",
  async (way) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL("main.mjs", import.meta.url))], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const line = await new Promise((resolve) =>
      child.stdout.once("data", (chunk) => resolve(JSON.parse(String(chunk)))),
    );
    expect(line.event).toBe(`listening ${line.url}`);
    const api = caller(/** @type {any} */ ({ url: line.url, apiKey: line.key }));
    const box = await api.create();
    const one = await api.spawn(box, stubborn);
    await firstOutput(await api.raw(`GET ${box}/processes/${one.process_id}/connect`));
    const { stdout } = await api.bash(box, "echo $CREATEOS_GUEST");
    const token = stdout.split("/")[0];
    const base = await homeOf(idOf(box));
    if (way === "stdin") child.stdin.end();
    else child.kill(way);
    await ended;
    await removed(base);
    expect(members({ token, leaders: [] })).toEqual([]);
  },
);

/** The directory of the provider that has a sandbox. @param {string} id */
async function homeOf(id) {
  for (const name of await readdir(tmpdir())) {
    const base = path.join(tmpdir(), name);
    if (name.startsWith("createos-provider-") && existsSync(path.join(base, id))) return base;
  }
  throw new Error("no directory");
}

/** Resolves when a directory is gone. @param {string} directory */
function removed(directory) {
  return new Promise((/** @type {(value: void) => void} */ resolve) => {
    const watcher = watch(path.dirname(directory), look);
    function look() {
      if (existsSync(directory)) return;
      watcher.close();
      resolve();
    }
    look();
  });
}
