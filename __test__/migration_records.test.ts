// Leases outlive the swap: what the plugin recorded before it is used after it, and the way back. A plugin is loaded
// anew in between, so that all it knows of a lease is what the host has kept as JSON.
import { describe, expect, test } from "vitest";
import { Host, type Recorded, recorded, type Shape, told } from "./migration/host.js";
import { DONE, EXPIRED, FOREVER, RESULT } from "./migration/scenario.js";
import { provide } from "./support/providers.js";

/** What the oldest plugins recorded. */
const OLDEST = [
  "provider",
  "apiUrl",
  "companyId",
  "environmentId",
  "remoteCwd",
  "shellCommand",
  "marker",
  "shape",
  "rootfs",
  "region",
  "reuseLease",
];

const full = (lease: Recorded) => lease;

function oldest({ providerLeaseId, metadata }: Recorded): Recorded {
  return { providerLeaseId, metadata: Object.fromEntries(OLDEST.map((field) => [field, metadata[field]])) };
}

const REUSED = { reuseLease: true };
const RICH = { ...REUSED, rootfs: "debian:13", region: "eu", egressAllowlist: ["a.example"] };

const ways: [string, Shape, Shape, (lease: Recorded) => Recorded, object][] = [
  ["before the swap", "before", "after", full, REUSED],
  ["before the swap, with an image, a region and egress rules,", "before", "after", full, RICH],
  ["by the oldest plugins", "before", "after", oldest, REUSED],
  ["by the oldest plugins, with an image and a region,", "before", "after", oldest, { ...RICH, egressAllowlist: [] }],
  ["after the swap, when it is taken back,", "after", "before", full, REUSED],
  ["after the swap, with an image, a region and egress rules, when it is taken back,", "after", "before", full, RICH],
];

describe.each(ways)("a lease recorded %s", (_name, from, to, keep, config) => {
  test("is resumed, used, released, resumed again and destroyed", async () => {
    const provider = await provide();
    const one = await Host.load(from, provider, config);
    const lease = keep(await one.acquire());
    await one.execute(lease, "echo kept > file");
    await one.release(lease);
    expect(one.status(lease)).toBe("paused");

    const two = await Host.load(to, provider, config);
    const resumed = await two.resume(lease);
    expect(resumed).toStrictEqual({ ...lease, metadata: { ...lease.metadata, resumedLease: true } });
    const again = recorded(resumed);
    expect(await two.realizeWorkspace(again)).toMatchObject({ cwd: "/paperclip-workspace" });
    expect(await told(two.execute(again, "cat file"))).toEqual({ value: { ...RESULT, stdout: "kept\n" } });
    expect(await told(two.release(again))).toEqual(DONE);
    expect(two.status(lease)).toBe("paused");
    expect(await two.resume(again)).toStrictEqual(resumed);
    expect(await told(two.destroy(again))).toEqual(DONE);
    await provider.waitForState(lease.providerLeaseId, "destroyed");
    expect(await told(two.resume(again))).toEqual(EXPIRED);
  });

  test("is released, or destroyed, as it is", async () => {
    const provider = await provide();
    const one = await Host.load(from, provider, config);
    const [released, destroyed] = [keep(await one.acquire()), keep(await one.acquire())];
    const two = await Host.load(to, provider, config);
    expect(await told(two.execute(released, "true"))).toEqual({ value: RESULT });
    expect(await told(two.release(released))).toEqual(DONE);
    expect(two.status(released)).toBe("paused");
    expect(await told(two.destroy(destroyed))).toEqual(DONE);
    await provider.waitForState(destroyed.providerLeaseId, "destroyed");
  });

  test("whose plugin ended without a release is resumed as it runs, and what runs in it goes on", async () => {
    const provider = await provide();
    const one = await Host.load(from, provider, config);
    const lease = keep(await one.acquire());
    const command = told(one.execute(lease, FOREVER));
    await one.said("up");

    const two = await Host.load(to, provider, config);
    expect(await two.resume(lease)).toMatchObject({ providerLeaseId: lease.providerLeaseId });
    // The old logic ends nothing that it finds, and the package only what it has begun itself.
    expect(two.running(lease)).toBe(1);
    expect(await told(two.execute(lease, "echo beside"))).toEqual({ value: { ...RESULT, stdout: "beside\n" } });
    await two.destroy(lease);
    await provider.waitForState(lease.providerLeaseId, "destroyed");
    await command;
  });

  test("has expired where the configuration has changed, and is destroyed all the same", async () => {
    const provider = await provide();
    const one = await Host.load(from, provider, config);
    const lease = keep(await one.acquire());
    const changes = [{ shape: "s-1vcpu-2gb" }, { rootfs: "ubuntu:26.04" }, { egressAllowlist: ["b.example"] }];
    const start = provider.requests.length;
    for (const change of [...changes, { autoPauseAfterSeconds: 600 }]) {
      const two = await Host.load(to, provider, { ...config, ...change });
      expect(await told(two.resume(lease))).toEqual(EXPIRED);
    }
    expect(provider.requests).toHaveLength(start);
    // The provider would never pause it by itself, so it is not left behind.
    const idle = await Host.load(to, provider, { ...config, autoPauseAfterSeconds: 600 });
    expect(await told(idle.release(lease))).toEqual(DONE);
    await provider.waitForState(lease.providerLeaseId, "destroyed");
  });
});

test("where an absent autoPauseAfterSeconds meant 600, leases go on once the configuration says so", async () => {
  const provider = await provide();
  // Newer plugins of the old shape set the timer unasked; the package wants it written down (section 2).
  const config = { ...REUSED, autoPauseAfterSeconds: 600 };
  const before = await Host.load("before", provider, config);
  const lease = await before.acquire({ issueId: "issue" });
  expect(lease.metadata).toMatchObject({ autoPauseAfterSeconds: 600 });

  const silent = await Host.load("after", provider, REUSED);
  expect(await told(silent.resume(lease))).toEqual(EXPIRED);
  const written = await Host.load("after", provider, config);
  expect(await written.resume(lease)).toMatchObject({ providerLeaseId: lease.providerLeaseId });
  expect(await told(written.release(lease))).toEqual(DONE);
  expect(written.status(lease)).toBe("running");
  // A release under a configuration that says nothing pauses it, which is as good.
  expect(await told(silent.release(lease))).toEqual(DONE);
  expect(silent.status(lease)).toBe("paused");
});
