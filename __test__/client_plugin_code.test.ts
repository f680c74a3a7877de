// Section 6: plugin code that was written for a client made of fetch runs on the package's client without a change.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Provider, startProvider } from "./provider/index.mjs";
import { CreateosApiError, type Client, LeaseDriver } from "./support/http_package.js";
import { type Command, execute, type PluginClient, type Result } from "./support/http_plugin_execute.js";
import { downloadFile, makeDirectory, uploadFile } from "./support/http_plugin_sync.js";
import { deferred, reasonOf, within } from "./support/http_server.js";

const MIB = 1024 * 1024;
let provider: Provider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.close());

/** A lease on a sandbox of its own, and what a plugin does with it. */
async function lease() {
  provider.faults.clear();
  const config = { apiUrl: provider.url, apiKey: provider.apiKey, shape: "s-1vcpu-1gb", timeoutMs: 20_000 };
  const driver = new LeaseDriver();
  const acquired = await within(driver.acquire({ companyId: "c", environmentId: "e", config }), "the lease", 20_000);
  const { providerLeaseId: id, metadata } = acquired;
  const owner = { companyId: "c", environmentId: "e", config };
  const run = <T>(work: (client: PluginClient, signal: AbortSignal) => Promise<T>): Promise<T> =>
    driver.track({ ...owner, lease: acquired }, (client: Client, signal) => work(client as PluginClient, signal));
  const release = () => within(driver.release({ ...owner, providerLeaseId: id, leaseMetadata: metadata }, true), "the release", 20_000);
  onTestFinished(async () => {
    await release().catch(() => {});
    provider.faults.clear();
  });
  const command = (given: Command): Promise<Result> =>
    within(
      run((client, signal) => execute(client, id, given, signal)),
      "the command",
      20_000,
    );
  return { id, run, release, command, driver };
}

