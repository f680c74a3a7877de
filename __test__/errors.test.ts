// Every error of the package: class, name, code, exact message, further fields and stack (specification, section 7).
import { createRequire } from "node:module";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { BAD_TIMEOUT, CLOSING, type Expected, expectCreateosError, IN_PROGRESS, MESSAGES, UNCONFIRMED } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver } from "./support/package.js";
import { makeSandbox, provide } from "./support/providers.js";
import { rejection, thrown, within } from "./support/waiting.js";

const { CreateosApiError, CreateosCleanupError, CreateosClient, CreateosError } = lease;

/** Codes of operations that the package does not have yet. */
const LATER = ["ERR_CREATEOS_COMMAND", "ERR_CREATEOS_OUTPUT", "ERR_CREATEOS_CANCELLED", "ERR_CREATEOS_TRANSFER"];

/** How each error comes about. */
const productions: [string, () => Promise<unknown>, Expected][] = [
  [
    "a lease that is not owned, by track",
    () => rejection(looseDriver().track(leaseParams({ metadata: { companyId: "theirs" } }), () => {})),
    {
      code: "ERR_CREATEOS_LEASE_MISMATCH",
      message: "CreateOS execution requires a lease from this environment.",
      extra: { mismatches: ["companyId"] },
    },
  ],
  [
    "a lease that is not owned, by release",
    () => rejection(looseDriver().release(leaseParams({ metadata: { provider: 1, environmentId: null } }))),
    {
      code: "ERR_CREATEOS_LEASE_MISMATCH",
      message: "CreateOS lease does not belong to this environment.",
      extra: { mismatches: ["provider", "environmentId"] },
    },
  ],
  [
    "a closing lease",
    async () => {
      const driver = looseDriver();
      const call = hold(driver, leaseParams());
      const released = driver.release(leaseParams());
      const reason = await rejection(driver.track(leaseParams(), () => {}));
      call.resolve();
      await released;
      return reason;
    },
    CLOSING,
  ],
  [
    "a second release",
    async () => {
      const driver = looseDriver();
      const call = hold(driver, leaseParams());
      const released = driver.release(leaseParams());
      const reason = await rejection(driver.release(leaseParams()));
      call.resolve();
      await released;
      return reason;
    },
    IN_PROGRESS,
  ],
  [
    "reuse of an unconfirmed lease",
    async () => {
      const driver = looseDriver();
      await rejection(driver.track(leaseParams(), () => Promise.reject(new CreateosCleanupError())));
      return rejection(driver.release(leaseParams()));
    },
    UNCONFIRMED,
  ],
  [
    "a sandbox that could not be removed",
    async () => {
      const provider = await provide();
      provider.faults.add({ match: { path: ["exec", "sandbox.destroy"] }, effect: { type: "status", status: 500 } });
      const { lease: _lease, ...params } = leaseParams({ provider });
      const reason = await rejection(looseDriver().acquire(params));
      const [sandbox] = provider.sandboxes;
      // Put in here, since the provider makes the id up.
      expect(reason.sandboxId).toBe(sandbox?.id);
      expect(reason.message).toContain(` ${sandbox?.id}.`);
      reason.message = reason.message.replace(sandbox?.id, "sb-made-up");
      reason.sandboxId = "sb-made-up";
      return reason;
    },
    {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: "CreateOS setup failed and cleanup is unconfirmed for sandbox sb-made-up.",
      extra: { sandboxId: "sb-made-up" },
    },
  ],
  [
    "a guaranteed expiry",
    () => rejection(looseDriver().acquire({ ...leaseParams(), requestedExpiresAt: "2030-01-01T00:00:00Z" })),
    {
      code: "ERR_CREATEOS_UNSUPPORTED",
      message: "CreateOS does not yet support leases with a guaranteed expiration deadline.",
    },
  ],
  [
    "a workspace that could not be prepared",
    async () => {
      const provider = await provide();
      provider.faults.add({
        match: { path: "exec" },
        effect: { type: "patch", set: { result: { exit_code: 127, stdout: "", stderr: "bash: not found" } } },
      });
      const { lease: _lease, ...params } = leaseParams({ provider });
      return rejection(looseDriver().acquire(params));
    },
    { code: "ERR_CREATEOS_SETUP", message: "CreateOS workspace preparation failed; the image must provide Bash." },
  ],
  ["a bad timeout", () => rejection(looseDriver().track(leaseParams(), () => {}, 0)), BAD_TIMEOUT],
  [
    "an invalid configuration",
    async () => thrown(() => lease.parseConfig({ apiUrl: "https://x.example", shape: "s", egressAllowlist: "x" })),
    {
      code: "ERR_CREATEOS_CONFIG",
      message: "egressAllowlist must be an array of non-empty host or CIDR strings.",
      extra: { field: "egressAllowlist" },
    },
  ],
  [
    "no key",
    async () => thrown(() => lease.resolveApiKey({ apiUrl: "https://x.example", shape: "s" })),
    { code: "ERR_CREATEOS_API_KEY", message: MESSAGES.keyForCustomOrigin },
  ],
  [
    "a failure that the provider answered",
    async () => {
      const provider = await provide();
      return rejection(looseDriver().track(leaseParams({ provider }), (client: any) => client.getSandbox("sb-none")));
    },
    {
      name: "CreateosApiError",
      code: "ERR_CREATEOS_API",
      message: "CreateOS request failed (HTTP 404) during sandbox lifecycle.",
      extra: { status: 404, operation: "sandbox lifecycle" },
    },
  ],
  [
    "no connection",
    async () => {
      const provider = await provide();
      const params = leaseParams({ provider });
      await provider.close();
      return rejection(looseDriver().release(params));
    },
    { code: "ERR_CREATEOS_CONNECTION", message: "CreateOS connection failed." },
  ],
  [
    "an answer that can't be trusted",
    async () => {
      const provider = await provide();
      provider.faults.add({ effect: { type: "invalidJson" } });
      return rejection(looseDriver().track(leaseParams({ provider }), (client: any) => client.getSandbox("sb-1")));
    },
    { code: "ERR_CREATEOS_RESPONSE", message: "CreateOS returned invalid JSON." },
  ],
  [
    "a state that is not reached",
    async () => {
      const provider = await provide();
      const id = await makeSandbox(provider);
      provider.guest.fail(id);
      return rejection(looseDriver().release(leaseParams({ provider, id, config: { reuseLease: true } })));
    },
    { code: "ERR_CREATEOS_STATE", message: "CreateOS sandbox did not reach paused." },
  ],
];

