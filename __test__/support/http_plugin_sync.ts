// Plugin code of the kind that exists: files in and out of a sandbox, written against a client made of fetch.
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { pipeline } from "node:stream/promises";
import { CreateosApiError } from "./http_plugin_errors.js";
import type { PluginClient } from "./http_plugin_execute.js";

const filePath = (id: string, remote: string) => `/sandboxes/${id}/files?path=${encodeURIComponent(remote)}`;

export async function uploadFile(client: PluginClient, id: string, local: string, remote: string, signal: AbortSignal): Promise<void> {
  const response = await client.request(filePath(id, remote), {
    method: "PUT",
    headers: { "Content-Type": "application/octet-stream" },
    body: Readable.toWeb(createReadStream(local)) as unknown as BodyInit,
    duplex: "half",
    signal,
  });
  await response.body?.cancel();
}

/** Under a temporary name first. False when there is no such file. */
export async function downloadFile(
  client: PluginClient,
  id: string,
  remote: string,
  local: string,
  signal: AbortSignal,
): Promise<boolean> {
  const part = `${local}.part`;
  try {
    const response = await client.request(filePath(id, remote), { signal });
    if (!response.body) throw new Error("An answer without a body.");
    await pipeline(response.body as unknown as NodeReadableStream, createWriteStream(part), { signal });
    await rename(part, local);
    return true;
  } catch (error) {
    await rm(part, { force: true });
    if (error instanceof CreateosApiError && error.status === 404) return false;
    throw error;
  }
}

export async function makeDirectory(client: PluginClient, id: string, remote: string, signal: AbortSignal): Promise<void> {
  const { result } = await client.json(`/sandboxes/${id}/exec`, "POST", { cmd: "mkdir", args: ["-p", remote] }, signal);
  if ((result as { exit_code?: number }).exit_code !== 0) throw new Error("The folder could not be made.");
}
