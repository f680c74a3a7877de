// No key, body, path, query or host shows anywhere (specification, sections 6 and 7).
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { hold, leaseParams, type Client } from "./support/leases.js";
import { lease, looseDriver, type LooseDriver } from "./support/package.js";
import { provide, routesSince } from "./support/providers.js";
import { runProgram } from "./support/programs.js";
import { abortion, rejection, thrown, within } from "./support/waiting.js";

const CANARY = "skp_canary_5f3a9c";
const BODY = "body_canary_77";
const PATH = "path_canary_88";

/** All that a value shows to whoever prints it, one way or another. */
function everything(value: unknown): string {
  const shown = [
    inspect(value, { depth: Infinity, showHidden: true, getters: false, maxStringLength: Infinity }),
    inspect(value, { depth: Infinity, showProxy: true, maxArrayLength: Infinity }),
    String(value),
  ];
  if (typeof value === "object" && value !== null) {
    shown.push(JSON.stringify(value) ?? "", JSON.stringify({ ...value }), JSON.stringify(structuredCloned(value)));
    if (value instanceof Error) shown.push(value.message, value.stack ?? "", inspect(value.cause));
  }
  return shown.join("\n");
}

/** As a message to another thread carries it, where it can be one. */
function structuredCloned(value: object): unknown {
  try {
    return structuredClone(value);
  } catch {
    return undefined;
  }
}

describe("a client", () => {
  const config = { apiUrl: "https://createos.example", shape: "s", apiKey: ` ${CANARY} ` };

  test("has the key to read, and shows it nowhere", () => {
    const client = new lease.CreateosClient(config);
    expect(client.apiKey).toBe(CANARY);
    expect(client.config.apiKey).toBe(CANARY);
    expect(everything(client)).not.toContain(CANARY);
    expect(inspect(client.config, { depth: Infinity })).not.toContain(CANARY);
    expect(JSON.stringify({ client, config: client.config })).not.toContain(CANARY);
    expect(inspect(client, { getters: true, depth: Infinity })).not.toContain(CANARY);
  });

  test("its config shows no key to an inspect that shows hidden properties", () => {
    expect(everything(new lease.CreateosClient(config).config)).not.toContain(CANARY);
  });

  test("its config is complete, frozen, and enumerates everything but the key", () => {
    const { config: parsed } = new lease.CreateosClient({ ...config, egressAllowlist: ["a"], rootfsByAdapter: { b: "c" } });
    expect(Object.keys(parsed).toSorted()).toEqual(
      Object.keys(lease.parseConfig(config))
        .filter((name) => name !== "apiKey")
        .toSorted(),
    );
    expect(Object.getOwnPropertyDescriptor(parsed, "apiKey")).toMatchObject({ enumerable: false, set: undefined });
    expect([parsed, parsed.egressAllowlist, parsed.rootfsByAdapter].every(Object.isFrozen)).toBe(true);
    expect({ ...parsed }).not.toHaveProperty("apiKey");
  });

  test("keys are not enumerable on it either", () => {
    const client = new lease.CreateosClient(config);
    expect(Object.keys(client)).toEqual([]);
    const names = [];
    for (const name in client) names.push(name);
    expect(names).not.toContain("apiKey");
  });

  test("parseConfig's own result keeps the key enumerable", () => {
    expect({ ...lease.parseConfig(config) }.apiKey).toBe(CANARY);
  });

  test("is as silent when a tracked call gets it", async () => {
    const driver = looseDriver();
    const params = leaseParams({ config: { apiKey: CANARY } });
    const [shown, key] = (await driver.track(params, (client: Client, signal: AbortSignal) => [
      everything(client) + everything(signal) + inspect(client.config, { depth: Infinity }),
      client.apiKey,
    ])) as [string, string];
    expect(key).toBe(CANARY);
    expect(shown).not.toContain(CANARY);
  });
});

test("a driver shows no key, with calls in flight, closing and unconfirmed", async () => {
  const params = leaseParams({ config: { apiKey: CANARY } });
  const driver = looseDriver();
  const call = hold(driver, params);
  expect(everything(driver)).not.toContain(CANARY);
  const released = rejection(driver.release(params));
  expect(everything(driver)).not.toContain(CANARY);
  call.reject(new lease.CreateosCleanupError());
  await released;
  expect(driver.leaseState(params, "sb-1")).toBe("unconfirmed");
  expect(everything(driver)).not.toContain(CANARY);
  expect(everything(lease)).not.toContain(CANARY);
});

