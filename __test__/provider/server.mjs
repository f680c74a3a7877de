// The HTTP side of the loopback provider: admission, routing, faults, sending (provider contract, sections 1 to 3).

import http from "node:http";

import { ConnectionTaken, runEffects } from "./fault-effects.mjs";
import { redact } from "./log.mjs";
import { failure, HttpFailure } from "./reply.mjs";
import { findRoute } from "./routes.mjs";
import { send } from "./send.mjs";

/** @typedef {import("./types.mjs").Context} Context */
/** @typedef {import("./types.mjs").Reply} Reply */
/** @typedef {import("./types.mjs").RequestEntry} RequestEntry */

const jsonLimit = 16 * 1024 * 1024;
const loggedLimit = 64 * 1024;

/**
 * @param {import("./world.mjs").World} world
 * @param {import("./rate.mjs").RateLimit|undefined} rate
 */
export function createServer(world, rate) {
  let sequence = 0;
  const server = http.createServer(
    { keepAliveTimeout: 120_000, requestTimeout: 0, headersTimeout: 60_000 },
    (req, res) => {
      sequence += 1;
      void serve(world, rate, req, res, sequence);
    },
  );
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

/** @param {string} url */
function parseTarget(url) {
  const mark = url.indexOf("?");
  const raw = mark < 0 ? url : url.slice(0, mark);
  try {
    const segments = raw.split("/").slice(1).map(decodeURIComponent);
    return { segments, query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)) };
  } catch {
    return undefined;
  }
}

/**
 * @param {import("./world.mjs").World} world
 * @param {import("./rate.mjs").RateLimit|undefined} rate
 * @param {http.IncomingMessage} req
 * @param {http.ServerResponse} res
 * @param {number} id
 */
async function serve(world, rate, req, res, id) {
  const { method = "GET", url = "/" } = req;
  const target = parseTarget(url);
  const found = target && findRoute(method, target.segments);
  const key = req.headers["x-api-key"];
  const owner = typeof key === "string" ? world.keys.get(key) : undefined;
  const gone = new AbortController();
  /** @type {RequestEntry} */
  const entry = {
    id,
    method,
    path: target ? `/${target.segments.join("/")}` : url,
    url,
    route: found?.route.name,
    at: performance.now(),
    finishedAt: undefined,
    status: undefined,
    aborted: false,
    sandboxId: found?.params["id"],
    owner,
    headers: redact(req.headers),
    contentType: req.headers["content-type"],
    contentLength: req.headers["content-length"],
    body: undefined,
    faults: [],
  };
  res.on("error", () => {});
  req.on("error", () => {});
  res.once("close", () => {
    entry.aborted = !res.writableFinished;
    entry.finishedAt = performance.now();
    gone.abort();
    world.log.record({ type: "request:finish", request: entry });
  });
  res.setHeader("x-request-id", `req_${id}`);
  world.log.record({ type: "request:start", request: entry });

  /** @type {Context} */
  const context = {
    req,
    res,
    query: target?.query ?? new URLSearchParams(),
    params: found?.params ?? {},
    body: {},
    owner: owner ?? "",
    entry,
    effects: [],
    signal: gone.signal,
    cut: () => {
      req.socket.destroy();
      gone.abort();
    },
  };
  /** @type {import("./faults.mjs").Rule[]} */
  let rules = [];
  /** @type {Reply|undefined} */
  let reply;
  const provider = {
    guestDelete: (/** @type {string} */ sandbox) => withSandbox(world, sandbox, (one) => world.sandboxes.destroy(one)),
    guestPause: (/** @type {string} */ sandbox) => withSandbox(world, sandbox, (one) => world.sandboxes.pause(one)),
    hit: (/** @type {import("./faults.mjs").Effect} */ effect) => {
      entry.faults.push(effect.type);
      world.log.record({ type: "fault:hit", effect: effect.type, request: entry });
    },
  };
  try {
    if (!found?.route.upload) context.body = await readJson(req, entry);
    const refused = rate?.take(req.socket.remoteAddress ?? "", performance.now());
    if (refused) {
      const headers = /** @type {Record<string, string>} */ (
        refused.retryAfter === undefined ? {} : { "retry-after": refused.retryAfter }
      );
      throw new HttpFailure(429, "too many requests", { headers });
    }
    rules = world.faults.take(entry);
    context.effects = rules.flatMap((rule) => rule.effects);
    reply = await runEffects("before", context, rules, undefined, provider);
    if (reply === undefined) {
      reply = await admitAndHandle(world, context, found).catch((error) => refusal(world, error));
      reply = await runEffects("after", context, rules, reply, provider);
    }
    if (reply) await send(context, reply);
  } catch (error) {
    if (!(error instanceof ConnectionTaken)) await send(context, refusal(world, error)).catch(() => context.cut());
  }
}

/**
 * @param {import("./world.mjs").World} world
 * @param {Context} context
 * @param {ReturnType<typeof findRoute>} found
 * @returns {Promise<Reply>}
 */
async function admitAndHandle(world, context, found) {
  const { req, entry } = context;
  if (found === undefined) throw new HttpFailure(404, "no such route");
  // The real service resolves token headers first, so one that rides along shadows the key (section 2).
  const shadowed = ["authorization", "x-auth-token", "x-access-token"].some((name) => req.headers[name] !== undefined);
  if (!found.route.open && (entry.owner === undefined || shadowed))
    throw new HttpFailure(401, "missing or invalid API key");
  if (found.route.bodyless && world.switches.strictBody) {
    const json = /^application\/json\b/i.test(entry.contentType ?? "");
    if (!json || (entry.contentLength === undefined && req.headers["transfer-encoding"] === undefined))
      throw new HttpFailure(411, "length required");
  }
  if (entry.body instanceof SyntaxError) throw new HttpFailure(400, "body is not JSON");
  return found.route.handle(world, context);
}

/**
 * An object in any case: `{}`, `null` and no body at all are the same. What is not JSON is left to admission to refuse.
 * @param {http.IncomingMessage} req
 * @param {RequestEntry} entry
 * @returns {Promise<Record<string, any>>}
 */
async function readJson(req, entry) {
  /** @type {Buffer[]} */
  const chunks = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size <= jsonLimit) chunks.push(chunk);
  }
  if (size > jsonLimit) throw new HttpFailure(413, "body too large");
  const text = Buffer.concat(chunks).toString("utf8");
  if (text.trim() === "") return {};
  let body;
  try {
    body = JSON.parse(text);
  } catch (error) {
    entry.body = error;
    return {};
  }
  // The log keeps what a test may want to look at, not megabytes of input.
  entry.body = size > loggedLimit ? `${size} bytes` : body;
  return typeof body === "object" && body !== null && !Array.isArray(body) ? body : {};
}

/** @param {import("./world.mjs").World} world @param {unknown} error @returns {Reply} */
function refusal(world, error) {
  const known =
    error instanceof HttpFailure
      ? error
      : new HttpFailure(500, error instanceof Error ? error.message : "internal error");
  const { body, type } = failure(known.status, known.message, known.field, world.switches.failData);
  return { status: known.status, headers: { "content-type": type, ...known.headers }, raw: body };
}

/**
 * @param {import("./world.mjs").World} world
 * @param {string} id
 * @param {(sandbox: import("./sandboxes.mjs").Sandbox) => unknown} act
 */
function withSandbox(world, id, act) {
  const sandbox = world.sandboxes.all.get(id);
  if (sandbox) act(sandbox);
}
