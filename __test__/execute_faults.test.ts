// Whatever goes wrong while a command runs, it either comes to its own end or to the failure of its line, and nothing of it
// runs on that the driver does not tell of (specification, section 9).
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { Provider } from "./provider/index.mjs";
import { ENDS, SILENT, STAYS, TEXT, sh, type Place } from "./support/executes.js";
import { CLEANUPS, CREATIONS, INPUTS } from "./support/executes_endings.js";
import {
  CONNECT,
  DELETE,
  EVICTED,
  UNENDED,
  api,
  data,
  frame,
  on,
  play,
  status,
  streams,
  timedOut,
} from "./support/executes_faults.js";
import { BROKEN_FRAMES, HARMLESS_FRAMES } from "./support/executes_frames.js";
import { GATES, LOST_STREAMS, WAITS } from "./support/executes_streams.js";
import { lease } from "./support/package.js";
import { deferred, turn } from "./support/waiting.js";

// Most of the time each waits for the pause before a next try.
vi.setConfig({ maxConcurrency: 30 });

describe.concurrent("a stream that holds what it should not", () => {
  test.concurrent.for(BROKEN_FRAMES)("%s", (line, context) => play(line, context));
});

describe.concurrent("a stream that holds what is passed over", () => {
  test.concurrent.for(HARMLESS_FRAMES)("%s", (line, context) => play(line, context));
});

describe.concurrent("a lost stream", () => {
  test.concurrent.for(LOST_STREAMS)("%s", (line, context) => play(line, context));

  test.concurrent("a journal that keeps too little has lost something", (context) =>
    play(["", STAYS, [], EVICTED, { connect: 1, delete: 1 }], context, { provider: { journalBytes: 4 } }),
  );

  test.concurrent("a journal that keeps too little may say so with HTTP 410", (context) => {
    const first = { type: "cutBody" as const, after: data(1, "a").length + 1 };
    const command = sh(`printf a; until [ -e b ]; do sleep 0.01; done; printf ${TEXT}; exec sleep 1000`);
    const rules = ({ provider, id }: Place) => [
      on(CONNECT, first, { times: 1 }),
      on(CONNECT, { type: "call", run: () => written(provider, id, 4) }, { skip: 1 }),
    ];
    return play(["", command, rules, EVICTED, { connect: 2, wait: 0, delete: 1 }], context, {
      provider: { journalBytes: 4 },
      onOutput: (at) => step(at, "b"),
    });
  });

  test.concurrent("heartbeats and nothing else are ended by the deadline", (context) =>
    play(["", { ...SILENT, timeoutMs: 2000 }, [], timedOut(""), { connect: 1, wait: 0, delete: 1 }], context, {
      provider: { heartbeatMs: 10 },
    }),
  );

  test.concurrent("silence is ended by the deadline, and what came before it is kept", (context) =>
    play(["", { ...STAYS, timeoutMs: 2000 }, [], timedOut(TEXT), { connect: 1, wait: 0, delete: 1 }], context),
  );
});

describe.concurrent("a sandbox that is gone takes the command with it", () => {
  const goes = ({ provider, id }: Place) => [
    frame("eof", 3),
    on(CONNECT, [{ type: "guestDelete" }, { type: "call", run: () => provider.waitForState(id, "destroyed") }], { skip: 1 }),
  ];

  test.concurrent("where it is not known any more", (context) =>
    play(["", STAYS, goes, api(404, "output connection"), { wait: 0, delete: 1 }], context, {
      provider: { switches: { destroyedIs404: true } },
    }),
  );

  // HTTP 409 is no proof: only an answer about the process, or that there is none, is.
  test.concurrent("where it only does not run", (context) => play(["", STAYS, goes, UNENDED, { wait: 0, delete: 3 }], context));
});

describe.concurrent("the wait for an exit that no stream tells of", () => {
  test.concurrent.for(WAITS)("%s", (line, context) => play(line, context));
});

describe.concurrent("the end of the process's own input, which lets the command begin", () => {
  test.concurrent.for(GATES)("%s", (line, context) => play(line, context));
});

describe.concurrent("the end of the process tree", () => {
  test.concurrent.for(CLEANUPS)("%s", (line, context) => play(line, context));
});

