// Section 6: an id must match [A-Za-z0-9_-]{1,200}; anything else is refused without a request.
import { describe, expect, test } from "vitest";
import { expectResponseError } from "./support/http_errors.js";
import { clientOf, type Client } from "./support/http_package.js";
import { answer, reasonOf, serve } from "./support/http_server.js";

const INVALID = "CreateOS returned an invalid resource ID.";

const ILLEGAL: [string, unknown][] = [
  ["empty", ""],
  ["201 characters", "a".repeat(201)],
  ["a slash", "sb/1"],
  ["dots", ".."],
  ["an encoded slash", "sb%2F1"],
  ["a query", "sb?x=1"],
  ["a fragment", "sb#1"],
  ["a blank", "sb 1"],
  ["a blank before it", " sb-1"],
  ["a line break after it", "sb-1\n"],
  ["NUL", "sb-1\0"],
  ["a letter that is not ASCII", "sb-é"],
  ["a full-width digit", "sb-１"],
  ["a lone surrogate", "sb-\ud800"],
  ["undefined", undefined],
  ["null", null],
  ["a number", 1],
  ["an array", ["sb-1"]],
  ["an object that prints as an id", { toString: () => "sb-1" }],
];

const OPERATIONS: [string, (client: Client, id: string) => Promise<unknown>][] = [
  ["getSandbox", (client, id) => client.getSandbox(id)],
  ["destroySandbox", (client, id) => client.destroySandbox(id)],
  ["transition", (client, id) => client.transition(id, "running")],
  ["setEgress", (client, id) => client.setEgress(id, [])],
  ["upload", (client, id) => client.upload(id, "/tmp/x", "x")],
];

describe.each(OPERATIONS)("%s", (_, operate) => {
  test.each(ILLEGAL)("refuses an id with %s, without a request", async (_, id) => {
    const server = await serve((_, res) => answer(res));
    const error = await reasonOf(operate(clientOf(server.origin), id as string));
    expectResponseError(error, INVALID);
    expect(server.connections.length).toBe(0);
  });
});

test.each([["one character", "a"], ["200 characters", "Z".repeat(200)], ["every legal kind", "aZ09_-"]])(
  "%s is a legal id, and is sent as it is",
  async (_, id) => {
    const server = await serve((_, res) => answer(res, { id, status: "running" }));
    await expect(clientOf(server.origin).getSandbox(id)).resolves.toEqual({ id, status: "running" });
    expect(server.requests.all.map(({ method, url }) => `${method} ${url}`)).toEqual([`GET /v1/sandboxes/${id}`]);
  },
);

test.each([["too long", "x".repeat(201)], ["with a slash", "../x"], ["empty", ""], ["a number", 7], ["absent", undefined]])(
  "a created sandbox whose id is %s is refused",
  async (_, id) => {
    const server = await serve((_, res) => answer(res, { id }));
    expectResponseError(await reasonOf(clientOf(server.origin).createSandbox()), INVALID);
  },
);

test("the check fails in the calling tick: the stack shows who called", async () => {
  const server = await serve((_, res) => answer(res));
  const client = clientOf(server.origin);
  function theCallerOfTheClient() {
    return client.getSandbox("not/an/id");
  }
  const error = (await reasonOf(theCallerOfTheClient())) as Error;
  expect(error.stack).toContain("theCallerOfTheClient");
});

describe("getSandbox", () => {
  test.each<[string, unknown]>([
    ["another id", { id: "sb-2", status: "running" }],
    ["an id in other case", { id: "SB-1", status: "running" }],
    ["no id", { status: "running" }],
    ["a null id", { id: null, status: "running" }],
    ["an id that is an array", { id: ["sb-1"], status: "running" }],
    ["no status", { id: "sb-1" }],
    ["a null status", { id: "sb-1", status: null }],
    ["a status that is a number", { id: "sb-1", status: 1 }],
    ["a status that is an object", { id: "sb-1", status: {} }],
  ])("refuses an answer with %s", async (_, data) => {
    const server = await serve((_, res) => answer(res, data));
    const error = await reasonOf(clientOf(server.origin).getSandbox("sb-1"));
    expectResponseError(error, "CreateOS sandbox identity or state is invalid.");
  });

  test("keeps a status that nobody knows", async () => {
    const server = await serve((_, res) => answer(res, { id: "sb-1", status: "Hibernating ☃" }));
    const found = await clientOf(server.origin).getSandbox("sb-1");
    expect(found).toEqual({ id: "sb-1", status: "Hibernating ☃" });
  });
});
