// The plugin's own file sync, which it keeps as well.
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import type {
  PluginEnvironmentExecuteParams,
  PluginEnvironmentSyncInParams,
  PluginEnvironmentSyncOutParams,
  PluginEnvironmentSyncResult,
} from "@paperclipai/plugin-sdk";
import { execute, type PluginClient, WORKSPACE } from "./shared.js";

type Total = PluginEnvironmentSyncResult["operations"][number];

/** Uploads files and folders, then runs the commands that go with them. */
export async function syncIn(
  client: PluginClient,
  params: PluginEnvironmentSyncInParams,
  signal: AbortSignal,
): Promise<PluginEnvironmentSyncResult> {
  const id = params.lease.providerLeaseId ?? "";
  const operations: Total[] = [];
  for (const { operationId, files, postUploadCommands = [] } of params.operations) {
    const total: Total = { operationId, filesTransferred: 0, bytesTransferred: 0 };
    for (const { sourcePath, targetPath } of files) {
      for (const file of await filesBelow(sourcePath)) {
        const content = await readFile(path.join(sourcePath, file));
        await client.upload(id, path.posix.join(targetPath, file), content, signal);
        total.filesTransferred += 1;
        total.bytesTransferred += content.length;
      }
    }
    for (const { command, cwd = WORKSPACE } of postUploadCommands) {
      await runCommand(client, { ...params, command: "bash", args: ["-c", command], cwd }, signal);
    }
    operations.push(total);
  }
  return { operations };
}

/** Downloads files, each under a temporary name first. */
export async function syncOut(
  client: PluginClient,
  params: PluginEnvironmentSyncOutParams,
  signal: AbortSignal,
): Promise<PluginEnvironmentSyncResult> {
  const operations: Total[] = [];
  for (const { operationId, files } of params.operations) {
    const total: Total = { operationId, filesTransferred: 0, bytesTransferred: 0 };
    for (const { sourcePath, targetPath } of files) {
      const from = `/sandboxes/${params.lease.providerLeaseId}/files?path=${encodeURIComponent(sourcePath)}`;
      const part = `${targetPath}.part`;
      try {
        const response = await client.request(from, { signal });
        await writeFile(part, response.body ?? "", { signal });
        await rename(part, targetPath);
      } finally {
        await rm(part, { force: true });
      }
      total.filesTransferred += 1;
      total.bytesTransferred += (await stat(targetPath)).size;
    }
    operations.push(total);
  }
  return { operations };
}

/** The files in a folder, relative to it; a file is itself. */
async function filesBelow(source: string): Promise<string[]> {
  if ((await stat(source)).isFile()) return [""];
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((entry) => path.relative(source, path.join(entry.parentPath, entry.name)));
}

/** A failure of the command's own clean-up travels as the cause. */
async function runCommand(
  client: PluginClient,
  params: PluginEnvironmentExecuteParams,
  signal: AbortSignal,
): Promise<void> {
  const message = "CreateOS transfer command failed.";
  const { exitCode } = await execute(client, params, signal).catch((cause: unknown) => {
    throw new Error(message, { cause });
  });
  if (exitCode !== 0) throw new Error(message);
}
