import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Takes long and is a small file, which would come last, with one worker left to run it. */
const isLong = ({ moduleId }: TestSpecification) => /contract-(sqlite|redis-cluster)|stores\/model/.test(moduleId)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** Tests run against `dist`, what ships (`#src/*` in package.json), so that threads and child processes are the real ones. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/leftovers.ts'],
    // By Node's own loader, which is what users have, and many times as fast as vitest's.
    server: { deps: { external: [/\/dist\//] } },
    pool: 'forks',
    // More than the two cores that a small machine has: much of what is tested is waiting.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: LongestFirst },
  },
})
