/** The measures of SQLite: what a build of the package does, each time on a file of its own. */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Millrace from 'millrace'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { rawInserts, rawTurns } from './raw-sqlite.js'

export interface SqliteBuild {
  readonly millrace: typeof Millrace.millrace
  readonly defineTask: typeof Millrace.defineTask
  readonly store: typeof SqliteStore
}

export interface SqliteLap {
  readonly perSecond: number
  readonly perCommit: number
}

export interface SqliteMeasure {
  readonly title: string
  /** Keeps its file in this folder. */
  run(build: SqliteBuild, folder: string): Promise<SqliteLap>
  /** The same of the raw limit. */
  readonly raw: typeof rawTurns
}

export const jobs = 50_000
export const payload = { n: 12_345 }

export const sqliteMeasures = {
  process: processing('process, concurrency 100', 100),
  process10: processing('process, concurrency 10', 10),
  enqueue: enqueueing('enqueue, 1,000 in flight', 1_000),
  enqueue100: enqueueing('enqueue, 100 in flight', 100),
  enqueueMany: enqueueingMany('enqueueMany of 1,000', 1_000),
  enqueueMany100: enqueueingMany('enqueueMany of 100', 100),
} satisfies Record<string, SqliteMeasure>

export type SqliteMeasureName = keyof typeof sqliteMeasures

/** The build of a checkout. */
export async function sqliteBuildOf(checkout: string): Promise<SqliteBuild> {
  const built = (file: string) => import(pathToFileURL(join(checkout, 'dist', file)).href)
  const { millrace, defineTask } = (await built('index.js')) as typeof Millrace
  const { SqliteStore: store } = (await built('stores/sqlite/sqlite-store.js')) as { SqliteStore: typeof SqliteStore }
  return { millrace, defineTask, store }
}

function processing(title: string, concurrency: number): SqliteMeasure {
  return {
    title,
    raw: rawTurns,
    async run(build, folder) {
      const { mill, blank } = opened(build, folder)
      await mill.enqueueMany(
        blank,
        Array.from({ length: jobs }, () => payload),
      )
      let completed = 0
      let claims = 0
      mill.on('queue.claimed', () => {
        claims += 1
      })
      const done = new Promise<void>((resolve) => {
        mill.on('job.completed', () => {
          completed += 1
          if (completed === jobs) resolve()
        })
      })
      const startedAt = performance.now()
      await mill.worker({ concurrency }).start()
      await done
      const perSecond = jobs / seconds(startedAt)
      await mill.close()
      return { perSecond, perCommit: Math.round(jobs / claims) }
    },
  }
}

function enqueueing(title: string, inFlight: number): SqliteMeasure {
  return {
    title,
    raw: rawInserts,
    async run(build, folder) {
      const { mill, blank } = opened(build, folder)
      await mill.depths()
      const calls = countedCalls(build)
      const startedAt = performance.now()
      await Promise.all(
        Array.from({ length: inFlight }, async () => {
          for (let i = 0; i < jobs / inFlight; i += 1) await mill.enqueue(blank, payload)
        }),
      )
      const perSecond = jobs / seconds(startedAt)
      const perCommit = Math.round(jobs / calls.stop())
      await mill.close()
      return { perSecond, perCommit }
    },
  }
}

function enqueueingMany(title: string, perCommit: number): SqliteMeasure {
  return {
    title,
    raw: rawInserts,
    async run(build, folder) {
      const { mill, blank } = opened(build, folder)
      await mill.depths()
      const inputs = Array.from({ length: perCommit }, () => payload)
      const startedAt = performance.now()
      for (let i = 0; i < jobs / perCommit; i += 1) await mill.enqueueMany(blank, inputs)
      const perSecond = jobs / seconds(startedAt)
      await mill.close()
      return { perSecond, perCommit }
    },
  }
}

/** Counts the store's enqueue calls, each of which is one commit here: a new one is made only when the last was answered. */
function countedCalls({ store }: SqliteBuild): { stop(): number } {
  const { enqueue } = store.prototype
  let calls = 0
  store.prototype.enqueue = function (...args) {
    calls += 1
    return enqueue.apply(this, args)
  }
  return {
    stop() {
      store.prototype.enqueue = enqueue
      return calls
    },
  }
}

function opened({ millrace, defineTask }: SqliteBuild, folder: string) {
  const blank = defineTask({ name: 'blank', run: async () => {} })
  const file = join(folder, `bench-${process.hrtime.bigint()}.db`)
  return { mill: millrace({ store: `sqlite:${file}`, tasks: [blank] }), blank }
}

function seconds(since: number): number {
  return (performance.now() - since) / 1_000
}
