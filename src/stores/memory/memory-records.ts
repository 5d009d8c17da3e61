/** The memory store's records: administration of the jobs of its queues. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { JobState } from '../../core/job.js'
import type { ListQuery, Page, Records, Step, StoredJob, StoredQueue, Where } from '../store.js'
import { type MemoryJob, rememberedRecord, storedJob } from './memory-job.js'
import type { MemoryQueue } from './memory-queue.js'

/** Most jobs changed in one step. */
const stepLimit = 1_000

export interface MemoryAdmin {
  readonly queues: ReadonlyMap<string, MemoryQueue>
  queue(name: string): MemoryQueue
  now(): number
  ring(queue: string): void
  /** Resolves true at the next change of any job, false after `forMs` or when aborted. */
  nextChange(forMs: number, signal: AbortSignal): Promise<boolean>
}

/** Which states a state-wide action looks at, in the order it takes them. */
const waitingStates: readonly JobState[] = ['ready', 'scheduled']
const timeOrder: readonly JobState[] = ['running', 'ready', 'scheduled', 'completed', 'dead']

export function memoryRecords(store: MemoryAdmin): Records {
  /** One bounded step over the selected jobs in these states. */
  function step(
    name: string,
    where: Where,
    states: readonly JobState[],
    change: (queue: MemoryQueue, job: MemoryJob, now: number) => boolean,
  ): Step {
    const queue = store.queue(name)
    const now = store.now()
    let changed = 0
    for (const job of selected(queue, where, states, now)) {
      if (changed === stepLimit) return { changed, more: true }
      if (change(queue, job, now)) changed += 1
    }
    if (changed > 0) store.ring(name)
    return { changed, more: false }
  }

  return {
    queues: async () => [...store.queues.values()].map(storedQueue).sort((a, b) => (a.name < b.name ? -1 : 1)),

    async get(name, id) {
      const queue = store.queue(name)
      const now = store.now()
      const job = queue.jobs.get(id)
      if (job !== undefined && !queue.isHidden(job, now)) return storedJob(job)
      const remembered = queue.remembered.get(id)
      return remembered !== undefined && remembered.until > now ? rememberedRecord(name, remembered) : undefined
    },

    list: async (name, query) => page(store.queue(name), query, store.now()),

    cancel: async (name, where, reason) =>
      step(name, where, [...waitingStates, 'running'], (queue, job, now) => {
        if (job.cancelRequested) return false
        job.reason = reason
        if (job.state === 'running') job.cancelRequested = true
        else queue.end(job, 'cancelled', now)
        return true
      }),

    delete: async (name, where) =>
      step(name, where, typeof where === 'object' ? [...waitingStates, 'completed'] : waitingStates, (queue, job) => {
        queue.drop(job)
        return true
      }),

    runNow: async (name, where) =>
      step(name, where, ['scheduled'], (queue, job, now) => {
        queue.runNow(job, now)
        return true
      }),

    bury: async (name, where) =>
      step(name, where, waitingStates, (queue, job, now) => {
        queue.bury(job, 'buried', undefined, now)
        return true
      }),

    async fail(name, id, how) {
      const queue = store.queue(name)
      const job = queue.jobs.get(id)
      if (job?.state !== 'running') return 'gone'
      queue.failClaim(job, { ...how, error: how.reason }, store.now())
      store.ring(name)
      return 'ok'
    },

    async pause(name) {
      store.queue(name).paused = true
    },

    async resume(name) {
      const queue = store.queue(name)
      queue.paused = false
      queue.draining = false
      store.ring(name)
    },

    async drain(name) {
      store.queue(name).draining = true
    },

    clear: async (name) =>
      step(name, 'all', [...waitingStates, 'dead'], (queue, job) => {
        queue.drop(job)
        return true
      }),

    morgue: {
      list: async (name, query) => page(store.queue(name), { ...query, state: 'dead' }, store.now()),

      revive: async (name, where) =>
        step(name, where === 'failed' ? 'all' : where, ['dead'], (queue, job, now) => {
          queue.revive(job, now)
          return true
        }),

      delete: async (name, where) =>
        step(name, where === 'failed' ? 'all' : where, ['dead'], (queue, job) => {
          queue.drop(job)
          return true
        }),
    },

    async watch(jobs, forMs, signal) {
      const deadline = store.now() + forMs
      for (;;) {
        const ended = jobs.filter(({ queue, id }) => {
          const job = store.queue(queue).jobs.get(id)
          return job === undefined || job.state === 'completed' || job.state === 'dead'
        })
        const left = deadline - store.now()
        if (ended.length > 0 || left <= 0 || signal.aborted) return ended
        if (!(await store.nextChange(left, signal))) return []
      }
    },
  }
}

export function storedQueue(queue: MemoryQueue): StoredQueue {
  const { name, kind, order } = queue.settings
  return { name, kind, order, paused: queue.paused, draining: queue.draining }
}

function selected(queue: MemoryQueue, where: Where, states: readonly JobState[], now: number): MemoryJob[] {
  const jobs =
    typeof where === 'object'
      ? where.ids.flatMap((id) => queue.jobs.get(id) ?? [])
      : states.flatMap((state) => inState(queue, state))
  const wanted = new Set(states)
  return [...new Set(jobs)].filter(
    (job) => wanted.has(job.state) && !queue.isHidden(job, now) && (where !== 'failed' || job.attempt > 1),
  )
}

function inState(queue: MemoryQueue, state: JobState): MemoryJob[] {
  switch (state) {
    case 'ready':
      return [...queue.ready]
    case 'scheduled':
      return [...queue.scheduled]
    case 'running':
      return [...queue.running].sort((a, b) => a.fence - b.fence || a.seq - b.seq)
    case 'completed':
      return [...queue.completed].reverse()
    case 'dead':
      return [...queue.dead].reverse()
    default:
      return []
  }
}

function page(queue: MemoryQueue, query: ListQuery, now: number): Page {
  const states = query.state === undefined ? timeOrder : [query.state]
  let jobs = states.flatMap((state) => inState(queue, state)).filter((job) => !queue.isHidden(job, now))
  if (query.by === 'id') jobs.sort((a, b) => compareBytes(a.spec.id, b.spec.id))
  if (query.by === 'retry') {
    jobs = jobs.filter((job) => job.attempt > 1 && job.state !== 'completed' && job.state !== 'dead')
    jobs.sort((a, b) => a.attempt - b.attempt || a.seq - b.seq)
  }
  // Positions in this listing are enough of a cursor here: nothing but tests pages through memory.
  const from = query.cursor === undefined ? 0 : Number(query.cursor)
  if (!Number.isInteger(from) || from < 0)
    throw new InvalidArgumentError(`'${query.cursor}' is not a cursor of this listing.`)
  const found: StoredJob[] = jobs.slice(from, from + query.limit).map(storedJob)
  return from + query.limit < jobs.length ? { jobs: found, cursor: String(from + query.limit) } : { jobs: found }
}

/** UTF-8 byte order, as databases sort text. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
