// Properties of section 2: parseConfig, resolveApiKey and scopeKey agree with the reference on every input.
import fc from "fast-check";
import { mostly, oddText, oddValue, paddedText, padding } from "./arbitraries.js";
import { type Description, outcome, requireEqual } from "./describe.js";
import { reference, type Subject } from "./subject.js";

const SCHEMES = ["https:", "http:", "HTTPS:", "hTTp:", "ftp:", "file:", "ws:", "wss:", "blob:", "javascript:", "https", "", "x:"];
const SLASHES = ["//", "/", "", "\\\\", "///", "/\\", "// "];
const USERINFO = ["", "@", ":@", "u@", "u:p@", ":p@", "a@b@", "%40@", "u%00@"];
const HOSTS = [
  "localhost",
  "LOCALHOST",
  "localhost.",
  "sub.localhost",
  "127.0.0.1",
  "127.0.0.1.",
  "127.1",
  "127.0.1",
  "127.0.0.2",
  "0x7f.1",
  "0x7F000001",
  "0177.0.0.1",
  "2130706433",
  "127.0.0.256",
  "4294967296",
  "1.2.3.4.5",
  "0x",
  "0x.0x",
  "08.1",
  "1.2.3.x",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[0000::0001]",
  "[::ffff:127.0.0.1]",
  "[::127.0.0.1]",
  "[::]",
  "[::1%25eth0]",
  "[::1",
  "::1",
  "[v1.x]",
  "api.sb.createos.sh",
  "API.sb.CreateOS.sh",
  "api.sb.createos.sh.",
  "api.sb.createos.sh..",
  "bücher.example",
  "BÜCHER.example",
  "xn--bcher-kva.example",
  "xn--a",
  "xn--",
  "faß.example",
  "ｌｏｃａｌｈｏｓｔ",
  "１２７.0.0.1",
  "127。0。0。1",
  "localhost\u3002",
  "local\u00adhost",
  "loc%61lhost",
  "%6cocalhost",
  "a%00b",
  "a%2fb",
  "a%zz",
  "ex ample",
  "a\0b",
  "a<b",
  "a^b",
  "a|b",
  "a_b",
  "a..b",
  "-a-.example",
  "☕.example",
  "日本語.example",
  "מבחן.example",
  "a\u200db.example",
  "\ud800.example",
  "",
  ".",
  "..",
  "*",
  "a,b",
  "x".repeat(63),
  "x".repeat(64),
  `${"x".repeat(60)}.`.repeat(5),
];
const PORTS = ["", "", ":", ":443", ":80", ":0", ":0443", ":8443", ":65535", ":65536", ":x", ":-1", ":+1", ": 1", ":8080a"];
const PATHS = [
  "",
  "",
  "/",
  "/v1",
  "/v1/",
  "/V1",
  "/v2",
  "//",
  "/v1//",
  "/./v1",
  "/x/../v1",
  "/%76%31",
  "/%2e/v1",
  "/v1/.",
  "/v1/..",
  "/v1/%2e%2E",
  "\\v1",
  "/v1\\",
  "/ v1",
  "/v1 ",
  "/v1/sandboxes",
  "/v1;",
];
const QUERIES = ["", "", "?", "?a=1", "? ", "?#"];
const FRAGMENTS = ["", "", "#", "#a", "# ", "#?"];

// Hosts outside ASCII keep to letters that every version of Unicode and of the IDNA tables sees alike: the tables of a
// Node version and those of the package differ in age, and Node 20's do not apply the bidirectional rule.
const stableLetter = fc.oneof(
  fc.integer({ min: 0x21, max: 0x7e }),
  fc.integer({ min: 0xa1, max: 0x17e }),
  fc.integer({ min: 0x3b1, max: 0x3c9 }),
  fc.integer({ min: 0x430, max: 0x44f }),
  fc.integer({ min: 0x3042, max: 0x3093 }),
  fc.integer({ min: 0x4e00, max: 0x4eff }),
  fc.integer({ min: 0xff01, max: 0xff5e }),
  fc.constantFrom(0x2e, 0x2d, 0xad, 0x200c, 0x200d, 0x3002, 0xff0e, 0xff61, 0x2460, 0x2126, 0x1f600, 0xd800, 0xfffd),
);
const stableHost = fc.array(stableLetter, { maxLength: 6 }).map((points) => String.fromCodePoint(...points));

