// Terminals for managed processes (provider contract, sections 9.2 and 9.9), through util-linux `script`, as Node has
// no terminal of its own. The leader is `script`; the command is its child on the new terminal.

import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** @param {string} text */
function quote(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * @param {string} cmd empty: a shell
 * @param {string[]} args
 * @param {{rows: number, cols: number}} size
 */
export function ptyCommand(cmd, args, { rows, cols }) {
  const line = [cmd || "/bin/bash", ...args].map(quote).join(" ");
  return { cmd: "script", args: ["-q", "-f", "-e", "-c", `stty rows ${rows} cols ${cols}; exec ${line}`, "/dev/null"] };
}

/** The terminal that children of a process sit on. @param {number} parent */
function terminal(parent) {
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      if (Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) !== parent) continue;
      // Seen from outside a sandbox's root, the same terminal has a longer name.
      const tty = /\/dev\/pts\/\d+$/.exec(readlinkSync(`/proc/${name}/fd/0`))?.[0];
      if (tty !== undefined) return { tty, group: Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[5]) };
    } catch {
      // It ended meanwhile.
    }
  }
  return undefined;
}

/** The foreground group of the terminal below a leader. @param {number} leader */
export function foregroundGroup(leader) {
  return terminal(leader)?.group;
}

/**
 * @param {number} leader
 * @param {number} rows
 * @param {number} cols
 * @returns {Promise<boolean>}
 */
export function resizeTerminal(leader, rows, cols) {
  const found = terminal(leader);
  if (found === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn("stty", ["-F", found.tty, "rows", String(rows), "cols", String(cols)], { stdio: "ignore" });
    child.once("error", () => resolve(false));
    child.once("exit", (code) => resolve(code === 0));
  });
}
