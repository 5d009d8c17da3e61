/** The memory store's records: administration of the jobs of its queues. */

import type { JobState } from '../../core/job.js'
import { stepLimit } from '../../core/upkeep.js'
import type { Records, Step, Where } from '../job-records.js'
import type { StoredQueue } from '../store.js'
import type { MemoryAdmin } from './memory-admin.js'
import { type MemoryJob, rememberedRecord, storedJob } from './memory-job.js'
import { page } from './memory-listing.js'
import type { MemoryQueue } from './memory-queue.js'
import { failClaim } from './memory-settle.js'

/** Which states a state-wide action looks at, in the order it takes them. */
const waitingStates: readonly JobState[] = ['ready', 'scheduled']

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
    let more = false
    let calls = false
    for (const job of selected(queue, where, states, now)) {
      more = changed === stepLimit
      if (more) break
      if (!change(queue, job, now)) continue
      changed += 1
      calls ||= queue.isCalling(job.spec.id, now)
    }
    if (calls) store.ring(queue)
    if (changed > 0) store.tellEnds()
    return { changed, more }
  }

  return {
    queues: async () => [...store.queues()].map(storedQueue).sort((a, b) => (a.name < b.name ? -1 : 1)),

    async get(name, id) {
      const queue = store.queue(name)
      const now = store.now()
      const job = queue.jobs.get(id)
      if (job !== undefined && !queue.isHidden(job, now)) return storedJob(job)
      const memory = queue.memoryOf(id, now)
      return memory === undefined ? undefined : rememberedRecord(name, memory)
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
      const now = store.now()
      failClaim(queue, job, { ...how, error: how.reason }, now)
      if (queue.isCalling(id, now)) store.ring(queue)
      store.tellEnds()
      return 'ok'
    },

    async pause(name) {
      store.queue(name).paused = true
    },

    async resume(name) {
      const queue = store.queue(name)
      queue.paused = false
      queue.draining = false
      store.ring(queue)
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
        if ((await store.nextEnd(left, signal)) === undefined) return []
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
      : states.flatMap((state) => queue.inState(state))
  const wanted = new Set(states)
  return [...new Set(jobs)].filter(
    (job) => wanted.has(job.state) && !queue.isHidden(job, now) && (where !== 'failed' || job.attempt > 1),
  )
}
