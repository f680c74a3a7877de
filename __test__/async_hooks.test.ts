// What asynchronous hooks see of a call: whoever keeps something for each resource gets to let it go.
import { createHook } from "node:async_hooks";
import { expect, test } from "vitest";
import { looseDriver } from "./support/package.js";
import { leaseParams } from "./support/leases.js";

test("a settled call's resource is destroyed", async () => {
  const alive = new Set<number>();
  let made = 0;
  const hook = createHook({
    init(id, type) {
      if (type !== "CreateosLease") return;
      made += 1;
      alive.add(id);
    },
    destroy: (id) => void alive.delete(id),
  }).enable();
  const driver = looseDriver();
  for (let call = 0; call < 10; call += 1) await driver.track(leaseParams(), async () => call);
  // Destroy hooks run by turns of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  hook.disable();
  expect([made, alive.size]).toEqual([10, 0]);
});
