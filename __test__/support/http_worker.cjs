// A Worker with a client of its own: makes requests when told to, and tells when each call has been made and settled.
"use strict";
const { parentPort, workerData } = require("node:worker_threads");
const { CreateosClient } = require("../../index.js");

const client = new CreateosClient(workerData);
parentPort?.on("message", (/** @type {string[] | "end"} */ paths) => {
  if (paths === "end") return parentPort?.close();
  for (const path of paths) {
    client.json(path).then(
      () => parentPort?.postMessage(`done ${path}`),
      (error) => parentPort?.postMessage(`failed ${path} ${error}`),
    );
  }
  parentPort?.postMessage("called");
});
parentPort?.postMessage("ready");
