// A process of its own, since proxies and certificates come from the environment: makes one request and prints its outcome.
"use strict";
const { inspect } = require("node:util");
const { CreateosClient } = require("../../index.js");

const config = JSON.parse(process.argv[2] ?? "{}");

new CreateosClient({ shape: "s", timeoutMs: 15_000, ...config }).request("/sandboxes?secret=query").then(
  async (response) => {
    process.stdout.write(JSON.stringify({ status: response.status, text: await response.text() }));
  },
  (error) => {
    const { message, code } = error;
    const text = [inspect(error, { depth: Infinity, showHidden: true }), String(error.stack), JSON.stringify(error)].join("\n");
    process.stdout.write(JSON.stringify({ message, code, cause: "cause" in error, text }));
  },
);
