// Properties of section 3: which leases belong to the caller, in which order that is found out, and that guards never throw.
import fc from "fast-check";
import { hostileProxies, mostly, oddText, oddValue } from "./arbitraries.js";
import { rawConfig } from "./configurations.js";
import { type Description, describeValue, eventual, Labels, outcome, requireEqual } from "./describe.js";
import { reference, type Subject } from "./subject.js";

/** A release is kept from the network by a lease that its provider pauses by itself. */
const WARM = { apiUrl: "https://127.0.0.1:9", shape: "s", apiKey: "k", reuseLease: true, autoPauseAfterSeconds: 60 };

// Few different ids, so that both sides are often equal, and pairs that only a strict comparison tells apart.
const someId = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("c1", "c2", "C1", " c1", "\ud800", "\ud801", "\ufffd", "é", "e\u0301", "1", "__proto__", "a\0b") },
  { weight: 1, arbitrary: oddText },
  { weight: 1, arbitrary: oddValue },
  { weight: 1, arbitrary: fc.constant(1) },
);

interface Case {
  lease: Record<string, unknown>;
  params: Record<string, unknown>;
  config: unknown;
  /** Values that take the place of a whole object, by name. */
  replaced: Record<string, unknown>;
  /** Fields whose getter throws, as "object.field". */
  throwing: string[];
  inherited: boolean;
  options: unknown;
}

const FIELDS = {
  params: ["lease", "providerLeaseId", "leaseMetadata", "companyId", "environmentId", "config"],
  lease: ["providerLeaseId", "metadata"],
  metadata: ["provider", "companyId", "environmentId", "apiUrl", "autoPauseAfterSeconds"],
  config: ["apiUrl", "shape", "timeoutMs", "reuseLease", "autoPauseAfterSeconds", "apiKey", "region"],
  options: ["timeoutMs", "signal"],
};

const allFields = Object.entries(FIELDS).flatMap(([owner, fields]) => fields.map((field) => `${owner}.${field}`));

const ownedCase: fc.Arbitrary<Case> = fc
  .record({
    ids: fc.tuple(mostly(fc.constantFrom("c1", "\ud800"), someId), mostly(fc.constantFrom("e1", "\ud801"), someId)),
    differing: mostly(fc.constant<Record<string, unknown>>({}), fc.record({ companyId: someId, environmentId: someId, provider: someId, apiUrl: someId }, { requiredKeys: [] }), 2),
    providerLeaseId: mostly(fc.constantFrom("sb-1", "\ud800"), someId, 6),
    config: mostly(fc.constant<unknown>(WARM), mostly(rawConfig, oddValue, 4), 3),
    replaced: mostly(
      fc.constant<Record<string, unknown>>({}),
      fc.record({ params: oddValue, lease: oddValue, metadata: oddValue }, { requiredKeys: [] }),
      8,
    ),
    throwing: mostly(fc.constant<string[]>([]), fc.subarray(allFields, { minLength: 1, maxLength: 2 }), 2),
    inherited: mostly(fc.constant(false), fc.constant(true)),
    options: fc.oneof(
      fc.constantFrom<unknown>(undefined, null, 5_000, 0, {}, { timeoutMs: 1_000 }, { timeoutMs: null, signal: null }),
      fc.record({ timeoutMs: oddValue, signal: mostly(fc.constant(undefined), oddValue) }, { requiredKeys: [] }),
      oddValue,
    ),
  })
  .map(({ ids: [companyId, environmentId], differing, providerLeaseId, config, replaced, throwing, inherited, options }) => {
    const apiUrl = outcomeOrigin(config);
    const metadata = { provider: "createos", companyId, environmentId, apiUrl, autoPauseAfterSeconds: 60, ...differing };
    return {
      lease: { providerLeaseId, metadata },
      params: { companyId, environmentId },
      config,
      replaced,
      throwing,
      inherited,
      options,
    };
  });

function outcomeOrigin(config: unknown): unknown {
  try {
    return (reference.parseConfig(config) as { apiUrl: string }).apiUrl;
  } catch {
    return "https://127.0.0.1:9";
  }
}

/** Parameter objects made anew for one implementation, each read of a known field recorded. */
class Observed {
  readonly reads: string[] = [];
  readonly labels = new Labels();
  readonly #of: Case;

  constructor(of: Case) {
    this.#of = of;
  }

