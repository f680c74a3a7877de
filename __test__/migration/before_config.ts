// The configuration, as the plugin of the old shape read it.

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

export function parseConfig(raw: Record<string, unknown>): Config {
  const apiUrl = originOf(text(raw, "apiUrl"));
  const shape = text(raw, "shape");
  if (shape === null) throw new Error("CreateOS requires a shape from its shape catalog.");
  const timeoutMs = integer("timeoutMs", raw.timeoutMs ?? 300_000, 1, 86_400_000);
  const reuseLease = raw.reuseLease ?? false;
  if (typeof reuseLease !== "boolean") throw new Error("reuseLease must be a boolean.");
  const seconds = raw.autoPauseAfterSeconds ?? null;
  const autoPauseAfterSeconds = seconds === null ? null : integer("autoPauseAfterSeconds", seconds, 60, 86_400);

  const images = raw.rootfsByAdapter ?? {};
  if (!isRecord(images)) throw new Error("rootfsByAdapter must be an object of adapter names to root filesystems.");
  const rootfsByAdapter = Object.fromEntries(
    Object.entries(images).map(([adapter, rootfs]) => {
      if (isLine(adapter) && isLine(rootfs)) return [adapter.trim(), rootfs.trim()];
      throw new Error("rootfsByAdapter must contain non-empty adapter and root filesystem strings.");
    }),
  );

  const hosts = raw.egressAllowlist ?? [];
  if (!Array.isArray(hosts) || !hosts.every(isLine)) {
    throw new Error("egressAllowlist must be an array of non-empty host or CIDR strings.");
  }
  const egressAllowlist = [...new Set(hosts.map((host) => host.trim()))];
  const [apiKey, rootfs, region] = [text(raw, "apiKey"), text(raw, "rootfs"), text(raw, "region")];
  return {
    apiUrl,
    apiKey,
    shape,
    rootfs,
    rootfsByAdapter,
    egressAllowlist,
    region,
    timeoutMs,
    reuseLease,
    autoPauseAfterSeconds,
  };
}

export function resolveApiKey(config: Config): string {
  const key = config.apiKey ?? process.env["CREATEOS_API_KEY"]?.trim() ?? "";
  if (isLine(key)) return key;
  throw new Error("CreateOS requires an API key in the environment config or CREATEOS_API_KEY.");
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isLine(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && !/[\0\r\n]/.test(value);
}

function originOf(address: string | null): string {
  if (address === null) throw new Error("CreateOS requires an API URL.");
  if (!URL.canParse(address)) throw new Error("CreateOS API URL is invalid.");
  const { protocol, hostname, username, password, search, hash, pathname, origin } = new URL(address);
  const isLoopback = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  const isSafe = protocol === "https:" || (protocol === "http:" && isLoopback);
  if (isSafe && `${username}${password}${search}${hash}` === "" && /^\/(v1\/?)?$/.test(pathname)) return origin;
  throw new Error(
    "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
  );
}

function text(raw: Record<string, unknown>, field: string): string | null {
  const value = raw[field] ?? null;
  if (value === null) return null;
  if (typeof value === "string" && value.trim() !== "" && !value.includes("\0")) return value.trim();
  throw new Error(`${field} must be a non-empty string.`);
}

function integer(field: string, value: unknown, least: number, most: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`${field} must be an integer between ${least} and ${most}.`);
}
