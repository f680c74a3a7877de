// A sandbox of a loopback provider in another process, in which every command gives the same synthetic output, and the
// output that a reader of it has to come to.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const MIB = 1024 * 1024;

/** What `execute` keeps of a stream, in UTF-16 units. */
const MOST_UNITS = 4 * MIB;

const main = fileURLToPath(new URL("../provider/main.mjs", import.meta.url));

/** @typedef {{bytes: number, frameBytes: number, text: string}} Output */

/**
 * @typedef {object} Place
 * @property {string} url
 * @property {string} key
 * @property {string} id the sandbox
 * @property {Output} output
 * @property {() => Promise<void>} close
 */

/** One unit for each byte, which is what most commands print. */
export const ASCII = "0123456789abcdefghijklmnopqrstuvwxyz .,:;|+-=_()[]{}<>ABCDEFGHI\n";
/** As many bytes, a quarter of them in characters of two, three and four bytes. */
export const MIXED = "line of text where ü ß é 世 界 🦀 are no rarities at all\n";

/**
 * @param {Output} output `text` is repeated; its length divides `frameBytes`, so that no frame cuts a character
 * @returns {Promise<Place>}
 */
export async function openPlace(output) {
  if (output.frameBytes % Buffer.byteLength(output.text) !== 0) throw new Error("The text does not fill a frame.");
  const args = [main, "--isolation", "rewrite", "--synthetic", JSON.stringify(output)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await once(createInterface(child.stdout), "line");
  const { url, key } = JSON.parse(line);
  const { id } = await call({ url, key }, "POST", "/v1/sandboxes", { shape: "s-1vcpu-1gb" });
  const close = async () => {
    const ended = once(child, "close");
    child.stdin.end();
    await ended;
  };
  return { url, key, id, output, close };
}

/**
 * A request by the platform's own fetch.
 * @param {Pick<Place, "url" | "key">} place
 * @param {string} method
 * @param {string} path
 * @param {BodyInit} [body]
 * @param {string} [type]
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
export async function send({ url, key }, method, path, body, type, signal) {
  /** @type {RequestInit} */
  const init = { method, headers: { "x-api-key": key, ...(type === undefined ? {} : { "content-type": type }) } };
  if (body !== undefined) init.body = body;
  if (signal !== undefined) init.signal = signal;
  const response = await fetch(url + path, init);
  if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}.`);
  return response;
}

/**
 * @param {Pick<Place, "url" | "key">} place
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>} what the provider's envelope holds
 */
export async function call(place, method, path, body = {}) {
  const response = await send(place, method, path, JSON.stringify(body), "application/json");
  const { data } = /** @type {{data: unknown}} */ (await response.json());
  return data;
}

/**
 * Parameters of a command in it; which one makes no difference.
 * @param {Pick<Place, "url" | "key" | "id">} place
 */
export function commandIn({ url, key, id }) {
  const owner = { companyId: "company", environmentId: "environment" };
  return {
    ...owner,
    config: { apiUrl: url, apiKey: key, shape: "s-1vcpu-1gb", timeoutMs: 600_000 },
    lease: { providerLeaseId: id, metadata: { provider: "createos", ...owner, apiUrl: url } },
    command: "true",
  };
}

/** How many UTF-16 units an output has. @param {Output} output */
export function unitsOf({ bytes, text }) {
  return (bytes / Buffer.byteLength(text)) * text.length;
}

/**
 * Fails unless a result holds the end of the output that there was.
 * @param {Output} output
 * @param {import("../../index.js").ExecuteResult} result
 */
export function checkResult(output, { exitCode, stdout, stderr, metadata }) {
  const units = unitsOf(output);
  const length = Math.min(units, MOST_UNITS);
  const { text } = output;
  const end = text.repeat(Math.ceil(length / text.length) + 1);
  // Half a surrogate pair is not kept.
  const isWhole = stdout.length === length || stdout.length === length - 1;
  const isRight = isWhole && stderr === "" && end.endsWith(stdout) && metadata.outputTruncated === units > MOST_UNITS;
  if (exitCode !== 0 || !isRight) throw new Error(`execute gave another output, of ${stdout.length} units.`);
}
