import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['__test__/**/*.test.{ts,mjs}'],
    // Each file is a process of its own: the addon paces requests per process, and a leaked handle
    // or a crash is then the file's own.
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two at a time: more would only make timings worse on a small machine.
    maxWorkers: 2,
  },
});
