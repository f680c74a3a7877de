// Turns what an implementation did into plain data, so that two implementations with classes of their own can be compared.
import { inspect, isDeepStrictEqual } from "node:util";
import type { Subject } from "./subject.js";

export type Description = unknown;

/** Names values made by a test, so that "the same object came back" can be compared across two worlds. */
export class Labels {
  readonly #labels = new Map<unknown, string>();

  add<T>(value: T, label: string): T {
    if (isReference(value)) this.#labels.set(value, label);
    return value;
  }

  of(value: unknown): string | undefined {
    return this.#labels.get(value);
  }
}

export function describeValue(value: unknown, labels?: Labels): Description {
  const label = labels?.of(value);
  if (label !== undefined) return { same: label };
  if (!isReference(value)) return { primitive: typeof value, value: Object.is(value, -0) ? "-0" : String(value) };
  return { unlabelled: Object.prototype.toString.call(value) };
}

export function describeError(subject: Subject, error: unknown, labels?: Labels): Description {
  if (!(error instanceof Error) || labels?.of(error) !== undefined) return describeValue(error, labels);
  if (error instanceof DOMException) return { dom: error.name, message: error.message, code: error.code };
  if (!(error instanceof subject.CreateosError)) return { class: error.constructor.name, message: error.message };
  const fields = error as Error & Record<string, unknown>;
  return {
    api: error instanceof subject.CreateosApiError,
    cleanup: error instanceof subject.CreateosCleanupError,
    class: error.constructor.name,
    name: error.name,
    message: error.message,
    code: fields.code,
    mismatches: fields.mismatches,
    field: fields.field,
    status: fields.status,
    operation: fields.operation,
    cause: error.cause,
  };
}

/** What a synchronous call gave or threw. */
export function outcome(subject: Subject, call: () => unknown, value = identity, labels?: Labels): Description {
  try {
    return { returned: value(call()) };
  } catch (error) {
    return { threw: describeError(subject, error, labels) };
  }
}

/** What an asynchronous call came to; a synchronous throw is told apart, since no exported async function may do that. */
export async function eventual(
  subject: Subject,
  call: () => unknown,
  value: (value: unknown) => Description = identity,
  labels?: Labels,
): Promise<Description> {
  let promise: unknown;
  try {
    promise = call();
  } catch (error) {
    return { threwSynchronously: describeError(subject, error, labels) };
  }
  if (!(promise instanceof Promise)) return { notAPromise: describeValue(promise) };
  return promise.then(
    (result) => ({ resolved: value(result) }),
    (error) => ({ rejected: describeError(subject, error, labels) }),
  );
}

export function requireEqual(actual: Description, expected: Description, what: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  const show = (value: unknown) => inspect(value, { depth: 8, breakLength: 120, maxStringLength: 400, sorted: true });
  throw new Error(`${what} differs.\nexpected (reference): ${show(expected)}\nactual: ${show(actual)}`);
}

function identity(value: unknown): Description {
  return value;
}

function isReference(value: unknown): boolean {
  return (typeof value === "object" && value !== null) || typeof value === "function" || typeof value === "symbol";
}
