// The demo: a lease from its beginning to its end, on the loopback provider, or on the real one when
// CREATEOS_API_URL, CREATEOS_API_KEY and CREATEOS_SHAPE are set. It exits 0 only if everything it
// tells of has happened, and leaves no sandbox behind.
import process from 'node:process';
import { LeaseDriver, execute, explainLease } from '../../index.js';
import { startProvider } from '../provider/index.mjs';
import { crash } from './crash.mjs';
import { Sandbox, shown } from './sandbox.mjs';
import { Timeline } from './timeline.mjs';

/** @typedef {import('./sandbox.mjs').Lease} Lease */

const { CREATEOS_API_URL = '', CREATEOS_API_KEY = '', CREATEOS_SHAPE = '' } = process.env;
const isReal = Boolean(CREATEOS_API_URL && CREATEOS_API_KEY && CREATEOS_SHAPE);

const provider = isReal ? null : await startProvider({ delays: { create: 40, pause: 300, destroy: 60 } });
/** @type {import('./sandbox.mjs').Owner} */
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

/** @param {string} script */
const bash = (script) => ({ command: 'bash', args: ['-c', script] });

/**
 * What a release, a resume or a destroy is asked for with.
 *
 * @param {Lease} held
 */
const claimOf = ({ providerLeaseId, metadata }) => ({
  ...owner,
  providerLeaseId,
  leaseMetadata: metadata,
});

const driver = new LeaseDriver();
const timeline = new Timeline(isReal ? 'the real provider' : 'the loopback provider');
/** @type {Lease | undefined} */
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
  if (lease) await leaveNothing(lease);
  await provider?.close();
}
process.exitCode = timeline.finish();

/** @param {Lease} acquired */
async function story(acquired) {
  const id = acquired.providerLeaseId;
  timeline.tell('acquire', `sandbox ${id} runs, its workspace is ready`);
  await runLive(acquired);
  await refuseStranger(acquired);
  await releaseWhileRunning(acquired);
  const resumed = await resumeFromRecord(acquired);
  await crash(timeline, owner, resumed);

  const receipt = await driver.destroy(claimOf(resumed), { confirm: true });
  const seen = `the provider shows the sandbox ${receipt?.state}`;
  timeline.check(receipt?.state === 'destroyed', 'destroy', seen);
  const { providerLeaseId } = await driver.resume(claimOf(resumed));
  timeline.check(providerLeaseId === null, 'resume', 'of a lease whose sandbox is gone: it has expired');
}

/**
 * A command whose output is seen while it runs.
 *
 * @param {Lease} held
 */
async function runLive(held) {
  timeline.tell('execute', 'a command, its output live:');
  const script = 'for word in one two three; do echo "$word"; sleep 0.2; done; echo kept > note.txt; exit 7';
  let live = '';
  let first = Infinity;
  const result = await driver.execute({ ...owner, lease: held, ...bash(script) }, (_stream, text) => {
    first = Math.min(first, performance.now());
    live += text;
    timeline.output(text);
  });
  const early = Math.round(performance.now() - first);
  timeline.check(early > 300, 'live', `its first word came ${early} ms before its end`);
  const isWhole = live === 'one\ntwo\nthree\n' && result.stdout === live;
  timeline.check(isWhole && result.exitCode === 7, 'execute', `it ended with exit code ${result.exitCode}`);
}

/** @param {Lease} held */
async function refuseStranger(held) {
  const stranger = { ...owner, lease: held, companyId: 'globex' };
  const refusal = await driver.execute({ ...stranger, command: 'true' }).catch((error) => error);
  timeline.check(
    refusal.code === 'ERR_CREATEOS_LEASE_MISMATCH',
    'refused',
    `another company asks: "${refusal.message}"`,
  );
  for (const { field, expected, actual } of explainLease(stranger).mismatches) {
    timeline.output(`explainLease: ${field} is "${actual}" in the lease, "${expected}" asked for it\n`);
  }
}