describe("an error", () => {
  test("of a check", async () => {
    const config = { apiKey: CANARY };
    const driver = looseDriver();
    const reasons = [
      await rejection(driver.track(leaseParams({ config, metadata: { companyId: CANARY } }), () => {})),
      await rejection(driver.track(leaseParams({ config, metadata: { apiUrl: `https://${CANARY}` } }), () => {})),
      await rejection(driver.track(leaseParams({ config: { ...config, timeoutMs: CANARY } }), () => {})),
      await rejection(driver.track(leaseParams({ config: { ...config, apiUrl: `https://x:${CANARY}@h` } }), () => {})),
      await rejection(driver.track(leaseParams({ config }), () => {}, CANARY)),
      await rejection(driver.release(leaseParams({ config, id: CANARY, metadata: { provider: CANARY } }))),
      thrown(() => lease.parseConfig({ apiUrl: `https://h/?${CANARY}`, shape: "s" })),
      thrown(() => lease.resolveApiKey({ apiUrl: "https://x.example", shape: "s", apiKey: `${CANARY}\n2` })),
    ];
    for (const reason of reasons) expect(everything(reason)).not.toContain(CANARY);
  });

  test("of a request: not the key, nor the body sent or answered, the path, the query or the host", async () => {
    const provider = await provide({ apiKeys: [CANARY] });
    const params = leaseParams({ provider });
    const { host, port } = new URL(provider.url);
    const effects: Parameters<typeof provider.faults.add>[0]["effect"][] = [
      { type: "echoError", status: 400 },
      { type: "echoError", status: 500 },
      { type: "status", status: 418, body: `${CANARY} ${BODY}` },
      { type: "invalidJson", body: `{"${CANARY}":"${BODY}` },
      { type: "envelope", variant: "error" },
      { type: "redirect", location: `http://${CANARY}.example/${PATH}` },
      { type: "lostReply" },
      { type: "lostRequest" },
    ];
    /** Its reason, or its value: some answers are no failure to whoever needs nothing of them. */
    const outcome = (promise: Promise<unknown>) => within(promise.catch((reason: unknown) => reason));
    for (const effect of effects) {
      const rule = provider.faults.add({ effect });
      const reasons = (await looseDriver().track(params, async (client: Client) => [
        await outcome(client.json(`/sandboxes?name=${PATH}`, "POST", { [BODY]: CANARY })),
        await outcome(client.upload("sb-1", `/${PATH}`, BODY)),
        await outcome(client.getSandbox("sb-1")),
      ])) as unknown[];
      reasons.push(await outcome(looseDriver().release(params)));
      expect(reasons.filter((reason) => reason instanceof lease.CreateosError).length).toBeGreaterThan(1);
      for (const reason of reasons) {
        for (const secret of [CANARY, BODY, PATH, host, `:${port}`])
          expect(everything(reason), JSON.stringify(effect)).not.toContain(secret);
      }
      rule.remove();
    }
  });

  test("of an acquisition", async () => {
    const provider = await provide({ apiKeys: [CANARY] });
    provider.faults.add({ match: { path: ["exec", "sandbox.destroy"] }, effect: { type: "echoError" } });
    const { lease: _lease, ...params } = leaseParams({ provider });
    const reason = await rejection(looseDriver().acquire(params));
    expect(reason).toMatchObject({ code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" });
    for (const secret of [CANARY, new URL(provider.url).host]) expect(everything(reason)).not.toContain(secret);
  });

  test("of a probe, and what a probe or a validation answers", async () => {
    const provider = await provide({ apiKeys: [CANARY] });
    const { config } = leaseParams({ provider });
    const driver = looseDriver();
    const strays = [
      { apiUrl: `https://x:${CANARY}@h` },
      { apiUrl: CANARY },
      { timeoutMs: CANARY },
      { reuseLease: CANARY },
      { rootfsByAdapter: { [CANARY]: 1 } },
      { egressAllowlist: [`${CANARY}\n`] },
      { rootfs: `${CANARY}\0` },
    ];
    for (const stray of strays) {
      for (const answer of [await driver.validateConfig({ config: stray }), await driver.probe({ config: stray })]) {
        expect(answer).toMatchObject({ ok: false });
        expect(everything(answer)).not.toContain(CANARY);
      }
    }
    // Illegal in one way or another, to us, to a header or to the provider.
    for (const apiKey of [`${CANARY}\n2`, `${CANARY}\u043a`, `${CANARY}2`]) {
      const answer = await driver.probe({ config: { ...config, apiKey } });
      expect(answer).toMatchObject({ ok: false });
      expect(everything(answer)).not.toContain(CANARY);
    }
    for (const path of ["sandbox.create", "exec", "files.put"]) {
      const rule = provider.faults.add({ match: { path }, effect: { type: "echoError" } });
      const answer = await driver.probe({ config });
      expect(answer).toMatchObject({ ok: false });
      for (const secret of [CANARY, new URL(provider.url).host]) expect(everything(answer)).not.toContain(secret);
      rule.remove();
    }
    expect(everything(await driver.probe({ config }))).not.toContain(CANARY);
    provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "echoError" } });
    const reason = await rejection(driver.probe({ config }));
    expect(reason).toMatchObject({ code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" });
    for (const secret of [CANARY, new URL(provider.url).host]) expect(everything(reason)).not.toContain(secret);
  });

  test("of a resume, a workspace or a confirmed release, and what they answer", async () => {
    const provider = await provide({ apiKeys: [CANARY] });
    const driver = looseDriver();
    const { lease: _lease, ...params } = leaseParams({ provider, config: { reuseLease: true } });
    const acquired = (await driver.acquire(params)) as { providerLeaseId: string; metadata: Record<string, unknown> };
    const { providerLeaseId, metadata } = acquired;
    const held = { ...params, lease: acquired, providerLeaseId, leaseMetadata: metadata };
    const answers = [
      await driver.realizeWorkspace(held),
      await driver.release(held, false, { confirm: true }),
      await driver.resume(held),
      await driver.resume({ ...held, leaseMetadata: { ...metadata, marker: CANARY } }),
    ];
    const foreign = { ...held, companyId: CANARY, lease: { providerLeaseId: CANARY } };
    const rule = provider.faults.add({ effect: { type: "echoError" } });
    const reasons = [
      await rejection(driver.realizeWorkspace(foreign)),
      await rejection(driver.resume(foreign)),
      await rejection(driver.resume(held)),
      await rejection(driver.release(held, false, { confirm: true })),
      await rejection(driver.destroy(held, { confirm: true })),
    ];
    rule.remove();
    answers.push(await driver.destroy(held, { confirm: true }));
    for (const value of [...answers, ...reasons]) expect(everything(value)).not.toContain(CANARY);
    for (const reason of reasons) {
      expect(reason).toBeInstanceOf(lease.CreateosError);
      expect(everything(reason)).not.toContain(new URL(provider.url).host);
    }
  });

  test("of a deadline or an abort", async () => {
    const params = leaseParams({ config: { apiKey: CANARY } });
    const driver = looseDriver();
    const call = hold(driver, params, 5);
    expect(everything(await abortion(call.signal))).not.toContain(CANARY);
    const other = hold(driver, params);
    const released = driver.release(params);
    expect(everything(other.signal.reason)).not.toContain(CANARY);
    for (const one of [call, other]) one.resolve();
    await within(released);
  });
});

test("nothing is logged, however much logging the environment asks for", async () => {
  const provider = await provide({ apiKeys: [CANARY] });
  provider.faults.add({ match: { path: "sandbox.destroy" }, effect: { type: "echoError" } });
  const outcome = await runProgram(
    `
    const lease = require(packagePath);
    const config = { apiUrl: process.env.PROVIDER, apiKey: process.env.CANARY };
    (async () => {
      await lease.release(params("sb-1", config), true).catch((error) => error);
      await lease.track(params("sb-1", config), (client) => client.json("/sandboxes?${PATH}", "POST", {})).catch((error) => error);
      await lease.track(params("sb-1", { apiUrl: "http://127.0.0.1:1", apiKey: process.env.CANARY }), (client) => client.getSandbox("sb-1")).catch(() => {});
      lease.track({}, 1).catch(() => {});
    })();
  `,
    { env: { PROVIDER: provider.url, CANARY, RUST_LOG: "trace", RUST_BACKTRACE: "full", DEBUG: "*" } },
  );
  expect(outcome).toMatchObject({ code: 0, stdout: "", stderr: "" });
  expect(routesSince(provider, 0)).toEqual(["sandbox.destroy", "sandbox.create"]);
});

test("an acquired lease's metadata holds no key", async () => {
  const provider = await provide({ apiKeys: [CANARY] });
  const driver: LooseDriver = looseDriver();
  const { lease: _lease, ...params } = leaseParams({ provider });
  const acquired = await driver.acquire(params);
  expect(everything(acquired)).not.toContain(CANARY);
});
