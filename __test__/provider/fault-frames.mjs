// Faults inside a process output stream: the provider contract, section 19. Without such an effect frames pass through
// as the journal encoded them.

/** @typedef {import("./faults.mjs").Effect} Effect */
/** @typedef {Extract<Effect, {type: "frame"}>} FrameEffect */

/**
 * @param {import("./types.mjs").Sink} sink
 * @param {Effect[]} effects
 */
export function mangle(sink, effects) {
  const faults = /** @type {FrameEffect[]} */ (effects.filter((effect) => effect.type === "frame"));
  let ended = false;

  /** @param {Buffer|string} chunk */
  const put = async (chunk) => {
    if (!ended) await sink.write(chunk);
  };
  /** @param {any} frame */
  const line = (frame) => put(`${JSON.stringify(frame)}\n`);

  /** @param {Buffer} frame @param {number} seq */
  const dataFrame = async (frame, seq) => {
    for (const fault of faults) {
      if ((fault.at ?? 1) !== seq) continue;
      switch (fault.what) {
        case "duplicate":
          await put(frame);
          break;
        case "gap":
          return;
        case "malformed":
          await put('{"type":"data","seq":\n');
          return;
        case "oversized":
          await line({ type: "data", seq, stream: "stdout", data_base64: "A".repeat(fault.bytes ?? 2 * 1024 * 1024) });
          return;
        case "unknown":
          await line({ type: "telemetry", seq });
          break;
        case "badStream":
          await line({ type: "data", seq, stream: "stdlog", data_base64: "" });
          return;
        case "badBase64":
          await line({ type: "data", seq, stream: "stdout", data_base64: "*not base64*" });
          return;
        case "pty":
          await line({ type: "data", seq, stream: "pty", data_base64: "" });
          return;
        case "error":
          await line({ type: "error", error: fault.message ?? "internal error" });
          ended = true;
          return;
        case "raw":
          await put(fault.message ?? "");
          return;
        case "eof":
          ended = true;
          return;
        case "halfLine":
          await put(frame.subarray(0, Math.floor(frame.length / 2)));
          ended = true;
          return;
        default:
      }
    }
    await put(frame);
  };

  return {
    line,
    /** The stream was ended by a fault. */
    get ended() {
      return ended;
    },
    /** @param {Buffer[]} lines @param {number} firstSeq */
    async data(lines, firstSeq) {
      if (faults.length === 0) {
        await put(lines.length === 1 ? /** @type {Buffer} */ (lines[0]) : Buffer.concat(lines));
        return;
      }
      for (const [index, frame] of lines.entries()) await dataFrame(frame, firstSeq + index);
    },
    /** @param {{exitCode: number|undefined, signal: string|undefined}} managed */
    async exit({ exitCode, signal }) {
      if (faults.some((fault) => fault.what === "eofBeforeExit")) return;
      if (faults.some((fault) => fault.what === "exitWithoutStatus")) return line({ type: "exit" });
      await line({
        type: "exit",
        ...(exitCode === undefined ? {} : { exit_code: exitCode }),
        ...(signal === undefined ? {} : { signal }),
      });
    },
  };
}
