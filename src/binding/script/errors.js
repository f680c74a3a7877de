// The error classes, and how a native failure becomes one (specification, section 7).
(function errors(native, shared, exports) {
  'use strict';

  const { DOMException } = globalThis;

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
      case 'cleanup':
        return new CreateosCleanupError(message);
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

  /** How long a prototype chain is followed; a proxy's need not end. */
  const LONGEST_CHAIN = 100;

  /** What reading the property gives, or undefined where that throws. */
  function peek(object, name) {
    try {
      return object[name];
    } catch {
      return undefined;
    }
  }

  /** The prototypes of a value, nearest first. */
  function prototypesOf(value) {
    const prototypes = [];
    let prototype = Object.getPrototypeOf(value);
    while (prototype !== null && prototypes.length < LONGEST_CHAIN) {
      prototypes.push(prototype);
      prototype = Object.getPrototypeOf(prototype);
    }
    return prototypes;
  }

  /** Whether a class of that name is among the prototypes', of whichever realm. */
  const isNamed = (prototypes, name) =>
    prototypes.some((prototype) => {
      const type = peek(prototype, 'constructor');
      return typeof type === 'function' && peek(type, 'name') === name;
    });

  /** Whether the value itself is a cleanup error: ours, a plugin's own, or one given by class. */
  const isCleanupError = (value, prototypes, classes) =>
    peek(value, 'code') === 'ERR_CREATEOS_CLEANUP_UNCONFIRMED' ||
    prototypes.includes(CreateosCleanupError.prototype) ||
    classes.some((type) => prototypes.includes(peek(type, 'prototype'))) ||
    isNamed(prototypes, 'CreateosCleanupError');

  /** What an error was caused by: its cause, and the errors that an AggregateError gathers. */
  function causesOf(value, prototypes) {
    const causes = [peek(value, 'cause')];
    if (!isNamed(prototypes, 'AggregateError')) return causes;
    const errors = peek(value, 'errors');
    return Array.isArray(errors) ? causes.concat(errors) : causes;
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
        const prototypes = attempt(() => prototypesOf(value), []);
        if (isCleanupError(value, prototypes, classes)) return true;
        for (const cause of attempt(() => causesOf(value, prototypes), [])) next.push(cause);
      }
      level = next;
    }
    return false;
  }

  Object.assign(shared, { failure, ABORTED, attempt, meansCleanupFailed, peek });
})
//# sourceURL=createos-lease/errors.js
