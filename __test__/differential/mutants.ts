// The reference with one fault each, for proving that the properties would notice it. A mutant is a replacement in the
// text of the reference, so that the reference itself needs no hooks for it.
import { build } from "esbuild";
import { readFile } from "node:fs/promises";
import Module from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Subject } from "./subject.js";

export type Property = "parsing" | "addresses" | "configReads" | "keys" | "trackChecks" | "releaseChecks" | "guards" | "hostileGuards" | "histories";

export interface Mutant {
  name: string;
  file: "client" | "config" | "errors" | "lease" | "ownership";
  find: string;
  replace: string;
  noticedBy: Property;
}

const REFERENCE = fileURLToPath(new URL("../reference", import.meta.url));

/** The reference as a subject of its own, with the mutant's fault or, for control, with none. */
export async function makeSubject(mutant: Mutant | null): Promise<Subject> {
  const { outputFiles } = await build({
    entryPoints: [join(REFERENCE, "index.ts")],
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    plugins: mutant === null ? [] : [{ name: "mutant", setup: (setup) => setup.onLoad({ filter: /\.ts$/ }, load(mutant)) }],
  });
  const compiled = new Module(`mutant ${mutant?.name}`) as Module & { _compile(code: string, file: string): void };
  compiled._compile(outputFiles[0]?.text ?? "", join(REFERENCE, "mutant.cjs"));
  return compiled.exports as Subject;
}

function load({ file, find, replace, name }: Mutant): (args: { path: string }) => Promise<{ contents: string; loader: "ts" }> {
  return async ({ path }) => {
    const contents = await readFile(path, "utf8");
    if (!path.endsWith(`/${file}.ts`)) return { contents, loader: "ts" };
    if (contents.split(find).length !== 2) throw new Error(`The text that "${name}" replaces has to be there once.`);
    return { contents: contents.replace(find, () => replace), loader: "ts" };
  };
}

const inConfig = (name: string, find: string, replace: string, noticedBy: Property = "parsing"): Mutant => ({
  name,
  file: "config",
  find,
  replace,
  noticedBy,
});
const inOwnership = (name: string, find: string, replace: string, noticedBy: Property = "trackChecks"): Mutant => ({
  name,
  file: "ownership",
  find,
  replace,
  noticedBy,
});
const inLease = (name: string, find: string, replace: string, noticedBy: Property = "histories"): Mutant => ({
  name,
  file: "lease",
  find,
  replace,
  noticedBy,
});
const inErrors = (name: string, find: string, replace: string): Mutant => ({
  name,
  file: "errors",
  find,
  replace,
  noticedBy: "histories",
});
const inClient = (name: string, find: string, replace: string): Mutant => ({
  name,
  file: "client",
  find,
  replace,
  noticedBy: "histories",
});

