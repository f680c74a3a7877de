// The provider contract, sections 8 and 10: commands and files share one file system, in both kinds of isolation.

import { mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";

import { startProvider } from "./index.mjs";
import { caller, frames, idOf, provide } from "./support.mjs";

const probe = await startProvider();
const kinds =
  probe.isolation === "namespace"
    ? /** @type {const} */ (["namespace", "rewrite"])
    : /** @type {const} */ (["rewrite"]);
await probe.close();

describe.each(kinds)("%s", (isolation) => {
  test("exec: output, stdin, exit code, environment", async () => {
    const { json, create, bash } = caller(await provide({ isolation }));
    const box = await create({ envs: { A: "one", B: "two" } });
    expect(await bash(box, 'cat; echo "$A $B" >&2; exit 3', { stdin: "in", env: { B: "over" } })).toEqual({
      stdout: "in",
      stderr: "one over\n",
      exit_code: 3,
    });
    expect((await json(`POST ${box}/exec`, { cmd: "true", env: { C: "x" } })).status).toBe(400);
    expect((await json(`POST ${box}/exec`, { cmd: "no-such-command" })).data.result).toMatchObject({
      error: expect.any(String),
    });
    expect((await json(`POST ${box}/exec`, { cmd: "/bin/echo", args: ["a  b", "$HOME"] })).data).toMatchObject({
      result: { stdout: "a  b $HOME\n", exit_code: 0 },
      exec_ms: expect.any(Number),
    });
    expect((await bash(box, "kill -9 $$")).exit_code).toBe(137);
  });

  test("exec stream: frames, heartbeat, terminal frame", async () => {
    const { raw, create } = caller(await provide({ isolation, heartbeatMs: 5 }));
    const box = await create();
    const all = await frames(
      await raw(`POST ${box}/exec?stream=true`, {
        cmd: "bash",
        args: ["-c", "printf '\\xe2\\x82'; sleep 0.05; printf '\\xac'; echo e >&2; exit 4"],
      }),
    );
    expect(all.map((one) => one.stdout ?? "").join("")).toBe("€");
    expect(all).toContainEqual({ stderr: "e\n" });
    expect(all).toContainEqual({ hb: true });
    expect(all.at(-1)).toEqual({ exit_code: 4 });
  });

  test("an abandoned exec is ended", async () => {
    const provider = await provide({ isolation });
    const { raw, create, bash } = caller(provider);
    const box = await create();
    const stop = new AbortController();
    const response = await raw(
      `POST ${box}/exec`,
      { cmd: "bash", args: ["-c", "echo $$ > /tmp/pid; echo up; exec sleep 300"], stream: true },
      { signal: stop.signal },
    );
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    await reader.read();
    const { stdout } = await bash(box, "cat /tmp/pid");
    stop.abort();
    await expect.poll(() => alive(Number(stdout))).toBe(false);
  });

  test("files written by the API are seen by commands, and the other way round", async () => {
    const { raw, create, bash } = caller(await provide({ isolation }));
    const box = await create();
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 31) % 256));
    expect(
      (await raw(`PUT ${box}/files?path=${encodeURIComponent("/paperclip-workspace/a b/ü.bin")}`, bytes)).status,
    ).toBe(200);
    expect(
      Buffer.from(
        await (
          await raw(`GET ${box}/files?path=${encodeURIComponent("/paperclip-workspace/a b/ü.bin")}`)
        ).arrayBuffer(),
      ),
    ).toEqual(bytes);
    expect(
      (
        await bash(
          box,
          "wc -c < '/paperclip-workspace/a b/ü.bin'; cd /paperclip-workspace && case $(realpath .) in /paperclip-workspace) echo in;; esac",
        )
      ).stdout,
    ).toBe("70000\nin\n");
    await bash(
      box,
      "echo made > /tmp/made; mkdir -p /paperclip-workspace/d; ln -s /tmp/made /paperclip-workspace/d/link",
    );
    expect(await (await raw(`GET ${box}/files?path=/paperclip-workspace/d/link`)).text()).toBe("made\n");
    expect((await raw(`GET ${box}/files?path=/tmp/absent`)).status).toBe(404);
    expect((await raw(`GET ${box}/files?path=tmp/made`)).status).toBe(400);
    expect((await raw(`GET ${box}/files?path=/paperclip-workspace/d`)).status).toBe(400);
    expect((await raw(`PUT ${box}/files?path=/paperclip-workspace/d`, bytes)).status).toBe(400);
  });

  test("neither .. nor a link leads out of the sandbox", async () => {
    const provider = await provide({ isolation });
    const { raw, create } = caller(provider);
    const box = await create();
    const root = provider.sandbox(idOf(box))?.directory ?? "";
    await mkdir(path.join(root, "tmp"), { recursive: true });
    await symlink("/", path.join(root, "tmp/out"));
    await symlink("../../../../../../etc", path.join(root, "tmp/up"));
    for (const file of ["/../../../../etc/passwd", "/tmp/out/etc/passwd", "/tmp/up/passwd"]) {
      expect((await raw(`GET ${box}/files?path=${encodeURIComponent(file)}`)).status).toBe(404);
    }
  });

  test("an upload over the limit or into a missing folder is refused where the switches say so", async () => {
    const provider = await provide({ isolation, fileLimitBytes: 10, switches: { missingParent: "reject" } });
    const { raw, create } = caller(provider);
    const box = await create();
    expect((await raw(`PUT ${box}/files?path=/tmp/x`, Buffer.alloc(11))).status).toBe(413);
    expect((await raw(`PUT ${box}/files?path=/none/x`, Buffer.alloc(1))).status).toBe(400);
  });
});

test("two sandboxes do not see each other's files", async () => {
  const { raw, create, bash } = caller(await provide());
  const [one, two] = [await create(), await create()];
  await raw(`PUT ${one}/files?path=/tmp/x`, Buffer.from("mine"));
  expect((await bash(two, "cat /tmp/x")).exit_code).not.toBe(0);
});

/** @param {number} pid */
function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
