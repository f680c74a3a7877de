// Request validation and the sandbox object: the provider contract, sections 5, 7.1 and 7.6.

import { isEgressRule, rootfs as rootfsCatalogue, shapes } from "./catalogue.mjs";
import { HttpFailure } from "./reply.mjs";

/**
 * What a sandbox was asked to be.
 * @typedef {object} Settings
 * @property {string} name
 * @property {string} shape
 * @property {string} rootfs
 * @property {number} vcpu
 * @property {number} mem_mib
 * @property {number} disk_mib
 * @property {string[]} egress
 * @property {Record<string,string>} envs
 * @property {string[]} ssh_pubkeys
 * @property {boolean} ingress_enabled
 * @property {number|undefined} auto_pause_after_seconds
 * @property {string} region
 * @property {string} [ip]
 * @property {number} [spawn_ms]
 * @property {string} [forked_from]
 * @property {number} quota_bytes
 */

const adjectives = ["amber", "brisk", "calm", "dapper", "eager", "fuzzy", "gentle", "humble"];
const animals = ["badger", "crane", "dolphin", "ermine", "falcon", "gecko", "heron", "ibex"];
let named = 0;

/** @param {string} field @param {string} message @returns {never} */
function invalid(field, message) {
  throw new HttpFailure(400, message, { field });
}

/**
 * @param {unknown} value
 * @returns {string[]} allow all is `["*"]`
 */
export function parseEgress(value) {
  if (value === undefined || value === null) return ["*"];
  if (!Array.isArray(value) || !value.every(isEgressRule)) return invalid("egress", "malformed egress rule");
  return value.length === 0 ? ["*"] : value;
}

/** @param {unknown} value @returns {number|undefined} */
export function parseAutoPause(value) {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 60 || value > 86_400) {
    return invalid("auto_pause_after_seconds", "must be between 60 and 86400");
  }
  return value;
}

/** @param {unknown} value @returns {Record<string, string>} */
export function parseEnvs(value) {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) return invalid("envs", "must be an object");
  const entries = Object.entries(/** @type {object} */ (value));
  let total = 0;
  for (const [name, text] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || typeof text !== "string" || text.includes("\0"))
      invalid("envs", "malformed variable");
    if (Buffer.byteLength(text) > 4096) invalid("envs", "value too long");
    total += Buffer.byteLength(text);
  }
  if (entries.length > 64 || total > 65_536) invalid("envs", "too many variables");
  return Object.fromEntries(entries);
}

/**
 * The variables of one command: only names declared at creation (sections 8 and 9.2).
 * @param {unknown} value
 * @param {Record<string, string>} declared
 */
export function parseCommandEnv(value, declared) {
  const env = parseEnvs(value);
  for (const name of Object.keys(env)) {
    if (!Object.hasOwn(declared, name)) invalid("env", `env key ${name} was not declared at create`);
  }
  return env;
}

/** @param {unknown} value @param {string} field @returns {string[]} */
export function parseStrings(value, field) {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every((one) => typeof one === "string"))
    return invalid(field, "must be an array of strings");
  if (value.some((one) => one.includes("\0"))) return invalid(field, "must not contain NUL");
  return value;
}

/**
 * @param {Record<string, any>} body
 * @param {string} ownRegion
 * @returns {Settings}
 */
export function parseCreate(body, ownRegion) {
  const shape = shapes.find((one) => one.id === body["shape"]);
  if (shape === undefined) return invalid("shape", "unknown shape");
  const rootfs = body["rootfs"] || rootfsCatalogue.default;
  if (!rootfsCatalogue.rootfs.includes(rootfs) && !String(rootfs).startsWith("tpl"))
    return invalid("rootfs", "unknown rootfs");
  const name = body["name"] || `${adjectives[named % 8]}-${animals[(named >> 3) % 8]}-${(named += 1)}`;
  if (typeof name !== "string" || !/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?$/.test(name))
    return invalid("name", "malformed name");
  if (body["bandwidth_quota_bytes"]) return invalid("bandwidth_quota_bytes", "cannot be set at create");
  if (body["region"] && body["region"] !== ownRegion) return invalid("region", "unknown region");
  const disk = body["disk_mib"] || shape.default_disk_mib;
  if (!Number.isInteger(disk) || disk < 0) return invalid("disk_mib", "must be a positive integer");
  return {
    name,
    shape: shape.id,
    rootfs,
    vcpu: shape.vcpu,
    mem_mib: shape.mem_mib,
    disk_mib: disk,
    egress: parseEgress(body["egress"]),
    envs: parseEnvs(body["envs"]),
    ssh_pubkeys: parseStrings(body["ssh_pubkeys"], "ssh_pubkeys"),
    ingress_enabled: body["ingress_enabled"] === true,
    auto_pause_after_seconds: parseAutoPause(body["auto_pause_after_seconds"]),
    region: ownRegion,
    quota_bytes: 5 * 1024 ** 3,
  };
}

/** @param {import("./sandboxes.mjs").Sandbox} sandbox */
function ingress({ id, settings }) {
  return settings.ingress_enabled ? { ingress_url_template: `https://${id}-<port>.sandbox.invalid` } : {};
}

/** @param {import("./sandboxes.mjs").Sandbox} sandbox */
function autoPause({ settings }) {
  const seconds = settings.auto_pause_after_seconds;
  return seconds === undefined ? {} : { auto_pause_after_seconds: seconds };
}

/**
 * The full view of section 5; absent optional fields are left out.
 * @param {import("./sandboxes.mjs").Sandbox} sandbox
 * @param {import("./types.mjs").Status} [status] another one than the real
 */
export function sandboxView(sandbox, status = sandbox.status) {
  const { settings } = sandbox;
  return {
    id: sandbox.id,
    status,
    name: settings.name,
    ...(sandbox.status === "creating" ? {} : { ip: settings.ip }),
    vcpu: settings.vcpu,
    mem_mib: settings.mem_mib,
    disk_mib: settings.disk_mib,
    ...Object.fromEntries(Object.entries(sandbox.times).filter(([, time]) => time !== undefined)),
    ingress_enabled: settings.ingress_enabled,
    ...ingress(sandbox),
    shape: settings.shape,
    rootfs: settings.rootfs,
    region: settings.region,
    ...(settings.spawn_ms === undefined ? {} : { spawn_ms: settings.spawn_ms }),
    egress: settings.egress,
    envs: Object.keys(settings.envs),
    ssh_pubkeys: settings.ssh_pubkeys,
    created_by: sandbox.owner,
    bandwidth_ingress_bytes: 0,
    ...(settings.forked_from === undefined ? {} : { forked_from: settings.forked_from }),
    ...autoPause(sandbox),
  };
}

/**
 * The create reply of section 7.1.
 * @param {import("./sandboxes.mjs").Sandbox} sandbox
 * @param {import("./types.mjs").Switches} switches
 */
export function createdView(sandbox, switches) {
  const { settings } = sandbox;
  return {
    id: sandbox.id,
    ...(switches.createStatus ? { status: sandbox.status } : {}),
    name: settings.name,
    ip: settings.ip,
    shape: settings.shape,
    rootfs: settings.rootfs,
    vcpu: settings.vcpu,
    mem_mib: settings.mem_mib,
    disk_mib: settings.disk_mib,
    spawn_ms: settings.spawn_ms ?? 0,
    egress: settings.egress,
    ...(switches.createQuota ? { bandwidth_quota_bytes: settings.quota_bytes } : {}),
    ...ingress(sandbox),
    ...autoPause(sandbox),
  };
}
