// How long output at full stream keeps the event loop from its next turn.
import { monitorEventLoopDelay } from "node:perf_hooks";

/** @typedef {{max: number, p99: number}} Delay in milliseconds, the monitor's own period of one included */

/**
 * @param {() => Promise<unknown>} run
 * @returns {Promise<Delay>}
 */
export async function measureDelay(run) {
  globalThis.gc?.();
  const monitor = monitorEventLoopDelay({ resolution: 1 });
  monitor.enable();
  await run();
  monitor.disable();
  return { max: monitor.max / 1e6, p99: monitor.percentile(99) / 1e6 };
}
