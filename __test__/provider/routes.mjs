// The route table: name, method, path, and how a request is admitted. Handlers live in the files by section.

import { rootfs, shapes } from "./catalogue.mjs";
import { exec } from "./exec.mjs";
import { download, upload } from "./files.mjs";
import * as lifecycle from "./lifecycle-routes.mjs";
import * as processes from "./process-routes.mjs";

/** @typedef {import("./types.mjs").Context} Context */
/** @typedef {import("./types.mjs").Reply} Reply */
/** @typedef {import("./world.mjs").World} World */
/** @typedef {import("./sandboxes.mjs").Sandbox} Sandbox */

/**
 * @typedef {object} Route
 * @property {string} name
 * @property {string} method
 * @property {string[]} path segments; `:name` takes one
 * @property {boolean} open needs no key (section 2)
 * @property {boolean} upload the body is not JSON
 * @property {boolean} bodyless clients may send it without a body (section 1)
 * @property {(world: World, context: Context) => Reply|Promise<Reply>} handle
 */

/**
 * @param {string} name
 * @param {string} target "METHOD /path"
 * @param {Route["handle"]} handle
 * @param {Partial<Pick<Route, "open"|"upload"|"bodyless">>} [extra]
 * @returns {Route}
 */
function route(name, target, handle, extra = {}) {
  const [method = "", path = ""] = target.split(" ");
  return {
    name,
    method,
    path: path.split("/").slice(1),
    open: false,
    upload: false,
    bodyless: false,
    handle,
    ...extra,
  };
}

/**
 * A call that reaches into the guest: only in a running sandbox (section 6.1); it counts as activity while it lasts.
 * @param {(world: World, sandbox: Sandbox, context: Context) => Promise<Reply>|Reply} handle
 * @param {boolean} [stream] whether a pause cuts it
 * @returns {Route["handle"]}
 */
function guest(handle, stream = true) {
  return async (world, context) => {
    const sandbox = world.sandboxes.find(context.params["id"] ?? "", context.owner);
    world.sandboxes.requireRunning(sandbox);
    const connection = { cut: context.cut, stream };
    sandbox.connections.add(connection);
    world.sandboxes.touch(sandbox);
    const leave = () => {
      sandbox.connections.delete(connection);
      world.sandboxes.touch(sandbox);
    };
    if (context.res.closed || context.res.destroyed) leave();
    else context.res.once("close", leave);
    return handle(world, sandbox, context);
  };
}

const box = "/v1/sandboxes/:id";
const one = `${box}/processes/:process`;

/** @type {Route[]} */
export const routes = [
  route("healthz", "GET /healthz", () => ({ data: { up: true } }), { open: true }),
  route("readyz", "GET /readyz", () => ({ data: { ready: true, scheduler_last_ok_ms_ago: 1 } }), { open: true }),
  route("shapes", "GET /v1/shapes", (_world, { query }) => ({ data: lifecycle.page(shapes, query) }), { open: true }),
  route("rootfs", "GET /v1/rootfs", () => ({ data: rootfs }), { open: true }),
  route("whoami", "GET /v1/whoami", lifecycle.whoami),

  route("sandbox.create", "POST /v1/sandboxes", lifecycle.create),
  route("sandbox.list", "GET /v1/sandboxes", lifecycle.list),
  route("sandbox.byIp", "GET /v1/sandboxes/by-ip/:ip", lifecycle.byIp),
  route("sandbox.get", `GET ${box}`, lifecycle.get),
  route("sandbox.patch", `PATCH ${box}`, lifecycle.patch),
  route("sandbox.destroy", `DELETE ${box}`, lifecycle.destroy),
  route("sandbox.pause", `POST ${box}/pause`, lifecycle.pause, { bodyless: true }),
  route("sandbox.resume", `POST ${box}/resume`, lifecycle.resume, { bodyless: true }),
  route("sandbox.fork", `POST ${box}/fork`, lifecycle.fork),
  route("egress.get", `GET ${box}/egress`, lifecycle.getEgress),
  route("egress.put", `PUT ${box}/egress`, lifecycle.putEgress),
  route("bandwidth.get", `GET ${box}/bandwidth`, lifecycle.bandwidth),
  route("bandwidth.recharge", `POST ${box}/bandwidth/recharge`, lifecycle.recharge),
  route("sandbox.sshKeys", `POST ${box}/ssh-pubkeys`, lifecycle.sshKeys),
  route("sandbox.resize", `POST ${box}/resize`, lifecycle.resize),

  route("exec", `POST ${box}/exec`, guest(exec)),
  route("files.put", `PUT ${box}/files`, guest(upload), { upload: true }),
  route(
    "files.get",
    `GET ${box}/files`,
    guest((_world, sandbox, context) => download(sandbox, context)),
  ),

  route("process.create", `POST ${box}/processes`, guest(processes.create, false)),
  route("process.list", `GET ${box}/processes`, guest(processes.list, false)),
  route("process.get", `GET ${one}`, guest(processes.get, false)),
  route("process.delete", `DELETE ${one}`, guest(processes.remove, false)),
  route("process.connect", `GET ${one}/connect`, guest(processes.connect)),
  route("process.wait", `GET ${one}/wait`, guest(processes.wait)),
  route("process.input", `POST ${one}/input`, guest(processes.input, false)),
  route("process.stdinClose", `POST ${one}/stdin/close`, guest(processes.closeStdin, false), { bodyless: true }),
  route("process.signal", `POST ${one}/signal`, guest(processes.signal, false)),
  route("process.resize", `POST ${one}/resize`, guest(processes.resize, false)),
];

/**
 * @param {string} method
 * @param {string[]} segments decoded
 * @returns {{route: Route, params: Record<string,string>}|undefined}
 */
export function findRoute(method, segments) {
  for (const candidate of routes) {
    if (candidate.method !== method || candidate.path.length !== segments.length) continue;
    /** @type {Record<string, string>} */
    const params = {};
    const fits = candidate.path.every((part, index) => {
      const segment = segments[index] ?? "";
      if (!part.startsWith(":")) return part === segment;
      params[part.slice(1)] = segment;
      return segment !== "";
    });
    if (fits) return { route: candidate, params };
  }
  return undefined;
}
