// What the demo prints: one line for each thing that happened, with the time since the start.
import process from 'node:process';

const useColour = process.stdout.isTTY && process.env.NO_COLOR === undefined;
/** @type {(code: number, text: string) => string} */
const paint = (code, text) => (useColour ? `\u001B[${code}m${text}\u001B[0m` : text);

export class Timeline {
  #start = performance.now();
  #isSound = true;

  /** @param {string} place Where the demo runs. */
  constructor(place) {
    process.stdout.write(`\n${paint(1, 'createos-lease')} on ${place}\n\n`);
  }

  /**
   * @param {string} what
   * @param {string} text
   */
  tell(what, text) {
    this.#line('·', 36, what, text);
  }

  /**
   * Tells of something that must be so.
   *
   * @param {boolean} holds
   * @param {string} what
   * @param {string} text
   */
  check(holds, what, text) {
    if (!holds) this.#isSound = false;
    this.#line(holds ? '✓' : '✗', holds ? 32 : 31, what, text);
  }

  /** @param {string} text */
  output(text) {
    for (const line of text.trimEnd().split('\n')) {
      process.stdout.write(`${' '.repeat(24)}${paint(2, `│ ${line}`)}\n`);
    }
  }

  /** @param {unknown} error */
  failed(error) {
    this.#isSound = false;
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    const text = error instanceof Error ? `${error.name}: ${error.message}${code}` : String(error);
    this.#line('✗', 31, 'failed', text);
  }

  /** Prints the end, and gives the process's exit code. */
  finish() {
    const verdict = this.#isSound ? paint(32, 'All of it happened.') : paint(31, 'Something went wrong.');
    process.stdout.write(`\n${verdict}\n`);
    return this.#isSound ? 0 : 1;
  }

  /** @type {(mark: string, colour: number, what: string, text: string) => void} */
  #line(mark, colour, what, text) {
    const time = `${Math.round(performance.now() - this.#start)} ms`.padStart(9);
    process.stdout.write(`${paint(2, time)}  ${paint(colour, mark)} ${what.padEnd(9)}  ${text}\n`);
  }
}
