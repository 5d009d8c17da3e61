/**
 * The mill of everything: a queue of every kind, whose handlers write down when they begin and end. Each process of a run
 * loads it, also those of isolated jobs; the package it is made with may be another version.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Duration, JobContext } from 'millrace'
import { type Kind, LedgerWriter, monotonicMs } from './effect-lines.js'
import { StartLatencies } from './start-latencies.js'

const { EVERYTHING_PACKAGE = 'millrace', MILLRACE_STORE: store = 'memory:', EVERYTHING_FOLDER: folder } = process.env
/** How often the schedules tick, and whether there are more than one. */
const { EVERYTHING_TICK: every = '1s', EVERYTHING_SCHEDULES: schedules = 'one' } = process.env
const { defineOrderedTask, defineTask, millrace } = (await import(EVERYTHING_PACKAGE)) as typeof import('millrace')

export const leaseMs = 4_000
export const startsLimit = { limit: 5, windowMs: 1_000 }
export const chainLength = 3
/** Of an isolated job: longer than a lease. */
const longMs = 6_000
/** Never buried: who was killed so often is not to blame. */
const boundless = { lease: leaseMs, longPoll: '500ms', maxCrashes: 1_000 } as const

export const ledger = folder === undefined ? undefined : new LedgerWriter(folder)
export const latencies = new StartLatencies()

/** What every job is given; `at` is on the machine's monotonic clock. */
export interface Work {
  readonly at: number
  /** How long its handler takes. */
  readonly ms: number
}
export interface Revision extends Work {
  readonly id: string
  readonly rev: number
}
export interface Link extends Work {
  readonly link: number
}

async function work(kind: Kind, { job, signal }: JobContext, { at, ms }: Work, more = ''): Promise<void> {
  const { id, fence } = job
  if (kind === 'plain') latencies.add(monotonicMs() - at)
  ledger?.begun(kind, id, fence, more)
  if (ms > 0) await delay(ms, undefined, { signal })
  ledger?.ended(kind, id, fence)
}

const effect = (kind: Kind) => (input: Work, ctx: JobContext) => work(kind, ctx, input, ctx.job.group)

export const plain = defineTask({ name: 'plain', queue: 'plain', run: effect('plain') })
export const delayed = defineTask({ name: 'delayed', queue: 'delayed', run: effect('delayed') })
export const throttled = defineTask({ name: 'throttled', queue: 'throttled', run: effect('throttled') })
export const grouped = defineTask({ name: 'grouped', queue: 'grouped', run: effect('grouped') })
export const ticking = defineTask({
  name: 'ticking',
  queue: 'ticking',
  run(input: Work, ctx) {
    const { job } = ctx
    const tick = job.schedule === undefined ? '' : `${job.schedule.name}@${job.schedule.tickAt.getTime()}`
    return work('ticking', ctx, input, tick)
  },
})

export const ordered = defineOrderedTask({
  name: 'ordered',
  queue: 'ordered',
  id: ({ id }: Revision) => id,
  score: ({ rev }) => rev,
  batchSize: 4,
  async run(revisionsById: ReadonlyMap<string, readonly Revision[]>, ctx) {
    for (const [id, revisions] of revisionsById) {
      const fence = ctx.job.fence
      ledger?.begun('ordered', id, fence, revisions.map(({ rev }) => rev).join(','))
      const ms = Math.max(...revisions.map((revision) => revision.ms))
      if (ms > 0) await delay(ms)
      ledger?.ended('ordered', id, fence)
    }
  },
})

export const chained = defineTask({
  name: 'chained',
  queue: 'chained',
  async run(input: Link, ctx) {
    await work('chained', ctx, input)
    const { at, ms, link } = input
    if (link === chainLength) return
    const next = await ctx.enqueue(chained, { at, ms, link: link + 1 })
    ledger?.accepted('chained', [next.id])
  },
})

export const long = defineTask({
  name: 'long',
  queue: 'long',
  isolate: 'process',
  module: import.meta.url,
  env: ['EVERYTHING_PACKAGE', 'EVERYTHING_FOLDER', 'MILLRACE_STORE'],
  timeLimit: '5m',
  // The death of a process of its own is a failure of its job.
  retry: { max: 1_000, backoff: () => 0 },
  async run(input: Work, ctx) {
    ledger?.begun('long', ctx.job.id, ctx.job.fence, '')
    for (let share = 0; share < 1; share += 0.1) {
      await ctx.progress(share)
      await delay(longMs / 10)
    }
    ledger?.ended('long', ctx.job.id, ctx.job.fence)
    return input.at
  },
})

const tick = { task: ticking, every: every as Duration, input: { at: 0, ms: 0 } } as const

export default millrace({
  store,
  queues: {
    plain: { ...boundless, weight: 40 },
    delayed: boundless,
    ordered: { ...boundless, shards: 3 },
    throttled: { ...boundless, throttle: { limit: startsLimit.limit, window: startsLimit.windowMs, by: 'group' } },
    grouped: { ...boundless, maxRunning: { perGroup: 1 } },
    ticking: boundless,
    chained: boundless,
    long: { ...boundless, maxRunning: 3 },
  },
  tasks: [plain, delayed, throttled, grouped, ticking, ordered, chained, long],
  schedules: {
    beat: { ...tick, onMissed: 'all' },
    ...(schedules === 'all'
      ? {
          latest: tick,
          skip: { ...tick, onMissed: 'skip' },
          slow: { ...tick, overlap: 'skip', input: { at: 0, ms: 700 } },
        }
      : {}),
  },
})