const url = fc
  .tuple(
    mostly(fc.constantFrom("https:", "http:"), fc.constantFrom(...SCHEMES)),
    mostly(fc.constant("//"), fc.constantFrom(...SLASHES)),
    mostly(fc.constant(""), fc.constantFrom(...USERINFO)),
    mostly(fc.constantFrom(...HOSTS), fc.oneof(fc.webUrl().map((address) => new URL(address).host), stableHost)),
    mostly(fc.constantFrom("", ":8443"), fc.constantFrom(...PORTS), 2),
    mostly(fc.constantFrom("", "/", "/v1", "/v1/"), fc.constantFrom(...PATHS), 2),
    mostly(fc.constant(""), fc.constantFrom(...QUERIES)),
    mostly(fc.constant(""), fc.constantFrom(...FRAGMENTS)),
  )
  .map((parts) => parts.join(""));

// The Mongolian vowel separator is ignored by newer tables and refused by older ones.
const urlPadding = padding().map((text) => text.replaceAll("\u180e", ""));

// Tabs and line ends vanish inside a URL, and white space around it goes in two steps that differ: trim, then the parser.
const brokenUrl = fc
  .tuple(urlPadding, url, fc.nat(), fc.constantFrom("\t", "\n", "\r", " ", "\0", "%", "\u0001", "\u3000"), urlPadding)
  .map(([before, address, at, inserted, after]) => {
    const middle = address.length === 0 ? 0 : at % address.length;
    return before + address.slice(0, middle) + inserted + address.slice(middle) + after;
  });

const paddedUrl = fc.tuple(urlPadding, url, urlPadding).map((parts) => parts.join(""));

// Other schemes are refused either way; only where the address is malformed as well do parsers disagree about the reason.
const anyUrl = fc
  .oneof({ weight: 3, arbitrary: paddedUrl }, { weight: 1, arbitrary: brokenUrl })
  .filter((address) => !/^\W*(blob|javascript|x):.*[\\@]/is.test(address.replace(/[\t\r\n]/g, "")));

const goodUrl = fc.constantFrom(
  "https://api.sb.createos.sh",
  "https://api.sb.createos.sh/v1/",
  "http://127.0.0.1:8080",
  "https://sandbox.example:8443/v1",
);

const absent = fc.constantFrom(undefined, null);
const line = fc.oneof(paddedText, fc.constantFrom("coder", "node:22", " 7", "7", "__proto__", "*", "a.example"));

