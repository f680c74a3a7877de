// Odd values: what persisted JSON, a careless host or an attacker may put where the specification expects something else.
import fc from "fast-check";

// Everything that ECMAScript trims, and neighbours that it does not trim although other languages do or used to.
const SPACES = [..."\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"];
const MORE_SPACES = [..."\u2028\u2029\u202f\u205f\u3000\ufeff"];
const NOT_SPACES = [..."\u0085\u180e\u200b\u200c\u200d\u2060\u001c\u001f\u0001"];

const space = fc.constantFrom(...SPACES, ...MORE_SPACES);
const codeUnit = fc.nat(0xffff).map((unit) => String.fromCharCode(unit));

export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.string({ maxLength: 8 }) },
  { weight: 2, arbitrary: fc.string({ unit: codeUnit, maxLength: 6 }) },
  { weight: 2, arbitrary: fc.string({ unit: fc.constantFrom(...SPACES, ...MORE_SPACES, ...NOT_SPACES, "a"), maxLength: 5 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "",
      " ",
      "\0",
      "a\0",
      "\0a",
      "a\nb",
      "a\rb",
      "\na",
      "a\n",
      "\ud800",
      "\ud801",
      "\udc00",
      "x\ud83dy",
      "\ufffd",
      "é",
      "e\u0301",
      "__proto__",
      "constructor",
      "toString",
      "null",
      "undefined",
      "0",
      "createos",
      "Createos",
      'a"b\\c',
      "x".repeat(300),
    ),
  },
);

/** Text with white space, or almost white space, around it. */
export const paddedText: fc.Arbitrary<string> = fc
  .tuple(padding(), fc.oneof(oddText, fc.constantFrom("s-1vcpu-1gb", "key-1", "eu")), padding())
  .map((parts) => parts.join(""));

export function padding(): fc.Arbitrary<string> {
  const edge = fc.oneof({ weight: 4, arbitrary: space }, { weight: 1, arbitrary: fc.constantFrom(...NOT_SPACES) });
  return fc.oneof({ weight: 3, arbitrary: fc.constant("") }, { weight: 2, arbitrary: fc.string({ unit: edge, maxLength: 3 }) });
}

/** A value of any type, by a function, so that no two users share an object. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: paddedText },
  {
    weight: 4,
    arbitrary: fc.constantFrom<unknown>(
      undefined,
      null,
      true,
      false,
      0,
      -0,
      1,
      -1,
      1.5,
      59,
      60,
      61,
      600,
      86_399,
      86_400,
      86_401,
      86_400_000,
      86_400_001,
      2 ** 31,
      2 ** 32 + 1,
      2 ** 53,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.MIN_VALUE,
      1n,
      60n,
      Symbol("odd"),
    ),
  },
  { weight: 1, arbitrary: fc.integer() },
  { weight: 1, arbitrary: fc.double() },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom<() => unknown>(
        () => [],
        () => ["a"],
        () => [60],
        () => ({}),
        () => ({ length: 1, 0: "a" }),
        () => () => "a",
        () => new String("a"),
        () => new Number(60),
        () => new Boolean(true),
        () => new Date(60),
        () => new Map([["a", "b"]]),
        () => ({ toString: () => "a", valueOf: () => 60 }),
        () => Object.create(null),
      )
      .map((make) => make()),
  },
);

/** A proxy whose every trap throws `reason`, and a revoked one, which throws by itself. */
export function hostileProxies(reason: unknown): object[] {
  const throwing = new Proxy(
    {},
    {
      get() {
        return () => {
          throw reason;
        };
      },
    },
  ) as ProxyHandler<object>;
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  return [new Proxy({}, throwing), new Proxy([], throwing), revoked.proxy];
}

/** Most often `usual`, so that a test gets past the earlier checks; else `odd`. */
export function mostly<T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>, weight = 4): fc.Arbitrary<T | U> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd });
}
