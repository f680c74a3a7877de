// The wire forms of the official Rust client, crate `createos` 0.1.0, for sandboxes and managed processes.
//
// They are replayed rather than the crate compiled: it pins each of its dependencies to one exact version, and nothing
// in this folder needs a Rust build. Replayed is what it puts on the wire: path segments with every non-alphanumeric
// percent-encoded, `after` always sent, `null` as the body of stdin/close, pause and resume without body and type. And
// what it insists on in answers: the fields below must be there with these types, or its decoder fails.

import http from "node:http";
import { expect, test } from "vitest";

import { idOf, provide } from "./support.mjs";

/** @typedef {"string"|"int"|"float"|"bool"|"strings"|"time"|{[field: string]: Kind}} Kind */
/** Fields it requires; a trailing `?` marks one that may be absent but has to be right when there. */
/** @type {Record<string, Record<string, Kind>>} */
const models = {
  created: {
    id: "string",
    status: "string",
    "name?": "string",
    ip: "string",
    shape: "string",
    "rootfs?": "string",
    vcpu: "int",
    mem_mib: "int",
    disk_mib: "int",
    spawn_ms: "float",
    "egress?": "strings",
    bandwidth_quota_bytes: "int",
    "ingress_url_template?": "string",
  },
  sandbox: {
    id: "string",
    status: "string",
    "ip?": "string",
    vcpu: "int",
    mem_mib: "int",
    disk_mib: "int",
    "created_at?": "time",
    "ingress_enabled?": "bool",
    "running_at?": "time",
    "destroyed_at?": "time",
    "paused_at?": "time",
    "last_resumed_at?": "time",
    "spawn_ms?": "float",
    "egress?": "strings",
    "envs?": "strings",
    "ssh_pubkeys?": "strings",
    "bandwidth_ingress_bytes?": "int",
    "auto_pause_after_seconds?": "int",
  },
  destroyed: { status: "string" },
  command: { result: { stdout: "string", stderr: "string", exit_code: "int", "error?": "string" }, exec_ms: "float" },
  process: {
    process_id: "string",
    kind: "string",
    pid: "int",
    state: "string",
    leader_exited: "bool",
    tree_exited: "bool",
    "created_at?": "time",
    "finished_at?": "time",
    "exit_code?": "int",
    "signal?": "string",
    "cmd?": "string",
    "args?": "strings",
    "cwd?": "string",
    output: { oldest_seq: "int", newest_seq: "int", bytes: "int" },
  },
  frame: {
    type: "string",
    "seq?": "int",
    "stream?": "string",
    "data_base64?": "string",
    "exit_code?": "int",
    "signal?": "string",
    "error?": "string",
    "oldest_available_seq?": "int",
  },
  ack: { "ok?": "bool" },
  input: { input_seq: "int" },
  egress: { id: "string", egress: "strings" },
  whoami: { user_id: "string", stats: { running: "int", paused: "int", other: "int", total: "int" } },
  shape: { id: "string", vcpu: "int", mem_mib: "int", default_disk_mib: "int", "cpu_quota_pct?": "int" },
};

/** @param {any} value @param {Kind} kind @param {string} where @returns {any} */
function decode(value, kind, where) {
  if (typeof kind === "object") {
    expect(typeof value === "object" && value !== null && !Array.isArray(value), `${where} is an object`).toBe(true);
    for (const [name, inner] of Object.entries(kind)) {
      const field = name.replace("?", "");
      if (name.endsWith("?") && !(field in value)) continue;
      decode(value[field], inner, `${where}.${field}`);
    }
    return value;
  }
  const fits = {
    string: () => typeof value === "string",
    int: () => Number.isSafeInteger(value),
    float: () => typeof value === "number",
    bool: () => typeof value === "boolean",
    strings: () => Array.isArray(value) && value.every((one) => typeof one === "string"),
    time: () => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value),
  }[kind]();
  expect(fits, `${where} is ${kind}: ${JSON.stringify(value)}`).toBe(true);
  return value;
}