const adapters = fc.array(fc.tuple(line, mostly(line, oddValue, 12)), { maxLength: 4 }).map((entries) => {
  const map = {};
  // A plain assignment of __proto__ would set the prototype, while JSON.parse makes an own property of it.
  for (const [key, value] of entries) {
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return map;
});

const oddAdapters = fc.constantFrom<() => object>(
  () => Object.create({ inherited: "x" }),
  () => Object.defineProperty({}, "hidden", { value: 1, enumerable: false }),
  () => ({ [Symbol("s")]: 1, coder: "a" }),
  () => JSON.parse('{"__proto__":"a","b":"c"}'),
  () => ({ " a": "1", a: "2", "a ": "3" }),
  () => ({ b: "x", 2: "y", 1: "z" }),
  () => ({ " 2": "y", b: "x", "1 ": "z" }),
);

const sparse = fc.constantFrom<() => unknown[]>(
  () => Object.assign([], { length: 1 }),
  () => Object.assign(["a"], { 2: "b" }),
  () => Object.assign(["a"], { extra: 1 }),
  () => [" a", "a ", "a"],
  () => [["a"]],
);

/** Every field of a configuration; a value is odd once in a while, so that every row of the table is reached. */
export const rawConfig: fc.Arbitrary<Record<string, unknown>> = fc
  .record(
    {
      apiUrl: mostly(mostly(goodUrl, anyUrl, 3), fc.oneof(absent, oddValue), 8),
      shape: mostly(fc.constantFrom("s-1vcpu-1gb", " s "), fc.oneof(absent, oddValue, paddedText), 8),
      timeoutMs: mostly(mostly(absent, fc.integer({ min: 1, max: 86_400_000 }), 1), oddValue, 8),
      reuseLease: mostly(fc.constantFrom(undefined, null, true, false), oddValue, 8),
      autoPauseAfterSeconds: mostly(mostly(absent, fc.integer({ min: 60, max: 86_400 }), 1), oddValue, 8),
      rootfsByAdapter: mostly(mostly(absent, adapters, 1), fc.oneof(oddValue, oddAdapters.map((make) => make())), 8),
      egressAllowlist: mostly(
        mostly(absent, fc.array(mostly(line, oddValue, 12), { maxLength: 4 }), 1),
        fc.oneof(oddValue, sparse.map((make) => make())),
        8,
      ),
      apiKey: mostly(fc.constantFrom(undefined, null, "key-1", " key-1 "), fc.oneof(oddValue, paddedText), 8),
      rootfs: mostly(absent, fc.oneof(oddValue, paddedText), 4),
      region: mostly(absent, fc.oneof(oddValue, paddedText), 4),
    },
    { requiredKeys: [] },
  )
  .map((fields) => ({ apiUrl: "https://api.sb.createos.sh", shape: "s", ...fields }));

export function parsing(subject: Subject): fc.IPropertyWithHooks<[unknown]> {
  return fc.property(mostly(rawConfig, oddValue, 30), (raw) => {
    requireEqual(outcome(subject, () => subject.parseConfig(raw), plain), outcome(reference, () => reference.parseConfig(raw), plain), "parseConfig");
  });
}

export function addresses(subject: Subject): fc.IPropertyWithHooks<[string]> {
  return fc.property(anyUrl, (apiUrl) => {
    const raw = { apiUrl, shape: "s" };
    requireEqual(outcome(subject, () => subject.parseConfig(raw), plain), outcome(reference, () => reference.parseConfig(raw), plain), "apiUrl");
  });
}

/** The order in which fields are read, and that what a getter throws comes through as it is. */
export function configReads(subject: Subject): fc.IPropertyWithHooks<[Record<string, unknown>, string[]]> {
  const throwing = fc.subarray(["apiUrl", "shape", "timeoutMs", "reuseLease", "egressAllowlist", "apiKey", "region"], { maxLength: 2 });
  return fc.property(rawConfig, mostly(fc.constant<string[]>([]), throwing, 1), (raw, thrown) => {
    const drive = (one: Subject): Description => {
      const reads: string[] = [];
      const observed = Object.defineProperties(
        {},
        Object.fromEntries(
          Object.keys(raw).map((field) => [
            field,
            {
              get() {
                reads.push(field);
                if (thrown.includes(field)) throw new RangeError(`getter of ${field}`);
                return raw[field];
              },
            },
          ]),
        ),
      );
      return [outcome(one, () => one.parseConfig(observed), plain), reads];
    };
    requireEqual(drive(subject), drive(reference), "reading a config");
  });
}

const keyText = fc.oneof(
  fc.constantFrom("", " ", "key-2", " key-2\n", "a\nb", "a\rb", "\u0085k", "\ufeffk\ufeff", "é"),
  paddedText.filter((text) => !text.includes("\0")),
);

// A scope key of missing ids is a mistake of the caller, about which the specification says nothing.
const someId = oddText.filter((text) => text !== "");

/** Which key is sent where, and the scope key that is made of it. The environment is put back as it was. */
export function keys(subject: Subject): fc.IPropertyWithHooks<[unknown, string | undefined, string, string, string]> {
  const config = fc.record({
    apiUrl: goodUrl,
    shape: fc.constant("s"),
    apiKey: mostly(absent, fc.oneof(keyText, oddText), 1),
  });
  const inherited = process.env.CREATEOS_API_KEY;
  return fc
    .property(config, fc.option(keyText, { nil: undefined }), someId, someId, someId, (raw, environment, company, place, id) => {
      if (environment === undefined) delete process.env.CREATEOS_API_KEY;
      else process.env.CREATEOS_API_KEY = environment;
      const drive = (one: Subject): Description => [
        outcome(one, () => one.resolveApiKey(one.parseConfig(raw))),
        outcome(one, () => one.scopeKey({ companyId: company, environmentId: place, config: raw }, id)),
        outcome(one, () => new one.LeaseDriver().leaseState({ companyId: company, environmentId: place, config: raw }, id)),
      ];
      requireEqual(drive(subject), drive(reference), "the API key");
    })
    .afterEach(() => {
      if (inherited === undefined) delete process.env.CREATEOS_API_KEY;
      else process.env.CREATEOS_API_KEY = inherited;
    });
}

// Prototypes and the order of plain fields are nobody's business; the order of adapters and hosts is.
function plain(config: unknown): Description {
  const fields = config as Record<string, unknown> & { rootfsByAdapter: object };
  return { ...fields, rootfsByAdapter: Object.entries(fields.rootfsByAdapter) };
}
