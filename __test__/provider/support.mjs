// What the provider's own tests share: a raw caller and small readers.

import { afterEach } from "vitest";

import { startProvider } from "./index.mjs";

/** @typedef {import("./index.mjs").Provider} Provider */

/** @type {Provider[]} */
const started = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((provider) => provider.close()));
});

/**
 * A provider that is closed after the test.
 * @param {import("./types.mjs").ProviderOptions} [options]
 */
export async function provide(options) {
  const provider = await startProvider(options);
  started.push(provider);
  return provider;
}

/**
 * @param {Provider} provider
 * @param {{key?: string}} [options]
 */
export function caller(provider, { key = provider.apiKey } = {}) {
  /**
   * @param {string} target "METHOD /path"
   * @param {any} [body] a Buffer goes out as it is, anything else as JSON
   * @param {RequestInit} [init]
   */
  const raw = (target, body, init = {}) => {
    const [method = "", path = ""] = target.split(" ");
    const binary = body instanceof Uint8Array || body instanceof ReadableStream;
    /** @type {Record<string, string>} */
    const headers = { "x-api-key": key };
    if (body !== undefined) headers["content-type"] = binary ? "application/octet-stream" : "application/json";
    return fetch(provider.url + path, {
      method,
      redirect: "manual",
      ...init,
      headers: { ...headers, .../** @type {any} */ (init.headers) },
      ...(body === undefined ? {} : { body: binary ? /** @type {any} */ (body) : JSON.stringify(body) }),
    });
  };
  /**
   * @param {string} target
   * @param {any} [body]
   * @returns {Promise<{status: number, data: any, envelope: any, headers: Headers}>}
   */
  const json = async (target, body) => {
    const response = await raw(target, body);
    const envelope = /** @type {any} */ (await response.json());
    return { status: response.status, data: envelope.data, envelope, headers: response.headers };
  };
  /** @param {object} [extra] @returns {Promise<string>} path of a new running sandbox */
  const create = async (extra = {}) => {
    const { data } = await json("POST /v1/sandboxes", { shape: "s-1vcpu-1gb", ...extra });
    return `/v1/sandboxes/${data.id}`;
  };
  /** @param {string} box @param {string} script @param {object} [extra] */
  const bash = async (box, script, extra = {}) =>
    (await json(`POST ${box}/exec`, { cmd: "bash", args: ["-c", script], ...extra })).data.result;
  /** @param {string} box @param {string} script @param {object} [extra] @returns {Promise<any>} */
  const spawn = async (box, script, extra = {}) =>
    (await json(`POST ${box}/processes`, { cmd: "/bin/bash", args: ["-c", script], ...extra })).data;
  return { raw, json, create, bash, spawn };
}

/** @param {Response} response @returns {Promise<any[]>} frames of a whole stream */
export async function frames(response) {
  return (await response.text())
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/**
 * Waits for the first bytes of a stream, then leaves it.
 * @param {Response} response
 */
export async function firstOutput(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  await reader.read();
  await reader.cancel();
}

/** @param {any[]} list @param {string} stream */
export function text(list, stream) {
  return Buffer.concat(
    list.filter((one) => one.stream === stream).map((one) => Buffer.from(one.data_base64, "base64")),
  ).toString();
}

/** @param {string} box */
export function idOf(box) {
  return /** @type {string} */ (box.split("/").pop());
}