async function folder(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), "client-plugin-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describe("a command", () => {
  test("runs with live output: each piece is there before the next is made", async () => {
    const { id, run } = await lease();
    const pieces: string[] = [];
    const result = await within(
      run((client, signal) => {
        const script = "echo one; until [ -e /tmp/go-on ]; do sleep 0.01; done; echo two >&2; echo three; exit 7";
        const onOutput = (stream: string, text: string) => {
          pieces.push(`${stream}: ${text}`);
          // The command waits for this, so it only ends when the output came while it ran.
          if (text.includes("one")) void client.upload(id, "/tmp/go-on", "", signal);
        };
        return execute(client, id, { command: "bash", args: ["-c", script], onOutput }, signal);
      }),
      "the command",
      20_000,
    );
    expect(result).toEqual({ exitCode: 7, stdout: "one\nthree\n", stderr: "two\n", reconnects: 0 });
    expect(pieces[0]).toBe("stdout: one\n");
    expect(pieces.join("")).toContain("stderr: two\n");
  });

  test("takes its input, and gives every byte of a long output", async () => {
    const { command } = await lease();
    const stdin = `it's ☃ "input"\n`.repeat(1000);
    const { exitCode, stdout, stderr } = await command({ command: "cat", stdin });
    expect(exitCode).toBe(0);
    expect(stdout === stdin).toBe(true);
    expect(stderr).toBe("");
  });

  test.each<[string, object]>([
    ["is reset midway", { type: "cutBody", after: 4000 }],
    ["is reset in the middle of its first frame", { type: "cutBody", after: 20 }],
    ["ends early", { type: "frame", what: "eof", at: 2 }],
    ["ends in the middle of a line", { type: "frame", what: "halfLine", at: 2 }],
    ["fails with HTTP 503", { type: "status", status: 503 }],
    ["fails with HTTP 429 of its own", { type: "status", status: 429, headers: { "retry-after": "61" } }],
  ])("goes on when its output stream %s", async (_, effect) => {
    const { command } = await lease();
    const rule = provider.faults.add({ match: { path: "process.connect" }, times: 1, effect: effect as never });
    const script = "for i in $(seq 1 400); do echo line $i of many; [ $((i % 50)) = 0 ] && sleep 0.05; done; exit 3";
    const result = await command({ command: "bash", args: ["-c", script] });
    expect(rule.hits).toBe(1);
    expect(result.exitCode).toBe(3);
    expect(result.reconnects).toBeGreaterThanOrEqual(1);
    expect(result.stdout).toBe(Array.from({ length: 400 }, (_, index) => `line ${index + 1} of many\n`).join(""));
  });

  test("goes on through several cuts", async () => {
    const { command } = await lease();
    const rule = provider.faults.add({ match: { path: "process.connect" }, times: 3, effect: { type: "cutBody", after: 3000 } });
    const result = await command({ command: "bash", args: ["-c", "for i in $(seq 1 30); do echo $i; sleep 0.02; done; head -c 9000 /dev/zero | tr '\\0' x"] });
    expect(rule.hits).toBeGreaterThanOrEqual(2);
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toBe(`${Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join("")}${"x".repeat(9000)}`);
  });

  test("that can't be created is told apart from one that may have been", async () => {
    const { command, driver, id } = await lease();
    provider.faults.add({ match: { path: "process.create" }, times: 1, effect: { type: "status", status: 400 } });
    const refused = await reasonOf(command({ command: "true" }));
    expect(refused).toBeInstanceOf(CreateosApiError);
    expect(refused).toMatchObject({ status: 400, operation: "process creation" });
    expect((await command({ command: "true" })).exitCode).toBe(0);
    provider.faults.add({ match: { path: "process.create" }, times: 1, effect: { type: "lostReply" } });
    expect(await reasonOf(command({ command: "true" }))).toMatchObject({ message: "creation unconfirmed" });
    const config = { apiUrl: provider.url, apiKey: provider.apiKey, shape: "s-1vcpu-1gb", timeoutMs: 20_000 };
    expect(driver.leaseState({ companyId: "c", environmentId: "e", config }, id)).toBe("unconfirmed");
  });

  test("is ended by a release while it runs: its clean-up comes before the sandbox goes", async () => {
    const { id, run, release } = await lease();
    const started = deferred();
    const outcome = reasonOf(
      run((client, signal) => {
        const onOutput = () => started.resolve();
        return execute(client, id, { command: "bash", args: ["-c", "echo up; sleep 600 & wait"], onOutput }, signal);
      }),
      20_000,
    );
    await within(started.promise, "the command's first output");
    await release();
    expect(await outcome).toMatchObject({ name: "AbortError", code: 20 });
    expect(provider.sandbox(id)?.status).toMatch(/^destroy/);
    const ends = provider.requests.filter(({ method, sandboxId }) => method === "DELETE" && sandboxId === id);
    expect(ends.map(({ route, status }) => [route, status])).toEqual([
      ["process.delete", 200],
      ["sandbox.destroy", 200],
    ]);
    expect(ends[0]?.url).toMatch(/\?grace_ms=1000$/);
    expect(ends[0]?.finishedAt).toBeLessThanOrEqual(ends[1]?.at ?? 0);
    // The stream was given up, and nothing of the command is left.
    const streams = provider.requests.filter(({ route, sandboxId }) => route === "process.connect" && sandboxId === id);
    expect(streams.map(({ finishedAt }) => typeof finishedAt)).toEqual(["number"]);
    expect(provider.processes(id).filter(({ tree_exited: ended }) => !ended)).toEqual([]);
  });
});

