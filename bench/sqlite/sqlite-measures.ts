/** The measures of SQLite: the work of a build of the package, each time on a file of its own. */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Millrace from 'millrace'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { rawInserts, rawTurns } from './raw-sqlite.js'
import { workedOff } from './worked-off.js'

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
  /** The same work as the raw limit does it. */
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
      await mill.enqueueMany(blank, inputs(jobs))
      const { seconds, claims } = await workedOff(mill, jobs, concurrency)
      await mill.close()
      return { perSecond: jobs / seconds, perCommit: Math.round(jobs / claims) }
    },
  }
}

/** `inFlight` callers, each of which enqueues one job after the other. */
function enqueueing(title: string, inFlight: number): SqliteMeasure {
  const caller = async ({ mill, blank }: Opened) => {
    for (let i = 0; i < jobs / inFlight; i += 1) await mill.enqueue(blank, payload)
  }
  return enqueued(title, async (open) => {
    await Promise.all(Array.from({ length: inFlight }, () => caller(open)))
  })
}

function enqueueingMany(title: string, perCall: number): SqliteMeasure {
  const some = inputs(perCall)
  return enqueued(title, async ({ mill, blank }) => {
    for (let i = 0; i < jobs / perCall; i += 1) await mill.enqueueMany(blank, some)
  })
}

/** `enqueue` enqueues all jobs. */
function enqueued(title: string, enqueue: (open: Opened) => Promise<void>): SqliteMeasure {
  return {
    title,
    raw: rawInserts,
    async run(build, folder) {
      const open = opened(build, folder)
      // The first job opens the file and the queue, which is not what is measured here.
      await open.mill.enqueue(open.blank, payload)
      const calls = countedCalls(build)
      const startedAt = performance.now()
      await enqueue(open)
      const seconds = (performance.now() - startedAt) / 1_000
      await open.mill.close()
      return { perSecond: jobs / seconds, perCommit: Math.round(jobs / calls.stop()) }
    },
  }
}

/** Counts the store's enqueue calls. Each is one commit here: a new call is made only when the last was answered. */
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

type Opened = ReturnType<typeof opened>

function opened({ millrace, defineTask }: SqliteBuild, folder: string) {
  const blank = defineTask({ name: 'blank', run: async () => {} })
  const file = join(folder, `bench-${process.hrtime.bigint()}.db`)
  return { mill: millrace({ store: `sqlite:${file}`, tasks: [blank] }), blank }
}

function inputs(count: number): unknown[] {
  return new Array<unknown>(count).fill(payload)
}
