// The output journal of a managed process: the provider contract, section 9.4. A ring of encoded frames with one
// contiguous sequence across streams; when the retained bytes pass the limit the oldest frames go.

const tail = Buffer.from('"}\n');

/**
 * One output frame as it goes over the wire.
 * @param {number} seq
 * @param {import("./types.mjs").StreamName} stream
 * @param {Buffer} bytes
 */
export function encodeFrame(seq, stream, bytes) {
  return Buffer.from(
    `{"type":"data","seq":${seq},"stream":"${stream}","data_base64":"${bytes.toString("base64")}"}\n`,
    "latin1",
  );
}

/** Frames of one shared payload: only the head differs. @param {Buffer} payload */
export function encodeTail(payload) {
  return Buffer.concat([Buffer.from(payload.toString("base64"), "latin1"), tail]);
}

export class Journal {
  /** @type {{line: Buffer, size: number}[]} */
  #frames = [];
  #first = 0;
  #bytes = 0;
  /** Sequence of the newest frame; 0 before the first. */
  newest = 0;
  /** @type {Set<() => void>} */
  #waiting = new Set();

  /**
   * @param {number} limit retained bytes
   * @param {number} frameBytes largest frame
   */
  constructor(limit, frameBytes) {
    this.limit = limit;
    this.frameBytes = frameBytes;
  }

  /** Sequence of the oldest retained frame; one past the newest when there is none. */
  get oldest() {
    return this.newest - (this.#frames.length - this.#first) + 1;
  }

  /** The window of section 9.1. */
  get window() {
    return { oldest_seq: this.newest === 0 ? 0 : this.oldest, newest_seq: this.newest, bytes: this.#bytes };
  }

  /**
   * @param {import("./types.mjs").StreamName} stream
   * @param {Buffer} bytes
   */
  append(stream, bytes) {
    for (let at = 0; at < bytes.length; at += this.frameBytes) {
      const part = bytes.subarray(at, at + this.frameBytes);
      this.newest += 1;
      this.#frames.push({ line: encodeFrame(this.newest, stream, part), size: part.length });
      this.#bytes += part.length;
    }
    while (this.#bytes > this.limit && this.#frames.length - this.#first > 1) {
      this.#bytes -= this.#frames[this.#first]?.size ?? 0;
      this.#first += 1;
    }
    if (this.#first > 1024) {
      this.#frames.splice(0, this.#first);
      this.#first = 0;
    }
    this.wake();
  }

  /**
   * Encoded frames after a sequence, up to about `bytes` of them.
   * @param {number} after
   * @param {number} bytes
   * @returns {Buffer[]}
   */
  after(after, bytes) {
    /** @type {Buffer[]} */
    const lines = [];
    let index = this.#first + Math.max(0, after + 1 - this.oldest);
    for (let size = 0; size < bytes && index < this.#frames.length; index += 1) {
      const line = this.#frames[index]?.line;
      if (line === undefined) break;
      lines.push(line);
      size += line.length;
    }
    return lines;
  }

  /** Decoded bytes a reader at this sequence still has to read. @param {number} after */
  unread(after) {
    let sum = 0;
    for (let index = this.#first + Math.max(0, after + 1 - this.oldest); index < this.#frames.length; index += 1) {
      sum += this.#frames[index]?.size ?? 0;
    }
    return sum;
  }

  /** Resolves at the next change. */
  changed() {
    return new Promise((/** @type {(value: void) => void} */ resolve) => this.#waiting.add(resolve));
  }

  wake() {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}
