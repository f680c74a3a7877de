// How the package is loaded: by import and by require, with every name in both (specification, section 1).
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { lease } from "./support/package.js";
import { runProgram } from "./support/programs.js";

const NAMES = [
  "CreateosApiError",
  "CreateosCleanupError",
  "CreateosClient",
  "CreateosError",
  "LeaseDriver",
  "canRelease",
  "canUseLease",
  "execute",
  "explainLease",
  "isUsableCreateosLease",
  "leaseState",
  "parseConfig",
  "release",
  "resolveApiKey",
  "scopeKey",
  "shutdown",
  "track",
];

test("require gives every name, and no other", () => {
  expect(Object.keys(lease).toSorted()).toEqual(NAMES);
  for (const name of NAMES) expect(lease[name as keyof typeof lease]).toBeTypeOf("function");
});

test("named ESM imports find every name; they and the default import are what require gives", async () => {
  const program = fileURLToPath(new URL("./support/modules/named.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  expect(JSON.parse(stdout)).toEqual(NAMES.map((name) => [name, "function", true, true]));
});

test("loading it starts nothing that holds a process, and prints nothing", async () => {
  const outcome = await runProgram("require(packagePath);");
  expect(outcome).toMatchObject({ code: 0, signal: null, stdout: "", stderr: "" });
});

test("a second require is the same instance, whatever the path is spelled like", () => {
  const require = createRequire(import.meta.url);
  expect(require("../index.js")).toBe(lease);
  expect(require("./../__test__/../index.js").LeaseDriver).toBe(lease.LeaseDriver);
});
