// What a command is refused for, in which order, and that nothing is asked of the provider for it (specification, section 9).
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProvider, type Provider } from "./provider/index.mjs";
import { guest } from "./support/execute_commands.js";
import { executor } from "./support/executes.js";
import { counting } from "./support/counting.js";
import { BAD_TIMEOUT, CLOSING, MESSAGES, expectCreateosError, type Expected } from "./support/errors.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease } from "./support/package.js";
import { rejection } from "./support/waiting.js";

const refused = (message: string): Expected => ({ code: "ERR_CREATEOS_COMMAND", message });
const MISSING = refused("A sandbox command is required.");
const VARIABLE = refused("Invalid sandbox environment variable.");
const ARGUMENTS = refused("Sandbox command arguments must be strings.");
const FOLDER = refused("A sandbox working directory must be a string.");
const INPUT = refused("Sandbox command input must be a string.");
const NUL = refused("Sandbox command values cannot contain NUL.");
const NO_ID: Expected = { code: "ERR_CREATEOS_RESPONSE", message: "CreateOS returned an invalid resource ID." };

/** An error of the package, another, or a value of the caller's own. */
type Refusal = Expected | { typeError: string } | { own: unknown };

const NO_OUTPUT = { typeError: "onOutput must be a function." };
const NO_CLIENT = { typeError: "client must be a CreateosClient." };
const NO_SIGNAL = { typeError: "signal must be an AbortSignal." };

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider({ isolation: "rewrite" });
});
afterAll(() => provider.close());

/** That it is refused so, and that nothing was asked of the provider: not by any test here. */
async function expectRefused(executed: Promise<unknown>, expected: Refusal): Promise<void> {
  const reason = await rejection(executed);
  if ("own" in expected) expect(reason).toBe(expected.own);
  else if ("code" in expected) expectCreateosError(reason, expected);
  else {
    expect([reason?.constructor, reason?.message]).toEqual([TypeError, expected.typeError]);
    expect(reason).not.toHaveProperty("code");
  }
  expect(provider.requests).toEqual([]);
}

type Execute = (client?: unknown, params?: unknown, signal?: unknown, onOutput?: unknown) => Promise<unknown>;
const execute = lease.execute as unknown as Execute;

const clientOf = (one: Provider) => new lease.CreateosClient(leaseParams({ provider: one }).config as never);

/** Both ways to run a command, with the same parameters. */
const WAYS: [way: string, run: (params: object, onOutput?: unknown) => Promise<unknown>][] = [
  ["the driver", (params, onOutput) => executor().execute(params, onOutput)],
  ["the function", (params, onOutput) => execute(clientOf(provider), params, null, onOutput)],
];

const COMMAND = { command: "true" };
const withLease = (command: object) => ({ ...leaseParams({ provider }), ...command });

type Values = [what: string, value: unknown][];

const NOTHING: Values = [
  ["undefined", undefined],
  ["null", null],
];

/** Values of every type that are neither texts nor nothing. */
const NO_TEXT: Values = [
  ["a number", 7],
  ["zero", 0],
  ["true", true],
  ["false", false],
  ["a bigint", 7n],
  ["a symbol", Symbol("text")],
  ["a function", () => "text"],
  ["an object", {}],
  ["an array", ["text"]],
  ["an empty array", []],
  ["a String object", new String("text")],
  ["what becomes a text", { toString: () => "text" }],
  ["bytes", Buffer.from("text")],
];
const NO_OBJECT = NO_TEXT.filter(([, value]) => typeof value !== "object" || Array.isArray(value));
const NO_ARRAY = NO_TEXT.filter(([, value]) => !Array.isArray(value));

/** Elements that make an array or an object wrong. */
const NO_ELEMENT = [...NO_TEXT, ...NOTHING];

const NO_NAMES = ["", "1A", "A-B", "A B", "A=", "=", "A.B", "A\n", "\nA", "A\0", "Ä", "Aé", "\ud800", "A\udc00", "-A", "A[0]", "A%%", "a{"];

const ENDLESS: unknown[] = [];
ENDLESS.length = 4_000_000_000;
const HOLE = ["a", "b", "c"];
delete HOLE[1];

type Line = [what: string, command: object, expected: Expected];

