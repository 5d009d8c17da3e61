/** A replica of a service in the proof `shared-services`: a worker on a store and a queue that another service shares. */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'

export interface ServiceWords {
  readonly store: string
  readonly service: string
  /** Counts its deploys: each replaces one of its schedules by another. */
  readonly version: number
}

/** What a replica tells: a start of a job, or why ticks were not enqueued. */
export type ServiceWord =
  | { readonly kind: 'ready' }
  | { readonly kind: 'started'; readonly id: string; readonly service: string; readonly waitMs: number }
  | { readonly kind: 'tick'; readonly schedule: string; readonly tickAt: number; readonly id: string }
  | {
      readonly kind: 'left out'
      readonly schedule: string
      /** The last or the first of them, as the reason is the overlap or another. */
      readonly tickAt: number
      readonly ticks: number
      readonly reason: string
    }
  | { readonly kind: 'reconciled'; readonly schedule: string; readonly change: string }
  | { readonly kind: 'warned' }

export const queue = 'shared'
/** How long the jobs run that overlap with the next tick, at most. */
export const longestMs = 3_500

export function jobOf(service: string) {
  return `${service}-job`
}

/** Only in a process of its own: the proof takes the types from here. */
async function serve({ store, service, version }: ServiceWords): Promise<void> {
  const tell = (word: ServiceWord) => process.send?.(word)
  // Since its enqueue: each time that it is put back its due time is another.
  const started = (id: string, createdAt: Date) =>
    tell({ kind: 'started', id, service, waitMs: Date.now() - createdAt.getTime() })
  const quick = defineTask({ name: jobOf(service), queue, run: (_, { job }) => void started(job.id, job.createdAt) })
  const tick = defineTask({
    name: `${service}-tick`,
    queue,
    run(_: unknown, { job }) {
      started(job.id, job.createdAt)
      const { name, tickAt } = job.schedule!
      tell({ kind: 'tick', schedule: name, tickAt: tickAt.getTime(), id: job.id })
    },
  })
  const long = defineTask({
    name: `${service}-long`,
    queue,
    async run(_: unknown, { job, signal }) {
      const { name, tickAt } = job.schedule!
      tell({ kind: 'tick', schedule: name, tickAt: tickAt.getTime(), id: job.id })
      // By the tick, so that a run again takes as long.
      await delay((tickAt.getTime() / 1_000) % 7 === 0 ? longestMs : 200, undefined, { signal })
    },
  })
  const every = '1s'
  const mill = millrace({
    ...{ store: store as 'memory:', namespace: 'shared', schedulesOf: service, tasks: [quick, tick, long] },
    queues: { [queue]: { lease: '3s' } },
    schedules: {
      [`${service}-each`]: { every, task: tick },
      [`${service}-long`]: { every, task: long, overlap: 'skip' },
      [`${service}-of-${version}`]: { every, task: tick },
    },
  })
  mill.on('schedule.skipped', ({ schedule, tickAt, ticks }) =>
    tell({ kind: 'left out', schedule, tickAt, ticks, reason: 'overlap: its last job waits or runs' }),
  )
  mill.on('schedule.missed', ({ schedule, tickAt, leftOut, reason }) =>
    tell({ kind: 'left out', schedule, tickAt, ticks: leftOut, reason: `missed: ${reason}` }),
  )
  mill.on('schedule.reconciled', ({ schedule, change }) => tell({ kind: 'reconciled', schedule, change }))
  mill.on('task.unknown', () => tell({ kind: 'warned' }))
  await mill.worker({ concurrency: 10 }).start()
  tell({ kind: 'ready' })
  process.once('message', () => void mill.close().then(() => process.disconnect()))
}

if (process.send !== undefined && process.argv[2]?.startsWith('{"store"'))
  await serve(JSON.parse(process.argv[2]) as ServiceWords)
