// The key of the environment variable: whose, when and for which origin (specification, sections 1, 2 and 4).
import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { expectCreateosError, MESSAGES } from "./support/errors.js";
import { hold, leaseParams, type Client } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { rejection, thrown, within } from "./support/waiting.js";

const OFFICIAL = "https://api.sb.createos.sh";

let before: string | undefined;
beforeEach(() => (before = process.env.CREATEOS_API_KEY));
afterEach(() => {
  if (before === undefined) delete process.env.CREATEOS_API_KEY;
  else process.env.CREATEOS_API_KEY = before;
});

const official = () => leaseParams({ config: { apiUrl: OFFICIAL, apiKey: undefined }, metadata: { apiUrl: OFFICIAL } });

test("is read at call time, each time, and trimmed", async () => {
  const driver = looseDriver();
  for (const key of ["first", " second\n", "third"]) {
    process.env.CREATEOS_API_KEY = key;
    expect(lease.resolveApiKey(official().config)).toBe(key.trim());
    expect(await driver.track(official(), (client: Client) => client.apiKey)).toBe(key.trim());
    const hash = createHash("sha256").update(key.trim()).digest("hex");
    expect(lease.scopeKey(official(), "sb-1")).toContain(hash);
  }
});

test("another value is another scope; the call keeps the one that it began with", async () => {
  const driver = looseDriver();
  process.env.CREATEOS_API_KEY = "first";
  const call = hold(driver, official());
  process.env.CREATEOS_API_KEY = "second";
  await within(driver.release(official()));
  expect(call.signal.aborted).toBe(false);
  expect(call.client.apiKey).toBe("first");
  process.env.CREATEOS_API_KEY = "first";
  const released = driver.release(official());
  expect(call.signal.aborted).toBe(true);
  call.resolve();
  await within(released);
});

test("the configuration's own key comes first", () => {
  process.env.CREATEOS_API_KEY = "environment";
  expect(lease.resolveApiKey({ ...official().config, apiKey: "own" })).toBe("own");
});

describe("no usable key", () => {
  test("missing, blank, or with a line break or NUL", async () => {
    const expected = { code: "ERR_CREATEOS_API_KEY", message: MESSAGES.noKey };
    for (const key of [undefined, "", " \t", "a\nb", "a\rb"]) {
      if (key === undefined) delete process.env.CREATEOS_API_KEY;
      else process.env.CREATEOS_API_KEY = key;
      expectCreateosError(thrown(() => lease.resolveApiKey(official().config)), expected);
      expectCreateosError(await rejection(looseDriver().track(official(), () => {})), expected);
      expectCreateosError(await rejection(looseDriver().release(official())), expected);
      const { lease: _lease, ...params } = official();
      expectCreateosError(await rejection(looseDriver().acquire(params)), expected);
    }
  });

  test("another origin never gets it, and is told so whether there is one or not", async () => {
    const expected = { code: "ERR_CREATEOS_API_KEY", message: MESSAGES.keyForCustomOrigin };
    for (const key of [undefined, "environment"]) {
      if (key === undefined) delete process.env.CREATEOS_API_KEY;
      else process.env.CREATEOS_API_KEY = key;
      for (const apiUrl of ["https://createos.example", "http://localhost:1", `${OFFICIAL}:444`, "https://sb.createos.sh"]) {
        const params = leaseParams({ config: { apiUrl, apiKey: null }, metadata: { apiUrl } });
        expectCreateosError(await rejection(looseDriver().track(params, () => {})), expected);
      }
    }
  });

  test("does not get in the way of a release without an id", async () => {
    delete process.env.CREATEOS_API_KEY;
    expect(await looseDriver().release({ ...official(), providerLeaseId: "" })).toBeUndefined();
  });
});
