// The table, third part: commands run under a lease, and end before it does.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "vitest";
import { told } from "./host.js";
import { DONE, failCleanup, FOREVER, MESSAGES, refusal, RESULT, type Scenario } from "./scenario.js";

export const callScenarios: Scenario[] = [
  {
    name: "a command's output comes while it runs, and its exit code at the end",
    async run(host) {
      const lease = await host.acquire();
      const script = "echo one; until [ -e /tmp/go-on ]; do sleep 0.01; done; echo two >&2; exit 7";
      const command = told(host.execute(lease, script));
      await host.said("one");
      // The command waits for this, so what was said came while it ran.
      await writeFile(host.file(lease, "/tmp/go-on"), "");
      return { result: await command, output: host.output };
    },
    outcome: {
      result: { value: { ...RESULT, exitCode: 7, stdout: "one\n", stderr: "two\n" } },
      output: ["stdout: one\n", "stderr: two\n"],
    },
  },
  {
    name: "a command gets its arguments, folder, variables and input as they are",
    async run(host) {
      const lease = await host.acquire();
      const env = { GREETING: "it's $HOME" };
      const script = 'echo "$GREETING|$1"; basename "$PWD"; cat';
      const args = ["-c", script, "bash", `"a b" 'c' \\ *`];
      return {
        ran: await told(host.execute(lease, "", { args, env, cwd: "/tmp", stdin: "☃ 'input'\n" })),
        unknown: await told(host.execute(lease, "", { command: "no-such-command", args: [] })),
        killed: await told(host.execute(lease, "kill -9 $$")),
      };
    },
    outcome: {
      ran: { value: { ...RESULT, stdout: `it's $HOME|"a b" 'c' \\ *\ntmp\n☃ 'input'\n` } },
      unknown: { value: { ...RESULT, exitCode: 127, stderr: expect.stringContaining("no-such-command") } },
      killed: { value: { ...RESULT, exitCode: null, signal: "SIGKILL" } },
    },
  },
  {
    name: "a broken output stream is taken up where it broke",
    async run(host) {
      const lease = await host.acquire();
      const effect = { type: "cutBody", after: 3000 } as const;
      const rule = host.provider.faults.add({ match: { path: "process.connect" }, times: 1, effect });
      const script = "for i in $(seq 1 200); do echo line $i; [ $((i % 50)) = 0 ] && sleep 0.02; done; exit 3";
      return { ran: await told(host.execute(lease, script)), cuts: rule.hits };
    },
    outcome: {
      ran: {
        value: {
          ...RESULT,
          exitCode: 3,
          stdout: Array.from({ length: 200 }, (_, index) => `line ${index + 1}\n`).join(""),
        },
      },
      cuts: 1,
    },
  },
  {
    name: "a command ends at its deadline, its process tree first; a timeout that is none is refused",
    async run(host) {
      const lease = await host.acquire();
      const ended = await told(host.execute(lease, FOREVER, { timeoutMs: 2000 }));
      const left = host.running(lease);
      const start = host.provider.requests.length;
      const invalid = [0, -1, 1.5, Number.NaN, 86_400_001];
      const refused = await Promise.all(invalid.map((timeoutMs) => told(host.execute(lease, "true", { timeoutMs }))));
      return { ended, left, refused, asked: host.asked(start), next: await told(host.execute(lease, "true")) };
    },
    outcome: {
      ended: { value: { ...RESULT, exitCode: null, timedOut: true, stdout: "up\n" } },
      left: 0,
      refused: Array(5).fill({ error: "Invalid CreateOS command timeout." }),
      asked: [],
      next: { value: RESULT },
    },
  },
  {
    name: "a clean-up that can't be confirmed closes the lease until a destroy",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      const start = host.provider.requests.length;
      failCleanup(host);
      const failed = await told(host.execute(lease, "echo one; sleep 600"));
      const refused = [
        await told(host.execute(lease, "true")),
        await told(host.syncIn(lease)),
        await told(host.resume(lease)),
        await told(host.release(lease)),
        await told(host.execute(lease, "true")),
      ];
      const asked = host.asked(start);
      const status = host.status(lease);
      const destroyed = await told(host.destroy(lease));
      return { failed, refused, asked, status, destroyed, afterwards: await told(host.execute(lease, "true")) };
    },
    outcome: {
      failed: { error: MESSAGES.stillAlive },
      refused: [
        { error: MESSAGES.closing },
        { error: MESSAGES.closing },
        { error: MESSAGES.notToResume },
        { error: MESSAGES.unconfirmed },
        { error: MESSAGES.closing },
      ],
      asked: ["process.create", "process.connect", "process.delete"],
      status: "running",
      destroyed: DONE,
      // It is the provider that refuses now: the sandbox is gone.
      afterwards: refusal(409, "process creation"),
    },
  },
  {
    name: "a creation that may have happened closes the lease too, one that was refused does not",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      const { faults } = host.provider;
      const create = { path: "process.create" };
      faults.add({ match: create, times: 1, effect: { type: "status", status: 400 } });
      const refused = await told(host.execute(lease, "true"));
      const next = await told(host.execute(lease, "true"));
      faults.add({ match: create, times: 1, effect: { type: "lostReply" } });
      const lost = await told(host.execute(lease, "true"));
      return { refused, next, lost, released: await told(host.release(lease)) };
    },
    outcome: {
      refused: refusal(400, "process creation"),
      next: { value: RESULT },
      lost: { error: "CreateOS process creation could not be confirmed; destroy the lease before reusing it." },
      released: { error: MESSAGES.unconfirmed },
    },
  },
  ...(["pause", "destroy"] as const).map((end): Scenario => ({
    name: `a release aborts a running command and waits for its clean-up before the ${end}`,
    config: { reuseLease: end === "pause" },
    async run(host) {
      const lease = await host.acquire();
      const start = host.provider.requests.length;
      const command = told(host.execute(lease, FOREVER));
      await host.said("up");
      const released = await told(host.release(lease));
      const [cleanup, last] = host.provider.requests.filter(({ route }) => /delete|pause|destroy/.test(route ?? ""));
      return {
        command: await command,
        released,
        asked: host.asked(start),
        inOrder: (cleanup?.finishedAt ?? Infinity) <= (last?.at ?? 0),
        left: host.running(lease),
        status: host.status(lease)?.replace("destroying", "destroyed"),
      };
    },
    outcome: {
      command: { error: MESSAGES.cancelled },
      released: DONE,
      asked: ["process.create", "process.connect", "process.delete", `sandbox.${end}`],
      inOrder: true,
      left: 0,
      status: end === "pause" ? "paused" : "destroyed",
    },
  })),
  {
    name: "while a lease is released everything else is refused, and afterwards it is free again",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      const pause = host.provider.faults.add({ match: { path: "sandbox.pause" }, times: 1, effect: { type: "hold" } });
      const released = told(host.release(lease));
      await pause.hit;
      const refused = [
        await told(host.release(lease)),
        await told(host.destroy(lease)),
        await told(host.execute(lease, "true")),
        await told(host.resume(lease)),
      ];
      pause.release();
      return {
        refused,
        released: await released,
        again: await told(host.release(lease)),
        resumed: Object.keys(Object(await told(host.resume(lease)))),
        ran: await told(host.execute(lease, "true")),
      };
    },
    outcome: {
      refused: [
        { error: MESSAGES.inProgress },
        { error: MESSAGES.inProgress },
        { error: MESSAGES.closing },
        { error: MESSAGES.notToResume },
      ],
      released: DONE,
      again: DONE,
      resumed: ["value"],
      ran: { value: RESULT },
    },
  },
  {
    name: "a release that fails can be tried again, and a sandbox that is gone is released",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      const fault = (path: string, status: number) =>
        host.provider.faults.add({ match: { path }, times: 1, effect: { type: "status", status } });
      fault("sandbox.pause", 500);
      const failed = await told(host.release(lease));
      const again = await told(host.release(lease));
      fault("sandbox.get", 404);
      const gone = await told(host.release(lease));
      fault("sandbox.destroy", 503);
      const refused = await told(host.destroy(lease));
      return { failed, again, gone, refused, destroyed: await told(host.destroy(lease)) };
    },
    outcome: {
      failed: refusal(500, "sandbox lifecycle"),
      again: DONE,
      gone: DONE,
      refused: refusal(503, "sandbox lifecycle"),
      destroyed: DONE,
    },
  },
  {
    name: "a lease that the provider pauses is left warm, and destroyed where it was not told to",
    config: { reuseLease: true, autoPauseAfterSeconds: 90 },
    async run(host) {
      const [warm, cold] = [await host.acquire({ issueId: "issue" }), await host.acquire()];
      const start = host.provider.requests.length;
      const released = [await told(host.release(warm)), await told(host.release(cold))];
      return { released, asked: host.asked(start), status: host.status(warm) };
    },
    outcome: { released: [DONE, DONE], asked: ["sandbox.destroy"], status: "running" },
  },
  {
    name: "a resume is a call of its lease: a release aborts it and goes on when it has ended",
    config: { reuseLease: true },
    async run(host) {
      const lease = await host.acquire();
      await host.release(lease);
      const resume = host.provider.faults.add({ match: { path: "sandbox.resume" }, effect: { type: "hold" } });
      const resumed = told(host.resume(lease));
      await resume.hit;
      const destroyed = await told(host.destroy(lease));
      return { resumed: await resumed, destroyed };
    },
    outcome: { resumed: { aborted: "AbortError" }, destroyed: DONE },
  },
  {
    name: "a shutdown ends what runs, refuses what comes, and leases can still be given back",
    config: { reuseLease: true },
    async run(host) {
      const [one, two] = [await host.acquire(), await host.acquire()];
      const first = told(host.execute(one, FOREVER));
      await host.said("up");
      const second = told(host.execute(two, "echo second; sleep 600 & wait"));
      await host.said("second");
      const down = await told(host.hooks.onShutdown());
      const left = host.running(one) + host.running(two);
      return {
        down,
        left,
        commands: [await first, await second],
        refused: [await told(host.execute(one, "true")), await told(host.resume(one))],
        statuses: [host.status(one), host.status(two)],
        again: await told(host.hooks.onShutdown()),
        released: await told(host.release(one)),
        destroyed: await told(host.destroy(two)),
      };
    },
    outcome: {
      down: DONE,
      left: 0,
      commands: [{ error: MESSAGES.cancelled }, { error: MESSAGES.cancelled }],
      refused: [{ error: MESSAGES.closing }, { error: MESSAGES.notToResume }],
      statuses: ["running", "running"],
      again: DONE,
      released: DONE,
      destroyed: DONE,
    },
  },
  {
    name: "files travel both ways with the plugin's own code, and a release ends a transfer",
    async run(host) {
      const lease = await host.acquire();
      const folder = await mkdtemp(path.join(tmpdir(), "migration-"));
      try {
        const [up, down] = [path.join(folder, "up"), path.join(folder, "down")];
        await writeFile(up, "a file's content\n");
        const file = (sourcePath: string, targetPath: string) => ({ sourcePath, targetPath, kind: "file" as const });
        const remote = "/paperclip-workspace/a folder/file";
        const commands = [{ command: "tr a-z A-Z < 'a folder/file' > capitals" }];
        const into = [{ operationId: "in", files: [file(up, remote)], postUploadCommands: commands }];
        const sentIn = await told(host.syncIn(lease, { operations: into }));
        const out = { operations: [{ operationId: "out", files: [file("/paperclip-workspace/capitals", down)] }] };
        const sentOut = await told(host.syncOut(lease, out));
        const content = await readFile(down, "utf8");

        const download = host.provider.faults.add({ match: { path: "files.get" }, effect: { type: "hold" } });
        const cut = told(host.syncOut(lease, out));
        await download.hit;
        return { sentIn, sentOut, content, released: await told(host.release(lease)), cut: await cut };
      } finally {
        await rm(folder, { recursive: true });
      }
    },
    outcome: {
      sentIn: { value: { operations: [{ operationId: "in", filesTransferred: 1, bytesTransferred: 17 }] } },
      sentOut: { value: { operations: [{ operationId: "out", filesTransferred: 1, bytesTransferred: 17 }] } },
      content: "A FILE'S CONTENT\n",
      released: DONE,
      cut: { aborted: "AbortError" },
    },
  },
];
