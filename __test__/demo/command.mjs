// A command in a sandbox, as a plugin runs one: a managed process, its output read as it comes, and
// its whole process tree ended when the call is aborted.

/**
 * Runs a Bash script and gives its exit code.
 *
 * @param {import('../../index.js').CreateosClient} client
 * @param {string} id The sandbox.
 * @param {string} script
 * @param {AbortSignal} signal
 * @param {(text: string) => void} onOutput
 */
export async function runCommand(client, id, script, signal, onOutput) {
  const processes = `/sandboxes/${id}/processes`;
  const body = { cmd: '/bin/bash', args: ['-c', script] };
  const { process_id: processId } = await client.json(processes, 'POST', body, signal);
  try {
    const path = `${processes}/${processId}/connect?after=0`;
    const response = await client.request(path, { signal });
    for await (const event of events(response)) {
      if (event.type === 'data') onOutput(Buffer.from(event.data_base64, 'base64').toString());
      if (event.type === 'exit') return event.exit_code;
    }
    throw new Error('The output ended before the command did.');
  } catch (error) {
    // The client outlives the call's signal, so that this can still be done.
    const ended = await client.json(`${processes}/${processId}?grace_ms=1000`, 'DELETE');
    if (ended.tree_exited !== true) throw new Error('The command still runs.', { cause: error });
    throw error;
  }
}

/**
 * The lines of an NDJSON answer, parsed.
 *
 * @param {Response} response
 */
async function* events(response) {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const bytes of response.body ?? []) {
    pending += decoder.decode(bytes, { stream: true });
    const lines = pending.split('\n');
    pending = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line);
  }
}
