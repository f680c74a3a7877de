// A driver that does what it is told by messages, in a process or a worker thread that may end at any moment.
"use strict";
const { parentPort } = require("node:worker_threads");
const { LeaseDriver } = require("../../index.js");

/** @type {any} */
const driver = new LeaseDriver();

/** @param {object} message */
const tell = (message) => (parentPort === null ? process.send?.(message) : parentPort.postMessage(message));

/** @param {{id: number, method: string, params: any}} message */
async function obey({ id, method, params }) {
  if (method === "exit") process.exit(params);
  try {
    const onOutput = (/** @type {string} */ _stream, /** @type {string} */ said) => tell({ id, said });
    tell({ id, value: await (method === "execute" ? driver.execute(params, onOutput) : driver[method](params)) });
  } catch (error) {
    const { message, code } = /** @type {Error & {code?: unknown}} */ (error);
    tell({ id, failure: { message, code } });
  }
}

if (parentPort === null) process.on("message", obey);
else parentPort.on("message", obey);
