/// <reference types="node" />
// Section 7 of the specification, as far as sections 2 to 6 need it, and the search for clean-up failures of section 4.

export class CreateosError extends Error {
  override readonly name: string = "CreateosError";

  constructor(
    readonly code: string,
    message: string,
    details: object = {},
  ) {
    super(message);
    Object.assign(this, details);
  }
}

export class CreateosApiError extends CreateosError {
  override readonly name = "CreateosApiError";

  constructor(
    readonly status: number,
    readonly operation = "sandbox lifecycle",
  ) {
    super("ERR_CREATEOS_API", `CreateOS request failed (HTTP ${status}) during ${operation}.`);
  }
}

export class CreateosCleanupError extends CreateosError {
  override readonly name = "CreateosCleanupError";

  constructor(message = "CreateOS process cleanup is unconfirmed.") {
    super(CLEANUP_UNCONFIRMED, message);
  }
}

export type ErrorClass = abstract new (...args: never[]) => unknown;

const CLEANUP_UNCONFIRMED = "ERR_CREATEOS_CLEANUP_UNCONFIRMED";
const MAX_STEPS = 8;

/**
 * Whether `error` is a clean-up failure or holds one within eight steps. The search goes breadth first, so that an error
 * reachable on a long and on a short way counts by the short one, and so that a cycle ends.
 */
export function holdsCleanupFailure(error: unknown, extraClasses: readonly ErrorClass[]): boolean {
  const seen = new Set<unknown>();
  let level: unknown[] = [error];
  for (let steps = 0; steps <= MAX_STEPS && level.length > 0; steps += 1) {
    const next: unknown[] = [];
    for (const candidate of level) {
      if (!isObject(candidate) || seen.has(candidate)) continue;
      seen.add(candidate);
      if (isCleanupFailure(candidate, extraClasses)) return true;
      next.push(attempt(() => candidate.cause));
      next.push(...(attempt(() => (candidate instanceof AggregateError ? [...candidate.errors] : [])) ?? []));
    }
    level = next;
  }
  return false;
}

function isCleanupFailure(error: Fields, extraClasses: readonly ErrorClass[]): boolean {
  return (
    attempt(() => error instanceof CreateosCleanupError) === true ||
    attempt(() => error.code === CLEANUP_UNCONFIRMED) === true ||
    attempt(() => hasConstructorNamed(error, "CreateosCleanupError")) === true ||
    extraClasses.some((extra) => attempt(() => error instanceof extra) === true)
  );
}

// A plugin bundles its own copy of the class, so its identity says nothing while the constructor's name still does.
function hasConstructorNamed(error: object, name: string): boolean {
  for (let prototype = Object.getPrototypeOf(error); prototype !== null; prototype = Object.getPrototypeOf(prototype)) {
    if (attempt(() => Object.hasOwn(prototype, "constructor") && prototype.constructor.name === name)) return true;
  }
  return false;
}

export type Fields = Record<string, unknown>;

/** What the specification calls an object: arrays count, functions do not. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

/** The value, or undefined when it cannot be had: getters and proxies of strangers may throw. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
