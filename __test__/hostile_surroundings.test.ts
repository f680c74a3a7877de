// What code around the package can do, out of malice or by accident: nothing to other calls, to keys or to bills.
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { inspect, promisify } from "node:util";
import { createContext, runInContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { acquireParams } from "./support/acquisitions.js";
import { hold, leaseParams } from "./support/leases.js";
import { lease, looseDriver, packagePath } from "./support/package.js";
import { nothingAlive, provide } from "./support/providers.js";
import { rejection, thrown, within } from "./support/waiting.js";

const require = createRequire(import.meta.url);
const CANARY = "skp_canary";

describe("a work that freezes its signal", () => {
  test("is not told of a release, which aborts the others all the same and goes on", async () => {
    const driver = looseDriver();
    const [frozen, other] = [hold(driver, leaseParams()), hold(driver, leaseParams())];
    Object.freeze(frozen.signal);
    const released = driver.release(leaseParams());
    expect(other.signal.aborted).toBe(true);
    for (const call of [frozen, other]) call.resolve();
    await within(released);
    expect(driver.leaseState(leaseParams(), "sb-1")).toBe("open");
  });

  test("is not told by its caller's signal, which reaches the caller's other calls", async () => {
    const driver = looseDriver();
    const controller = new AbortController();
    const { signal } = controller;
    const [frozen, other] = [hold(driver, leaseParams(), { signal }), hold(driver, leaseParams(), { signal })];
    Object.freeze(frozen.signal);
    controller.abort("mine");
    expect(other.signal.reason).toBe("mine");
    for (const call of [frozen, other]) call.resolve();
    await Promise.all([frozen.promise, other.promise]);
  });

  test("is not told of its deadline, and the process goes on", async () => {
    const driver = looseDriver();
    const [frozen, next] = [hold(driver, leaseParams(), 1), hold(driver, leaseParams(), 2)];
    Object.freeze(frozen.signal);
    // The later deadline comes after the earlier one was dealt with.
    if (!next.signal.aborted) {
      await new Promise((resolve) => next.signal.addEventListener("abort", resolve, { once: true }));
    }
    for (const call of [frozen, next]) call.resolve("done");
    expect(await frozen.promise).toBe("done");
  });
});

test("a module that is loaded anew is the same package: a release sees the calls of before", async () => {
  const call = hold({ track: lease.track as never }, leaseParams({ id: "sb-reloaded" }));
  const cached = Object.keys(require.cache).filter((path) => /createos-lease|index\.js|binding\.js/u.test(path));
  for (const path of cached) delete require.cache[path];
  const anew = require(packagePath) as typeof lease;
  expect(anew.CreateosError).toBe(lease.CreateosError);
  const released = anew.release(leaseParams({ id: "sb-reloaded" }) as never);
  expect(call.signal.aborted).toBe(true);
  call.resolve();
  await within(released);
});

describe("an AbortController that replaces the platform's", () => {
  test("after the package was loaded is not the one that calls get", async () => {
    const real = globalThis.AbortController;
    globalThis.AbortController = class {} as never;
    try {
      const driver = looseDriver();
      const call = hold(driver, leaseParams());
      expect(call.signal).toBeInstanceOf(AbortSignal);
      const released = driver.release(leaseParams());
      expect(call.signal.reason).toBeInstanceOf(DOMException);
      call.resolve();
      await within(released);
    } finally {
      globalThis.AbortController = real;
    }
  });
});

test("a listener that stops the event does not keep a caller's signal from the call", async () => {
  const controller = new AbortController();
  controller.signal.addEventListener("abort", (event) => event.stopImmediatePropagation());
  const call = hold(looseDriver(), leaseParams(), { signal: controller.signal });
  controller.abort("mine");
  expect(call.signal.reason).toBe("mine");
  call.resolve();
  await call.promise;
});

test("a key that changes while the configuration's options are read does not part the client from its scope", async () => {
  const { CREATEOS_API_KEY: before } = process.env;
  const apiUrl = "https://api.sb.createos.sh";
  const params = leaseParams({ config: { apiUrl, apiKey: undefined }, metadata: { apiUrl } });
  process.env["CREATEOS_API_KEY"] = "old";
  try {
    const options = {
      get timeoutMs() {
        process.env["CREATEOS_API_KEY"] = "new";
        lease.scopeKey(params, "sb-1");
        return 1000;
      },
    };
    const call = hold(looseDriver(), params, options);
    expect(call.client.apiKey).toBe("old");
    call.resolve();
    await call.promise;
  } finally {
    if (before === undefined) delete process.env["CREATEOS_API_KEY"];
    else process.env["CREATEOS_API_KEY"] = before;
  }
});

describe("a key", () => {
  const client = () => new lease.CreateosClient(leaseParams({ config: { apiKey: CANARY } }).config as never);
  const everything = { showHidden: true, getters: true, depth: Infinity };

  test("is in no inspection, whatever is asked for", () => {
    for (const value of [client(), client().config]) expect(inspect(value, everything)).not.toContain(CANARY);
    expect(inspect(client())).toBe("CreateosClient {}");
  });

  test.each(["\n", "\0", "\r"])("that is no legal header (%j) is not repeated by the error", async (odd) => {
    const headers = { "X-Api-Key": `${CANARY}${odd}x` };
    const error = await rejection(client().request("/x", { headers }));
    expect(error).toBeInstanceOf(TypeError);
    expect(inspect(error, everything)).not.toContain(CANARY);
  });

  test("is not explained, though another field of the configuration throws", () => {
    const params = leaseParams({ config: { apiKey: CANARY }, metadata: { companyId: CANARY } });
    Object.defineProperty(params.config, "region", {
      enumerable: true,
      get() {
        throw new Error("no region");
      },
    });
    const explained = lease.explainLease(params);
    expect(JSON.stringify(explained)).not.toContain(CANARY);
    expect(explained).toMatchObject({ usable: false, config: "The configuration could not be read." });
  });
});

describe("cleanup errors", () => {
  async function stateAfter(reason: unknown, options?: unknown) {
    const driver = looseDriver(options);
    expect(await rejection(driver.track(leaseParams(), () => Promise.reject(reason)))).toBe(reason);
    return driver.leaseState(leaseParams(), "sb-1");
  }
  const failed = new lease.CreateosCleanupError();

  test("are found among very many", async () => {
    const many: Error[] = Array.from({ length: 200_000 }, () => new Error("other"));
    expect(await stateAfter(new AggregateError([...many, failed]))).toBe("unconfirmed");
  });

  test("are found in an AggregateError of another realm", async () => {
    const context = createContext({ failed });
    expect(await stateAfter(runInContext("new AggregateError([failed])", context))).toBe("unconfirmed");
  });

  test("are found beside a class that claims nothing as its instance", async () => {
    class Odd {
      static [Symbol.hasInstance]() {
        throw new Error("odd");
      }
    }
    expect(await stateAfter(failed, { cleanupErrors: [Odd] })).toBe("unconfirmed");
  });

  test("a function that is no class is refused", () => {
    expect(thrown(() => looseDriver({ cleanupErrors: [() => {}] }))).toBeInstanceOf(TypeError);
  });

  test("a prototype chain without an end has no cleanup error on it", async () => {
    const endless = (): object => new Proxy({}, { getPrototypeOf: endless });
    expect(await stateAfter(endless())).toBe("open");
  });
});

describe("wrong arguments of the client are TypeErrors that name them, and nothing is sent", () => {
  test.each([
    [{ autoPauseAfterSeconds: -1 }, "autoPauseAfterSeconds"],
    [{ autoPauseAfterSeconds: 60.9 }, "autoPauseAfterSeconds"],
    [{ autoPauseAfterSeconds: "60" }, "autoPauseAfterSeconds"],
    [{ autoPauseAfterSeconds: NaN }, "autoPauseAfterSeconds"],
    [{ rootfs: 5 }, "rootfs"],
    [{ egress: "a" }, "egress"],
    [{ egress: [1] }, "egress"],
  ])("createSandbox with %j", async (options, name) => {
    const provider = await provide();
    const client = new lease.CreateosClient(acquireParams(provider).config as never);
    const error = await rejection(client.createSandbox(null, options as never));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain(name);
    expect(provider.requests).toEqual([]);
  });

  test("upload of what only looks like bytes", async () => {
    const client = new lease.CreateosClient(leaseParams().config as never);
    const error = await rejection(client.upload("sb-1", "/x", new Proxy(new Uint8Array(3), {})));
    expect(error).toBeInstanceOf(TypeError);
  });
});

test("acquire after a shutdown is refused with the caller's frames", async () => {
  const driver = looseDriver();
  await driver.shutdown();
  async function whoAcquires() {
    await driver.acquire({ ...leaseParams(), config: { apiUrl: "https://a.example", shape: "s", apiKey: "k" } });
  }
  expect((await rejection(whoAcquires())).stack).toContain("whoAcquires");
});

describe("a Worker that ends", () => {
  test.each(["sandbox.create", "sandbox.get", "exec", "files.put"])(
    "while its acquisition is at %s leaves no sandbox behind",
    async (path) => {
      const provider = await provide();
      const rule = provider.faults.add({ match: { path }, times: 1, effect: { type: "hold" } });
      const worker = workerThatAcquires(provider);
      await within(rule.hit);
      await worker.terminate();
      rule.release();
      await provider.waitForRequest("sandbox.destroy");
      await nothingAlive(provider);
    },
  );

  test("before it hears of its lease leaves no sandbox behind", async () => {
    const provider = await provide();
    const uploaded = provider.waitFor((event) => event.type === "request:finish" && event.request.route === "files.put");
    // It is busy from the moment of its call, so that the lease cannot be delivered.
    const worker = workerThatAcquires(provider, "for (;;);");
    await within(uploaded);
    await worker.terminate();
    await provider.waitForRequest("sandbox.destroy");
    await nothingAlive(provider);
  });

  function workerThatAcquires(provider: Awaited<ReturnType<typeof provide>>, then = ""): Worker {
    const params = JSON.stringify(acquireParams(provider));
    const code = `
      const { LeaseDriver } = require(${JSON.stringify(packagePath)});
      new LeaseDriver().acquire(${params}).catch(() => {});
      setTimeout(() => { ${then} }, 0);
      setInterval(() => {}, 1000);
    `;
    return new Worker(code, { eval: true });
  }
});

test("an Object.prototype with a signal takes no resume its deadline", async () => {
  const provider = await provide();
  // In a process of its own: everything else there has the signal too.
  const program = `
    const { LeaseDriver } = require(${JSON.stringify(packagePath)});
    const params = ${JSON.stringify(resumeParams(provider.url))};
    Object.prototype.signal = AbortSignal.abort();
    const keep = setTimeout(() => process.exit(1), 20_000);
    new LeaseDriver().resume(params, { signal: null }).catch(({ name }) => {
      delete Object.prototype.signal;
      console.log(name);
      clearTimeout(keep);
    });
  `;
  provider.faults.add({ match: { path: "sandbox.get" }, effect: { type: "hold" } });
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", program]);
  expect(stdout.trim()).toBe("TimeoutError");
});

/** A lease that fits its configuration, with a deadline that comes soon. */
function resumeParams(apiUrl: string) {
  const metadata = { apiUrl, marker: "-".repeat(36), shape: "s-1vcpu-1gb", autoPauseAfterSeconds: null };
  return leaseParams({ config: { apiUrl, apiKey: "key", timeoutMs: 200, autoPauseAfterSeconds: null }, metadata });
}
