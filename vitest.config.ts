import { defineConfig } from 'vitest/config'

/** Tests run against `dist`, what ships (`#src/*` in package.json), so that threads and child processes are the real ones. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
