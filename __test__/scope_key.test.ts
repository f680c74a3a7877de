// The key under which a lease's calls are kept (specification, section 4, check 2).
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hold, leaseParams, ORIGIN } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { thrown, within } from "./support/waiting.js";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const texts = [
  "plain",
  " ",
  '"',
  "\\",
  '","',
  '\\",\\"',
  "/",
  "\0\u0001\u0008\t\n\u000b\f\r\u001f\u007f",
  "\u2028\u2029",
  "é e\u0301 \ufeff",
  "\u{1f600}",
  "\ud800",
  "\udc00\ud800",
  "a\udfffb",
  "</script>",
  "x".repeat(5000),
];

describe("is exactly what JavaScript prints", () => {
  test.each(texts)("%j", (text) => {
    for (const key of ["key", "ключ 🔑", "k".repeat(1000)]) {
      const params = leaseParams({ companyId: text, environmentId: `${text}!`, config: { apiKey: key } });
      const expected = JSON.stringify([text, `${text}!`, ORIGIN, sha256(key), `${text}?`]);
      expect(lease.scopeKey(params, `${text}?`)).toBe(expected);
    }
  });
});

test("has the origin, not the URL as configured, and the key trimmed", () => {
  const config = { apiUrl: "HTTPS://CREATEOS.example:443/v1/", apiKey: " key\t" };
  expect(lease.scopeKey(leaseParams({ config }), "sb-1")).toBe(
    JSON.stringify(["company", "environment", ORIGIN, sha256("key"), "sb-1"]),
  );
});

test("never holds the API key", () => {
  const canary = "skp_canary_in_scope";
  expect(lease.scopeKey(leaseParams({ config: { apiKey: canary } }), "sb-1")).not.toContain(canary);
});

describe("keeps apart what differs and together what does not", () => {
  const shared: [string, object][] = [
    ["the URL's spelling", { config: { apiUrl: `${ORIGIN}/v1` } }],
    ["the timeout", { config: { timeoutMs: 5 } }],
    ["the shape", { config: { shape: "other" } }],
    ["how leases end", { config: { reuseLease: true, autoPauseAfterSeconds: 60, region: "us", rootfs: "x" } }],
    ["the metadata's further fields", { metadata: { marker: "m" } }],
  ];
  test.each(shared)("one scope, whatever %s", async (_name, changes) => {
    const driver = looseDriver();
    const call = hold(driver, leaseParams(changes));
    const released = driver.release(leaseParams());
    expect(call.signal.aborted).toBe(true);
    call.resolve();
    await within(released);
  });

  test("parts that would print alike when joined are different scopes", async () => {
    const driver = looseDriver();
    const first = leaseParams({ companyId: 'a","b', environmentId: "c" });
    const second = leaseParams({ companyId: "a", environmentId: 'b","c' });
    const surrogates = ["\ud800", "\ud801"].map((companyId) => leaseParams({ companyId }));
    const calls = [second, surrogates[1]].map((params) => hold(driver, params));
    await within(driver.release(first));
    await within(driver.release(surrogates[0]));
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    for (const call of calls) call.resolve();
    await Promise.all(calls.map(({ promise }) => promise));
  });
});

test("ids that are no non-empty strings are TypeErrors, for scopeKey and leaseState alike", () => {
  const scopeKey = lease.scopeKey as (params: unknown, id: unknown) => string;
  const driver = looseDriver();
  for (const bad of [undefined, null, "", 1, {}, ["x"]]) {
    for (const ask of [scopeKey, driver.leaseState.bind(driver)]) {
      expect(thrown(() => ask(leaseParams(), bad)).constructor).toBe(TypeError);
      expect(thrown(() => ask({ ...leaseParams(), companyId: bad }, "sb-1")).constructor).toBe(TypeError);
      expect(thrown(() => ask({ ...leaseParams(), environmentId: bad }, "sb-1")).constructor).toBe(TypeError);
    }
  }
  for (const params of [undefined, null, 1, "text"]) {
    expect(thrown(() => scopeKey(params, "sb-1")).constructor).toBe(TypeError);
    expect(thrown(() => driver.leaseState(params, "sb-1")).constructor).toBe(TypeError);
  }
  const broken = leaseParams({ config: { timeoutMs: -1 } });
  expect(thrown(() => scopeKey(broken, "sb-1"))).toMatchObject({ code: "ERR_CREATEOS_CONFIG", field: "timeoutMs" });
  expect(thrown(() => driver.leaseState(broken, "sb-1"))).toMatchObject({ code: "ERR_CREATEOS_CONFIG" });
});

test("leaseState tells open and closing apart, scope by scope", async () => {
  const driver = looseDriver();
  const call = hold(driver, leaseParams());
  const state = (changes: object, id = "sb-1") => driver.leaseState(leaseParams(changes), id);
  expect(state({})).toBe("open");
  const released = driver.release(leaseParams());
  expect([state({}), state({}, "sb-2"), state({ companyId: "other" }), state({ config: { apiKey: "other" } })]).toEqual([
    "closing",
    "open",
    "open",
    "open",
  ]);
  call.resolve();
  await within(released);
  expect(state({})).toBe("open");
});
