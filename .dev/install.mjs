// Installs the packages of package-lock.json, unless just these are installed already.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const read = (path) => {
  try {
    return readFileSync(new URL(path, import.meta.url), 'utf8');
  } catch {
    return undefined;
  }
};

const wanted = read('../package-lock.json');
const installed = read('../node_modules/.package-lock.json');

/** The names and versions in a lock file, without the root package, which is not installed. */
function versions(lock) {
  const { packages } = JSON.parse(lock);
  const names = Object.keys(packages).filter((name) => name !== '' && !packages[name].optional);
  return names.sort().map((name) => `${name}@${packages[name].version}`).join('\n');
}

if (installed === undefined || versions(installed) !== versions(wanted)) {
  const cwd = new URL('..', import.meta.url);
  const options = { cwd, stdio: 'inherit', shell: process.platform === 'win32' };
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], options);
  process.exit(status ?? 1);
}
