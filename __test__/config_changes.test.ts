// A configuration is what it holds at the call, whatever was parsed before (specification, sections 1 and 2).
import { describe, expect, test } from "vitest";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { thrown, within } from "./support/waiting.js";

const base = { apiUrl: "https://createos.example", shape: "s", apiKey: "key" };

/** For each field, values that are apart from each other and from none. */
const fields: [string, unknown[]][] = [
  ["apiUrl", ["https://one.example", "https://two.example"]],
  ["shape", ["one", "two"]],
  ["apiKey", ["one", "two"]],
  ["rootfs", ["one", "two", null]],
  ["region", ["one", "two", null]],
  ["timeoutMs", [1, 2, 300_000]],
  ["reuseLease", [true, false]],
  ["autoPauseAfterSeconds", [60, 61, null]],
  ["rootfsByAdapter", [{ a: "one" }, { a: "two" }, { b: "one" }, {}]],
  ["egressAllowlist", [["one"], ["two"], ["one", "two"], []]],
];

describe("two that differ in one field are two", () => {
  test.each(fields)("%s", (name, values) => {
    for (const value of [...values, ...values.toReversed()]) {
      const config = { ...base, [name]: value };
      expect(lease.parseConfig(config)).toMatchObject({ [name]: value });
      expect(new lease.CreateosClient(config as never).config).toMatchObject({ [name]: value });
    }
  });

  test.each(fields)("%s, of one object that changes", (name, values) => {
    const config: Record<string, unknown> = { ...base };
    for (const value of [...values, ...values]) {
      config[name] = value;
      expect(lease.parseConfig(config)).toMatchObject({ [name]: value });
    }
    delete config[name];
    if (["apiUrl", "shape"].includes(name)) expect(() => lease.parseConfig(config)).toThrow();
    else expect(lease.parseConfig(config)).toEqual(lease.parseConfig({ ...base, [name]: undefined }));
  });

  test("also where there are many of them, by turns", () => {
    for (let round = 0; round < 3; round += 1) {
      for (let index = 0; index < 40; index += 1) {
        const config = { ...base, apiKey: `key ${index}`, region: `region ${index}` };
        expect(lease.parseConfig(config)).toMatchObject({ apiKey: `key ${index}`, region: `region ${index}` });
      }
    }
  });
});

test("an invalid one is refused each time, however much it looks like the valid one before it", () => {
  expect(lease.parseConfig({ ...base, timeoutMs: 1 }).timeoutMs).toBe(1);
  for (const timeoutMs of ["1", true, 1n, [1], new Number(1)]) {
    for (let round = 0; round < 2; round += 1) {
      expect(thrown(() => lease.parseConfig({ ...base, timeoutMs }))).toMatchObject({ field: "timeoutMs" });
    }
  }
  for (const apiUrl of [["https://createos.example"], new URL("https://createos.example")])
    expect(thrown(() => lease.parseConfig({ ...base, apiUrl }))).toMatchObject({ field: "apiUrl" });
});

test("what is given out is the caller's: changing it changes nothing here", () => {
  const config = { ...base, rootfsByAdapter: { a: "one" }, egressAllowlist: ["one"] };
  for (const given of [base, config]) {
    const parsed = lease.parseConfig(given);
    Object.assign(parsed, { shape: "changed", apiKey: "changed" });
    parsed.egressAllowlist.push("changed");
    parsed.rootfsByAdapter.changed = "changed";
    expect(JSON.stringify(lease.parseConfig(given))).not.toContain("changed");
  }
});

test("a call keeps the configuration that it began with", async () => {
  const driver = looseDriver();
  const params = leaseParams({ config: { region: "before" } });
  const call = hold(driver, params);
  params.config.region = "after";
  params.config.apiKey = "after";
  expect(call.client.config).toMatchObject({ region: "before" });
  expect(call.client.apiKey).toBe("key");
  // The release is of another account by now.
  await within(driver.release(params));
  expect(call.signal.aborted).toBe(false);
  params.config.apiKey = "key";
  const released = driver.release(params);
  expect(call.signal.aborted).toBe(true);
  call.resolve();
  await within(released);
});
