// All benchmarks, one after the other, each in a process of its own, with the arguments that this one was given:
//
//   npm run bench               prints what each measures
//   npm run bench -- --check    fails when one is too slow
import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const BENCHMARKS = ['lifecycle.mjs', 'execute.mjs', 'track.ts'];

for (const name of BENCHMARKS) {
  const file = fileURLToPath(new URL(name, import.meta.url));
  const runner = name.endsWith('.ts') ? ['--import', 'tsx'] : [];
  const { status } = spawnSync(process.execPath, [...runner, file, ...process.argv.slice(2)], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
