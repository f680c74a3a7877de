// Getting a lease, and what is in its sandbox then (specification, section 8).
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { acquire, acquireParams } from "./support/acquisitions.js";
import { lease, looseDriver } from "./support/package.js";
import { nothingAlive, provide, routesSince } from "./support/providers.js";
import { deferred, rejection, turns, within } from "./support/waiting.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("a lease", () => {
  test("is a running sandbox with its workspace and marker", async () => {
    const provider = await provide();
    const { providerLeaseId, ...rest } = await acquire(acquireParams(provider));
    expect(Object.keys(rest)).toEqual(["metadata"]);
    expect(provider.sandboxes).toMatchObject([{ id: providerLeaseId, status: "running" }]);
    const root = provider.sandbox(providerLeaseId)?.directory as string;
    const runtime = path.join(root, "paperclip-workspace", ".paperclip-runtime");
    const marker = readFileSync(path.join(runtime, ".paperclip-createos-lease"), "utf8");
    expect(marker).toBe(rest.metadata.marker);
    expect(marker).toMatch(UUID);
  });

  test("has exactly the metadata that is specified, and serves track and release as it is", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const params = acquireParams(provider);
    const { providerLeaseId, metadata } = await acquire(params, driver);
    expect(metadata).toEqual({
      provider: "createos",
      apiUrl: provider.url,
      companyId: "company",
      environmentId: "environment",
      remoteCwd: "/paperclip-workspace",
      shellCommand: "bash",
      marker: metadata.marker,
      shape: "s-1vcpu-1gb",
      rootfs: null,
      region: null,
      reuseLease: false,
      adapterType: null,
      baseEgressAllowlist: [],
      effectiveEgressAllowlist: [],
      autoPauseAfterSeconds: null,
    });
    const kept = JSON.parse(JSON.stringify({ providerLeaseId, metadata }));
    expect(kept).toEqual({ providerLeaseId, metadata });
    expect(lease.isUsableCreateosLease(kept)).toBe(true);
    expect(lease.canUseLease(kept, params)).toBe(true);
    expect(await driver.track({ ...params, lease: kept }, () => "runs")).toBe("runs");
    await driver.release({ ...params, providerLeaseId, leaseMetadata: kept.metadata });
    await nothingAlive(provider);
  });

  test("records what it was made with", async () => {
    const provider = await provide({ region: "eu" });
    const config = {
      apiUrl: `${provider.url}/v1/`,
      rootfs: " debian:13 ",
      rootfsByAdapter: { " coder ": " alpine:3.20 " },
      region: "eu",
      egressAllowlist: ["*", "a.example"],
      reuseLease: true,
      autoPauseAfterSeconds: 90,
      timeoutMs: 20_000,
    };
    const { metadata } = await acquire(
      acquireParams(provider, config, {
        adapterType: "coder",
        issueId: "issue",
        executionWorkspaceSettings: { networkEgress: { allowFqdns: ["b.example"], allowCidrs: ["10.0.0.0/8"] } },
      }),
    );
    expect(metadata).toMatchObject({
      apiUrl: provider.url,
      rootfs: "alpine:3.20",
      region: "eu",
      reuseLease: true,
      adapterType: "coder",
      baseEgressAllowlist: ["*", "a.example"],
      effectiveEgressAllowlist: ["a.example", "b.example", "10.0.0.0/8"],
      autoPauseAfterSeconds: 90,
    });
  });

  test("has a marker and a name of its own, each time", async () => {
    const provider = await provide();
    const driver = looseDriver();
    const leases = await Promise.all(Array.from({ length: 5 }, () => acquire(acquireParams(provider), driver)));
    const distinct = (values: unknown[]) => new Set(values).size;
    expect(distinct(leases.map(({ providerLeaseId }) => providerLeaseId))).toBe(5);
    expect(distinct(leases.map(({ metadata }) => metadata.marker))).toBe(5);
    expect(distinct(provider.sandboxes.map(({ name }) => name))).toBe(5);
  });

  test("comes in the order: create, running, folders, marker", async () => {
    const provider = await provide();
    await acquire(acquireParams(provider));
    const routes = routesSince(provider, 0).filter((route) => route !== "sandbox.get");
    expect(routes).toEqual(["sandbox.create", "exec", "files.put"]);
    expect(routesSince(provider, 0).indexOf("sandbox.get")).toBe(1);
    const put = provider.requests.find(({ route }) => route === "files.put");
    expect(new URL(put?.url ?? "", provider.url).searchParams.get("path")).toBe(
      "/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease",
    );
  });

  test("is waited for while its sandbox is being created", async () => {
    const provider = await provide({ switches: { createStatus: false } });
    provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "stuck" } });
    const acquired = acquire(acquireParams(provider));
    const looks = await provider.waitForRequest("sandbox.get");
    const mark = provider.mark();
    await provider.waitForRequest("sandbox.get", { since: mark });
    provider.guest.unstick(looks.sandboxId as string);
    expect((await within(acquired)).providerLeaseId).toBe(looks.sandboxId);
  });

  test("is a new one where the folders exist already", async () => {
    const provider = await provide();
    provider.faults.add({
      match: { path: "exec" },
      effect: {
        type: "call",
        run: ({ sandboxId }) => {
          const root = provider.sandbox(sandboxId as string)?.directory as string;
          execFileSync("mkdir", ["-p", path.join(root, "paperclip-workspace", ".paperclip-runtime")]);
        },
      },
    });
    const { providerLeaseId } = await acquire(acquireParams(provider));
    expect(existsSync(path.join(provider.sandbox(providerLeaseId)?.directory as string, "paperclip-workspace"))).toBe(
      true,
    );
  });
});