const each = (name: string, values: Values, expected: Expected): Line[] =>
  values.map(([what, value]) => [`${name} is ${what}`, { ...COMMAND, [name]: value }, expected]);

const REFUSALS: Line[] = [
  ...each("command", [...NOTHING, ["empty", ""], ...NO_TEXT], MISSING),
  ...each("env", [...NO_OBJECT, ["a text", "A=1"]], VARIABLE),
  ...each("env", NO_ELEMENT.map(([what, value]) => [`an object of ${what}`, { A: "1", B: value }]), VARIABLE),
  ...NO_NAMES.map((name): Line => [`a variable is called ${JSON.stringify(name)}`, { ...COMMAND, env: { A: "1", [name]: "1" } }, VARIABLE]),
  ...each("args", [...NO_ARRAY, ["a text", "text"], ["a set", new Set(["text"])], ["like an array", { 0: "text", length: 1 }]], ARGUMENTS),
  ...each("args", NO_ELEMENT.map(([what, value]) => [`an array of ${what}`, ["a", value]]), ARGUMENTS),
  ...each("args", [["an array with a hole", HOLE], ["an array without an end", ENDLESS]], ARGUMENTS),
  ...each("cwd", NO_TEXT, FOLDER),
  ...each("stdin", NO_TEXT, INPUT),
  ["the command holds NUL", { command: "true\0" }, NUL],
  ["the command is NUL", { command: "\0" }, NUL],
  ["an argument holds NUL", { ...COMMAND, args: ["a", "b\0c"] }, NUL],
  ["a variable holds NUL", { ...COMMAND, env: { A: "1", B: "\0" } }, NUL],
  ["the folder holds NUL", { ...COMMAND, cwd: "a\0" }, NUL],
];

describe.each(WAYS)("%s refuses a command", (_way, run) => {
  test.concurrent.for(REFUSALS)("where %s", ([, command, expected]) => expectRefused(run(withLease(command)), expected));

  test.concurrent.for(NO_TEXT.filter(([, value]) => typeof value !== "function"))("whose onOutput is %s", ([, onOutput]) =>
    expectRefused(run(withLease(COMMAND), onOutput), NO_OUTPUT),
  );

  test.concurrent.for([0, -1, 1.5, 86_400_001, Number.NaN, "1000", true, {}, 7n, new Number(7)])("whose timeout is %o", (timeoutMs) =>
    expectRefused(run(withLease({ ...COMMAND, timeoutMs })), BAD_TIMEOUT),
  );

  test.concurrent.for(["../sb", "sb/1", "..", "sb?x=1", "sb#1", "sb 1", "sb-1\n", "sb-1\0", "sb-é", "sb-\ud800", "a".repeat(201)])(
    "whose lease is %j",
    (id) => expectRefused(run({ ...leaseParams({ provider, id }), ...COMMAND }), NO_ID),
  );
});

describe("the function", () => {
  test("refuses a lease without an id", async () => {
    const ids = [null, undefined, "", 7, ["sb-1"], new String("sb-1"), { toString: () => "sb-1" }];
    const leases = [undefined, null, "sb-1", 7, {}, ...ids.map((providerLeaseId) => ({ providerLeaseId }))];
    for (const one of leases) await expectRefused(execute(clientOf(provider), { lease: one, ...COMMAND }), NO_ID);
    for (const params of [undefined, null, "true", 7, () => {}, []]) await expectRefused(execute(clientOf(provider), params), NO_ID);
  });

  test("refuses a client that is none before all else", async () => {
    const client = clientOf(provider);
    const { CreateosClient } = lease;
    const looks = [leaseParams({ provider }).config, CreateosClient, Object.create(CreateosClient.prototype), new Proxy(client, {})];
    for (const one of [undefined, null, {}, "client", ...looks]) await expectRefused(execute(one, undefined, "signal", "output"), NO_CLIENT);
    await expectRefused(execute(), NO_CLIENT);
  });

  test("refuses a signal that is none before it looks at anything", async () => {
    const params = new Proxy({}, { get: () => expect.fail("read the parameters") });
    for (const signal of ["signal", 7, true, {}, () => {}, new AbortController()]) {
      await expectRefused(execute(clientOf(provider), params, signal), NO_SIGNAL);
    }
  });
});

