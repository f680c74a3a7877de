// Section 6: what a client is made from, and that what can't be one is refused at once.
import { describe, expect, onTestFinished, test } from "vitest";
import { CreateosClient, CreateosError, KEY, parseConfig } from "./support/http_package.js";
import { answer, serve } from "./support/http_server.js";

test.each<[string, unknown, string]>([
  ["nothing", undefined, "CreateOS requires an API URL."],
  ["null", null, "CreateOS requires an API URL."],
  ["a text", "https://api.example", "CreateOS requires an API URL."],
  ["no shape", { apiUrl: "https://api.example", apiKey: KEY }, "CreateOS requires a shape from its shape catalog."],
  [
    "HTTP beyond this machine",
    { apiUrl: "http://api.example", apiKey: KEY, shape: "s" },
    "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
  ],
])("%s makes no client", (_, config, message) => {
  const make = () => new CreateosClient(config as never);
  expect(make).toThrow(CreateosError);
  expect(make).toThrow(expect.objectContaining({ message, code: "ERR_CREATEOS_CONFIG" }));
});

describe("without a key of its own", () => {
  function withEnvironmentKey(key: string | undefined) {
    const before = process.env["CREATEOS_API_KEY"];
    const set = (value: string | undefined) => {
      if (value === undefined) delete process.env["CREATEOS_API_KEY"];
      else process.env["CREATEOS_API_KEY"] = value;
    };
    set(key);
    onTestFinished(() => set(before));
  }

  test("the environment's is taken for the provider's own origin only", () => {
    withEnvironmentKey(" from the environment ");
    const own = new CreateosClient({ apiUrl: "https://api.sb.createos.sh", shape: "s" });
    expect(own.apiKey).toBe("from the environment");
    expect(() => new CreateosClient({ apiUrl: "http://127.0.0.1:9", shape: "s" })).toThrow(
      expect.objectContaining({ code: "ERR_CREATEOS_API_KEY" }),
    );
  });

  test("a client keeps the key it was made with", () => {
    withEnvironmentKey("first");
    const config = { apiUrl: "https://api.sb.createos.sh", shape: "s" };
    const first = new CreateosClient(config);
    process.env["CREATEOS_API_KEY"] = "second";
    const second = new CreateosClient(config);
    expect([first.apiKey, second.apiKey]).toEqual(["first", "second"]);
    delete process.env["CREATEOS_API_KEY"];
    expect(() => new CreateosClient(config)).toThrow(expect.objectContaining({ code: "ERR_CREATEOS_API_KEY" }));
    expect(first.apiKey).toBe("first");
  });
});

test("what parseConfig gave, and a client's own configuration, make the same client", async () => {
  const server = await serve((_, res) => answer(res));
  const parsed = parseConfig({ apiUrl: `${server.origin}/v1`, apiKey: KEY, shape: "s", timeoutMs: 5_000 });
  const first = new CreateosClient(parsed);
  const second = new CreateosClient(first.config);
  for (const client of [first, second]) await client.json("/x");
  expect(server.requests.all.map(({ headers }) => headers["x-api-key"])).toEqual([KEY, KEY]);
  expect(second.config).toEqual(first.config);
});

test("it is a class: new is needed, instances know it, and it can be extended", async () => {
  const config = { apiUrl: "http://127.0.0.1:9", apiKey: KEY, shape: "s" };
  expect(() => (CreateosClient as unknown as (config: object) => unknown)(config)).toThrow(TypeError);
  class Own extends CreateosClient {
    own = 1;
  }
  const own = new Own(config);
  expect(own).toBeInstanceOf(CreateosClient);
  expect([own.own, own.apiKey]).toEqual([1, KEY]);
  expect(() => CreateosClient.prototype.apiKey).toThrow(TypeError);
});

test("changing the object it was made from changes nothing", async () => {
  const [server, other] = await Promise.all([serve((_, res) => answer(res)), serve((_, res) => answer(res))]);
  const config = { apiUrl: server.origin, apiKey: KEY, shape: "s" };
  const client = new CreateosClient(config);
  config.apiUrl = other.origin;
  config.apiKey = "changed";
  await client.json("/x");
  expect(other.connections.length).toBe(0);
  expect((await server.requests.at(0)).headers["x-api-key"]).toBe(KEY);
  expect(client.config.apiUrl).toBe(server.origin);
});
