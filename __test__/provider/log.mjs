// The provider's memory of what happened: requests and events, and a way to wait for them without sleeping.

import { EventEmitter } from "node:events";

/** @typedef {import("./types.mjs").ProviderEvent} ProviderEvent */
/** @typedef {import("./types.mjs").RequestEntry} RequestEntry */

/** Emits each event under its own type and under "event". */
export class EventLog extends EventEmitter {
  /** @type {ProviderEvent[]} */
  events = [];
  /** @type {RequestEntry[]} */
  requests = [];
  #limit;
  #dropped = 0;

  /** @param {number} limit */
  constructor(limit) {
    super();
    this.#limit = limit;
    this.setMaxListeners(0);
  }

  /** @param {ProviderEvent} event */
  record(event) {
    this.events.push(event);
    // Trimmed by the thousand: shifting a long array at every event would cost more than the event.
    if (this.events.length > this.#limit + 1000) this.#dropped += this.events.splice(0, 1000).length;
    if (event.type === "request:start") {
      this.requests.push(event.request);
      if (this.requests.length > this.#limit + 1000) this.requests.splice(0, 1000);
    }
    this.emit(event.type, event);
    this.emit("event", event);
  }

  /** A position for `waitFor`'s `since`: only events after it count. */
  mark() {
    return this.#dropped + this.events.length;
  }

  /**
   * Resolves with the first event that satisfies the predicate, past ones included (`since` a mark: only those after).
   * @param {(event: ProviderEvent) => unknown} predicate
   * @param {{timeoutMs?: number, since?: number}} [options]
   * @returns {Promise<ProviderEvent>}
   */
  waitFor(predicate, { timeoutMs = 10_000, since = 0 } = {}) {
    for (const event of this.events.slice(Math.max(0, since - this.#dropped))) {
      if (predicate(event)) return Promise.resolve(event);
    }
    return new Promise((resolve, reject) => {
      /** @param {ProviderEvent} event */
      const look = (event) => {
        let holds;
        try {
          holds = predicate(event);
        } catch (error) {
          finish(() => reject(error));
          return;
        }
        if (holds) finish(() => resolve(event));
      };
      const timer = setTimeout(
        () => finish(() => reject(new Error(`No provider event satisfied the predicate within ${timeoutMs} ms.`))),
        timeoutMs,
      );
      /** @param {() => void} settle */
      const finish = (settle) => {
        clearTimeout(timer);
        this.off("event", look);
        settle();
      };
      this.on("event", look);
    });
  }
}

const secretHeaders = new Set(["x-api-key", "authorization", "x-auth-token", "x-access-token", "cookie"]);

/**
 * @param {import("node:http").IncomingHttpHeaders} headers
 * @returns {Record<string, string|string[]|undefined>}
 */
export function redact(headers) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secretHeaders.has(name) ? "***" : value]),
  );
}
