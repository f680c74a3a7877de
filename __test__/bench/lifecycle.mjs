// What a release and a row of small requests take, on the loopback provider in this process.
//
//   npm run bench            prints medians and minima
import { CreateosClient, LeaseDriver } from '../../index.js';
import { startProvider } from '../provider/index.mjs';

const ROUNDS = 7;
const PAUSE_MS = 100;
const CALLS = 10_000;
const REQUESTS = 40;

const provider = await startProvider({ delays: { pause: PAUSE_MS } });
const owner = {
  companyId: 'company',
  environmentId: 'environment',
  config: {
    apiUrl: provider.url,
    apiKey: provider.apiKey,
    shape: 's-1vcpu-1gb',
    reuseLease: true,
  },
};
const driver = new LeaseDriver();

/**
 * @param {string} what
 * @param {() => Promise<number>} measure Gives milliseconds.
 */
async function report(what, measure) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await measure());
  times.sort((a, b) => a - b);
  const [least = 0, middle = 0] = [times[0], times[Math.floor(ROUNDS / 2)]];
  console.log(`${what.padEnd(52)} median ${middle.toFixed(1)} ms   minimum ${least.toFixed(1)} ms`);
}

/** @param {() => Promise<unknown>} run */
async function timed(run) {
  const began = performance.now();
  await run();
  return performance.now() - began;
}

await report(`release, the provider pauses in ${PAUSE_MS} ms`, async () => {
  const { providerLeaseId, metadata: leaseMetadata } = await driver.acquire(owner);
  return timed(() => driver.release({ ...owner, providerLeaseId, leaseMetadata }));
});

await report(`release with ${CALLS} calls in flight, all settled`, async () => {
  const lease = await driver.acquire(owner);
  const { providerLeaseId, metadata: leaseMetadata } = lease;
  const params = { ...owner, lease };
  /** @type {(client: CreateosClient, signal: AbortSignal) => Promise<void>} */
  const work = (_, signal) => new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const calls = Array.from({ length: CALLS }, () => driver.track(params, work));
  return timed(async () => {
    await driver.destroy({ ...owner, providerLeaseId, leaseMetadata });
    await Promise.all(calls);
  });
});

const { providerLeaseId } = await driver.acquire(owner);
const client = new CreateosClient(owner.config);
await report(`${REQUESTS} small requests in a row`, () =>
  timed(async () => {
    for (let request = 0; request < REQUESTS; request += 1) await client.getSandbox(providerLeaseId);
  }),
);

await driver.shutdown();
await provider.close();
