/// <reference types="node" />
// What an error of the client must be, and what must not be found in it.
import { inspect } from "node:util";
import { expect } from "vitest";
import { CreateosApiError, CreateosError, KEY } from "./http_package.js";
import { within } from "./http_server.js";

/** That the promise rejects with this very value, which may be anything, a thenable included. */
export async function expectRejection(promise: Promise<unknown>, reason: unknown): Promise<void> {
  const outcome = await within(
    promise.then(
      (value) => ({ resolved: value }),
      (rejected: unknown) => ({ rejected }),
    ),
    "a rejection",
  );
  expect(outcome).toHaveProperty("rejected");
  expect(Object.is((outcome as { rejected: unknown }).rejected, reason)).toBe(true);
}

/** Every way in which an error gets into a log, one after the other. */
export function printed(value: unknown): string {
  const own =
    typeof value === "object" && value !== null
      ? Reflect.ownKeys(value).map((name) => `${String(name)}=${inspect(Reflect.get(value, name))}`)
      : [];
  const error = value as { stack?: string; cause?: unknown };
  return [
    String(value),
    inspect(value, { depth: Infinity, showHidden: true }),
    JSON.stringify(value) ?? "",
    error?.stack ?? "",
    inspect(error?.cause),
    ...own,
  ].join("\n");
}

/** No key, body, path, query or host in it. Stack frames name files of this machine, so paths to look for are given. */
export function expectClean(error: unknown, ...secrets: string[]): void {
  const text = printed(error);
  for (const secret of [KEY, "127.0.0.1", "localhost", "http://", "https://", ...secrets]) {
    expect(text).not.toContain(secret);
  }
}

function expectOurs(error: unknown, message: string, code: string): asserts error is Error & { code: string } {
  expect(error).toBeInstanceOf(Error);
  expect(error).toBeInstanceOf(CreateosError);
  const ours = error as Error & { code: string };
  expect({ message: ours.message, code: ours.code }).toEqual({ message, code });
  expect(ours.cause).toBeUndefined();
  expect("cause" in ours).toBe(false);
}

export function expectConnectionFailed(error: unknown, ...secrets: string[]): void {
  expectOurs(error, "CreateOS connection failed.", "ERR_CREATEOS_CONNECTION");
  expect((error as Error).name).toBe("CreateosError");
  expect(Reflect.ownKeys(error as object).sort()).toEqual(["code", "message", "stack"]);
  expectClean(error, ...secrets);
}

export function expectApiError(error: unknown, status: number, operation: string, ...secrets: string[]): void {
  expectOurs(error, `CreateOS request failed (HTTP ${status}) during ${operation}.`, "ERR_CREATEOS_API");
  expect(error).toBeInstanceOf(CreateosApiError);
  expect(error).toMatchObject({ status, operation, name: "CreateosApiError" });
  expectClean(error, ...secrets);
}

export function expectResponseError(error: unknown, message: string, ...secrets: string[]): void {
  expectOurs(error, message, "ERR_CREATEOS_RESPONSE");
  expect((error as Error).name).toBe("CreateosError");
  expectClean(error, ...secrets);
}

export function expectStateError(error: unknown, desired: string): void {
  expectOurs(error, `CreateOS sandbox did not reach ${desired}.`, "ERR_CREATEOS_STATE");
  expectClean(error);
}

/** The platform's own timeout. */
export function expectTimeout(error: unknown): void {
  expect(error).toBeInstanceOf(DOMException);
  const { name, code, message } = error as DOMException;
  expect({ name, code, message }).toEqual({
    name: "TimeoutError",
    code: 23,
    message: "The operation was aborted due to timeout",
  });
  expect(error).toBeInstanceOf(Error);
}
