// The loopback provider in a process of its own, for benchmarks and other runtimes:
//
//   node main.mjs [--port N] [--key KEY] [--create MS] [--pause MS] [--resume MS] [--destroy MS] [--heartbeat MS]
//                 [--rate N] [--isolation auto|namespace|rewrite] [--synthetic JSON]
//
// Prints one JSON line {"event":"listening http://127.0.0.1:PORT","url":...,"key":...} and ends, cleaned up, on SIGTERM,
// SIGINT or when standard input closes. Every flag can be given as PROVIDER_<NAME> in the environment.

import { parseArgs } from "node:util";

import { startProvider } from "./index.mjs";

const names = ["port", "key", "create", "pause", "resume", "destroy", "heartbeat", "rate", "isolation", "synthetic"];
const { values } = parseArgs({
  options: Object.fromEntries(names.map((name) => [name, { type: /** @type {const} */ ("string") }])),
});

/** @param {string} name @returns {string|undefined} */
function setting(name) {
  const value = values[name] ?? process.env[`PROVIDER_${name.toUpperCase()}`];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** @param {string} name @param {number} otherwise */
function number(name, otherwise) {
  const value = Number(setting(name) ?? otherwise);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a number of at least 0`);
  return value;
}

const key = setting("key");
const synthetic = setting("synthetic");
const provider = await startProvider({
  port: number("port", 0),
  delays: {
    create: number("create", 0),
    pause: number("pause", 0),
    resume: number("resume", 0),
    destroy: number("destroy", 0),
  },
  heartbeatMs: number("heartbeat", 5000),
  isolation: /** @type {"auto"|"namespace"|"rewrite"} */ (setting("isolation") ?? "auto"),
  logLimit: 10_000,
  ...(key === undefined ? {} : { apiKeys: [key] }),
  ...(synthetic === undefined ? {} : { synthetic: JSON.parse(synthetic) }),
  ...(setting("rate") === undefined ? {} : { rateLimit: { requests: number("rate", 300), windowMs: 60_000 } }),
});

let ending = false;
const end = async () => {
  if (ending) return;
  ending = true;
  await provider.close();
  process.exit(0);
};
process.on("SIGTERM", end);
process.on("SIGINT", end);
process.stdin.on("end", end).on("error", end).resume();
console.log(
  JSON.stringify({
    event: `listening ${provider.url}`,
    url: provider.url,
    key: provider.apiKey,
    isolation: provider.isolation,
  }),
);
