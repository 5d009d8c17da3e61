/** The tests of decisions, run on the sources: mutants are made of these, and there is no build for each. */

import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const src = join(import.meta.dirname, '../src')

export default defineConfig({
  resolve: {
    alias: [
      { find: /^#src\/(.*)\.js$/, replacement: `${src}/$1.ts` },
      { find: /^millrace\/store$/, replacement: `${src}/store-exports.ts` },
      { find: /^millrace\/([\w-]+)$/, replacement: `${src}/$1/$1.ts` },
      { find: /^millrace$/, replacement: `${src}/index.ts` },
    ],
  },
  test: {
    include: [
      'test/selectors/*.test.ts',
      'test/rules/*.test.ts',
      'test/stores/contract-memory.test.ts',
      'test/stores/memory/*.test.ts',
    ],
    pool: 'threads',
    testTimeout: 30_000,
    restoreMocks: true,
  },
})