describe("the driver", () => {
  test("refuses options that are none", async () => {
    for (const options of ["options", 7, true, [], () => {}]) {
      await expectRefused(executor().execute(withLease(COMMAND), null, options), { typeError: "options must be an object." });
    }
  });

  test("is one, or the method refuses it", async () => {
    const { execute: method } = lease.LeaseDriver.prototype;
    for (const driver of [undefined, {}, lease, Object.create(lease.LeaseDriver.prototype)]) {
      expect(await rejection(Reflect.apply(method, driver, [withLease(COMMAND)]))).toBeInstanceOf(TypeError);
    }
  });
});

type Step = [what: string, expected: Refusal, repair?: Record<string, unknown>];

/** Everything that can be wrong with a command, and one repair after another in the order in which it must be noticed. */
const DEFECTS = { command: "", env: { "A-B": 1 }, args: [1], cwd: 1, stdin: 1 };
const STEPS: Step[] = [
  ["no command", MISSING, { command: "a\0" }],
  ["a variable's name", VARIABLE, { env: { A: 1 } }],
  ["a variable's value", VARIABLE, { env: { A: "\0" } }],
  ["the arguments", ARGUMENTS, { args: ["\0"] }],
  ["the folder", FOLDER, { cwd: "\0" }],
  ["the input", INPUT, { stdin: "\0" }],
  ["NUL in a variable", NUL, { env: { A: "a" } }],
  ["NUL in the command", NUL, { command: "true" }],
  ["NUL in an argument", NUL, { args: ["a"] }],
  ["NUL in the folder", NUL, { cwd: "a" }],
  ["onOutput", NO_OUTPUT],
];

describe("the first thing wrong is the one that is told", () => {
  async function repair(given: Record<string, unknown>, steps: Step[], run: () => Promise<unknown>): Promise<void> {
    for (const [what, expected, repaired] of steps) {
      await expectRefused(run(), expected).catch((error: Error) => expect.soft(error.message, what).toBe("refused as expected"));
      Object.assign(given, repaired);
    }
  }

  test("by the function", async () => {
    const given: Record<string, unknown> = { ...DEFECTS, client: {}, signal: "signal", lease: { providerLeaseId: "../sb" } };
    const first: Step[] = [
      ["the client", NO_CLIENT, { client: clientOf(provider) }],
      ["the signal", NO_SIGNAL, { signal: AbortSignal.abort("own") }],
      ["the lease id", NO_ID, { lease: { providerLeaseId: "sb-1" } }],
    ];
    await repair(given, [...first, ...STEPS], () => execute(given["client"], given, given["signal"], "output"));
    await expectRefused(execute(given["client"], given, given["signal"]), { own: "own" });
  });

  test("by the driver", async () => {
    const driver = executor();
    const good = leaseParams({ provider, id: "sb-1" });
    const warm = leaseParams({ provider, id: "sb-1", config: { reuseLease: true, autoPauseAfterSeconds: 60 }, metadata: { autoPauseAfterSeconds: 60 } });
    const foreign = { ...good.leaseMetadata, apiUrl: "https://another.example" };
    const mismatch = (field: string): Expected => ({ code: "ERR_CREATEOS_LEASE_MISMATCH", message: MESSAGES.notForTrack, extra: { mismatches: [field] } });
    const given: Record<string, unknown> = {
      ...good,
      ...DEFECTS,
      timeoutMs: 0,
      signal: "signal",
      config: { ...good.config, apiUrl: "no URL", apiKey: undefined },
      lease: { ...good.lease, metadata: { ...foreign, provider: "another" } },
    };
    const run = () => driver.execute(given, "output", { signal: given["signal"] });
    // Another call of the lease, which is being released.
    const held = hold(driver, warm);
    const released = driver.release(warm);
    await repair(given, [
      ["whose lease it is", mismatch("provider"), { lease: { ...good.lease, metadata: foreign } }],
      ["the configuration", { code: "ERR_CREATEOS_CONFIG", message: "CreateOS API URL is invalid.", extra: { field: "apiUrl" } }, { config: { ...good.config, apiKey: undefined } }],
      ["the API's origin", mismatch("apiUrl"), { lease: good.lease }],
      ["the key", { code: "ERR_CREATEOS_API_KEY", message: MESSAGES.keyForCustomOrigin }, { config: good.config }],
      ["the scope's state", CLOSING],
    ], run);
    held.resolve();
    await released;
    await repair(given, [
      ["the timeout", BAD_TIMEOUT, { timeoutMs: null }],
      ["the signal", { typeError: "options.signal must be an AbortSignal." }, { signal: AbortSignal.abort("own") }],
      ["the signal's abort", { own: "own" }, { signal: null, ...leaseParams({ provider, id: "../sb" }) }],
      ["the lease id", NO_ID, good as never],
      ...STEPS,
    ], run);
    expect(driver.leaseState(good, "sb-1")).toBe("open");
  });
});

