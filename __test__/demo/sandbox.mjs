// A sandbox as the provider shows it, past every driver.
import { CreateosClient } from '../../index.js';

/**
 * A lease as its host keeps it.
 *
 * @typedef {{ providerLeaseId: string, metadata: Record<string, unknown> }} Lease
 */

/**
 * Whose leases they are.
 *
 * @typedef {object} Owner
 * @property {string} companyId
 * @property {string} environmentId
 * @property {import('../../index.js').CreateosConfigInput} config
 */

/**
 * @typedef {object} Process
 * @property {string} process_id
 * @property {number} pid
 * @property {boolean} leader_exited The command itself has ended.
 * @property {boolean} tree_exited All that it has started has ended, too.
 */

export class Sandbox {
  #client;
  #id;

  /**
   * @param {import('../../index.js').CreateosConfigInput} config
   * @param {string} id
   */
  constructor(config, id) {
    this.#client = new CreateosClient(config);
    this.#id = id;
  }

  async status() {
    return (await this.#client.getSandbox(this.#id)).status;
  }

  /** The commands that run. */
  async running() {
    return (await this.#processes()).filter((one) => !one.leader_exited);
  }

  /**
   * Whether nothing is left of a command.
   *
   * @param {string} processId
   */
  async isGone(processId) {
    const left = (await this.#processes()).find((one) => one.process_id === processId);
    return left === undefined || left.tree_exited;
  }

  /** The provider's list: it has what has ended, too. */
  async #processes() {
    const path = `/sandboxes/${this.#id}/processes`;
    const { processes } = /** @type {{ processes: Process[] }} */ (await this.#client.json(path));
    return processes;
  }
}

/**
 * Processes, for a person to read.
 *
 * @param {Process[]} processes
 */
export function shown(processes) {
  if (processes.length === 0) return 'no command runs';
  return processes.map(({ process_id: id, pid }) => `${id} runs, pid ${pid}`).join('\n');
}
