// The output stream of a managed process: replay after a sequence, then follow (provider contract, section 9.4).

import { encodeTail } from "./journal.mjs";
import { mangle } from "./fault-frames.mjs";

const batchBytes = 256 * 1024;

/**
 * @param {import("./processes.mjs").Managed} managed
 * @param {number} after
 * @param {number} heartbeatMs
 * @param {import("./types.mjs").Sink} sink
 * @param {import("./faults.mjs").Effect[]} effects
 */
export async function follow(managed, after, heartbeatMs, sink, effects) {
  const out = mangle(sink, effects);
  const reader = { cursor: after };
  managed.readers.add(reader);
  try {
    while (!sink.signal.aborted && !out.ended) {
      const { journal } = managed;
      if (reader.cursor + 1 < journal.oldest && journal.newest > reader.cursor) {
        await out.line({ type: "error", error: "output_offset_expired", oldest_available_seq: journal.oldest });
        return;
      }
      const lines = journal.after(reader.cursor, batchBytes);
      if (lines.length > 0) {
        await out.data(lines, reader.cursor + 1);
        reader.cursor += lines.length;
        managed.readerMoved();
      } else if (managed.over) {
        await out.exit(managed);
        return;
      } else if (!(await waitForMore(journal, heartbeatMs, sink.signal))) {
        await out.line({ type: "heartbeat" });
      }
    }
  } finally {
    managed.readers.delete(reader);
    managed.readerMoved();
  }
}

/**
 * @param {import("./journal.mjs").Journal} journal
 * @param {number} heartbeatMs
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} false: nothing came, a heartbeat is due
 */
function waitForMore(journal, heartbeatMs, signal) {
  return new Promise((resolve) => {
    const finish = (/** @type {boolean} */ more) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve(more);
    };
    const stop = () => finish(true);
    const timer = setTimeout(() => finish(false), heartbeatMs);
    signal.addEventListener("abort", stop);
    void journal.changed().then(() => finish(true));
    if (signal.aborted) stop();
  });
}

/**
 * Output that was never produced by a command: precomputed frames in which only the sequence differs, for measuring
 * readers. A few prepared batches rotate; one is patched again only after its bytes left the process.
 * @param {import("./processes.mjs").Managed} managed
 * @param {import("./processes.mjs").SyntheticPlan} plan
 * @param {number} after
 * @param {import("./types.mjs").Sink} sink
 */
export async function followSynthetic(managed, plan, after, sink) {
  const { frames, frameBytes, bytes, text } = plan;
  const digits = 12;
  const head = '{"type":"data","seq":';
  const middle = ',"stream":"stdout","data_base64":"';
  const payload = Buffer.alloc(frameBytes, text);
  /** @param {Buffer} content */
  const frame = (content) =>
    Buffer.concat([Buffer.from(head + " ".repeat(digits) + middle, "latin1"), encodeTail(content)]);
  const full = frame(payload);
  const perBatch = Math.max(1, Math.floor((512 * 1024) / full.length));
  const batches = Array.from({ length: 4 }, () => ({
    buffer: Buffer.concat(Array(perBatch).fill(full)),
    free: Promise.resolve(),
  }));
  let seq = after + 1;
  const last = bytes % frameBytes === 0 ? frames : frames - 1;
  for (let turn = 0; seq <= last && !sink.signal.aborted; turn += 1) {
    const batch = /** @type {typeof batches[number]} */ (batches[turn % batches.length]);
    await batch.free;
    const count = Math.min(perBatch, last - seq + 1);
    for (let i = 0; i < count; i += 1) {
      batch.buffer.write(String(seq + i).padStart(digits, " "), i * full.length + head.length, "latin1");
    }
    batch.free = sink.flush(batch.buffer.subarray(0, count * full.length));
    seq += count;
  }
  await Promise.all(batches.map((batch) => batch.free));
  if (sink.signal.aborted) return;
  if (seq === frames) {
    const rest = frame(payload.subarray(0, bytes % frameBytes));
    rest.write(String(seq).padStart(digits, " "), head.length, "latin1");
    await sink.write(rest);
  }
  managed.finishSynthetic();
  await sink.write('{"type":"exit","exit_code":0}\n');
}