describe("a file", () => {
  test("of several MiB goes up and comes down byte for byte", async () => {
    const { id, run } = await lease();
    const directory = await folder();
    const content = randomBytes(7 * MIB + 321);
    await writeFile(path.join(directory, "up"), content);
    const remote = "/paperclip-workspace/däta dir/it's & 100% #1?.bin";
    const found = await within(
      run(async (client, signal) => {
        await makeDirectory(client, id, path.posix.dirname(remote), signal);
        await uploadFile(client, id, path.join(directory, "up"), remote, signal);
        return downloadFile(client, id, remote, path.join(directory, "down"), signal);
      }),
      "the transfers",
      25_000,
    );
    expect(found).toBe(true);
    expect((await readFile(path.join(directory, "down"))).equals(content)).toBe(true);
    expect((await readdir(directory)).sort()).toEqual(["down", "up"]);
  });

  test.each([0, 1, 64 * 1024])("of %i bytes too", async (size) => {
    const { id, run } = await lease();
    const directory = await folder();
    const content = randomBytes(size);
    await writeFile(path.join(directory, "up"), content);
    await run(async (client, signal) => {
      await uploadFile(client, id, path.join(directory, "up"), "/tmp/file", signal);
      await downloadFile(client, id, "/tmp/file", path.join(directory, "down"), signal);
    });
    expect((await readFile(path.join(directory, "down"))).equals(content)).toBe(true);
  });

  test("that is not there is told by the status", async () => {
    const { id, run } = await lease();
    const directory = await folder();
    expect(await run((client, signal) => downloadFile(client, id, "/tmp/absent", path.join(directory, "down"), signal))).toBe(false);
    expect(await readdir(directory)).toEqual([]);
  });

  test("whose download is cut is a TypeError, and leaves nothing behind", async () => {
    const { id, run } = await lease();
    const directory = await folder();
    await writeFile(path.join(directory, "up"), randomBytes(MIB));
    await run((client, signal) => uploadFile(client, id, path.join(directory, "up"), "/tmp/file", signal));
    provider.faults.add({ match: { path: "files.get" }, times: 1, effect: { type: "cutBody", after: 300_000 } });
    const error = await reasonOf(run((client, signal) => downloadFile(client, id, "/tmp/file", path.join(directory, "down"), signal)));
    expect(error).toBeInstanceOf(TypeError);
    expect(await readdir(directory)).toEqual(["up"]);
  });

  test("whose download is under way when the lease is released ends with the release's reason", async () => {
    const { id, run, release } = await lease();
    const directory = await folder();
    await writeFile(path.join(directory, "up"), randomBytes(2 * MIB));
    await run((client, signal) => uploadFile(client, id, path.join(directory, "up"), "/tmp/file", signal));
    provider.faults.add({ match: { path: "files.get" }, times: 1, effect: { type: "slowBody", bytes: 1000, everyMs: 20 } });
    let signalOfWork: AbortSignal | undefined;
    const since = provider.mark();
    const outcome = reasonOf(
      run((client, signal) => {
        signalOfWork = signal;
        return downloadFile(client, id, "/tmp/file", path.join(directory, "down"), signal);
      }),
    );
    await within(provider.waitForRequest("files.get", { since }), "the download");
    await release();
    const reason = await outcome;
    expect(reason).toMatchObject({ name: "AbortError" });
    expect(signalOfWork?.aborted).toBe(true);
    expect(await readdir(directory)).toEqual(["up"]);
  });

  test("whose upload is under way when the lease is released ends too, and its source is closed", async () => {
    const { id, run, release } = await lease();
    const directory = await folder();
    const local = path.join(directory, "up");
    await writeFile(local, randomBytes(3 * MIB));
    const held = provider.faults.add({ match: { path: "files.put" }, times: 1, effect: { type: "hold" } });
    const aborted = deferred();
    const outcome = reasonOf(
      run((client, signal) => {
        void once(signal, "abort").then(() => aborted.resolve());
        return uploadFile(client, id, local, "/tmp/file", signal);
      }),
    );
    await within(held.hit, "the upload");
    await release();
    await within(aborted.promise, "the abort");
    expect(await outcome).toMatchObject({ name: "AbortError" });
  });
});