/** Everything that a command can be given. */
const FULL = { ...COMMAND, args: ["a", "b"], env: { A: "1", B: "2" }, cwd: "/", stdin: "input", timeoutMs: 10_000 };

const READ = [...Object.keys(FULL), "args.length", "args.0", "args.1", "env.A", "env.B", "lease", "lease.providerLeaseId"];

describe("each property is read once", () => {
  test.concurrent("by the driver", async (context) => {
    const at = await guest(context);
    const counts = new Map<string, number>();
    await at.driver.execute(counting({ ...at.params(), ...FULL }, counts), null, counting({ signal: null }, counts, "options."));
    const ownership = ["provider", "companyId", "environmentId", "apiUrl"].map((name) => `lease.metadata.${name}`);
    for (const place of [...READ, ...ownership, "companyId", "environmentId", "config", "config.apiKey", "options.signal"]) {
      expect.soft([place, counts.get(place)]).toEqual([place, 1]);
    }
    expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
  });

  test.concurrent("by the function, and none besides", async (context) => {
    const at = await guest(context);
    const counts = new Map<string, number>();
    await execute(clientOf(at.provider), counting({ ...at.params(), ...FULL }, counts));
    expect(Object.fromEntries(counts)).toEqual(Object.fromEntries(READ.map((place) => [place, 1])));
  });

  test.concurrent("before the call returns, so that what its caller does to them later is of no account", async (context) => {
    const at = await guest(context);
    const asked = { ...at.params(), command: "printenv", args: ["A", "B"], env: { A: "1", B: "2" }, cwd: "/" };
    const result = at.driver.execute(asked);
    asked.args.splice(0, 2, "PATH");
    Object.assign(asked.env, { A: "3", B: "\0", "C-D": "4" });
    Object.assign(asked, { command: "false", args: null, env: null, cwd: "none", timeoutMs: 1 });
    expect(await result).toMatchObject({ exitCode: 0, stdout: "1\n2\n" });
  });
});

describe("what reading a property throws is the rejection", () => {
  const OWN = new Error("own");
  const raise = () => {
    throw OWN;
  };
  const broken = <T extends object>(target: T, name: PropertyKey): T => Object.defineProperty(target, name, { enumerable: true, get: raise });

  type Full = ReturnType<typeof whole>;
  const whole = () => ({ ...withLease(FULL), args: ["a", "b"], env: { A: "1", B: "2" } });

  const PLACES: [place: string, params: (full: Full) => object][] = [
    ...["lease", ...Object.keys(FULL)].map((name): [string, (full: Full) => object] => [name, (full) => broken(full, name)]),
    ["the lease's id", (full) => ({ ...full, lease: broken({ ...full.lease }, "providerLeaseId") })],
    ["a variable", (full) => ({ ...full, env: broken(full.env, "B") })],
    ["an argument", (full) => ({ ...full, args: broken(full.args, 1) })],
    ["the names of the variables", (full) => ({ ...full, env: new Proxy({}, { ownKeys: raise }) })],
    ["the length of the arguments", (full) => ({ ...full, args: new Proxy(["a"], { get: raise }) })],
  ];

  describe.each(WAYS)("by %s", (_way, run) => {
    test.concurrent.for(PLACES)("%s", ([, params]) => expectRefused(run(params(whole())), { own: OWN }));
  });

  test("the options' signal", () => expectRefused(executor().execute(whole(), null, broken({}, "signal")), { own: OWN }));
});
