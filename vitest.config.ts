import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Takes long: were it begun last, one worker would be left to run it. */
const isLong = ({ moduleId }: TestSpecification) =>
  /docs(?:-programs|-tutorial|-movers)?\.|demo\.|long-jobs|long-commands|cli\/(?:\w+\/)?(?:work|commands|enqueue-lines|breakages|init)\.|lease-thread|supervisor|package(?:-types)?\.|contract-|idle-socket|stores\/model|page-(?:actions|walk)/.test(
    moduleId,
  )

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

const tests = 'test/**/*.test.ts'
/** What runs for long, or once more on other servers, or is about what goes wrong around a process: `npm run prove drills`. */
const drills = 'test/**/*.drill.ts'
/** Tests about processes, servers, files and documents, of which each takes its seconds. */
const slow = [
  'test/*.test.ts',
  'test/{cli,docs,end-to-end,package}/**',
  'test/stores/{contract-redis*,model}.test.ts',
  'test/stores/{redis,sqlite,fixtures}/**',
  'test/mill/{lease-thread,load-config}.test.ts',
  'test/page/page-walk.test.ts',
  'test/workers/{isolated/adoption,worker/worker-misuse}.test.ts',
]

/** By `--mode`: `quick`, the inner loop; `drills`; `whole`, both. Without one, all that a change must pass. */
const tiers: Record<string, { include: string[]; exclude: string[] }> = {
  test: { include: [tests], exclude: [] },
  quick: { include: [tests], exclude: slow },
  drills: { include: [drills], exclude: [] },
  whole: { include: [tests, drills], exclude: [] },
}

/** Tests run against `dist`, what ships (`#src/*` in package.json), so that threads and child processes are the real ones. */
export default defineConfig(({ mode }) => {
  const { include, exclude } = tiers[mode]!
  return {
    test: {
      ...{ include, exclude },
      globalSetup: ['test/test-run.ts'],
      setupFiles: ['test/nothing-held.ts'],
      // By Node's own loader, which is what users have, and many times as fast as vitest's.
      server: { deps: { external: [/\/dist\//] } },
      pool: 'forks',
      // Room for what is short-lived, in MB: with the one that Node begins with a quarter of the time goes to collecting it.
      execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=32'],
      // To start a process for each file would take a third of the time of all.
      isolate: false,
      // More than the two cores that a small machine has: much of what is tested is waiting. Drills look at the clock.
      maxWorkers: mode === 'drills' ? 2 : 3,
      testTimeout: 30_000,
      hookTimeout: 30_000,
      // What is polled comes sooner; on a busy machine the default of one second is too short.
      expect: { poll: { timeout: 10_000 } },
      restoreMocks: true,
      sequence: { sequencer: LongestFirst },
    },
  }
})
