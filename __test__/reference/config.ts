// Section 2 of the specification: configuration and the API key.
import { createHash } from "node:crypto";
import { CreateosError, isObject } from "./errors.js";

export interface Config {
  apiUrl: string;
  apiKey: string | null;
  shape: string;
  rootfs: string | null;
  rootfsByAdapter: Record<string, string>;
  egressAllowlist: string[];
  region: string | null;
  timeoutMs: number;
  reuseLease: boolean;
  autoPauseAfterSeconds: number | null;
}

export const MAX_TIMEOUT_MS = 86_400_000;
const DEFAULT_TIMEOUT_MS = 300_000;
const PUBLIC_API = "https://api.sb.createos.sh";
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

export function parseConfig(raw: unknown): Config {
  // One destructuring reads every field once, in this order, before the first of them is checked.
  const {
    apiUrl,
    shape,
    timeoutMs,
    reuseLease,
    autoPauseAfterSeconds,
    rootfsByAdapter,
    egressAllowlist,
    apiKey,
    rootfs,
    region,
  } = isObject(raw) ? raw : {};

  const address = text("apiUrl", apiUrl);
  if (address === null) throw invalid("apiUrl", "CreateOS requires an API URL.");
  const origin = originOf(address);
  const shapeName = text("shape", shape);
  if (shapeName === null) throw invalid("shape", "CreateOS requires a shape from its shape catalog.");
  const timeout = timeoutMs ?? DEFAULT_TIMEOUT_MS;
  if (!isIntegerIn(timeout, 1, MAX_TIMEOUT_MS)) {
    throw invalid("timeoutMs", "timeoutMs must be an integer between 1 and 86400000.");
  }
  const reuse = reuseLease ?? false;
  if (typeof reuse !== "boolean") throw invalid("reuseLease", "reuseLease must be a boolean.");
  const autoPause = autoPauseAfterSeconds ?? null;
  if (autoPause !== null && !isIntegerIn(autoPause, 60, 86_400)) {
    throw invalid("autoPauseAfterSeconds", "autoPauseAfterSeconds must be an integer between 60 and 86400.");
  }
  const byAdapter = adapterMap(rootfsByAdapter ?? {});
  const egress = hostList(egressAllowlist ?? []);
  return {
    apiUrl: origin,
    shape: shapeName,
    timeoutMs: timeout,
    reuseLease: reuse,
    autoPauseAfterSeconds: autoPause,
    rootfsByAdapter: byAdapter,
    egressAllowlist: egress,
    apiKey: text("apiKey", apiKey),
    rootfs: text("rootfs", rootfs),
    region: text("region", region),
  };
}

/** The key to send for this configuration; the environment's key goes to the public API and nowhere else. */
export function resolveApiKey(config: Config): string {
  if (config.apiKey === null && config.apiUrl !== PUBLIC_API) {
    throw unusableKey(
      "Custom CreateOS API endpoints require an explicit environment API key; the host fallback is only available for " +
        "https://api.sb.createos.sh.",
    );
  }
  const key = config.apiKey ?? process.env.CREATEOS_API_KEY?.trim() ?? "";
  if (key === "" || /[\r\n\0]/.test(key)) {
    throw unusableKey("CreateOS requires an API key in the environment config or CREATEOS_API_KEY.");
  }
  return key;
}

/** Section 4, step 2. Equal keys mean the same lease of the same company under the same credentials. */
export function formatScopeKey(
  companyId: unknown,
  environmentId: unknown,
  apiUrl: string,
  apiKey: string,
  providerLeaseId: unknown,
): string {
  const keyHash = createHash("sha256").update(apiKey).digest("hex");
  return JSON.stringify([companyId, environmentId, apiUrl, keyHash, providerLeaseId]);
}

export function scopeKey(params: { companyId: unknown; environmentId: unknown; config?: unknown }, id: unknown): string {
  const config = parseConfig(params.config);
  return formatScopeKey(params.companyId, params.environmentId, config.apiUrl, resolveApiKey(config), id);
}

export function isIntegerIn(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function originOf(address: string): string {
  const url = parseUrl(address);
  const safe = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.includes(url.hostname));
  const plain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!safe || !plain || !["", "/", "/v1", "/v1/"].includes(url.pathname)) {
    throw invalid(
      "apiUrl",
      "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
    );
  }
  return url.origin;
}

// Not URL.canParse: once it is compiled, Node 20's gives false for hosts with letters between U+0080 and U+00FF.
function parseUrl(address: string): URL {
  try {
    return new URL(address);
  } catch {
    throw invalid("apiUrl", "CreateOS API URL is invalid.");
  }
}

function text(field: string, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== "string" || value.trim() === "" || value.includes("\0")) {
    throw invalid(field, `${field} must be a non-empty string.`);
  }
  return value.trim();
}

function adapterMap(value: unknown): Record<string, string> {
  if (!isObject(value) || Array.isArray(value)) {
    throw invalid("rootfsByAdapter", "rootfsByAdapter must be an object of adapter names to root filesystems.");
  }
  const entries = Object.entries(value).map(([adapter, rootfs]) => {
    if (!isOneLine(adapter) || !isOneLine(rootfs)) {
      throw invalid(
        "rootfsByAdapter",
        "rootfsByAdapter must contain non-empty adapter and root filesystem strings.",
      );
    }
    return [adapter.trim(), rootfs.trim()] as const;
  });
  return Object.fromEntries(entries);
}

function hostList(value: unknown): string[] {
  if (!Array.isArray(value) || !Array.from(value).every(isOneLine)) {
    throw invalid("egressAllowlist", "egressAllowlist must be an array of non-empty host or CIDR strings.");
  }
  return [...new Set(value.map((entry: string) => entry.trim()))];
}

function isOneLine(value: unknown): value is string {
  return typeof value === "string" && !/[\0\r\n]/.test(value) && value.trim() !== "";
}

function invalid(field: string, message: string): CreateosError {
  return new CreateosError("ERR_CREATEOS_CONFIG", message, { field });
}

function unusableKey(message: string): CreateosError {
  return new CreateosError("ERR_CREATEOS_API_KEY", message);
}
