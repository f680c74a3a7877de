// Rules that make the provider misbehave: the provider contract, sections 18 and 19.
//
//   provider.faults.add({ match: { path: "sandbox.create" }, times: 1, effect: { type: "lostReply" } })
//   const rule = provider.faults.add({ match: { method: "DELETE" }, effect: { type: "hold" } });
//   await rule.hit; ...; rule.release();

/**
 * `when` says whether an effect comes before the request is acted upon (nothing happened) or after (it took effect).
 *
 * @typedef {"before"|"after"} When
 * @typedef {{type: "lostReply"}
 *   | {type: "lostRequest"}
 *   | {type: "status", status: number, body?: string|Buffer|object|null, headers?: Record<string,string>, when?: When}
 *   | {type: "delay", ms: number, when?: When}
 *   | {type: "hold", when?: When}
 *   | {type: "redirect", location: string, status?: 301|302|303|307|308, when?: When}
 *   | {type: "slowBody", bytes?: number, everyMs?: number}
 *   | {type: "cutBody", after: number}
 *   | {type: "hugeError", status?: number, bytes?: number}
 *   | {type: "echoError", status?: number}
 *   | {type: "invalidJson", body?: string}
 *   | {type: "envelope", variant: "fail"|"failString"|"failNull"|"error"|"nullData"|"missingData"|"arrayData"|"noStatus"|"unknownStatus"|"empty"|"noContent"}
 *   | {type: "patch", set?: Record<string, any>, omit?: string[]}
 *   | {type: "wrongId", id?: string}
 *   | {type: "treeAlive"}
 *   | {type: "stuck"}
 *   | {type: "resumeError"}
 *   | {type: "oldState", reads?: number}
 *   | {type: "guestDelete", when?: When}
 *   | {type: "guestPause", when?: When}
 *   | {type: "frame", what: FrameFault, at?: number, bytes?: number, message?: string}
 *   | {type: "call", run: (entry: import("./types.mjs").RequestEntry) => unknown, when?: When}} Effect
 *
 * Frame faults act on the data frame with sequence `at` (default 1), the last two at the end of a stream.
 * @typedef {"duplicate"|"gap"|"malformed"|"oversized"|"unknown"|"badStream"|"badBase64"|"pty"|"error"|"raw"|"eof"|"halfLine"|"exitWithoutStatus"|"eofBeforeExit"} FrameFault
 *
 * @typedef {object} Match
 * @property {string} [method]
 * @property {RegExp|string|string[]} [path] route names ("sandbox.create") or decoded paths, or a pattern for the decoded path and query
 * @property {string} [sandboxId]
 * @property {string} [owner]
 * @property {(entry: import("./types.mjs").RequestEntry) => boolean} [when]
 *
 * @typedef {object} RuleInput
 * @property {Match} [match] absent: every request
 * @property {number} [times] how often; default without end
 * @property {number} [skip] matching requests let through first
 * @property {Effect|Effect[]} effect
 */

/** A fault in force. */
export class Rule {
  hits = 0;
  /** @type {Promise<import("./types.mjs").RequestEntry>} resolves at the first hit */
  hit;
  /** Resolves when the rule is released; `hold` waits for it. @type {Promise<void>} */
  released;
  #skip;
  #input;
  #faults;
  /** @type {(entry: import("./types.mjs").RequestEntry) => void} */
  #onHit = () => {};
  /** @type {() => void} */
  #onRelease = () => {};

  /** @param {RuleInput} input @param {Faults} faults */
  constructor(input, faults) {
    this.#input = input;
    this.#faults = faults;
    this.#skip = input.skip ?? 0;
    this.hit = new Promise((resolve) => (this.#onHit = resolve));
    this.released = new Promise((resolve) => (this.#onRelease = resolve));
  }

  get effects() {
    const { effect } = this.#input;
    return Array.isArray(effect) ? effect : [effect];
  }

  /** Lets held requests go on; later ones are not held. */
  release() {
    this.#onRelease();
  }

  /** Takes the rule out of force and releases what it holds. */
  remove() {
    this.release();
    this.#faults.remove(this);
  }

  /** @param {import("./types.mjs").RequestEntry} entry @returns {boolean} */
  take(entry) {
    if (this.hits >= (this.#input.times ?? Infinity) || !matches(this.#input.match ?? {}, entry)) return false;
    if (this.#skip > 0) {
      this.#skip -= 1;
      return false;
    }
    this.hits += 1;
    this.#onHit(entry);
    return true;
  }
}

/** @param {Match} match @param {import("./types.mjs").RequestEntry} entry */
function matches({ method, path, sandboxId, owner, when }, entry) {
  if (method !== undefined && method.toUpperCase() !== entry.method) return false;
  if (path instanceof RegExp) {
    path.lastIndex = 0;
    if (!path.test(entry.path + (entry.url.includes("?") ? entry.url.slice(entry.url.indexOf("?")) : ""))) return false;
  } else if (path !== undefined && ![path].flat().some((one) => one === entry.route || one === entry.path))
    return false;
  if (sandboxId !== undefined && sandboxId !== entry.sandboxId) return false;
  if (owner !== undefined && owner !== entry.owner) return false;
  return when === undefined || when(entry);
}

/** The rules of one provider. */
export class Faults {
  /** @type {Rule[]} */
  #rules = [];

  /** @param {RuleInput} input */
  add(input) {
    const rule = new Rule(input, this);
    this.#rules.push(rule);
    return rule;
  }

  /** @param {Rule} rule */
  remove(rule) {
    this.#rules = this.#rules.filter((one) => one !== rule);
  }

  /** Removes every rule and releases what they hold. */
  clear() {
    for (const rule of this.#rules) rule.release();
    this.#rules = [];
  }

  /**
   * The rules that hit a request, each counted.
   * @param {import("./types.mjs").RequestEntry} entry
   */
  take(entry) {
    return this.#rules.filter((rule) => rule.take(entry));
  }
}
