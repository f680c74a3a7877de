// The request limit of the provider contract, section 14: per source address, over a rolling window.

export class RateLimit {
  /** Requests that came too early. @type {{address: string, at: number, count: number}[]} */
  violations = [];
  /** The most requests ever seen in one window. */
  peak = 0;
  /** @type {Map<string, number[]>} */
  #seen = new Map();
  #limit;

  /** @param {{requests: number, windowMs: number, retryAfter?: boolean, enforce?: boolean}} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /**
   * Counts a request. A refused one is not counted against the window.
   * @param {string} address
   * @param {number} now
   * @returns {{retryAfter: string|undefined}|undefined} how to refuse it
   */
  take(address, now) {
    const { requests, windowMs, retryAfter = true, enforce = true } = this.#limit;
    const times = this.#seen.get(address) ?? [];
    while (times[0] !== undefined && times[0] <= now - windowMs) times.shift();
    this.#seen.set(address, times);
    this.peak = Math.max(this.peak, times.length + 1);
    const first = times[0];
    if (times.length >= requests && first !== undefined) {
      this.violations.push({ address, at: now, count: times.length + 1 });
      if (enforce)
        return { retryAfter: retryAfter ? String(Math.max(1, Math.ceil((first + windowMs - now) / 1000))) : undefined };
    }
    times.push(now);
    return undefined;
  }
}
