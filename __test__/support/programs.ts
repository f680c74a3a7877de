// Programs in a process of their own, where the end of a process or its memory is what a test is about.
import { spawn } from "node:child_process";
import { packagePath } from "./package.js";

export interface Outcome {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** From the start of the process to its end. */
  elapsedMs: number;
}

export interface ProgramOptions {
  /** Options of Node itself, such as --expose-gc. */
  flags?: string[];
  env?: Record<string, string | undefined>;
  timeoutMs?: number;
  /** Told of the process once it runs, to send it signals. */
  began?: (child: { kill(signal: NodeJS.Signals): unknown }) => void;
}

/** What every program finds declared; it must not load the package before the program does. */
const PRELUDE = `
  "use strict";
  const packagePath = ${JSON.stringify(packagePath)};
  const say = (value) => require("node:fs").writeSync(1, JSON.stringify(value) + "\\n");
  const never = () => new Promise(() => {});
  function params(id = "sb-1", config = {}, metadata = {}) {
    const ids = { companyId: "company", environmentId: "environment" };
    const apiUrl = config.apiUrl ?? "https://createos.example";
    const recorded = { provider: "createos", ...ids, apiUrl, autoPauseAfterSeconds: 60, ...metadata };
    return {
      ...ids,
      config: { apiUrl, shape: "s-1vcpu-1gb", apiKey: "key", reuseLease: true, autoPauseAfterSeconds: 60, ...config },
      lease: { providerLeaseId: id, metadata: recorded },
      providerLeaseId: id,
      leaseMetadata: recorded,
    };
  }
`;

/** Runs a CommonJS program to its end. One that does not end in time is killed, and its signal tells. */
export function runProgram(source: string, options: ProgramOptions = {}): Promise<Outcome> {
  const { flags = [], env = {}, timeoutMs = 25_000 } = options;
  const started = performance.now();
  const program = `const prelude = ${JSON.stringify(PRELUDE)};\n${PRELUDE}\n${source}`;
  const child = spawn(process.execPath, [...flags, "-e", program], {
    env: { ...process.env, NODE_OPTIONS: "", VITEST: undefined, CREATEOS_API_KEY: undefined, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  options.began?.(child);
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => (output[stream] += text));
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...output, elapsedMs: performance.now() - started });
    });
  });
}

/** The values a program said, one a line. Fails where it did not end well, with what it complained of. */
export function said(outcome: Outcome): any[] {
  if (outcome.code !== 0) {
    throw new Error(`The program ended with ${outcome.signal ?? outcome.code}: ${outcome.stderr || outcome.stdout}`);
  }
  return outcome.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
