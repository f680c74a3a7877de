// What a request of the provider can fail with, whatever it was for, and what has to be left of a sandbox then.
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import type { Provider } from "../provider/index.mjs";
import type { Acquired } from "./acquisitions.js";
import { expectCreateosError, type Expected } from "./errors.js";

export type Effect = Extract<Parameters<Provider["faults"]["add"]>[0]["effect"], { type: string }>;

export type Operation = "sandbox lifecycle" | "workspace command" | "file transfer";

export const api = (status: number, operation: Operation): Expected => ({
  name: "CreateosApiError",
  code: "ERR_CREATEOS_API",
  message: `CreateOS request failed (HTTP ${status}) during ${operation}.`,
  extra: { status, operation },
});

const untrusted = (what: string): Expected => ({ code: "ERR_CREATEOS_RESPONSE", message: `CreateOS ${what}.` });

export const NO_CONNECTION: Expected = { code: "ERR_CREATEOS_CONNECTION", message: "CreateOS connection failed." };
export const NO_JSON = untrusted("returned invalid JSON");
export const UNSUCCESSFUL = untrusted("returned an unsuccessful response");
export const NO_DATA = untrusted("returned an invalid response");
export const NO_IDENTITY = untrusted("sandbox identity or state is invalid");
export const NO_ID = untrusted("returned an invalid resource ID");
export const NOT_RUNNING: Expected = {
  code: "ERR_CREATEOS_STATE",
  message: "CreateOS sandbox did not reach running.",
};

/** The error that names a sandbox which may be left. */
export const left = (sandboxId: string): Expected => ({
  name: "CreateosCleanupError",
  code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
  message: `CreateOS setup failed and cleanup is unconfirmed for sandbox ${sandboxId}.`,
  extra: { sandboxId },
});

const HTML = "<html><body>502 Bad Gateway</body></html>";

/** Failures that come before the provider has done anything. */
export const refusals: [string, Effect, (operation: Operation) => Expected][] = [
  ["a lost request", { type: "lostRequest" }, () => NO_CONNECTION],
  ["a redirect", { type: "redirect", location: "/elsewhere" }, () => NO_CONNECTION],
  ["HTTP 500", { type: "status", status: 500 }, (operation) => api(500, operation)],
  ["HTTP 502 in HTML", { type: "status", status: 502, body: HTML }, (operation) => api(502, operation)],
  ["HTTP 503", { type: "status", status: 503 }, (operation) => api(503, operation)],
  ["HTTP 409", { type: "status", status: 409 }, (operation) => api(409, operation)],
  ["HTTP 400", { type: "status", status: 400 }, (operation) => api(400, operation)],
  ["HTTP 402", { type: "status", status: 402 }, (operation) => api(402, operation)],
  [
    "HTTP 429 for an hour",
    { type: "status", status: 429, headers: { "retry-after": "3600" } },
    (operation) => api(429, operation),
  ],
];

/** Failures of the answer: the provider has done what it was asked for. */
export const badAnswers: [string, Effect, Expected][] = [
  ["a lost reply", { type: "lostReply" }, NO_CONNECTION],
  ["a connection that breaks in the body", { type: "cutBody", after: 10 }, NO_JSON],
  ["no JSON", { type: "invalidJson" }, NO_JSON],
  ["an empty answer", { type: "envelope", variant: "empty" }, NO_JSON],
  ["no content", { type: "envelope", variant: "noContent" }, NO_JSON],
  ["an envelope that says failure", { type: "envelope", variant: "fail" }, UNSUCCESSFUL],
  ["an envelope of another kind", { type: "envelope", variant: "unknownStatus" }, UNSUCCESSFUL],
  ["an envelope without data", { type: "envelope", variant: "missingData" }, NO_DATA],
  ["a list in the envelope", { type: "envelope", variant: "arrayData" }, NO_DATA],
];

/** Waits until each sandbox that the provider ever had is gone, one way or another. */
export async function nothingLeft(provider: Provider): Promise<void> {
  for (const { id, status } of provider.sandboxes)
    if (status !== "failed") await provider.waitForState(id, "destroyed");
}

/** A lease that can be worked under: its sandbox runs and holds its marker. */
export function expectReady(provider: Provider, { providerLeaseId, metadata }: Acquired): void {
  const sandbox = provider.sandbox(providerLeaseId);
  expect(sandbox?.status).toBe("running");
  const file = path.join("paperclip-workspace", ".paperclip-runtime", ".paperclip-createos-lease");
  expect(readFileSync(path.join(sandbox?.directory ?? "", file), "utf8")).toBe(metadata.marker);
}

/** What a promise came to. */
export type Outcome<T> = { value: T; reason?: undefined } | { reason: unknown; value?: undefined };

export const outcomeOf = <T>(promise: Promise<T>): Promise<Outcome<T>> =>
  promise.then(
    (value) => ({ value }),
    (reason: unknown) => ({ reason }),
  );

/** Either a lease that is ready, or the expected failure and nothing left of the sandbox. */
export async function expectNothingBehind(
  provider: Provider,
  outcome: Outcome<Acquired>,
  expected: Expected | "lease",
): Promise<void> {
  if (expected === "lease") {
    expect(outcome).toHaveProperty("value.providerLeaseId");
    expectReady(provider, outcome.value as Acquired);
    return;
  }
  expectCreateosError(outcome.reason, expected);
  await nothingLeft(provider);
}
