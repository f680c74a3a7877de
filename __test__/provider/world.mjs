// What every part of one running provider shares: options resolved, directory, token, log, faults.

/**
 * @typedef {object} World
 * @property {string} base directory of all sandboxes
 * @property {(sandboxId: string, processId?: string) => string} token environment text that marks a guest process
 * @property {import("./isolation.mjs").Isolation} isolation
 * @property {import("./watchdog.mjs").Watchdog} watchdog
 * @property {import("./log.mjs").EventLog} log
 * @property {import("./faults.mjs").Faults} faults
 * @property {import("./sandboxes.mjs").SandboxStore} sandboxes
 * @property {import("./types.mjs").Switches} switches
 * @property {import("./types.mjs").Delays} delays
 * @property {Map<string, string>} keys API key -> owner
 * @property {number} heartbeatMs
 * @property {number} journalBytes
 * @property {number} frameBytes
 * @property {number} fileLimitBytes
 * @property {number} autoPauseScale
 * @property {number} pollAfterSeconds
 * @property {string} region
 * @property {import("./types.mjs").Synthetic|undefined} synthetic
 */

/** @type {import("./types.mjs").Switches} */
export const defaultSwitches = {
  createStatus: true,
  createQuota: true,
  idPrefix: "sb-",
  destroyedIs404: false,
  inlineDestroy: false,
  expiredOutput: "410",
  strictBody: false,
  missingParent: "create",
  failData: "object",
  ack: "ok",
  execStdin: true,
  execStream404: false,
  execKillOnDisconnect: true,
  oldStateReads: 0,
  credit: true,
  pauseCutsStreams: true,
  backpressure: true,
  exitScope: "leader",
};
