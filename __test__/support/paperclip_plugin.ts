// The example plugin as a host has it: a package of its own in the host's node_modules, beside those it depends on. And
// what a host hands to its hooks.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { PluginEnvironmentLease } from "@paperclipai/plugin-sdk";
import type { Provider } from "../provider/index.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Where the example is in this repository. */
export const exampleDirectory = path.join(root, "examples", "paperclip-plugin");

type PluginModule = typeof import("../../examples/paperclip-plugin/src/plugin.js");
type ManifestModule = typeof import("../../examples/paperclip-plugin/src/manifest.js");

export interface InstalledPlugin {
  directory: string;
  /** The worker's entry point, as the package and its manifest name it. */
  worker: string;
  plugin: PluginModule;
  manifest: ManifestModule["default"];
  /** Compiles it again, with every check. */
  build(): Promise<void>;
  remove(): void;
}

/**
 * Installs the example into a folder of its own and compiles it, as its package.json says but without the checks, which
 * `build` makes.
 */
export async function installPlugin(): Promise<InstalledPlugin> {
  const host = realpathSync(mkdtempSync(path.join(tmpdir(), "paperclip-host-")));
  const { name, paperclipPlugin } = JSON.parse(readFileSync(path.join(exampleDirectory, "package.json"), "utf8"));
  const directory = path.join(host, "node_modules", name);
  mkdirSync(directory, { recursive: true });
  for (const part of ["package.json", "tsconfig.json", "src"]) {
    cpSync(path.join(exampleDirectory, part), path.join(directory, part), { recursive: true });
  }
  const link = (target: string, as: string) => symlinkSync(target, path.join(host, "node_modules", as), "junction");
  link(root, "createos-lease");
  for (const scope of ["@paperclipai", "@types"]) link(path.join(root, "node_modules", scope), scope);

  const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc");
  const build = async (...flags: string[]) => {
    await promisify(execFile)(process.execPath, [compiler, "-p", directory, ...flags]);
  };
  await build("--noCheck");
  const load = (entry: string) => import(pathToFileURL(path.join(directory, entry)).href);
  return {
    directory,
    worker: path.join(directory, paperclipPlugin.worker),
    plugin: await load("dist/plugin.js"),
    manifest: (await load(paperclipPlugin.manifest)).default,
    build: () => build(),
    remove: () => rmSync(host, { recursive: true, force: true }),
  };
}

/** What every hook but validateConfig gets: whose environment it is. */
export interface Tenant {
  driverKey: string;
  companyId: string;
  environmentId: string;
  issueId: string;
  config: Record<string, unknown>;
}

/** An environment of a company, whose leases are reused. */
export function tenant(
  provider: Provider,
  { companyId = "company", environmentId = "environment" } = {},
  config: Record<string, unknown> = {},
): Tenant {
  return {
    driverKey: "createos",
    companyId,
    environmentId,
    issueId: `issue of ${companyId}`,
    config: {
      apiUrl: provider.url,
      apiKey: provider.apiKey,
      shape: "s-1vcpu-1gb",
      reuseLease: true,
      timeoutMs: 20_000,
      ...config,
    },
  };
}

/** A lease as the host has it in its database. */
export interface StoredLease {
  providerLeaseId: string;
  leaseMetadata: Record<string, unknown>;
}

/** Stores a lease as a host does, as JSON, verbatim. */
export function persist(lease: PluginEnvironmentLease): StoredLease {
  const { providerLeaseId, metadata } = JSON.parse(JSON.stringify(lease));
  return { providerLeaseId, leaseMetadata: metadata };
}

/** A stored lease the way some hooks want it. */
export function leaseOf({ providerLeaseId, leaseMetadata }: StoredLease) {
  return { lease: { providerLeaseId, metadata: leaseMetadata }, workspace: { mode: "isolated_workspace" } };
}
