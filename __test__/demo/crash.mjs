// The demo's crash: a process dies in the middle of a command, and whoever resumes the lease ends what it
// left.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { LeaseDriver } from '../../index.js';
import { Sandbox, shown } from './sandbox.mjs';

/** @param {string} script */
const bash = (script) => ({ command: 'bash', args: ['-c', script] });

/** Leaves a server in the background, where a provider tells of a command's end before all of it has ended. */
const SERVER = { ...bash('sleep 3600 >/dev/null 2>&1 & echo $! > server.pid'), timeoutMs: 10_000 };
const PROBE = bash('kill -0 "$(cat server.pid)" && echo alive');

/**
 * @param {import('./timeline.mjs').Timeline} timeline
 * @param {import('./sandbox.mjs').Owner} owner
 * @param {import('./sandbox.mjs').Lease} lease
 */
export async function crash(timeline, owner, lease) {
  const { providerLeaseId, metadata: leaseMetadata } = lease;
  const sandbox = new Sandbox(owner.config, providerLeaseId);
  const params = { ...owner, lease };

  const { exitCode, timedOut: isServerless } = await new LeaseDriver().execute({ ...params, ...SERVER });
  if (isServerless) timeline.tell('execute', 'here a command lasts as long as its server in the background');
  else timeline.check(exitCode === 0, 'execute', 'a command that leaves a server in the background');

  const child = fork(fileURLToPath(new URL('crashing.mjs', import.meta.url)), { execArgv: [] });
  const exited = once(child, 'exit');
  try {
    timeline.tell('process', `another process, pid ${child.pid}, runs a command that would run for an hour`);
    child.send({ ...params, ...bash('sleep 3600 & echo working; wait') });
    const [said] = await Promise.race([once(child, 'message'), exited]);
    timeline.output(String(said));
  } finally {
    child.kill('SIGKILL');
  }
  const [, signal] = await exited;
  timeline.check(signal === 'SIGKILL', 'crash', `that process is killed: ${signal}`);

  const left = await sandbox.running();
  timeline.output(shown(left));
  timeline.check(left.length === 1, 'before', 'its command runs on in the sandbox, says the provider');

  const successor = new LeaseDriver();
  const resumed = await successor.resume({ ...owner, providerLeaseId, leaseMetadata });
  timeline.check(resumed.providerLeaseId !== null, 'resume', 'by a new driver, from the persisted lease');

  const after = await sandbox.running();
  timeline.output(shown(after));
  const gone = await Promise.all(left.map((one) => sandbox.isGone(one.process_id)));
  timeline.check(after.length === 0 && gone.every(Boolean), 'after', 'it has been ended, with all that it started');
  if (isServerless) return;
  const probe = await successor.execute({ ...owner, lease: resumed, ...PROBE });
  timeline.check(probe.stdout === 'alive\n', 'execute', 'the server in the background is still there');
}
