// What fault rules do to one exchange: before the request is acted upon, to the reply, and to the way it is sent.

/** @typedef {import("./faults.mjs").Effect} Effect */
/** @typedef {import("./types.mjs").Reply} Reply */
/** @typedef {import("./types.mjs").Context} Context */

/** Thrown when a fault has taken the connection away. */
export class ConnectionTaken extends Error {}

/** @param {Effect} effect @returns {import("./faults.mjs").When} */
function phase(effect) {
  if (effect.type === "lostReply") return "after";
  if ("when" in effect && effect.when !== undefined) return effect.when;
  return effect.type === "patch" ||
    effect.type === "wrongId" ||
    effect.type === "treeAlive" ||
    effect.type === "envelope" ||
    effect.type === "invalidJson"
    ? "after"
    : "before";
}

/**
 * Runs the effects of one phase. The result, if any, replaces the reply.
 * @param {import("./faults.mjs").When} when
 * @param {Context} context
 * @param {import("./faults.mjs").Rule[]} rules
 * @param {Reply|undefined} reply
 * @param {{guestDelete: (id: string) => void, guestPause: (id: string) => void, hit: (effect: Effect) => void}} provider
 * @returns {Promise<Reply|undefined>}
 */
export async function runEffects(when, context, rules, reply, provider) {
  let result = reply;
  for (const rule of rules) {
    for (const effect of rule.effects) {
      if (phase(effect) !== when) continue;
      provider.hit(effect);
      result = (await runEffect(effect, context, rule, result, provider)) ?? result;
    }
  }
  return result;
}

/**
 * @param {Effect} effect
 * @param {Context} context
 * @param {import("./faults.mjs").Rule} rule
 * @param {Reply|undefined} reply
 * @param {{guestDelete: (id: string) => void, guestPause: (id: string) => void}} provider
 * @returns {Promise<Reply|undefined>}
 */
async function runEffect(effect, context, rule, reply, provider) {
  switch (effect.type) {
    case "lostReply":
    case "lostRequest":
      context.cut();
      throw new ConnectionTaken();
    case "delay":
      await new Promise((resolve) => setTimeout(resolve, effect.ms));
      return undefined;
    case "hold":
      await rule.released;
      return undefined;
    case "status":
      return statusReply(effect);
    case "redirect":
      return { status: effect.status ?? 302, headers: { location: effect.location }, raw: "" };
    case "hugeError":
      return {
        status: effect.status ?? 500,
        headers: { "content-type": "text/plain" },
        stream: filler(effect.bytes ?? 64 * 1024 * 1024),
      };
    case "echoError":
      return echo(effect.status ?? 400, context);
    case "call":
      await effect.run(context.entry);
      return undefined;
    case "guestDelete":
      provider.guestDelete(context.entry.sandboxId ?? "");
      return undefined;
    case "guestPause":
      provider.guestPause(context.entry.sandboxId ?? "");
      return undefined;
    case "invalidJson":
      return {
        status: 200,
        headers: { "content-type": "application/json" },
        raw: effect.body ?? '{"status":"success","data":{',
      };
    case "envelope":
      return envelope(effect.variant, reply);
    case "patch":
      return patch(reply, effect.set ?? {}, effect.omit ?? []);
    case "wrongId":
      return patch(reply, { id: effect.id ?? "sb-00000000000000000000000000" }, []);
    case "treeAlive":
      return patch(reply, { tree_exited: false }, []);
    default:
      // Consulted where they act: the sender, the state machine, the output stream.
      return undefined;
  }
}

/** @param {Extract<Effect, {type: "status"}>} effect @returns {Reply} */
function statusReply({ status, body, headers = {} }) {
  if (typeof body === "string" || Buffer.isBuffer(body)) {
    const html = typeof body === "string" && body.trimStart().startsWith("<");
    return { status, headers: { "content-type": html ? "text/html" : "application/json", ...headers }, raw: body };
  }
  const shape =
    body ??
    (status >= 500
      ? { status: "error", message: "injected", code: status }
      : { status: "fail", data: { reason: "injected" } });
  const raw = status === 204 || status === 304 ? "" : JSON.stringify(shape);
  return { status, headers: { "content-type": "application/json", ...headers }, raw };
}

/** @param {number} bytes */
function filler(bytes) {
  return async (/** @type {import("./types.mjs").Sink} */ sink) => {
    const block = Buffer.alloc(64 * 1024, "x");
    for (let left = bytes; left > 0 && !sink.signal.aborted; left -= block.length)
      await sink.write(block.subarray(0, left));
  };
}

/**
 * The worst a provider can do with a secret: give it back. Headers with the key, and the body, in text and fields.
 * @param {number} status
 * @param {Context} context
 * @returns {Reply}
 */
function echo(status, { req, body }) {
  const text = JSON.stringify({ headers: req.headers, url: req.url, body });
  const data =
    status >= 500
      ? { status: "error", message: text, code: status }
      : { status: "fail", data: { reason: text, headers: req.headers, body } };
  return {
    status,
    headers: { "content-type": "application/json", "x-echo": String(req.headers["x-api-key"] ?? "") },
    raw: JSON.stringify(data),
  };
}

/**
 * @param {Extract<Effect, {type: "envelope"}>["variant"]} variant
 * @param {Reply|undefined} reply
 * @returns {Reply}
 */
function envelope(variant, reply) {
  const data = reply?.data ?? {};
  /** @type {Record<typeof variant, any>} */
  const bodies = {
    fail: { status: "fail", data: { reason: "injected" } },
    failString: { status: "fail", data: "injected" },
    failNull: { status: "fail", data: null },
    error: { status: "error", message: "injected", code: 500 },
    nullData: { status: "success", data: null },
    missingData: { status: "success" },
    arrayData: { status: "success", data: [data] },
    noStatus: { data },
    unknownStatus: { status: "ok", data },
    empty: undefined,
    noContent: undefined,
  };
  const body = bodies[variant];
  return {
    status: variant === "noContent" ? 204 : 200,
    headers: { "content-type": "application/json" },
    raw: body === undefined ? "" : JSON.stringify(body),
  };
}

/**
 * @param {Reply|undefined} reply
 * @param {Record<string, any>} set
 * @param {string[]} omit
 * @returns {Reply|undefined}
 */
function patch(reply, set, omit) {
  if (reply?.data === undefined || reply.data === null) return reply;
  const data = { ...reply.data, ...set };
  for (const name of omit) delete data[name];
  return { ...reply, data };
}