describe("is what the table says", () => {
  test.each(productions)("%s", async (_name, produce, expected) => expectCreateosError(await produce(), expected));

  test("every code that can come about by now comes about here", () => {
    const { errorCodes } = createRequire(import.meta.url)("../binding.js") as { errorCodes(): string[] };
    const produced = new Set(productions.map(([, , { code }]) => code));
    expect([...produced, ...LATER].toSorted()).toEqual(errorCodes().toSorted());
    expect(new Set(errorCodes()).size).toBe(errorCodes().length);
    for (const code of errorCodes()) expect(code).toMatch(/^ERR_CREATEOS_[A-Z_]+$/);
  });
});

test("a work that is no function is a plain TypeError", async () => {
  for (const work of [undefined, null, {}, "work", class {}.prototype]) {
    const reason = await rejection(looseDriver().track(leaseParams(), work));
    expect([reason.constructor, reason.code, reason.name]).toEqual([TypeError, undefined, "TypeError"]);
  }
});

describe("the classes", () => {
  test("are real subclasses of Error, made with new", () => {
    const api = new CreateosApiError(404, "file transfer");
    expectCreateosError(api, {
      name: "CreateosApiError",
      code: "ERR_CREATEOS_API",
      message: "CreateOS request failed (HTTP 404) during file transfer.",
      extra: { status: 404, operation: "file transfer" },
    });
    expectCreateosError(new CreateosApiError(500), {
      name: "CreateosApiError",
      code: "ERR_CREATEOS_API",
      message: "CreateOS request failed (HTTP 500).",
      extra: { status: 500, operation: undefined },
    });
    expectCreateosError(new CreateosCleanupError("left behind"), {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: "left behind",
    });
    expectCreateosError(new CreateosCleanupError(), {
      name: "CreateosCleanupError",
      code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
      message: MESSAGES.cleanup,
    });
    expectCreateosError(new CreateosError("own", "ERR_CREATEOS_STATE"), {
      code: "ERR_CREATEOS_STATE",
      message: "own",
    });
    for (const type of [CreateosError, CreateosApiError, CreateosCleanupError]) {
      expect(() => (type as unknown as () => unknown)()).toThrow(TypeError);
      expect(Object.getOwnPropertyDescriptor(type.prototype, "name")).toMatchObject({
        value: type.name,
        enumerable: false,
      });
    }
    expect(Object.getPrototypeOf(CreateosApiError)).toBe(CreateosError);
    expect(Object.getPrototypeOf(CreateosCleanupError)).toBe(CreateosError);
    expect(Object.getPrototypeOf(CreateosError)).toBe(Error);
  });

  test("can be extended, and print their name and message", () => {
    class Own extends CreateosApiError {}
    const own = new Own(418);
    expect([own instanceof CreateosApiError, own instanceof CreateosError, own.name]).toEqual([
      true,
      true,
      "CreateosApiError",
    ]);
    expect(String(new CreateosCleanupError("x"))).toBe("CreateosCleanupError: x");
    expect(inspect(new CreateosApiError(404, "stdin close"))).toMatch(/^CreateosApiError: CreateOS request failed/);
    expect(new CreateosApiError(404).stack).toMatch(/^CreateosApiError: |^Error: /);
  });

  test("tell each other apart", () => {
    const made = [new CreateosApiError(1), new CreateosCleanupError(), new CreateosError("x", "ERR_CREATEOS_API")];
    expect(made.map((error) => error instanceof CreateosApiError)).toEqual([true, false, false]);
    expect(made.map((error) => error instanceof CreateosCleanupError)).toEqual([false, true, false]);
    expect(new Error("x") instanceof CreateosError).toBe(false);
  });
});

