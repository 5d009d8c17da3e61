/** A workbench of throttled jobs: the jobs in flight of a worker, on a clock that is moved by hand. */

import { defineTask, type EventMap, type Middleware, type QueueOptions } from 'millrace'
import { memoryHarness } from 'millrace/store-testing'
import { onTestFinished } from 'vitest'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { inFlightOn } from './in-flight-on.js'

/** The clock of the store and that of the bench are so far apart. */
const storeStartedAt = 1_000_000

/** A workbench on a queue that is stored as throttled, or is not, and whose jobs run until they are ended. */
export async function bench(given: {
  readonly slots?: number
  readonly throttled?: boolean
  readonly window?: number
  readonly queue?: QueueOptions
}) {
  const { slots = 1, throttled = true, window = 1_000, queue = {} } = given
  const begun: string[] = []
  const ends: (() => void)[] = []
  const [task, other] = ['default', 'other'].map((queue) =>
    defineTask({
      name: queue === 'default' ? 't' : 'other',
      queue,
      run: (_, { job }) => {
        begun.push(job.id)
        return new Promise<void>((resolve) => ends.push(resolve))
      },
    }),
  )
  const harness = await memoryHarness()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  const settings = { name: 'default', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
  const stored = await store.open([
    { ...settings, ...(throttled ? { throttle: throttleOf('default', { limit: 100, window }) } : {}) },
    { ...settings, name: 'other' },
  ])
  const queues = { default: queue, other: {} }
  const options = checkOptions({ store: 'memory:', tasks: [task!, other!], queues }, store.traits)
  let now = 0
  const mono = () => now
  const limited = new LimitedQueues(stored)
  const timers = new Set<{ readonly at: number; readonly work: () => void }>()
  const slowness = { ms: 0 }
  const declared: number[] = []
  const slow: Middleware = {
    run: (_, next) => {
      now += slowness.ms
      return next()
    },
  }
  const { inFlight, events, settler, punctuality } = inFlightOn({
    ...{ store, slots, mono, limited },
    options: { ...options, middleware: [slow] },
    prefetched: 1,
    after: (ms, work) => {
      const timer = { at: now + ms, work }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  })
  const wasted: EventMap['permit.wasted'][] = []
  const late: EventMap['start.late'][] = []
  events.on('start.late', (event) => late.push(event))
  events.on('permit.wasted', (event) => wasted.push(event))
  return {
    begun,
    wasted,
    late,
    /** How late each claim said that its jobs may begin. */
    declared,
    /** How long a middleware takes before each handler. */
    slowness,
    inFlight,
    /** Time passes, and what is due by then is done. */
    async pass(ms: number) {
      now += ms
      for (const timer of timers) if (timer.at <= now && timers.delete(timer)) timer.work()
      await new Promise(setImmediate)
    },
    /**
     * Jobs of these ids are claimed by a call that was sent at `sentAt` on the clock of the bench, and are accepted now; the
     * store granted them at `grantedAt`.
     */
    async claimed(
      ids: readonly string[],
      given: {
        readonly sentAt?: number
        readonly grantedAt?: number
        readonly name?: string
        readonly queue?: 'default' | 'other'
      } = {},
    ) {
      const { sentAt = now, grantedAt = sentAt, queue = 'default', name = queue === 'other' ? queue : 't' } = given
      const jobs = ids.map((id) => ({ id, task: name, payload: '1', priority: 0, rememberMs: 0 }))
      if (jobs.length > 0) await store.enqueue([{ callId: ids.join(), queue, jobs }])
      const lateMs = punctuality.lateMsOf(queue)
      declared.push(lateMs)
      const { claims } = await store.claim([{ queue, limit: 10, lateMs }], { worker: 'w', leaseMs: 30_000 })
      inFlight.accept(claims, { sentAt, answeredAt: now, now: storeStartedAt + grantedAt, lateMs })
      await new Promise(setImmediate)
    },
    async endAll() {
      for (const end of ends.splice(0)) end()
      await new Promise(setImmediate)
      await settler.settled(1_000)
    },
    state: async (id: string) => (await store.records!.get('default', id))?.state,
  }
}
