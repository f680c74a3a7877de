// A client leaves nothing behind: neither what keeps a process alive, nor what a Worker that ended had going on.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { clientOf, KEY } from "./support/http_package.js";
import { answer, serve, within } from "./support/http_server.js";

const server = () =>
  serve(({ url }, res) => {
    if (url === "/v1/endless") return void (res.writeHead(200), res.write("first"));
    if (url !== "/v1/silent") answer(res);
  });

test.each(["idle connection", "timeout", "cancelled body", "aborted request"])(
  "a process ends by itself after this: %s",
  async (what) => {
    const { origin } = await server();
    const child = spawn(process.execPath, [path.join(__dirname, "support/http_leaves.cjs"), origin, what], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    await within(once(child.stdout, "data"), "the child's word");
    const [code] = await within(once(child, "exit"), "the child's end by itself", 2_000);
    expect(code).toBe(0);
  },
);

test("a Worker that is terminated takes its requests along, and nobody else's", async () => {
  const one = await server();
  const workerData = { apiUrl: one.origin, apiKey: KEY, shape: "s", timeoutMs: 60_000 };
  const worker = new Worker(path.join(__dirname, "support/http_worker.cjs"), { workerData });
  await within(once(worker, "message"), "the Worker");
  const signal = AbortSignal.timeout(20_000);
  const mine = (await clientOf(one.origin).request("/endless", { signal })).body?.getReader();
  worker.postMessage(Array.from({ length: 20 }, () => "/silent"));
  await one.requests.count(21, "the Worker's requests");
  await within(worker.terminate(), "the Worker's end");
  const others = one.requests.all.filter(({ url }) => url === "/v1/silent");
  expect(await within(Promise.all(others.map(({ closed }) => closed)), "their connections' end")).toEqual(Array(20).fill(true));
  expect(Buffer.from((await mine?.read())?.value ?? []).toString()).toBe("first");
  await expect(clientOf(one.origin).json("/whole")).resolves.toEqual({});
  await mine?.cancel();
});