  params(): unknown {
    const { lease, params, config } = this.#of;
    const metadata = this.#object("metadata", lease.metadata);
    return this.#object("params", {
      ...params,
      config: this.#object("config", config),
      lease: this.#object("lease", { providerLeaseId: lease.providerLeaseId, metadata }),
      providerLeaseId: lease.providerLeaseId,
      leaseMetadata: metadata,
    });
  }

  lease(): unknown {
    const { lease } = this.#of;
    return this.#object("lease", {
      providerLeaseId: lease.providerLeaseId,
      metadata: this.#object("metadata", lease.metadata),
    });
  }

  options(): unknown {
    return this.#object("options", this.#of.options);
  }

  #object(name: keyof typeof FIELDS, value: unknown): unknown {
    if (Object.hasOwn(this.#of.replaced, name)) return this.#of.replaced[name];
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
    const getters = FIELDS[name].map((field): [string, PropertyDescriptor] => {
      const path = `${name}.${field}`;
      const get = () => {
        this.reads.push(path);
        if (this.#of.throwing.includes(path)) throw this.labels.add(new RangeError(path), path);
        return (value as Record<string, unknown>)[field];
      };
      return [field, { get, enumerable: true }];
    });
    // Adapters and hosts are no fields that the specification orders, so they stay as they are.
    const rest = Object.getOwnPropertyDescriptors(value) as PropertyDescriptorMap;
    const observed = Object.defineProperties({}, { ...rest, ...Object.fromEntries(getters) });
    return this.#of.inherited ? Object.create(observed) : observed;
  }
}

/** The checks of track up to the call of `work`, and what is read on the way. */
export function trackChecks(subject: Subject): fc.IAsyncPropertyWithHooks<[Case, unknown]> {
  return fc.asyncProperty(ownedCase, mostly(fc.constant<unknown>("work"), oddValue, 6), async (one, work) => {
    const drive = async (implementation: Subject): Promise<Description> => {
      const observed = new Observed(one);
      const result = observed.labels.add({}, "result");
      const driver = new implementation.LeaseDriver();
      const came = await eventual(
        implementation,
        () => driver.track(observed.params(), work === "work" ? async () => result : work, observed.options()),
        (value) => describeValue(value, observed.labels),
        observed.labels,
      );
      return [came, observed.reads];
    };
    requireEqual(await drive(subject), await drive(reference), "track");
  });
}

/** The checks of release; nothing reaches a provider, since the only leases that pass are left warm. */
export function releaseChecks(subject: Subject): fc.IAsyncPropertyWithHooks<[Case, unknown]> {
  return fc.asyncProperty(ownedCase, fc.constantFrom<unknown>(null, undefined, "", "sb-1", 1, {}), async (one, oddId) => {
    const id = one.options === undefined ? oddId : one.lease.providerLeaseId;
    const metadata = { ...(one.lease.metadata as object), autoPauseAfterSeconds: 60 };
    const quiet = { ...one, config: one.config === WARM || !parses(one.config) ? one.config : WARM, lease: { providerLeaseId: id, metadata } };
    const drive = async (implementation: Subject): Promise<Description> => {
      const observed = new Observed(quiet);
      const driver = new implementation.LeaseDriver();
      const came = await eventual(implementation, () => driver.release(observed.params()), describeValue, observed.labels);
      return [came, observed.reads];
    };
    requireEqual(await drive(subject), await drive(reference), "release");
  });
}

function parses(config: unknown): boolean {
  try {
    reference.parseConfig(config);
    return true;
  } catch {
    return false;
  }
}

export function guards(subject: Subject): fc.IPropertyWithHooks<[Case, unknown]> {
  const apiUrl = fc.oneof(fc.constantFrom<unknown>(undefined, null, WARM.apiUrl, `${WARM.apiUrl}/`), oddText);
  return fc.property(ownedCase, apiUrl, (one, origin) => {
    const drive = (implementation: Subject): Description => {
      const params = () => new Observed(one).params();
      return {
        usable: outcome(implementation, () => implementation.isUsableCreateosLease(new Observed(one).lease())),
        canUse: outcome(implementation, () => implementation.canUseLease(new Observed(one).lease(), params())),
        canUseAt: outcome(implementation, () => implementation.canUseLease(new Observed(one).lease(), params(), origin)),
        canRelease: outcome(implementation, () => implementation.canRelease(params())),
        canReleaseAt: outcome(implementation, () => implementation.canRelease(params(), origin)),
        explained: outcome(implementation, () => implementation.explainLease(params()), explanation(one.throwing.length === 0)),
      };
    };
    requireEqual(drive(subject), drive(reference), "the guards");
  });
}

/** Guards answer for objects that throw at every touch, wherever such an object stands. */
export function hostileGuards(subject: Subject): fc.IPropertyWithHooks<[number, string]> {
  const places = ["params", "lease", "metadata", "config"];
  return fc.property(fc.nat(2), fc.constantFrom(...places), (kind, place) => {
    const drive = (implementation: Subject): Description => {
      const hostile = hostileProxies(new Error("hostile"))[kind];
      const at = (name: string, value: unknown) => (name === place ? hostile : value);
      const ids = { companyId: "c1", environmentId: "e1" };
      const metadata = at("metadata", { provider: "createos", ...ids, apiUrl: WARM.apiUrl });
      const lease = at("lease", { providerLeaseId: "sb-1", metadata });
      const params = at("params", { ...ids, config: at("config", WARM), lease, providerLeaseId: "sb-1", leaseMetadata: metadata });
      return [
        outcome(implementation, () => implementation.isUsableCreateosLease(lease)),
        outcome(implementation, () => implementation.canUseLease(lease, params)),
        outcome(implementation, () => implementation.canRelease(params)),
        outcome(implementation, () => implementation.explainLease(params), explanation(false)),
      ];
    };
    const actual = drive(subject);
    requireEqual(actual, drive(reference), "a guard");
    for (const one of actual as object[]) if ("threw" in one) throw new Error("A guard threw.");
  });
}

// Which fields are listed and why is specified; how a value is shown to a person is left to the implementation, and so is
// what it says about a configuration that throws when it is read.
function explanation(readable: boolean): (value: unknown) => Description {
  return (value) => {
    const { usable, mismatches, config } = value as { usable: boolean; mismatches: { field: string }[]; config?: string };
    return { usable, fields: mismatches.map(({ field }) => field), config: readable ? config : config !== undefined };
  };
}
