/// <reference types="node" />
// Runs one request in a child process with an environment of its own.
import { spawn } from "node:child_process";
import path from "node:path";
import { expect, onTestFinished } from "vitest";
import { KEY } from "./http_package.js";
import { within } from "./http_server.js";

export interface Outcome {
  status?: number;
  text: string;
  message?: string;
  code?: string;
  cause?: boolean;
  /** What the process wrote besides. */
  stderr: string;
}

const INHERITED = ["PATH", "HOME", "LANG", "LD_LIBRARY_PATH"];

/** One request to an origin, in a process whose environment holds only these variables. */
export async function requestInChild(apiUrl: string, env: Record<string, string>): Promise<Outcome> {
  const inherited = Object.fromEntries(INHERITED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const argument = JSON.stringify({ apiUrl, apiKey: KEY });
  const child = spawn(process.execPath, [path.join(__dirname, "http_child.cjs"), argument], {
    env: { ...(inherited as Record<string, string>), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let out = "";
  let stderr = "";
  child.stdout.on("data", (piece) => (out += piece));
  child.stderr.on("data", (piece) => (stderr += piece));
  const code = await within(new Promise((resolve) => child.once("close", resolve)), "the child's end", 20_000);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return { ...(JSON.parse(out) as Outcome), stderr };
}

/** That the child's request failed as a connection, and told nothing. */
export function expectChildFailed(outcome: Outcome, ...secrets: string[]): void {
  const { message, code, cause } = outcome;
  expect({ message, code, cause }).toEqual({ message: "CreateOS connection failed.", code: "ERR_CREATEOS_CONNECTION", cause: false });
  for (const secret of [KEY, "secret=query", "127.0.0.1", "localhost", ...secrets]) {
    expect(outcome.text).not.toContain(secret);
  }
  expect(outcome.stderr).not.toContain(KEY);
}
