// Clean-up that survives the provider: a shell that reads a pipe held by the provider. However the provider ends, even
// by SIGKILL, the pipe closes; then the shell kills what carries the run's token, runs below its directory or sits in a
// recorded process group, and removes the directory.

import { spawn } from "node:child_process";

const script = `
token=$1 base=$2 groups=
trap '' HUP INT TERM
while read -r verb number; do
  case $verb in
    add) groups="$groups $number" ;;
    done) exit 0 ;;
  esac
done
round=0
while [ $round -lt 100 ]; do
  found=
  for group in $groups; do kill -9 -"$group" 2>/dev/null && found=1; done
  for pid in $(grep -laF -- "$token" /proc/[0-9]*/environ 2>/dev/null; find /proc -maxdepth 2 -name root -lname "$base/*" 2>/dev/null); do
    pid=\${pid#/proc/}
    kill -9 "\${pid%%/*}" 2>/dev/null && found=1
  done
  [ -n "$found" ] || break
  round=$((round + 1))
done
rm -rf -- "$base"
`;

export class Watchdog {
  #child;
  #gone;

  /**
   * @param {string} token
   * @param {string} base directory to remove
   */
  constructor(token, base) {
    this.#child = spawn("/bin/sh", ["-c", script, "provider-watchdog", token, base], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    });
    this.#gone = new Promise((resolve) => {
      this.#child.once("close", resolve);
      this.#child.once("error", resolve);
    });
    this.#child.unref();
    const pipe = this.#child.stdin;
    pipe?.on("error", () => {});
    if (pipe && "unref" in pipe && typeof pipe.unref === "function") pipe.unref();
  }

  /** @param {number} group a process group to kill should the provider vanish */
  add(group) {
    this.#child.stdin?.write(`add ${group}\n`);
  }

  /** The provider has cleaned up itself. */
  async dismiss() {
    this.#child.stdin?.end("done\n");
    this.#child.ref();
    await this.#gone;
  }
}
