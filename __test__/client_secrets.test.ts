// Sections 6 and 7: the key can be read, and is never printed; nothing of a request or an answer gets into an error.
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { expectClean, printed } from "./support/http_errors.js";
import { clientOf, CreateosClient, KEY, parseConfig } from "./support/http_package.js";
import { answer, freePort, reasonOf, serve, serveBytes, serveRaw, within } from "./support/http_server.js";

describe("the key", () => {
  const client = () => clientOf("http://127.0.0.1:9");

  test("can be read from the client and from its configuration", () => {
    expect(client().apiKey).toBe(KEY);
    expect(client().config.apiKey).toBe(KEY);
  });

  test.each<[string, (client: CreateosClientType) => unknown]>([
    ["the client", (client) => client],
    ["its configuration", (client) => client.config],
    ["an object that holds both", (client) => ({ deep: [{ client, config: client.config }] })],
    ["an error whose cause is the client", (client) => new Error("x", { cause: client })],
    ["a promise of it", (client) => Promise.resolve(client)],
    ["a copy by spreading", (client) => ({ ...client, ...client.config })],
    ["its entries", (client) => [Object.entries(client), Object.entries(client.config)]],
    ["its descriptors' names", (client) => [Object.keys(client), Object.keys(client.config)]],
    ["a structured clone of the configuration", (client) => structuredClone(client.config)],
    ["Object.assign", (client) => Object.assign({}, client.config)],
  ])("is not printed with %s", (_, make) => {
    const value = make(client());
    for (const text of [
      inspect(value, { depth: Infinity }),
      inspect(value, { depth: Infinity, getters: true }),
      inspect(value, { depth: Infinity, compact: false, sorted: true }),
      JSON.stringify(value) ?? "",
      String(value),
    ]) {
      expect(text).not.toContain(KEY);
    }
  });

  test("is not enumerable in the client, nor in its configuration, nor inherited by for in", () => {
    const one = client();
    const names: string[] = [];
    for (const name in one) names.push(name);
    for (const name in one.config) names.push(name);
    expect(names).not.toContain("apiKey");
    expect(Object.prototype.propertyIsEnumerable.call(one.config, "apiKey")).toBe(false);
    const getter = Object.getOwnPropertyDescriptor(CreateosClient.prototype, "apiKey");
    expect(getter?.enumerable).toBe(false);
  });

  test("stays enumerable in what parseConfig gives", () => {
    const parsed = parseConfig({ apiUrl: "http://127.0.0.1:9", apiKey: KEY, shape: "s" });
    expect(JSON.parse(JSON.stringify(parsed))).toHaveProperty("apiKey", KEY);
  });

  test("the configuration is complete, frozen, and the same each time", () => {
    const one = clientOf("http://localhost:9/v1", { egressAllowlist: ["a", "a"], rootfsByAdapter: { x: "y" }, timeoutMs: 7 });
    const { config } = one;
    expect(one.config).toBe(config);
    expect({ ...config }).toEqual({
      apiUrl: "http://localhost:9",
      shape: "s-1vcpu-1gb",
      rootfs: null,
      rootfsByAdapter: { x: "y" },
      egressAllowlist: ["a"],
      region: null,
      timeoutMs: 7,
      reuseLease: false,
      autoPauseAfterSeconds: null,
    });
    expect([config, config.egressAllowlist, config.rootfsByAdapter].every(Object.isFrozen)).toBe(true);
  });
});

type CreateosClientType = InstanceType<typeof CreateosClient>;

test("no failure of any kind tells key, path, query, body, header or host", async () => {
  const MARK = "mark-8c1f";
  const servers = await Promise.all([
    serve((_, res) => res.writeHead(500, { "x-mark": MARK }).end(MARK)),
    serve((_, res) => res.writeHead(302, { location: `http://127.0.0.1:1/${MARK}` }).end(MARK)),
    serve((_, res) => res.end(MARK)),
    serve((_, res) => res.end(JSON.stringify({ status: "fail", data: MARK }))),
    serve((_, res) => res.end(JSON.stringify({ status: "success", data: MARK }))),
    serve((_, res) => res.end(JSON.stringify({ status: "success", data: { id: `${MARK}/`, status: MARK } }))),
    serveBytes(`HTTP/1.1 2x0 ${MARK}\r\n\r\n`),
    serveBytes(`HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n${MARK}`, "reset"),
    serveRaw((socket) => socket.resetAndDestroy()),
  ]);
  const origins = [...servers.map(({ origin }) => origin), `http://127.0.0.1:${await freePort()}`, "https://nothing.invalid"];
  let failures = 0;
  for (const origin of origins) {
    const client = clientOf(origin);
    const host = new URL(origin).host;
    const calls = [
      client.json(`/${MARK}?${MARK}=1`, "POST", { secret: MARK }),
      client.request(`/${MARK}?${MARK}=1`, { method: "PUT", body: MARK, headers: { "x-mark": MARK } }).then((response) => response.text()),
      client.getSandbox(MARK),
      client.createSandbox(null, { rootfs: MARK, egress: [MARK] }),
      client.transition(MARK, "paused"),
    ];
    for (const outcome of await within(Promise.allSettled(calls), "the outcomes")) {
      // A server that only speaks oddly to some of the calls satisfies the others.
      if (outcome.status === "fulfilled") continue;
      failures += 1;
      expectClean(outcome.reason, MARK, host, "nothing.invalid", host.split(":")[1] ?? host);
    }
  }
  expect(failures).toBeGreaterThan(40);
});

test("a Response shows neither key nor where it is from", async () => {
  const server = await serve((_, res) => answer(res));
  const response = await clientOf(server.origin).request("/mark-path?mark-query", { headers: { "x-mark": "mark-header" } });
  const text = inspect(response, { depth: Infinity, showHidden: true });
  for (const secret of [KEY, server.origin, String(server.port), "mark-"]) expect(text).not.toContain(secret);
  expect(response.url).toBe("");
});

test("a wrong argument tells nothing either", async () => {
  const server = await serve((_, res) => answer(res));
  const client = clientOf(server.origin);
  const errors = await Promise.all(
    [
      client.transition("sb-1", KEY as "paused"),
      client.upload("sb-1", "/x", KEY.length as unknown as string),
      client.setEgress("sb-1", [1 as unknown as string]),
      client.json("/x", "GET", undefined, KEY as unknown as AbortSignal),
    ].map((call) => reasonOf(call)),
  );
  for (const error of errors) {
    expect(error).toBeInstanceOf(TypeError);
    expect(printed(error)).not.toContain(KEY);
  }
  expect(server.connections.length).toBe(0);
});