/** @param {string} segment */
function encode(segment) {
  return segment.replace(/[^A-Za-z0-9]/g, (one) =>
    [...Buffer.from(one)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

/**
 * A plain client: with no body it sends neither length nor type, as the crate does.
 * @param {import("./index.mjs").Provider} provider
 */
function wire(provider) {
  /**
   * @param {string} method
   * @param {string} path
   * @param {any} [body]
   * @returns {Promise<{status: number, text: string}>}
   */
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const request = http.request(provider.url + path, {
        method,
        headers: {
          accept: "application/json",
          "x-api-key": provider.apiKey,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
      });
      if (body === undefined) {
        request.removeHeader("content-length");
        request.useChunkedEncodingByDefault = false;
      }
      request.on("error", reject);
      request.on("response", async (response) => {
        let text = "";
        for await (const chunk of response.setEncoding("utf8")) text += chunk;
        resolve({ status: response.statusCode ?? 0, text });
      });
      if (body === undefined) request.end();
      else request.end(JSON.stringify(body));
    });
  /** @param {string} model @param {string} method @param {string} path @param {any} [body] */
  const call = async (model, method, path, body) => {
    const { status, text } = await send(method, path, body);
    expect(status, text).toBeLessThan(300);
    const envelope = JSON.parse(text);
    expect(envelope.status).toBe("success");
    return decode(envelope.data, models[model] ?? {}, model);
  };
  return { send, call };
}

test("a managed process by the crate's forms, strictly decoded", async () => {
  const provider = await provide();
  const { send, call } = wire(provider);
  const created = await call("created", "POST", "/v1/sandboxes", {
    shape: "s-1vcpu-1gb",
    rootfs: "devbox:1",
    envs: { BASE: "from-env" },
  });
  const box = `/v1/sandboxes/${encode(created.id)}`;
  expect(box).toContain("sb%2D");
  await call("sandbox", "GET", box);

  const one = await call("process", "POST", `${box}/processes`, {
    cmd: "/bin/sh",
    args: ["-c", 'echo "base:$BASE"; read -r line; echo "stdin:$line"; cat'],
    cwd: "/root",
  });
  const at = `${box}/processes/${encode(one.process_id)}`;
  expect(at).toContain("proc%5F");
  await call("input", "POST", `${at}/input`, { data_base64: Buffer.from("hello\n").toString("base64") });
  await call("ack", "POST", `${at}/stdin/close`, null);
  expect(provider.requests.at(-1)).toMatchObject({
    body: null,
    path: `/v1/sandboxes/${created.id}/processes/${one.process_id}/stdin/close`,
  });
  expect((await call("process", "GET", `${at}/wait?scope=tree&timeout_ms=5000`)).tree_exited).toBe(true);

  const { text } = await send("GET", `${at}/connect?after=0`);
  const frames = text
    .trimEnd()
    .split("\n")
    .map((line) => decode(JSON.parse(line), /** @type {Kind} */ (models["frame"]), "frame"));
  expect(frames.map((frame) => Buffer.from(frame.data_base64 ?? "", "base64").toString()).join("")).toBe(
    "base:from-env\nstdin:hello\n",
  );
  expect(frames.at(-1)).toMatchObject({ type: "exit", exit_code: 0 });

  const long = await call("process", "POST", `${box}/processes`, {
    cmd: "/bin/sh",
    args: ["-c", "trap '' TERM; sleep 300 & wait"],
  });
  const longAt = `${box}/processes/${encode(long.process_id)}`;
  await call("ack", "POST", `${longAt}/signal`, { signal: "SIGWINCH" });
  expect((await send("GET", `${longAt}/wait?scope=tree&timeout_ms=1`)).status).toBe(408);
  expect((await call("process", "DELETE", `${longAt}?grace_ms=100`)).tree_exited).toBe(true);

  const { text: list } = await send("GET", `${box}/processes`);
  for (const process of JSON.parse(list).data.processes)
    decode(process, /** @type {Kind} */ (models["process"]), "process");
});

test("sandbox calls by the crate's forms, strictly decoded", async () => {
  const provider = await provide();
  const { send, call } = wire(provider);
  const created = await call("created", "POST", "/v1/sandboxes", { shape: "s-1vcpu-1gb", ingress_enabled: true });
  const box = `/v1/sandboxes/${encode(created.id)}`;
  await call("command", "POST", `${box}/exec`, { cmd: "/bin/echo", args: ["hi"] });
  expect((await send("PUT", `${box}/files?path=%2Ftmp%2Fa+b`)).status).toBe(200);
  expect((await send("GET", `${box}/files?path=%2Ftmp%2Fa+b`)).text).toBe("");
  await call("sandbox", "PATCH", box, { auto_pause_after_seconds: 60, disable_auto_pause: false });

  // Pause and resume carry neither a length nor a type.
  expect((await call("sandbox", "POST", `${box}/pause`)).status).toBe("pausing");
  expect(provider.requests.at(-1)).toMatchObject({
    route: "sandbox.pause",
    contentLength: undefined,
    contentType: undefined,
  });
  await provider.waitForState(idOf(created.id), "paused");
  await call("egress", "PUT", `${box}/egress`, { egress: [] });
  const mark = provider.mark();
  expect((await call("sandbox", "POST", `${box}/resume`)).status).toBe("resuming");
  await provider.waitForState(created.id, "running", { since: mark });
  await call("whoami", "GET", "/v1/whoami");
  for (const shape of (await call("none", "GET", "/v1/shapes?limit=500&offset=0")).data)
    decode(shape, /** @type {Kind} */ (models["shape"]), "shape");
  for (const row of (await call("none", "GET", "/v1/sandboxes?limit=500")).data)
    decode(row, /** @type {Kind} */ (models["sandbox"]), "sandbox");
  await call("destroyed", "DELETE", box);
  await provider.waitForState(created.id, "destroyed");
  await call("sandbox", "GET", box);
});
