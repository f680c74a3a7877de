// The ways of reading a command's output that the benchmark compares. Each runs one command and fails where it did not
// read all of it.
import { setImmediate as turn } from "node:timers/promises";
import { LeaseDriver } from "../../index.js";
import { call, checkResult, commandIn, send, unitsOf } from "./execute_place.mjs";

/** @typedef {import("./execute_place.mjs").Place} Place */
/** @typedef {(place: Place) => Promise<number>} Way gives the milliseconds that it took */

const driver = new LeaseDriver();

/** @param {() => Promise<unknown>} run */
async function timed(run) {
  const began = performance.now();
  await run();
  return performance.now() - began;
}

/**
 * What no reader in this process can be expected to surpass by much: fetch gives the same stream of the same requests, and
 * nobody looks at it.
 * @type {Way}
 */
export async function discard(place) {
  let bytes = 0;
  const millis = await timed(async () => {
    const path = `/v1/sandboxes/${place.id}/processes`;
    const { process_id: id } = await call(place, "POST", path, { cmd: "true" });
    const response = await send(place, "GET", `${path}/${id}/connect?after=0`);
    await call(place, "POST", `${path}/${id}/stdin/close`);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.length;
  });
  if (bytes < (place.output.bytes * 4) / 3) throw new Error(`fetch gave ${bytes} bytes.`);
  return millis;
}

/** @type {Way} */
export async function execute(place) {
  /** @type {import("../../index.js").ExecuteResult|undefined} */
  let result;
  const millis = await timed(async () => (result = await driver.execute(commandIn(place))));
  if (result) checkResult(place.output, result);
  return millis;
}

/** @type {Way} */
export async function executeWithOutput(place) {
  let units = 0;
  /** @type {import("../../index.js").ExecuteResult|undefined} */
  let result;
  const millis = await timed(async () => {
    result = await driver.execute(commandIn(place), (_, text) => {
      units += text.length;
    });
  });
  if (result) checkResult(place.output, result);
  if (units !== unitsOf(place.output)) throw new Error(`onOutput was given ${units} units.`);
  return millis;
}

/**
 * The plugin code that the package replaces, on a client made of fetch. It keeps all of the output, so it is not given much.
 * @type {Way}
 */
export async function replaced(place) {
  // Not before it is needed: a process whose memory is measured shall not hold it.
  const { require: requireTypeScript } = await import("tsx/cjs/api");
  const plugin = requireTypeScript("../support/http_plugin_execute.ts", import.meta.url);
  let units = 0;
  const { signal } = new AbortController();
  const client = {
    config: { timeoutMs: 600_000 },
    /** @param {string} path @param {{method?: string, signal?: AbortSignal}} [init] */
    request: (path, init) => send(place, init?.method ?? "GET", `/v1${path}`, undefined, undefined, init?.signal),
    /** @param {string} path @param {string} method @param {unknown} body */
    json: (path, method, body) => call(place, method, `/v1${path}`, body),
    /** @param {string} id @param {string} path @param {string} content */
    upload: async (id, path, content) => {
      const target = `/v1/sandboxes/${id}/files?path=${encodeURIComponent(path)}`;
      await (await send(place, "PUT", target, content, "application/octet-stream")).arrayBuffer();
    },
  };
  const onOutput = (/** @type {string} */ _, /** @type {string} */ text) => {
    units += text.length;
  };
  const millis = await timed(() => plugin.execute(client, place.id, { command: "true", onOutput }, signal));
  if (units !== unitsOf(place.output)) throw new Error(`The replaced code was given ${units} units.`);
  // Its garbage is not the next way's.
  await turn();
  return millis;
}
