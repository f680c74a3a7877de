// A process that the demo kills in the middle of a command. What to run comes by message, since it holds a key.
import process from 'node:process';
import { LeaseDriver } from '../../index.js';

process.once('message', async (params) => {
  const execute = /** @type {import('../../index.js').ExecuteParams} */ (params);
  await new LeaseDriver().execute(execute, (_stream, text) => process.send?.(text));
});
// The demo has ended before it.
process.once('disconnect', () => process.exit(1));
