// What an error of the package must look like.
import { expect } from "vitest";
import { lease } from "./package.js";

const { CreateosApiError, CreateosCleanupError, CreateosError } = lease;

const CLASSES = { CreateosError, CreateosApiError, CreateosCleanupError };

export interface Expected {
  code: string;
  message: string;
  /** Default: CreateosError. */
  name?: keyof typeof CLASSES;
  /** The fields besides `code`, all of them. */
  extra?: Record<string, unknown>;
}

/** Class, name, code, message and further fields, exactly. */
export function expectCreateosError(reason: unknown, expected: Expected): void {
  const { code, message, name = "CreateosError", extra = {} } = expected;
  expect(reason).toBeInstanceOf(Error);
  expect(reason).toBeInstanceOf(CreateosError);
  const error = reason as Error & Record<string, unknown>;
  expect(error.message).toBe(message);
  expect(error.constructor).toBe(CLASSES[name]);
  expect(error.name).toBe(name);
  expect(Object.hasOwn(error, "name")).toBe(false);
  expect({ ...error }).toEqual({ code, ...extra });
  expect("cause" in error).toBe(false);
}

export const MESSAGES = {
  notForTrack: "CreateOS execution requires a lease from this environment.",
  notForRelease: "CreateOS lease does not belong to this environment.",
  closing: "CreateOS lease is closing or requires cleanup.",
  inProgress: "CreateOS lease cleanup is already in progress.",
  unconfirmed: "CreateOS process cleanup is unconfirmed; destroy this lease before reusing it.",
  timeout: "Invalid CreateOS command timeout.",
  noUrl: "CreateOS requires an API URL.",
  noKey: "CreateOS requires an API key in the environment config or CREATEOS_API_KEY.",
  keyForCustomOrigin:
    "Custom CreateOS API endpoints require an explicit environment API key; the host fallback is only available for https://api.sb.createos.sh.",
  cleanup: "CreateOS command cleanup failed; process termination is unconfirmed.",
} as const;

export const CLOSING: Expected = { code: "ERR_CREATEOS_LEASE_CLOSING", message: MESSAGES.closing };
export const IN_PROGRESS: Expected = { code: "ERR_CREATEOS_RELEASE_IN_PROGRESS", message: MESSAGES.inProgress };
export const UNCONFIRMED: Expected = { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED", message: MESSAGES.unconfirmed };
export const BAD_TIMEOUT: Expected = { code: "ERR_CREATEOS_TIMEOUT_INVALID", message: MESSAGES.timeout };

/** A DOMException of the platform, as signals are aborted with. */
export function expectDomException(reason: unknown, name: string, message: string, code: number): void {
  expect(reason).toBeInstanceOf(DOMException);
  const { name: itsName, message: itsMessage, code: itsCode } = reason as DOMException;
  expect({ name: itsName, message: itsMessage, code: itsCode }).toEqual({ name, message, code });
}

/** The reason of a release or shutdown. */
export function expectAborted(reason: unknown): void {
  expectDomException(reason, "AbortError", "This operation was aborted", 20);
}

/** The reason of a deadline. */
export function expectTimedOut(reason: unknown): void {
  expectDomException(reason, "TimeoutError", "The operation was aborted due to timeout", 23);
}
