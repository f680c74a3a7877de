import process from 'node:process';
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
    // Some tests hold the package to a clock that a busy CI machine shares with others; the report says
    // which needed a second try. At a desk, none gets one.
    retry: process.env.CI ? 1 : 0,
    // Two at a time: more would only make timings worse on a small machine.
    maxWorkers: 2,
  },
});
