/** The memory store's records: administration of the jobs of its queues, listings of them, and the deaths that no worker has reported. */

import type { JobState } from '../../../core/job/job.js'
import {
  type DeathBacklog,
  type Deaths,
  type JobSelection,
  type ListQuery,
  type Page,
  type Records,
  type Step,
  tasksInBacklog,
  type UnreportedDeath,
} from '../../contract/job-records.js'
import type { QueueBasis } from '../../contract/queue-settings.js'
import { longestExpectMs, stepLimit, stepPayloads } from '../../rules/bounds.js'
import { changedFields } from '../../rules/field-changes.js'
import { comparePositions, cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import { refuseNewPlace, refuseSelf } from '../../rules/queue-form.js'
import { dueAt } from '../../rules/sequence.js'
import type { MemoryAdmin } from '../memory-admin.js'
import type { MemoryQueues } from '../memory-queues.js'
import { type MemoryJob, rememberedRecord, storedJob } from '../queue/memory-job.js'
import type { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'
import { lose, memoryOf } from '../queue/memory-retention.js'
import { fail } from '../work/memory-settle.js'

/** Whether its payloads wait behind a running job, and would wait on when that has ended. */
function isForLater(successor: MemoryJob['successor'], now: number): boolean {
  return successor !== undefined && !successor.isReady && dueAt(successor.stamp) > now
}

/** The states on which an action on all jobs works, in this order: a join goes before its members, whose ends would make it dead. */
const waitingStates: readonly JobState[] = ['waiting', 'ready', 'scheduled']

export function memoryRecords(store: MemoryAdmin): Records {
  /** One bounded step over the selected jobs in these states, shard by shard. */
  function step(
    name: string,
    where: JobSelection,
    states: readonly JobState[],
    change: (queue: MemoryQueue, job: MemoryJob, now: number) => boolean,
    isIdle?: (job: MemoryJob, now: number) => boolean,
  ): Step {
    return store.gatherEnds(() => stepOver(name, where, states, change, isIdle))
  }

  function stepOver(
    name: string,
    where: JobSelection,
    states: readonly JobState[],
    change: (queue: MemoryQueue, job: MemoryJob, now: number) => boolean,
    isIdle: (job: MemoryJob, now: number) => boolean = () => false,
  ): Step {
    const now = store.now()
    let changed = 0
    let payloads = 0
    let more = false
    let calls = false
    for (const { queue, job } of selected(store.queues(), name, where, states, now)) {
      if (isIdle(job, now)) continue
      more = changed === stepLimit || payloads >= stepPayloads
      if (more) break
      const count = (job.payloads ?? job.successor?.payloads)?.size ?? 0
      if (!change(queue, job, now)) continue
      changed += 1
      payloads += count
      calls ||= queue.isCalling(job.spec.id, now)
    }
    if (calls) store.ring(name)
    if (changed > 0) store.tellEnds()
    return { changed, more }
  }

  return {
    queues: async () =>
      store
        .queues()
        .stored()
        .sort((a, b) => (a.name < b.name ? -1 : 1)),

    async get(name, id) {
      const queue = store.queues().holding(name, id)
      const now = store.now()
      const job = queue.jobs.get(id) ?? queue.deadJob(id)
      if (job !== undefined && !queue.isHidden(job, now)) return storedJob(job, 'alone')
      const memory = memoryOf(queue, id, now)
      return memory === undefined ? undefined : rememberedRecord(name, memory)
    },

    list: async (name, query) => page(store.queues().shardsOf(name), query, store.now()),

    cancel: async (name, where, reason) =>
      step(name, where, [...waitingStates, 'running'], (queue, job, now) => {
        if (job.cancelRequested) return false
        job.reason = reason
        if (job.state === 'running') queue.requestCancel(job)
        else queue.end(job, 'cancelled', now)
        return true
      }),

    delete: async (name, where) =>
      step(name, where, typeof where === 'object' ? [...waitingStates, 'completed'] : waitingStates, removed),

    runNow: async (name, where) =>
      step(
        name,
        where,
        ['scheduled', 'running'],
        (queue, job, now) => {
          queue.runNow(job, now)
          return true
        },
        (job, now) => job.state === 'running' && !isForLater(job.successor, now),
      ),

    async reschedule(name, ids, to) {
      refuseNewPlace(name, store.queues().shardsOf(name)[0]!.settings.kind)
      const { changed } = step(name, { ids }, ['ready', 'scheduled'], (queue, job, now) => {
        if (job.suspect) return false
        queue.reschedule(job, to, now)
        return true
      })
      return changed
    },

    bury: async (name, where) =>
      step(name, where, waitingStates, (queue, job, now) => {
        queue.bury(job, 'buried', undefined, now)
        return true
      }),

    async fail(name, id, how) {
      const queue = store.queues().holding(name, id)
      const job = queue.jobs.get(id)
      if (job?.state !== 'running') return 'gone'
      const now = store.now()
      fail(queue, job, how, now)
      const mayFree = queue.settings.exclusive === 'shard' || queue.limits.maxRunning !== undefined
      const isFreed =
        mayFree && queue.limits.shards.some((shard) => shard.claimable(now) > 0 || shard.isOpenForSuspects(now))
      if (queue.isCalling(id, now) || isFreed) store.ring(name)
      store.tellEnds()
      return 'ok'
    },

    async setFields(name, id, changes) {
      const queue = store.queues().holding(name, id)
      const job = queue.jobs.get(id)
      if (job === undefined || queue.isHidden(job, store.now())) return 'gone'
      const fields = changedFields(job.fields ?? {}, changes)
      if (fields === undefined) return 'full'
      job.fields = Object.keys(fields).length === 0 ? undefined : fields
      return 'ok'
    },

    async pause(name) {
      for (const shard of store.queues().shardsOf(name)) shard.paused = true
    },

    async resume(name) {
      for (const shard of store.queues().shardsOf(name)) {
        shard.paused = false
        shard.draining = false
      }
      store.ring(name)
    },

    async drain(name) {
      for (const shard of store.queues().shardsOf(name)) shard.draining = true
    },

    async setLimits(name, change) {
      const limits = store.queues().setLimits(name, change)
      store.ring(name)
      return limits
    },

    clear: async (name) => step(name, 'all', [...waitingStates, 'dead'], removed),

    async reshard(name, shards) {
      const changed = store.queues().reshard(name, shards, store.now())
      if (changed === undefined) return { changed: 0, more: true }
      if (changed > 0) store.ring(name)
      return { changed, more: false }
    },

    async move(from, to) {
      const queues = store.queues()
      queues.ordered(to)
      queues.ordered(from)
      refuseSelf(from, to)
      const moved = step(from, 'all', [...waitingStates, 'dead'], (queue, job, now) => {
        const target = queues.holding(to, job.spec.id) as MemoryOrderedQueue
        queue.drop(job, now)
        target.adopt(job, now)
        target.lastScore = Math.max(target.lastScore, (queue as MemoryOrderedQueue).lastScore)
        return true
      })
      if (moved.changed > 0) store.ring(to)
      return moved
    },

    morgue: {
      async get(name, id) {
        const queue = store.queues().holding(name, id)
        const job = queue.deadJob(id)
        return job === undefined || queue.isHidden(job, store.now()) ? undefined : storedJob(job, 'alone')
      },

      list: async (name, query) => page(store.queues().shardsOf(name), { ...query, state: 'dead' }, store.now()),

      revive: async (name, where) =>
        step(name, where === 'failed' ? 'all' : where, ['dead'], (queue, job, now) => queue.revive(job, now)),

      delete: async (name, where) => step(name, where === 'failed' ? 'all' : where, ['dead'], removed),
    },

    async watch(jobs, forMs, signal) {
      const deadline = store.now() + forMs
      for (;;) {
        const ended = jobs.filter(({ queue, id }) => {
          const job = store.queues().holding(queue, id).jobs.get(id)
          return job === undefined || job.state === 'completed' || job.state === 'dead'
        })
        const left = deadline - store.now()
        if (ended.length > 0 || left <= 0 || signal.aborted) return ended
        if ((await store.nextEnd(left, signal)) === undefined) return []
      }
    },

    async expect(jobs, by, forMs) {
      const now = store.now()
      const until = forMs > 0 ? now + Math.min(forMs, longestExpectMs) : undefined
      for (const { queue: name, id } of jobs) {
        const queue = store.queues().holding(name, id)
        if (queue.settings.kind === 'ordered') continue
        queue.expected.expire(now)
        const job = queue.jobs.get(id)
        queue.expected.set(id, by, job === undefined || queue.isHidden(job, now) ? undefined : until)
        if (job?.state === 'completed' && job.expiresAt !== undefined && !queue.isHidden(job, now))
          job.expiresAt = Math.max(job.expiresAt, until ?? job.expiresAt)
      }
    },
  }
}

/** The facet `deaths`: the deaths that no worker has reported. */
export function memoryDeaths(store: MemoryAdmin): Deaths {
  return {
    async unreported(names, tasks, limit, except = []) {
      const shards = names.flatMap((name) => store.queues().shardsOf(name))
      const deaths = shards.flatMap((shard) => shard.unreported)
      const isAsked = ({ queue, id, task, number }: UnreportedDeath) =>
        tasks.includes(task) &&
        !except.some((other) => other.number === number && other.id === id && other.queue === queue)
      return deaths.filter(isAsked).slice(0, limit)
    },

    async backlog(names, most) {
      return names.flatMap((queue) => {
        const deaths = store
          .queues()
          .shardsOf(queue)
          .flatMap((shard) => shard.unreported)
        const tasks = new Map<string, DeathBacklog>()
        for (const { task, diedAt } of deaths) {
          const { count, since } = tasks.get(task) ?? { count: 0, since: diedAt }
          tasks.set(task, { queue, task, count: Math.min(count + 1, most), since })
        }
        return [...tasks.values()].slice(0, tasksInBacklog)
      })
    },

    async reported(name, deaths) {
      for (const { id, number } of deaths) {
        const queue = store.queues().holding(name, id)
        queue.unreported = queue.unreported.filter((death) => death.number !== number || death.id !== id)
      }
    },
  }
}

/** Removes a job by hand. */
function removed(queue: MemoryQueue, job: MemoryJob, now: number): true {
  lose(queue, job, now, now)
  return true
}

/** The selected jobs, each with its shard. */
function selected(
  queues: MemoryQueues,
  name: string,
  where: JobSelection,
  states: readonly JobState[],
  now: number,
): { readonly queue: MemoryQueue; readonly job: MemoryJob }[] {
  const found = (queue: MemoryQueue, jobs: readonly MemoryJob[]) =>
    jobs.filter((job) => states.includes(job.state) && !queue.isHidden(job, now)).map((job) => ({ queue, job }))
  if (typeof where === 'object') {
    return [...new Set(where.ids)].flatMap((id) => {
      const queue = queues.holding(name, id)
      const job = states.includes('dead') ? queue.deadJob(id) : queue.jobs.get(id)
      return job === undefined ? [] : found(queue, [job])
    })
  }
  const all = queues.shardsOf(name).flatMap((queue) => states.flatMap((state) => found(queue, queue.inState(state))))
  return where === 'failed' ? all.filter(({ job }) => job.attempt > 1) : all
}

/**
 * A page of the jobs in a given order. It ends with a position, not with a number of jobs: jobs that come and go meanwhile
 * shift no others.
 */
function page(shards: readonly MemoryQueue[], query: ListQuery, now: number): Page {
  const after = query.cursor === undefined ? undefined : positionIn(query.cursor, query.by, arePosition)
  const found = shards
    .flatMap((shard) => shard.kept().filter((job) => !shard.isHidden(job, now)))
    .filter((job) => query.state === undefined || job.state === query.state)
    .filter((job) => query.group === undefined || job.spec.group === query.group)
    .filter((job) => query.by !== 'retry' || (job.attempt > 1 && isWaitingOrRunning(job.state)))
    .map((job) => ({ job, position: positions[query.by](job, shards[0]!.settings) }))
    .filter(({ position }) => after === undefined || comparePositions(position, after) > 0)
    .sort((a, b) => comparePositions(a.position, b.position))
  const jobs = found.slice(0, query.limit).map(({ job }) => storedJob(job, 'listed'))
  return found.length > jobs.length ? { jobs, cursor: cursorAt(found[jobs.length - 1]!.position, query.by) } : { jobs }
}

const positions: Record<ListQuery['by'], (job: MemoryJob, settings: QueueBasis) => ListPosition> = {
  id: (job) => [job.spec.id, job.state === 'dead' ? 1 : 0],
  time: timePosition,
  retry: (job, settings) => [job.attempt, tie(job, settings)],
}

/** The jobs of an ordered queue are in several shards, each of which counts for itself. */
function tie(job: MemoryJob, { kind }: QueueBasis): number | string {
  return kind === 'ordered' ? job.spec.id : job.seq
}

function timePosition(job: MemoryJob, settings: QueueBasis): ListPosition {
  const { order, kind } = settings
  const last = tie(job, settings)
  switch (job.state) {
    case 'running':
      return [0, job.fence, last]
    case 'ready':
      return [1, job.suspect ? 1 : 0, -job.spec.priority, order === 'lifo' ? -job.stamp : job.stamp, last]
    case 'scheduled':
      return [2, job.stamp, last]
    case 'waiting':
      return [3, job.stamp, last]
    default:
      return [job.state === 'completed' ? 4 : 5, -job.finishedAt!, kind === 'ordered' ? last : -job.seq]
  }
}

function isWaitingOrRunning(state: JobState): boolean {
  return state === 'ready' || state === 'scheduled' || state === 'running'
}

function arePosition(parts: readonly unknown[]): boolean {
  return parts.length > 0 && parts.every((part) => typeof part === 'number' || typeof part === 'string')
}
