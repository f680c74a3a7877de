// The same as resume_abort.test.ts, where the answer still comes after the abort: a resume that has been given up does
// not go on with it, and does not take it for its own outcome either (specification, section 8).
import { describe, expect, test } from "vitest";
import { looseDriver } from "./support/package.js";
import { provide } from "./support/providers.js";
import { ENDS, play, SCENES } from "./support/resume_abort.js";
import { commandMarker, persist, resume, sleeping, startProcess, type OneEffect } from "./support/resumes.js";
import { rejection, within } from "./support/waiting.js";

describe.each(SCENES)("$name", (scene) => {
  test.concurrent.for(ENDS)("$name", async (end, context) => {
    await play(scene, end, "late", context);
  });
});

describe("whatever the late answer says, the reason is the abort's", () => {
  const status = (code: number): OneEffect => ({ type: "status", status: code });
  const cases: [string, OneEffect][] = [
    ["sandbox.get", status(404)],
    ["sandbox.get", status(500)],
    ["sandbox.get", { type: "patch", set: { status: "destroyed" } }],
    ["egress.put", status(400)],
    ["egress.put", status(404)],
    ["egress.put", status(409)],
    ["exec", status(404)],
    ["exec", status(409)],
    ["exec", { type: "patch", set: { result: { exit_code: 0, stdout: "another" } } }],
    ["process.list", status(404)],
    ["process.list", status(500)],
    ["process.list", { type: "lostReply" }],
    ["process.delete", status(500)],
    ["process.delete", { type: "treeAlive" }],
  ];
  test.concurrent.for(cases)("%s: %j", async ([route, effect], context) => {
    const provider = await provide({}, context);
    const kept = await persist(provider, { state: "running" });
    await startProcess(kept, sleeping(commandMarker()));
    const rule = provider.faults.add({ match: { path: route }, times: 1, effect: [{ type: "hold" as const }, effect] });
    const driver = looseDriver();
    const controller = new AbortController();
    const resumed = resume(kept.params(), driver, { signal: controller.signal });
    await within(rule.hit);
    const own = new Error("the caller's own");
    controller.abort(own);
    rule.release();
    expect(await rejection(resumed)).toBe(own);
    expect(driver.leaseState(kept.params(), kept.id)).toBe("open");
    expect(provider.sandbox(kept.id)?.status).toBe("running");
  });
});