test("acquisitions do not wait for each other, and one's failure is nothing to the others", async () => {
  const provider = await provide();
  const driver = looseDriver();
  const held = provider.faults.add({ match: { path: "exec" }, times: 1, effect: { type: "hold" } });
  const first = acquire(acquireParams(provider), driver);
  await within(held.hit);
  provider.faults.add({ match: { path: "files.put" }, times: 1, effect: { type: "status", status: 500 } });
  await rejection(acquire(acquireParams(provider), driver));
  const third = await within(acquire(acquireParams(provider), driver));
  held.release();
  const { providerLeaseId } = await within(first);
  expect(provider.sandboxes.filter(({ status }) => status === "running").map(({ id }) => id).toSorted()).toEqual(
    [providerLeaseId, third.providerLeaseId].toSorted(),
  );
});

test("the parameters are read at once: what the host changes later changes nothing", async () => {
  const provider = await provide();
  const params = acquireParams(provider, { rootfs: "debian:13", egressAllowlist: ["a.example"] });
  const hold = deferred();
  provider.faults.add({ match: { path: "sandbox.create" }, effect: { type: "call", run: () => hold.promise } });
  const acquired = acquire(params);
  Object.assign(params.config, { rootfs: "alpine:3.20", shape: "other" });
  (params.config as unknown as { egressAllowlist: string[] }).egressAllowlist.push("b.example");
  params.companyId = "other";
  await turns(2);
  hold.resolve();
  const { metadata } = await within(acquired);
  expect(metadata).toMatchObject({
    companyId: "company",
    rootfs: "debian:13",
    shape: "s-1vcpu-1gb",
    baseEgressAllowlist: ["a.example"],
    effectiveEgressAllowlist: ["a.example"],
  });
});

test("every kind of sandbox of the provider will do: inside a namespace, too", async () => {
  const provider = await provide({ isolation: "auto" });
  const driver = looseDriver();
  const params = acquireParams(provider);
  const { providerLeaseId, metadata } = await acquire(params, driver);
  const answer = (await new lease.CreateosClient(params.config as never).json(
    `/sandboxes/${providerLeaseId}/exec`,
    "POST",
    { cmd: "/bin/cat", args: ["/paperclip-workspace/.paperclip-runtime/.paperclip-createos-lease"] },
  )) as { result: { stdout: string } };
  expect(answer.result.stdout).toBe(metadata.marker);
  await driver.destroy({ ...params, providerLeaseId, leaseMetadata: metadata });
  await nothingAlive(provider);
});
