// Properties of sections 4 and 5: the same commands in the same order leave both implementations in the same state, after
// each single step. A history is data; `World` is one implementation going through it against a provider of its own.
import fc from "fast-check";
import { mostly } from "./arbitraries.js";
import { requireEqual } from "./describe.js";
import { failure, value } from "./failures.js";
import { type Course, CountingProvider, type Reply } from "./provider.js";
import { reference, type Subject } from "./subject.js";
import { type Command, LEASES, type Place, type Simple, World } from "./world.js";

const place: fc.Arbitrary<Place> = fc.record({
  driver: mostly(fc.constant(0), fc.constant(1)),
  company: mostly(fc.constant(0), fc.constant(1)),
  key: mostly(fc.constant(0), fc.constant(1), 2),
  lease: mostly(fc.constant(0), fc.nat(LEASES.length - 1), 2),
});

const release = fc.record({
  type: fc.constant("release" as const),
  place,
  mode: fc.constantFrom("reuse", "reuse", "disposable", "autoPause", "autoPauseDiffers", "autoPauseMissing"),
  by: mostly(fc.constant("release" as const), fc.constantFrom("releaseDestroying" as const, "destroy" as const), 1),
  flaw: mostly(fc.constant(null), fc.constantFrom("foreign", "noId", "oddId", "noObject"), 12),
});

const shutdown = fc.record({ type: fc.constant("shutdown" as const), driver: fc.constantFrom(0, 1) });

const settling = fc.oneof(
  fc.record({ ok: value, through: mostly(fc.constant("value" as const), fc.constant("thenable" as const)) }),
  fc.record({ failure }),
);

const innerTrack = fc.record({
  type: fc.constant("track" as const),
  place,
  work: fc.record({ kind: fc.constantFrom("held" as const, "value" as const), settling, inner: fc.constant(null), onAbort: fc.constant(null) }),
  options: fc.constant("none" as const),
  flaw: fc.constant(null),
});

const inner: fc.Arbitrary<Simple> = fc.oneof(
  { weight: 4, arbitrary: innerTrack },
  { weight: 4, arbitrary: release },
  { weight: 1, arbitrary: shutdown },
);

const track = fc.record({
  type: fc.constant("track" as const),
  place,
  work: fc.record({
    kind: mostly(fc.constant("held" as const), fc.constantFrom("value", "throw", "thenable", "throwingThen"), 3),
    settling,
    inner: mostly(fc.constant(null), inner, 6),
    onAbort: mostly(fc.constant(null), fc.oneof(fc.constant("settle" as const), fc.constant("settle" as const), inner), 1),
  }),
  options: mostly(
    fc.constant("none" as const),
    fc.constantFrom("number", "object", "signal", "signal", "sharedSignal", "aborted", "badTimeout", "badSignal", "array"),
    1,
  ),
  flaw: mostly(fc.constant(null), fc.constantFrom("foreign", "noWork", "noLease"), 12),
});

const simple: fc.Arbitrary<Simple> = fc.oneof(
  { weight: 12, arbitrary: track },
  { weight: 10, arbitrary: fc.record({ type: fc.constant("settle" as const), call: fc.nat(20), settling }) },
  { weight: 8, arbitrary: release },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("abort" as const), call: fc.nat(20), reason: mostly(fc.constant(null), failure) }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("gate" as const), lease: fc.nat(LEASES.length - 1), closed: fc.boolean() }),
  },
  { weight: 1, arbitrary: shutdown },
);

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: simple },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("sameTick" as const), commands: fc.array(simple, { minLength: 2, maxLength: 4 }) }) },
);

const FAULTS: Reply[] = [400, 401, 403, 404, 409, 410, 500, 502, 503, "cut", "cutBody", "html", "fail", "nullData", "redirect"];
const READ_FAULTS: Reply[] = [...FAULTS, "wrongId", "noStatus"];

const faults = (kinds: Reply[]) =>
  mostly(fc.constant<Reply[]>([]), fc.array(mostly(fc.constant<Reply>("ok"), fc.constantFrom(...kinds), 1), { maxLength: 3 }), 1);

const course: fc.Arbitrary<Course> = fc.record({
  initial: mostly(fc.constant("running" as const), fc.constantFrom("paused", "creating", "error", "failed")),
  oldReads: mostly(fc.constant(0), fc.nat(2)),
  passingReads: mostly(fc.constant(0), fc.nat(2)),
  gone: fc.constantFrom(404 as const, "destroyed" as const),
  deletes: faults(FAULTS),
  reads: faults(READ_FAULTS),
  // 409 is the answer that a pause treats in a way of its own.
  pauses: faults([...FAULTS, 409, 409, 409, 409]),
});

export interface History {
  courses: Course[];
  commands: Command[];
}

export const history: fc.Arbitrary<History> = fc.record({
  courses: fc.array(course, { minLength: LEASES.length, maxLength: LEASES.length }),
  commands: fc.array(command, { minLength: 1, maxLength: 24, size: "max" }),
});

/** `quietWithinMs` is how long a step may take before it counts as hanging. */
export function histories(subject: Subject, quietWithinMs = 5_000): fc.IAsyncPropertyWithHooks<[History]> {
  return fc.asyncProperty(history, ({ courses, commands }) => compare(subject, courses, commands, quietWithinMs));
}

async function compare(subject: Subject, courses: Course[], commands: Command[], limitMs: number): Promise<void> {
  const expected = await open(reference, courses, limitMs);
  const actual = await open(subject, courses, limitMs);
  try {
    for (const [index, step] of commands.entries()) {
      // Both worlds work at the same time, for most of a step is waiting for a provider.
      const resolved = expected.resolve(step);
      expected.run(resolved);
      actual.run(resolved);
      await expected.quiet();
      await actual.quiet(expected);
      requireEqual(actual.takeStep(), expected.takeStep(), `Step ${index + 1} (${JSON.stringify(step)})`);
    }
    expected.end();
    actual.end();
    await expected.quiet();
    await actual.quiet(expected);
    requireEqual(actual.takeStep(), expected.takeStep(), "The end");
  } finally {
    expected.close();
    actual.close();
  }
}

async function open(subject: Subject, courses: Course[], limitMs: number): Promise<World> {
  const provider = new CountingProvider(new Map(LEASES.map((id, index) => [id, courses[index] as Course])));
  return new World(subject, provider, await provider.start(), limitMs);
}
