// A process that leaves something of a client behind and has nothing else to do: it has to end by itself.
"use strict";
const { CreateosClient } = require("../../index.js");

const [, , origin, what] = process.argv;
const client = new CreateosClient({ apiUrl: origin ?? "", apiKey: "key", shape: "s", timeoutMs: 60_000 });
const { signal } = new AbortController();

async function main() {
  if (what === "idle connection") await client.json("/whole");
  if (what === "timeout") await client.json("/whole", "GET", undefined, AbortSignal.timeout(60_000));
  if (what === "cancelled body") {
    const response = await client.request("/endless", { signal });
    const reader = response.body?.getReader();
    await reader?.read();
    const pending = reader?.read();
    await reader?.cancel();
    await pending;
  }
  if (what === "aborted request") {
    const controller = new AbortController();
    const call = client.request("/silent", { signal: controller.signal });
    setTimeout(() => controller.abort("stop"), 50);
    await call.catch(() => {});
  }
  process.stdout.write("left\n");
}

void main();