describe.concurrent("the creation of the process", () => {
  test.concurrent.for(CREATIONS)("%s", (line, context) => play(line, context));
});

describe.concurrent("the upload of the command's input", () => {
  test.concurrent.for(INPUTS)("%s", (line, context) => play(line, context));
});

/** Resolves once a command has written so many pieces. */
async function written(provider: Provider, id: string, pieces: number): Promise<void> {
  while ((provider.processes(id)[0]?.output.newest_seq ?? 0) < pieces) await turn();
}

/** Prints a letter, and each further one only once the file of its name is there; goes on until it is ended. */
const STEPS = sh("printf a; for step in b c d; do until [ -e $step ]; do sleep 0.01; done; printf $step; done; exec sleep 1000");

/** Lets such a command print further letters. */
function step({ provider, id }: Place, letters: string): void {
  const folder = path.join(provider.sandbox(id)?.directory ?? "", "paperclip-workspace");
  for (const letter of letters) writeFileSync(path.join(folder, letter), "");
}

const ERROR = new Error("the caller's own");
/** Failures that would be passed over if they came from a stream. */
const BROKEN = new TypeError("terminated");
const REFUSED = new lease.CreateosApiError(503);
const fails = (reason: unknown) => () => {
  throw reason;
};

/** What a caller's function does to make the command fail, and what the command has to fail with. */
const FAULTY: [name: string, act: () => unknown, reason: unknown][] = [
  ["throws an error", fails(ERROR), ERROR],
  ["throws a text", fails("own"), "own"],
  ["throws nothing", fails(undefined), undefined],
  ["throws what looks like a broken connection", fails(BROKEN), BROKEN],
  ["rejects with an error", () => Promise.reject(ERROR), ERROR],
  ["rejects with nothing", () => Promise.reject(), undefined],
  ["rejects with an answer of the provider", () => Promise.reject(REFUSED), REFUSED],
  ["rejects later", () => new Promise((_resolve, reject) => setImmediate(reject, ERROR)), ERROR],
  // oxlint-disable-next-line unicorn/no-thenable
  ["gives a thenable that rejects", () => ({ then: (_: unknown, reject: (reason: unknown) => void) => reject(ERROR) }), ERROR],
];

describe.concurrent.each([
  ["first", 1],
  ["middle", 2],
  ["last", 4],
])("onOutput at the %s piece", (_name, place) => {
  test.concurrent.for(FAULTY)("%s", async ([_what, act, reason], context) => {
    let calls = 0;
    await play(["", STEPS, [], { reason }, { connect: 1, wait: 0, delete: 1 }], context, {
      onOutput(at) {
        calls += 1;
        if (calls === place) return act();
        return step(at, "abcd"[calls] ?? "");
      },
    });
    expect(calls).toBe(place);
  });
});

describe.concurrent("onOutput", () => {
  test.concurrent("fails once the command has ended", (context) =>
    play(["", ENDS, [], { reason: ERROR }, { connect: 1, wait: 0 }], context, { onOutput: fails(ERROR) }),
  );

  test.concurrent("fails while the output is taken up again", async (context) => {
    const lost = deferred();
    await play(["", STAYS, [frame("eof", 2, { times: 1 }), on(CONNECT, { type: "call", run: () => lost.resolve() }, { skip: 1 })], { reason: ERROR }, { wait: 0 }], context, {
      onOutput: async () => {
        await lost.promise;
        throw ERROR;
      },
    });
  });

  test.concurrent("fails, and so does the end of the process", (context) =>
    play(["", STAYS, [on(DELETE, status(500))], UNENDED, { delete: 3 }], context, { onOutput: fails(ERROR) }),
  );

  test.concurrent("gives a promise that the command waits for", async (context) => {
    const pieces: string[] = [];
    let pending = 0;
    await play(["", sh("for letter in a b c d; do printf $letter; sleep 0.02; done; exit 3"), [], { result: { exitCode: 3, stdout: "abcd" } }, streams(1)], context, {
      async onOutput(_at, _stream, text) {
        pending += 1;
        expect(pending).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 30));
        pieces.push(text);
        pending -= 1;
      },
    });
    expect(pieces.join("")).toBe("abcd");
  });
});
