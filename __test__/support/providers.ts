// Loopback providers that a test file's tests use, closed after each test.
import { afterEach, expect } from "vitest";
import { startProvider, type Provider } from "../provider/index.mjs";

type Options = Parameters<typeof startProvider>[0];

const started: Provider[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((provider) => provider.close()));
});

/** Where a concurrent test says what to do when it has ended: its context. */
interface TestContext {
  onTestFinished(end: () => Promise<void>): void;
}

/**
 * A provider without a namespace for each sandbox, which is enough where no command's reach is looked at. It is closed
 * after the test; a concurrent test hands in its context, since others end meanwhile.
 */
export async function provide(options: Options = {}, context?: TestContext): Promise<Provider> {
  const provider = await startProvider({ isolation: "rewrite", ...options });
  if (context === undefined) started.push(provider);
  else context.onTestFinished(() => provider.close());
  return provider;
}

/** A running sandbox, made past the package. */
export async function makeSandbox(provider: Provider, key = provider.apiKey): Promise<string> {
  const response = await fetch(`${provider.url}/v1/sandboxes`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ shape: "s-1vcpu-1gb" }),
  });
  const { data } = (await response.json()) as { data: { id: string } };
  return data.id;
}

/** The routes that were asked for since a place in the provider's list of requests. */
export function routesSince(provider: Provider, start: number): (string | undefined)[] {
  return provider.requests.slice(start).map((request) => request.route);
}

/** Waits until every sandbox the provider ever had is gone, and fails where one lives on. */
export async function nothingAlive(provider: Provider): Promise<void> {
  for (const { id } of provider.sandboxes) await provider.waitForState(id, "destroyed");
  expect(provider.sandboxes.filter(({ status }) => status !== "destroyed")).toEqual([]);
}