export const MUTANTS: Mutant[] = [
  inConfig("text is not trimmed", "return value.trim();", "return value;"),
  inConfig("NUL is let through", '|| value.includes("\\0")', ""),
  inConfig("white space is Unicode's", 'value.trim() === ""', '/^[\\s\\u0085]*$/.test(value)'),
  inConfig("http on any 127 address", "LOOPBACK.includes(url.hostname)", '/^127|^localhost$|::1/.test(url.hostname)', "addresses"),
  inConfig("an empty query is refused", 'url.search === ""', '!address.includes("?")', "addresses"),
  inConfig("a fragment is let through", ' && url.hash === ""', "", "addresses"),
  inConfig("a user is let through", 'url.username === "" && ', "", "addresses"),
  inConfig("the path is compared before normalising", '.includes(url.pathname)', '.some((path) => address.endsWith(path))', "addresses"),
  inConfig("the host keeps its case", "return url.origin;", "return address.replace(/\\/(v1\\/?)?$/, '');", "addresses"),
  inConfig("a URL without host is another failure", "return new URL(address);", 'return new URL(address.endsWith("://") ? "https://x" : address);', "addresses"),
  inConfig("the largest timeout is one more", "MAX_TIMEOUT_MS = 86_400_000", "MAX_TIMEOUT_MS = 86_400_001"),
  inConfig("the shortest pause is one more", "isIntegerIn(autoPause, 60,", "isIntegerIn(autoPause, 61,"),
  inConfig("null is no boolean", "reuseLease ?? false", "reuseLease === undefined ? false : reuseLease"),
  inConfig("the default timeout is another", "300_000", "600_000"),
  inConfig("adapters may be an array", " || Array.isArray(value)", ""),
  inConfig("adapter names are not trimmed", "[adapter.trim(), rootfs.trim()]", "[adapter, rootfs.trim()]"),
  inConfig("__proto__ sets a prototype", "return Object.fromEntries(entries);", "const map: any = {}; for (const [k, v] of entries) map[k] = v; return map;"),
  inConfig("a line end at the edge is trimmed first", "!/[\\0\\r\\n]/.test(value) &&", "!/[\\0\\r\\n]/.test(value.trim()) &&"),
  inConfig("holes in an array are skipped", "Array.from(value).every", "value.every"),
  inConfig("duplicates are kept", "[...new Set(value.map((entry: string) => entry.trim()))]", "value.map((entry: string) => entry.trim())"),
  inConfig("the field is another", 'apiKey: text("apiKey", apiKey)', 'apiKey: text("key", apiKey)'),
  inConfig("the shape is looked at too late", 'if (shapeName === null)', 'if (shapeName === null && isIntegerIn(timeoutMs ?? 1, 1, MAX_TIMEOUT_MS))'),
  inConfig("a field is read twice", "isObject(raw) ? raw : {}", "isObject(raw) ? (void raw.region, raw) : {}", "configReads"),
  inConfig("the environment's key is not trimmed", "?.trim()", "", "keys"),
  inConfig("the environment's key goes anywhere", "config.apiKey === null && config.apiUrl !== PUBLIC_API", "false", "keys"),
  inConfig("the environment comes first", "config.apiKey === null && config.apiUrl", "config.apiKey === null && !!process.env.CREATEOS_API_KEY && config.apiUrl", "keys"),
  inConfig("a configured key may hold a line end", "/[\\r\\n\\0]/.test(key)", "(config.apiKey === null && /[\\r\\n\\0]/.test(key))", "keys"),
  inConfig("the scope key loses lone surrogates", "JSON.stringify([companyId, environmentId,", "JSON.stringify([Buffer.from(String(companyId)).toString(), environmentId,", "keys"),
  inConfig("the key is hashed as UTF-16", ".update(apiKey)", '.update(apiKey, "utf16le")', "keys"),

  inOwnership("missing ids match", "return isId(actual) && actual === expected;", "return actual === expected;"),
  inOwnership("ids are compared as UTF-8", "isId(actual) && actual === expected", "isId(actual) && isId(expected) && Buffer.from(actual).equals(Buffer.from(expected))"),
  inOwnership("ids are compared loosely", "isId(actual) && actual === expected", "isId(actual) && actual == expected"),
  inOwnership("ids are compared trimmed", "isId(actual) && actual === expected", "isId(actual) && isId(expected) && actual.trim() === expected.trim()"),
  inOwnership("the configuration comes first", "const { lease } = params;", "parseConfig(params.config); const { lease } = params;"),
  inOwnership("only the first mismatch is told", "throw mismatch(message, mismatches);", "throw mismatch(message, mismatches.slice(0, 1));"),
  inOwnership("the lease id is not looked at", 'isId(providerLeaseId) ? [] : ["providerLeaseId"]', "[] as string[]"),
  inOwnership("the API URL is not looked at", "if (metadata.apiUrl !== config.apiUrl)", "if (false)"),
  inOwnership("metadata is read in another order", "const actualCompany = metadata.companyId;", "void metadata.environmentId;\nconst actualCompany = metadata.companyId;"),
  inOwnership("an empty id is a mismatch of release", ' || id === ""', "", "releaseChecks"),
  inOwnership("a release of nothing looks at the params", "const id = params.providerLeaseId;", "const id = params.providerLeaseId; void params.config;", "releaseChecks"),
  inOwnership("a guard lets its config error out", "total(() => isObject(params) && isOwned(params, params.providerLeaseId, params.leaseMetadata, apiUrl))", "(isObject(params) && isOwned(params, params.providerLeaseId, params.leaseMetadata, apiUrl))", "guards"),
  inOwnership("a guard ignores the given origin", "(apiUrl ?? parseConfig(params.config).apiUrl)", "parseConfig(params.config).apiUrl", "guards"),
  inOwnership("an explanation throws", "attempt(() => (isObject(from) ? from[field] : undefined))", "(isObject(from) ? from[field] : undefined)", "hostileGuards"),

  inLease("the timeout is looked at before the ownership", "const lease = requireTrackable(params);", "readOptions(options, {timeoutMs: 1} as Config);\nconst lease = requireTrackable(params);", "trackChecks"),
  inLease("arrays are options", "isObject(options) && !Array.isArray(options)", "isObject(options)", "trackChecks"),
  inLease("a numeric string is a timeout", "!isIntegerIn(timeoutMs, 1, MAX_TIMEOUT_MS)", "!isIntegerIn(typeof timeoutMs === 'boolean' ? Number(timeoutMs) : timeoutMs, 1, MAX_TIMEOUT_MS)", "trackChecks"),
  inLease("work is looked at last", 'if (typeof work !== "function")', 'if (typeof work !== "function" && (signal === undefined || signal instanceof AbortSignal))', "trackChecks"),
  inLease("any signal will do", "signal !== undefined && !(signal instanceof AbortSignal)", "false", "trackChecks"),
  inLease("pausing is always looked at", "const wantsAutoPause = config.reuseLease && config.autoPauseAfterSeconds !== null;", "void lease.metadata.autoPauseAfterSeconds; const wantsAutoPause = config.reuseLease && config.autoPauseAfterSeconds !== null;", "releaseChecks"),

  inLease("an aborted signal is no reason", "signal?.throwIfAborted();\n", ""),
  inLease("a closing scope takes calls", 'this.#stateOf(keys) !== "open"', 'this.#stateOf(keys) === "unconfirmed"'),
  inLease("an unconfirmed scope takes calls", 'this.#stateOf(keys) !== "open"', 'this.#stateOf(keys) === "closing"'),
  inLease("a shut down driver takes calls", "this.#shutDown ||", ""),
  inLease("work starts a tick later", "return await work(", "await null;\nreturn await work("),
  inLease("the caller's reason is lost", "controller.abort(signal?.reason)", "controller.abort()"),
  inLease("the caller's signal does nothing", 'signal?.addEventListener("abort", forward, { once: true });', ""),
  inLease("failures are wrapped", "scope.unconfirmed = true;\n      throw error;", "scope.unconfirmed = true;\n      throw error instanceof Error ? error : new Error(String(error));"),
  inLease("results are copied", "return await work(new CreateosClient(lease.config, apiKey), controller.signal);", "const result = await work(new CreateosClient(lease.config, apiKey), controller.signal); return Array.isArray(result) ? ([...result] as T) : result;"),
  inLease("a settled call takes the others along", "scope.calls.delete(call);", "scope.calls.clear();"),
  inLease("a call stays after it settled", "scope.calls.delete(call);", ""),
  inLease("a failure marks nothing", "if (holdsCleanupFailure(error, this.#cleanupErrors)) scope.unconfirmed = true;", ""),
  inLease("every failure marks", "if (holdsCleanupFailure(error, this.#cleanupErrors)) scope", "scope"),
  inLease("a second release joins", 'if (this.#stateOf(keys) === "closing")', "if (false)"),
  inLease("a destroy covers its own key only", "destroys ? this.#scopesOf(keys.sandbox) : [scope]", "[scope]"),
  inLease("every release covers every key", "destroys ? this.#scopesOf(keys.sandbox) : [scope]", "this.#scopesOf(keys.sandbox)"),
  inLease("a destroy covers other companies", "sandbox: JSON.stringify([companyId, ", "sandbox: JSON.stringify(["),
  inLease("the other key's mark stays", "for (const gone of scopes) gone.unconfirmed = false;", "scope.unconfirmed = false;"),
  inLease("the mark goes whatever comes of it", "await tolerateGone(client.destroySandbox", "for (const gone of scopes) gone.unconfirmed = false; await tolerateGone(client.destroySandbox"),
  inLease("the mark stays", "for (const gone of scopes) gone.unconfirmed = false;", ""),
  inLease("a destroy closes its own key only", " || this.#destroying.has(sandbox)", ""),
  inLease("a destroy closes what it found only", "this.#destroying.has(sandbox)) return", "(found && this.#destroying.has(sandbox))) return"),
  inLease("a failed release stays closed", "scope.closing = false;", "scope.closing = scope.unconfirmed;"),
  inLease("a failed destroy stays closed", "if (destroys) this.#destroying.delete(keys.sandbox);", "if (destroys && !scope.unconfirmed) this.#destroying.delete(keys.sandbox);"),
  inLease("calls are aborted one tick later", "abortAll(scopes);\n    try {", "queueMicrotask(() => abortAll(scopes));\n    try {"),
  inLease("calls are aborted backwards", "a.number - b.number", "b.number - a.number"),
  inLease("nothing waits for the calls", "(await Promise.all(waits)).every(Boolean)", "(void waits, true)"),
  inLease("another auto-pause is left warm", "|| (wantsAutoPause && !pausesItself)", ""),
  inLease("a warm sandbox is paused all the same", "if (pausesItself) return;", ""),
  inLease("a disposable lease is paused", "destroy || !config.reuseLease ||", "destroy ||"),
  inLease("an unconfirmed sandbox is reused", "if (scope.unconfirmed) {", "if (false) {"),
  inLease("a missing sandbox is a failure", "isStatus(error, 404)", "isStatus(error, 410)"),
  inLease("every failure counts as gone", "if (!isStatus(error, 404)) throw error;", ""),
  inLease("a shutdown aborts nothing", "abortAll(scopes);\n    await Promise", "await Promise"),
  inLease("a shutdown waits for no call", "await Promise.all(waits);", ""),
  inLease("a shutdown waits for no release", "await Promise.all(releases);", ""),
  inLease("a shutdown stops releases", "if (lease === null) return;", 'if (lease === null || this.#shutDown) return;'),
  inLease("closing is not told", 'if (found?.closing || this.', "if (this."),
  inLease("the unconfirmed mark is not told", "resolveApiKey(config), id));", "resolveApiKey(config), id)).replace('unconfirmed', 'open') as LeaseState;"),

  inErrors("the search is one step shorter", "MAX_STEPS = 8", "MAX_STEPS = 7"),
  inErrors("the search is one step longer", "MAX_STEPS = 8", "MAX_STEPS = 9"),
  inErrors("causes are not searched", "next.push(attempt(() => candidate.cause));", ""),
  inErrors("aggregates are not searched", "candidate instanceof AggregateError ? [...candidate.errors] : []", "[]"),
  inErrors("any list of errors is searched", "candidate instanceof AggregateError ? [...candidate.errors] : []", "Array.isArray(candidate.errors) ? candidate.errors : []"),
  inErrors("the name counts", 'hasConstructorNamed(error, "CreateosCleanupError")', 'error.name === "CreateosCleanupError"'),
  inErrors("only the nearest constructor counts", "prototype.constructor.name === name", "prototype === Object.getPrototypeOf(error) && prototype.constructor.name === name"),
  inErrors("the code does not count", "error.code === CLEANUP_UNCONFIRMED", "false"),
  inErrors("given classes do not count", "error instanceof extra", "false"),

  inClient("the state is not read first", "const { status } = await this.getSandbox(id, signal);", "const { status } = look === 0 ? { status: from[0] as string } : await this.getSandbox(id, signal);"),
  inClient("a transition is submitted twice", "acceptedIn === null && from", "from"),
  inClient("409 ends a transition", "isStatus(error, 409)", "false"),
  inClient("an old state ends a transition", "status !== acceptedIn && !PASSING", "!PASSING"),
  inClient("pausing is not waited for", '["creating", "pausing", "resuming", "forking"]', '["creating", "resuming", "forking"]'),
  inClient("the answer's id is not compared", "sandbox.id !== id || ", ""),
  inClient("redirects are followed", 'redirect: "manual"', 'redirect: "follow"'),
  inClient("a broken envelope is a success", 'if (envelope.status !== "success")', "if (false)"),
  inClient("data may be null", "!isObject(envelope.data) || Array.isArray(envelope.data)", "false"),
  inClient("any id is sent", "if (!/^[A-Za-z0-9_-]{1,200}$/.test(id))", "if (false)"),
  inClient("the body is told", "throw new CreateosApiError(response.status);", 'throw new CreateosApiError(response.status, "sandbox cleanup");'),
];
