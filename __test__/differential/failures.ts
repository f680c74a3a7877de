// Rejection reasons and results with which `work` may end, described as data, so that both worlds can make their own.
import fc from "fast-check";
import { mostly } from "./arbitraries.js";
import type { Subject } from "./subject.js";

/** A class that a plugin's bundle brings along; only its constructor's name tells what it is. */
const Foreign = { CreateosCleanupError: class CreateosCleanupError extends Error {} }.CreateosCleanupError;
class DerivedForeign extends Foreign {}
/** A class whose name a bundler has changed; a driver knows it only when it was told. */
export class Renamed extends Error {}

const LEAVES = {
  ours: (subject: Subject) => new subject.CreateosCleanupError("left behind"),
  code: () => Object.assign(new Error("coded"), { code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }),
  codeOnly: () => ({ code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }),
  inheritedCode: () => Object.create({ code: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }),
  codeByGetter: () => Object.defineProperty(new Error("g"), "code", { get: () => "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }),
  foreign: () => new Foreign("foreign"),
  derivedForeign: () => new DerivedForeign("derived"),
  renamed: () => new Renamed("renamed"),
  // From here on nothing is a clean-up failure.
  api: (subject: Subject) => new subject.CreateosApiError(500, "process cleanup"),
  plain: () => new Error("plain"),
  nameOnly: () => Object.assign(new Error("named"), { name: "CreateosCleanupError" }),
  otherCode: () => Object.assign(new Error("other"), { code: "ERR_CREATEOS_CLEANUP" }),
  messageOnly: () => new Error("CreateOS process cleanup is unconfirmed."),
  errorsOnly: (subject: Subject) => ({ errors: [new subject.CreateosCleanupError("hidden")] }),
  causeOfNothing: () => Object.assign(new Error("caused"), { cause: "ERR_CREATEOS_CLEANUP_UNCONFIRMED" }),
  throwing: () => {
    const get = () => {
      throw new Error("getter");
    };
    return Object.defineProperties(new Error("thrower"), { code: { get }, cause: { get }, constructor: { get } });
  },
  frozen: () => Object.freeze(new Error("frozen")),
  string: () => "ERR_CREATEOS_CLEANUP_UNCONFIRMED",
  undefined: () => undefined,
  null: () => null,
  symbol: () => Symbol.for("reason"),
} satisfies Record<string, (subject: Subject) => unknown>;

const WRAPPERS = {
  cause: (inner: unknown) => new Error("wrapped", { cause: inner }),
  plainCause: (inner: unknown) => ({ cause: inner }),
  inheritedCause: (inner: unknown) => Object.create({ cause: inner }),
  causeByGetter: (inner: unknown) => Object.defineProperty(new Error("lazy"), "cause", { get: () => inner }),
  aggregate: (inner: unknown) => new AggregateError([new Error("first"), inner, "third"]),
  aggregateWithCause: (inner: unknown) => new AggregateError([new Error("only")], "with cause", { cause: inner }),
  cycle: (inner: unknown) => {
    const aggregate = new AggregateError([inner]);
    aggregate.errors.unshift(aggregate);
    return Object.assign(aggregate, { cause: aggregate });
  },
  throwingBeside: (inner: unknown) => {
    const get = () => {
      throw new Error("getter");
    };
    return Object.defineProperties(new AggregateError([inner]), { code: { get }, cause: { get } });
  },
} satisfies Record<string, (inner: unknown) => unknown>;

export interface Failure {
  leaf: keyof typeof LEAVES;
  wrappers: (keyof typeof WRAPPERS)[];
}

export const failure: fc.Arbitrary<Failure> = fc.record({
  leaf: fc.constantFrom(...(Object.keys(LEAVES) as (keyof typeof LEAVES)[])),
  wrappers: mostly(
    fc.constant<(keyof typeof WRAPPERS)[]>([]),
    fc.array(fc.constantFrom(...(Object.keys(WRAPPERS) as (keyof typeof WRAPPERS)[])), { minLength: 1, maxLength: 10, size: "max" }),
    1,
  ),
});

export function makeFailure(subject: Subject, { leaf, wrappers }: Failure): unknown {
  const make: (subject: Subject) => unknown = LEAVES[leaf];
  return wrappers.reduce<unknown>((inner, wrapper) => WRAPPERS[wrapper](inner), make(subject));
}

const VALUES = {
  undefined: () => undefined,
  null: () => null,
  string: () => "value",
  nan: () => Number.NaN,
  minusZero: () => -0,
  bigint: () => 1n,
  symbol: () => Symbol.for("value"),
  object: () => ({ value: 1 }),
  frozen: () => Object.freeze({ value: 2 }),
  array: () => [1, 2],
  function: () => () => 1,
  error: () => new Error("as a value"),
  noPrototype: () => Object.create(null),
} satisfies Record<string, () => unknown>;

export type Value = keyof typeof VALUES;

export const value: fc.Arbitrary<Value> = fc.constantFrom(...(Object.keys(VALUES) as Value[]));

export function makeValue(name: Value): unknown {
  return VALUES[name]();
}
