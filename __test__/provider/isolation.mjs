// How commands see a sandbox's directory as their file system (provider contract, sections 8 to 10).
//
// namespace  A holder process owns a mount namespace whose root is the sandbox directory, with the host's system
//            directories (/usr, /etc, ...) mounted read-only into it. Commands enter it, so /paperclip-workspace, /tmp
//            and any other absolute path are the sandbox's own. As root plainly, otherwise inside a user namespace.
// rewrite    Where unshare is not permitted: guest prefixes in command, arguments, environment and cwd become host
//            paths. What a command prints (pwd, realpath) then shows host paths; everything else behaves the same.

import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

import { initialDirectories, resolveInside, rewritePrefixes } from "./paths.mjs";
import { HttpFailure } from "./reply.mjs";

const guestPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const systemDirectories = ["bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "gnu"];

const holderScript = `
root=$1
mount --bind "$root" "$root" || exit 1
for entry in /*; do
  name=\${entry#/}
  case $name in
    ${systemDirectories.join("|")})
      if [ -L "$entry" ]; then
        [ -L "$root/$name" ] || ln -s "$(readlink "$entry")" "$root/$name"
      else
        mkdir -p "$root/$name" && mount --rbind "$entry" "$root/$name" || exit 1
        mount -o remount,bind,ro "$root/$name" 2>/dev/null
      fi ;;
    dev|proc|sys)
      mkdir -p "$root/$name" && mount --rbind "$entry" "$root/$name" || exit 1 ;;
  esac
done
exec chroot "$root" /bin/sh -c 'echo ready; exec cat >/dev/null'
`;

// Private: nothing mounted inside may ever show outside, where directories are removed recursively.
const privately = ["--mount", "--propagation", "private"];

/** @typedef {{kind: "namespace", user: boolean, unshare: string, nsenter: string}|{kind: "rewrite"}} Isolation */

/** @type {Isolation|undefined} */
let detected;

/** @param {"auto"|"namespace"|"rewrite"} wanted @returns {Isolation} */
export function chooseIsolation(wanted) {
  if (wanted === "rewrite") return { kind: "rewrite" };
  detected ??= detect();
  if (wanted === "namespace" && detected.kind !== "namespace") {
    throw new Error("Mount namespaces are not permitted here.");
  }
  return detected;
}

/** Tries the whole arrangement once: enter a namespace and read a file through its root. @returns {Isolation} */
function detect() {
  const unshare = findOnPath("unshare");
  const nsenter = findOnPath("nsenter");
  if (process.platform !== "linux" || unshare === undefined || nsenter === undefined) return { kind: "rewrite" };
  const root = mkdtempSync(path.join(realpathSync(tmpdir()), "createos-probe-"));
  try {
    for (const user of process.getuid?.() === 0 ? [false, true] : [true]) {
      const probe = spawnSync(
        unshare,
        [...(user ? ["--map-root-user"] : []), ...privately, "/bin/sh", "-c", holderScript, "sh", root],
        {
          input: "",
          encoding: "utf8",
          timeout: 10_000,
        },
      );
      if (probe.status === 0 && probe.stdout === "ready\n") return { kind: "namespace", user, unshare, nsenter };
    }
    return { kind: "rewrite" };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** @param {string} name */
function findOnPath(name) {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
  return folders.map((folder) => path.join(folder, name)).find((file) => isExecutable(file));
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * @typedef {object} Command
 * @property {string} cmd
 * @property {string[]} args
 * @property {string} cwd guest path
 * @property {Record<string,string>} env
 */
/** @typedef {{file: string, args: string[], cwd: string, env: Record<string,string>}} Launch */

/** @typedef {import("node:child_process").ChildProcessWithoutNullStreams & {pid: number}} Started */

/**
 * Starts a command in a process group of its own.
 * @param {Launch} launch
 * @returns {Started|string} why it could not be started
 */
export function start({ file, args, cwd, env }) {
  /** @type {import("node:child_process").ChildProcessWithoutNullStreams} */
  let child;
  try {
    child = spawn(file, args, { cwd, env, detached: true, stdio: "pipe" });
  } catch (error) {
    // Arguments that are too long, say, throw instead of being told by an event.
    return error instanceof Error ? error.message : "cannot be started";
  }
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  return child.pid === undefined ? `exec ${JSON.stringify(file)} failed` : /** @type {Started} */ (child);
}

/** One sandbox's file system as commands see it. */
export class Guest {
  /** @type {import("node:child_process").ChildProcess|undefined} */
  #holder;
  /** @type {Promise<void>|undefined} */
  #entered;
  #onGroup;
  #closed = false;

  /**
   * @param {string} root
   * @param {Isolation} isolation
   * @param {(group: number) => void} onGroup
   */
  constructor(root, isolation, onGroup) {
    this.root = root;
    this.isolation = isolation;
    this.#onGroup = onGroup;
  }

  /** Makes the directories that every guest has. */
  async prepareDirectories() {
    await Promise.all(initialDirectories.map((name) => mkdir(path.join(this.root, name), { recursive: true })));
  }

  /** Makes the namespace, at the first command. */
  async #enter() {
    if (this.isolation.kind === "rewrite") return;
    if (this.#closed) throw new HttpFailure(409, "sandbox is gone", { field: "status" });
    const { unshare, user } = this.isolation;
    const holder = spawn(
      unshare,
      [...(user ? ["--map-root-user"] : []), ...privately, "/bin/sh", "-c", holderScript, "sh", this.root],
      {
        stdio: ["pipe", "pipe", "ignore"],
        detached: true,
        cwd: "/",
        env: { PATH: guestPath },
      },
    );
    this.#holder = holder;
    if (holder.pid !== undefined) this.#onGroup(holder.pid);
    holder.stdin?.on("error", () => {});
    holder.unref();
    await new Promise((resolve, reject) => {
      holder.stdout?.once("data", resolve);
      holder.once("exit", () => reject(new Error("The sandbox's namespace could not be made.")));
      holder.once("error", reject);
    });
    for (const pipe of [holder.stdin, holder.stdout]) {
      if (pipe && "unref" in pipe && typeof pipe.unref === "function") pipe.unref();
    }
  }

  /** Whether any command was ever started. */
  get used() {
    return this.#entered !== undefined;
  }

  /** The holder's process, which is none of the guest's. */
  get holderPid() {
    return this.#holder?.pid;
  }

  /** The root to recognise members by; none where the root is the host's. */
  get ownRoot() {
    return this.isolation.kind === "namespace" ? this.root : undefined;
  }

  close() {
    this.#closed = true;
    this.#holder?.stdin?.destroy();
    this.#holder?.kill("SIGKILL");
  }

  /**
   * What to spawn for a guest command.
   * @param {Command} command
   * @returns {Promise<Launch|{error: string}>}
   */
  async prepare(command) {
    this.#entered ??= this.#enter();
    await this.#entered;
    const cwd = await resolveInside(this.root, command.cwd);
    if (!this.#isVisible(cwd, command.cwd, false)) return { error: `chdir ${command.cwd}: no such file or directory` };
    const searched = command.env["PATH"] ?? guestPath;
    if (!(await this.#canRun(command.cmd, searched, cwd))) {
      return { error: `exec: ${JSON.stringify(command.cmd)}: executable file not found` };
    }
    const env = { PATH: guestPath, HOME: "/root", TMPDIR: "/tmp", LANG: "C.UTF-8", USER: "root", ...command.env };
    if (this.isolation.kind === "rewrite") {
      const map = (/** @type {string} */ text) => rewritePrefixes(this.root, text);
      return {
        file: map(command.cmd),
        args: command.args.map(map),
        cwd,
        env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, map(value)])),
      };
    }
    const { nsenter, user } = this.isolation;
    const enter = [
      "--target",
      String(this.holderPid),
      ...(user ? ["--user", "--preserve-credentials"] : []),
      "--mount",
      "--root",
      "--wd",
    ];
    // The shell only changes directory and becomes the command, so process id, group and exit status are the command's.
    return {
      file: nsenter,
      args: [...enter, "--", "/bin/sh", "-c", 'cd -- "$0" && exec "$@"', command.cwd, command.cmd, ...command.args],
      cwd: "/",
      env,
    };
  }

  /**
   * @param {string} cmd
   * @param {string} searched
   * @param {string} cwd
   */
  async #canRun(cmd, searched, cwd) {
    if (cmd.includes("\0")) throw new HttpFailure(400, "cmd must not contain NUL", { field: "cmd" });
    if (cmd.startsWith("/")) return this.#isVisible(await resolveInside(this.root, cmd), cmd, true);
    if (cmd.includes("/")) return isExecutable(path.join(cwd, cmd));
    for (const folder of searched.split(":")) {
      const file = `${folder}/${cmd}`;
      if (file.startsWith("/") && this.#isVisible(await resolveInside(this.root, file), file, true)) return true;
    }
    return false;
  }

  /**
   * Whether the guest sees a path: its own files, and the host's system directories.
   * @param {string} own host path of the sandbox's own file
   * @param {string} guest
   * @param {boolean} executable
   */
  #isVisible(own, guest, executable) {
    const test = executable ? isExecutable : existsSync;
    if (test(own)) return true;
    const first = path.posix.normalize(guest).split("/")[1] ?? "";
    const shared = [...systemDirectories, "dev", "proc", "sys"].includes(first);
    return (shared || this.isolation.kind === "rewrite") && test(path.posix.normalize(guest));
  }
}