/**
 * Releases the lease while a command runs: abort, the end of its process tree, and the pause have to come in
 * this order.
 *
 * @param {Lease} held
 */
async function releaseWhileRunning(held) {
  const sandbox = new Sandbox(owner.config, held.providerLeaseId);
  /** @type {string[]} */
  const order = [];
  const { promise: started, resolve: hasOutput } = withResolvers();
  const params = { ...owner, lease: held, ...bash('sleep 3600 & echo working; wait') };
  timeline.tell('execute', 'a command that would run for an hour, with a child');
  let processId = '';
  // The function is what driver.execute is made of; here its signal is wanted, too.
  const call = driver.track(params, async (client, signal) => {
    signal.addEventListener('abort', () => {
      order.push('abort');
      timeline.tell('abort', `the call is told: ${signal.reason.name}`);
    });
    try {
      return await execute(client, params, signal, (_stream, text) => {
        timeline.output(text);
        hasOutput();
      });
    } finally {
      // The release waits for this, too: what is seen here was so before the pause.
      const isGone = (await sandbox.isGone(processId)) && (await sandbox.running()).length === 0;
      if (isGone && (await sandbox.status()) === 'running') order.push('end');
      timeline.check(isGone, 'end', 'its process tree has ended, says the provider; the sandbox still runs');
    }
  });
  const outcome = call.catch((error) => error);
  await Promise.race([started, outcome]);
  const [command, ...others] = await sandbox.running();
  processId = command?.process_id ?? '';
  timeline.output(shown(command ? [command, ...others] : []));
  timeline.check(command !== undefined && others.length === 0, 'running', 'the provider lists it');

  timeline.tell('release', 'the lease is given back while that runs');
  const receipt = await driver.release(claimOf(held), false, { confirm: true });
  const status = await sandbox.status();
  if (status === 'paused') order.push('pause');
  timeline.check(receipt?.state === 'stopped', 'pause', `the sandbox is ${status}`);
  const { code, message } = Object(await outcome);
  timeline.check(code === 'ERR_CREATEOS_CANCELLED', 'execute', `rejected: "${message}"`);
  const inOrder = order.join(', ') === 'abort, end, pause';
  timeline.check(inOrder, 'order', `${order.join(', ')}: in this order`);
}

/**
 * Takes the lease up again from what a host keeps of it, as after a restart: the sandbox runs again, with
 * its files.
 *
 * @param {Lease} held
 */
async function resumeFromRecord(held) {
  const kept = JSON.parse(JSON.stringify(held));
  const restarted = new LeaseDriver();
  const { providerLeaseId, metadata } = await restarted.resume(claimOf(kept));
  timeline.check(providerLeaseId !== null, 'resume', 'by another driver, from the persisted lease');
  const resumed = { providerLeaseId: providerLeaseId ?? '', metadata };
  const note = await restarted.execute(
    { ...owner, lease: resumed, command: 'cat', args: ['note.txt'] },
    (_stream, text) => timeline.output(text),
  );
  timeline.check(
    note.stdout === 'kept\n',
    'execute',
    'what the command before the pause wrote is still there',
  );
  return resumed;
}

/**
 * Whatever happened before: no sandbox is left to be billed.
 *
 * @param {Lease} held
 */
async function leaveNothing(held) {
  try {
    // It may be gone already; the provider has to say so.
    await new LeaseDriver().destroy(claimOf(held), { confirm: true });
  } catch (error) {
    timeline.failed(new Error(`Sandbox ${held.providerLeaseId} could not be removed.`, { cause: error }));
  }
  // The loopback provider knows of all that there ever were.
  const left = (provider?.sandboxes ?? []).filter(({ status }) => status !== 'destroyed');
  if (left.length > 0) timeline.failed(new Error(`${left.length} sandboxes are left.`));
}

/** A promise, and what resolves it. */
function withResolvers() {
  let resolve = () => {};
  /** @type {Promise<void>} */
  const promise = new Promise((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
}