describe("stack shows the caller's frames for every check that fails in the calling tick", () => {
  const driver = looseDriver();
  const closing = looseDriver();
  const official = { apiUrl: "https://x.example", apiKey: undefined };
  const foreign = leaseParams({ metadata: { provider: "e2b" } });
  const key = leaseParams({ config: { apiKey: undefined } });
  const broken = leaseParams({ config: { timeoutMs: 0 } });
  const cases: [string, (act: (fail: () => unknown) => unknown) => unknown][] = [
    ["track, not owned", (act) => act(() => driver.track(foreign, () => {}))],
    ["track, origin", (act) => act(() => driver.track(leaseParams({ metadata: { apiUrl: 1 } }), () => {}))],
    ["track, configuration", (act) => act(() => driver.track(broken, () => {}))],
    ["track, key", (act) => act(() => driver.track(key, () => {}))],
    ["track, closing", (act) => act(() => closing.track(leaseParams(), () => {}))],
    ["track, timeout", (act) => act(() => driver.track(leaseParams(), () => {}, 0))],
    ["track, work", (act) => act(() => driver.track(leaseParams(), 1))],
    ["track, signal", (act) => act(() => driver.track(leaseParams(), () => {}, { signal: 1 }))],
    ["release, not owned", (act) => act(() => driver.release(foreign))],
    ["release, no object", (act) => act(() => driver.release(null))],
    ["release, configuration", (act) => act(() => driver.release(broken))],
    ["release, key", (act) => act(() => driver.release(key))],
    ["release, in progress", (act) => act(() => closing.release(leaseParams()))],
    ["destroy, not owned", (act) => act(() => driver.destroy(foreign))],
    ["acquire, expiry", (act) => act(() => driver.acquire({ ...leaseParams(), requestedExpiresAt: "x" }))],
    ["acquire, configuration", (act) => act(() => driver.acquire({ ...leaseParams(), config: {} }))],
    ["acquire, company", (act) => act(() => driver.acquire({ ...leaseParams(), companyId: "" }))],
    ["parseConfig", (act) => act(() => lease.parseConfig({}))],
    ["resolveApiKey", (act) => act(() => lease.resolveApiKey({ ...official, shape: "s" }))],
    ["scopeKey", (act) => act(() => lease.scopeKey(leaseParams(), ""))],
    ["leaseState", (act) => act(() => driver.leaseState(broken, "sb-1"))],
    ["new CreateosClient", (act) => act(() => new CreateosClient({} as never))],
  ];

  test.each(cases)("%s", async (_name, run) => {
    const call = hold(closing, leaseParams());
    const released = call.signal === undefined ? undefined : closing.release(leaseParams());
    /** The frame that has to be there. */
    function theCaller(fail: () => unknown) {
      return fail();
    }
    let reason: unknown;
    try {
      reason = await rejection(run(theCaller) as Promise<unknown>);
    } catch (error) {
      reason = error;
    }
    expect((reason as Error).stack).toContain("theCaller");
    expect((reason as Error).stack).toContain("errors.test.ts");
    call.resolve();
    await within(released ?? Promise.resolve());
  });
});
