// The error classes, and how a native failure becomes one (specification, section 7).
(function errors(native, shared, exports) {
  'use strict';

  /** Every error of this package. */
  class CreateosError extends Error {
    constructor(message, code) {
      super(message);
      this.code = code;
    }
  }

  /** The provider answered with a failure. */
  class CreateosApiError extends CreateosError {
    constructor(status, operation) {
      const during = operation === undefined ? '' : ` during ${operation}`;
      super(`CreateOS request failed (HTTP ${status})${during}.`, 'ERR_CREATEOS_API');
      this.status = status;
      this.operation = operation;
    }
  }

  /** Something may still run in the sandbox that nobody can vouch for. */
  class CreateosCleanupError extends CreateosError {
    constructor(
      message = 'CreateOS command cleanup failed; process termination is unconfirmed.',
    ) {
      super(message, 'ERR_CREATEOS_CLEANUP_UNCONFIRMED');
    }
  }

  for (const type of [CreateosError, CreateosApiError, CreateosCleanupError]) {
    // Not enumerable, as on the language's own error classes.
    Object.defineProperty(type.prototype, 'name', {
      value: type.name,
      configurable: true,
      writable: true,
    });
    exports[type.name] = type;
    shared[type.name] = type;
  }

  /** Stands for "the signal's own reason", which only the caller of the native function knows. */
  const ABORTED = Object.freeze({});

  /** Called by native code: the error that a failure stands for. */
  function failure(kind, message, code, first, second) {
    let error;
    switch (kind) {
      case 'lease':
        error = new CreateosError(message, code);
        error.mismatches = first;
        return error;
      case 'config':
        error = new CreateosError(message, code);
        error.field = first;
        return error;
      case 'sandbox':
        error = new CreateosCleanupError(message);
        error.sandboxId = first;
        return error;
      case 'api':
        return new CreateosApiError(first, second);
      case 'aborted':
        return ABORTED;
      case 'timeout':
        return new DOMException(message, 'TimeoutError');
      case 'type':
        return new TypeError(message);
      case 'internal':
        return new Error(message);
      default:
        return new CreateosError(message, code);
    }
  }

  /** How many causes deep a cleanup error is looked for. */
  const DEEPEST = 8;

  /** What reading the property gives, or undefined where that throws. */
  function peek(object, name) {
    try {
      return object[name];
    } catch {
      return undefined;
    }
  }

  /** Whether the value itself is a cleanup error: ours, a plugin's own, or one given by class. */
  function isCleanupError(value, classes) {
    if (peek(value, 'code') === 'ERR_CREATEOS_CLEANUP_UNCONFIRMED') return true;
    for (const type of classes) if (value instanceof type) return true;
    let prototype = Object.getPrototypeOf(value);
    for (; prototype !== null; prototype = Object.getPrototypeOf(prototype)) {
      if (prototype === CreateosCleanupError.prototype) return true;
      const type = peek(prototype, 'constructor');
      if (typeof type === 'function' && peek(type, 'name') === 'CreateosCleanupError') return true;
    }
    return false;
  }

  /** What an error was caused by: its cause, and the errors it gathers. */
  function causesOf(value) {
    const causes = [peek(value, 'cause')];
    const errors = value instanceof AggregateError ? peek(value, 'errors') : undefined;
    if (Array.isArray(errors)) causes.push(...errors);
    return causes;
  }

  /** What the function gives; `otherwise` where a proxy or an accessor throws on the way. */
  function attempt(read, otherwise) {
    try {
      return read();
    } catch {
      return otherwise;
    }
  }

  /**
   * Whether a rejection means that a cleanup failed: it, one of its causes or one of an
   * AggregateError's errors is a cleanup error. Breadth first, so each is met at its least depth
   * and looked at once, whatever cycles there are.
   */
  function meansCleanupFailed(reason, classes) {
    let level = [reason];
    const seen = new Set();
    for (let depth = 0; depth <= DEEPEST && level.length > 0; depth += 1) {
      const next = [];
      for (const value of level) {
        if ((typeof value !== 'object' && typeof value !== 'function') || value === null) continue;
        if (seen.has(value)) continue;
        seen.add(value);
        if (attempt(() => isCleanupError(value, classes), false)) return true;
        for (const cause of attempt(() => causesOf(value), [])) next.push(cause);
      }
      level = next;
    }
    return false;
  }

  Object.assign(shared, { failure, ABORTED, attempt, meansCleanupFailed, peek });
})
//# sourceURL=createos-lease/errors.js
