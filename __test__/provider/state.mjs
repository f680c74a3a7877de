// The sandbox state machine of the provider contract, sections 6 and 6.1, as one total function.
//
//                 bootFailed
//   creating ───────────────────────────────► failed (terminal)
//      │ booted                                  ▲ fail
//      ▼            pause            stopped     │
//   running ──────────────► pausing ─────────► paused ◄──────────┐
//    ▲   │ crash                                │ resume          │ copiedPaused
//    │   ▼            resume                    ▼                 │
//    │  error ───────────────────────────► resuming            forking ── copied ──► running
//    │   ▲               resumeFailed           │
//    │   └──────────────────────────────────────┤
//    └──────────────────── resumed ─────────────┘
//
//   every state but the terminal ones ── destroy ──► destroying ── reclaimed ──► destroyed (terminal)

/** @typedef {import("./types.mjs").Status} Status */
/**
 * @typedef {"booted"|"bootFailed"|"pause"|"stopped"|"resume"|"resumed"|"resumeFailed"|"crash"|"fail"|"copied"|"copiedPaused"|"destroy"|"reclaimed"} StateEvent
 */

/** @type {Record<Status, Partial<Record<StateEvent, Status>>>} */
const table = {
  creating: { booted: "running", bootFailed: "failed", destroy: "destroying" },
  running: { pause: "pausing", resume: "running", crash: "error", fail: "failed", destroy: "destroying" },
  pausing: { stopped: "paused", destroy: "destroying" },
  paused: { pause: "paused", resume: "resuming", fail: "failed", destroy: "destroying" },
  resuming: { resumed: "running", resumeFailed: "error", destroy: "destroying" },
  forking: { copied: "running", copiedPaused: "paused", resumeFailed: "error", destroy: "destroying" },
  error: { resume: "resuming", fail: "failed", destroy: "destroying" },
  destroying: { destroy: "destroying", reclaimed: "destroyed" },
  destroyed: { destroy: "destroyed" },
  failed: { destroy: "failed" },
};

/**
 * The state after an event, or undefined where the event is illegal. An event that changes nothing (pause when paused,
 * resume when running, destroy when gone) gives the same state back: the call is idempotent.
 * @param {Status} state
 * @param {StateEvent} event
 * @returns {Status|undefined}
 */
export function next(state, event) {
  return table[state][event];
}

/** @param {Status} state */
export function isTerminal(state) {
  return state === "destroyed" || state === "failed";
}

/** @type {readonly Status[]} */
export const statuses = /** @type {Status[]} */ (Object.keys(table));
