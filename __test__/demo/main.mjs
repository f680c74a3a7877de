// The demo: a lease from its beginning to its end, on the loopback provider, or on the real one when
// CREATEOS_API_URL, CREATEOS_API_KEY and CREATEOS_SHAPE are set. It exits 0 only if everything it
// tells of has happened, and leaves no sandbox behind.
import process from 'node:process';
import { CreateosClient, LeaseDriver, explainLease } from '../../index.js';
import { startProvider } from '../provider/index.mjs';
import { runCommand } from './command.mjs';
import { Timeline } from './timeline.mjs';

const { CREATEOS_API_URL = '', CREATEOS_API_KEY = '', CREATEOS_SHAPE = '' } = process.env;
const isReal = Boolean(CREATEOS_API_URL && CREATEOS_API_KEY && CREATEOS_SHAPE);

const provider = isReal ? null : await startProvider({ delays: { create: 40, pause: 300, destroy: 60 } });
const owner = {
  companyId: 'acme',
  environmentId: 'staging',
  config: {
    apiUrl: provider?.url ?? CREATEOS_API_URL,
    apiKey: provider?.apiKey ?? CREATEOS_API_KEY,
    shape: CREATEOS_SHAPE || 's-1vcpu-1gb',
    reuseLease: true,
    timeoutMs: isReal ? 300_000 : 20_000,
  },
};

/** What a command leaves in the lease's workspace. */
const NOTE = '/paperclip-workspace/note.txt';

const driver = new LeaseDriver();
const timeline = new Timeline(isReal ? 'the real provider' : 'the loopback provider');
/** @type {import('../../index.js').AcquiredLease | undefined} */
let lease;

try {
  const { ok, summary } = await driver.probe(owner);
  timeline.check(ok, 'probe', summary);
  lease = await driver.acquire(owner);
  await story(lease);
} catch (error) {
  timeline.failed(error);
} finally {
  await driver.shutdown();
  if (lease) await leaveNothing(lease.providerLeaseId);
  await provider?.close();
}
process.exitCode = timeline.finish();

/** @param {import('../../index.js').AcquiredLease} lease */
async function story(lease) {
  const id = lease.providerLeaseId;
  timeline.tell('acquire', `sandbox ${id} runs, its workspace is ready`);
  const params = { ...owner, lease };

  timeline.tell('track', 'a command, its output live:');
  const script = `for word in one two three; do echo "$word"; sleep 0.2; done; echo kept > ${NOTE}`;
  const exitCode = await driver.track(params, (leased, signal) =>
    runCommand(leased, id, script, signal, (text) => timeline.output(text)),
  );
  timeline.check(exitCode === 0, 'track', 'the command ended with exit code 0');

  const stranger = { ...params, companyId: 'globex' };
  const refusal = await driver.track(stranger, () => 'ran').catch((error) => error);
  timeline.check(
    refusal.code === 'ERR_CREATEOS_LEASE_MISMATCH',
    'refused',
    `another company asks: "${refusal.message}"`,
  );
  for (const { field, expected, actual } of explainLease(stranger).mismatches) {
    timeline.output(`explainLease: ${field} is "${actual}" in the lease, "${expected}" asked for it\n`);
  }

  const claim = { ...owner, providerLeaseId: id, leaseMetadata: lease.metadata };
  await releaseWhileRunning(params, claim);

  await resumeFromRecord(lease);

  const receipt = await driver.destroy(claim, { confirm: true });
  const seen = `the provider shows the sandbox ${receipt?.state}`;
  timeline.check(receipt?.state === 'destroyed', 'destroy', seen);
  const { providerLeaseId } = await driver.resume(claim);
  timeline.check(providerLeaseId === null, 'resume', 'of a lease whose sandbox is gone: it has expired');
}

/**
 * Takes the lease up again from what a host keeps of it, as after a restart: the sandbox runs again, with
 * its files.
 *
 * @param {import('../../index.js').AcquiredLease} lease
 */
async function resumeFromRecord(lease) {
  const { providerLeaseId, metadata } = JSON.parse(JSON.stringify(lease));
  const restarted = new LeaseDriver();
  const resumed = await restarted.resume({ ...owner, providerLeaseId, leaseMetadata: metadata });
  timeline.check(resumed.providerLeaseId !== null, 'resume', 'by another driver, from the persisted lease');
  let note = '';
  await restarted.track({ ...owner, lease: resumed }, (leased, signal) =>
    runCommand(leased, providerLeaseId, `cat ${NOTE}`, signal, (text) => {
      note += text;
      timeline.output(text);
    }),
  );
  timeline.check(note === 'kept\n', 'track', 'what the command before the pause wrote is still there');
}

/**
 * Releases the lease while a command runs: abort, clean-up and pause have to come in this order.
 *
 * @param {import('../../index.js').TrackParams} params
 * @param {import('../../index.js').ReleaseParams & { providerLeaseId: string }} claim
 */
async function releaseWhileRunning(params, claim) {
  const id = claim.providerLeaseId;
  /** @type {string[]} */
  const order = [];
  let hasOutput = () => {};
  /** @type {Promise<void>} */
  const started = new Promise((resolve) => {
    hasOutput = resolve;
  });
  timeline.tell('track', 'a command that would run for an hour');
  const call = driver.track(params, async (leased, signal) => {
    signal.addEventListener('abort', () => {
      order.push('abort');
      timeline.tell('abort', `the call is told: ${signal.reason.name}`);
    });
    try {
      await runCommand(leased, id, 'echo working; sleep 3600', signal, (text) => {
        timeline.output(text);
        hasOutput();
      });
    } finally {
      order.push('clean-up');
      timeline.tell('clean-up', 'its process tree has ended');
    }
  });
  const outcome = call.catch((error) => error);
  await Promise.race([started, outcome]);
  timeline.tell('release', 'the lease is given back while that runs');
  await driver.release(claim);
  order.push('pause');
  const { status } = await new CreateosClient(owner.config).getSandbox(id);
  timeline.check(status === 'paused', 'pause', `the sandbox is ${status}`);
  timeline.check((await outcome)?.name === 'AbortError', 'track', 'the call rejected with the abort');
  const inOrder = order.join(', ') === 'abort, clean-up, pause';
  timeline.check(inOrder, 'order', `${order.join(', ')}: in this order`);
}

/**
 * Whatever happened before: no sandbox is left to be billed.
 *
 * @param {string} id
 */
async function leaveNothing(id) {
  try {
    await new CreateosClient(owner.config).destroySandbox(id);
  } catch (error) {
    timeline.failed(new Error(`Sandbox ${id} could not be removed.`, { cause: error }));
  }
}
