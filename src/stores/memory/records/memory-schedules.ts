/** The memory store's schedules: the specification of the facet. */

import type {
  ScheduleDefinition,
  Schedules,
  ScheduleTick,
  StoredSchedule,
  TickAnswer,
} from '../../contract/schedules.js'
import { compareBytes } from '../../rules/byte-order.js'
import { type ScheduleLeadership, scheduleLeadAfter } from '../../rules/schedule-record.js'
import type { MemoryAdmin } from '../memory-admin.js'
import { defined } from '../queue/memory-job.js'

type MemorySchedule = Omit<StoredSchedule, 'shards'>

/** The schedules that the handles of one store share. */
export class MemorySchedules {
  readonly byName = new Map<string, MemorySchedule>()
  lead: ScheduleLeadership | undefined
  /** It forgets nothing while it is there. */
  readonly origin = 'memory'
}

export function memorySchedules(store: MemoryAdmin, data: () => MemorySchedules): Schedules {
  const shardsOf = ({ queue, job }: ScheduleDefinition) =>
    job.id === undefined ? store.queues().shardsOf(queue).length : 1
  const told = (schedule: MemorySchedule): StoredSchedule => ({ ...schedule, shards: shardsOf(schedule.definition) })
  const isThere = (queue: string, id: string) => {
    const state = store.queues().holding(queue, id).jobs.get(id)?.state
    return state === 'scheduled' || state === 'ready' || state === 'waiting' || state === 'running'
  }

  function step(schedule: MemorySchedule, { nextAt, lastAt, jobs, skips, misses }: ScheduleTick, isSkipped: boolean) {
    const { name } = schedule.definition
    data().byName.set(
      name,
      defined({
        ...schedule,
        nextAt,
        lastAt: lastAt ?? schedule.lastAt,
        lastId: isSkipped ? schedule.lastId : (jobs.at(-1)?.id ?? schedule.lastId),
        ticked: schedule.ticked + (isSkipped ? 0 : jobs.length),
        skipped: schedule.skipped + skips + (isSkipped ? jobs.length : 0),
        missed: schedule.missed + misses,
      }),
    )
  }

  return {
    async put(change, expects) {
      const { name } = change.definition
      const before = data().byName.get(name)
      store.queues().shardsOf(change.definition.queue)
      if (before?.revision === change.revision) return true
      if (before?.revision !== expects?.revision || before?.nextAt !== expects?.nextAt) return false
      const now = store.now()
      const counted = before ?? {
        ticked: 0,
        skipped: 0,
        missed: 0,
        createdAt: now,
        lastAt: undefined,
        lastId: undefined,
      }
      const { ticked, skipped, missed, createdAt, lastAt, lastId } = counted
      data().byName.set(
        name,
        defined({ ...change, ticked, skipped, missed, createdAt, lastAt, lastId, updatedAt: now }) as MemorySchedule,
      )
      store.tellSchedules()
      return true
    },

    async remove(name, expects) {
      const before = data().byName.get(name)
      if (before === undefined || (expects !== undefined && before.revision !== expects)) return false
      return data().byName.delete(name)
    },

    async get(name) {
      const schedule = data().byName.get(name)
      return schedule && told(schedule)
    },

    async list(after, limit) {
      return [...data().byName.values()]
        .filter(({ definition: { name } }) => after === undefined || compareBytes(name, after) > 0)
        .sort((a, b) => compareBytes(a.definition.name, b.definition.name))
        .slice(0, limit)
        .map(told)
    },

    async tick(tick): Promise<TickAnswer> {
      const { name, queue, revision, dueAt, jobs, unless, callId } = tick
      const schedule = data().byName.get(name)
      if (schedule?.revision !== revision || schedule.nextAt !== dueAt) return { outcome: 'lost' }
      const isSkipped = unless !== undefined && jobs.length > 0 && isThere(queue, unless)
      const enqueued = isSkipped || jobs.length === 0 ? [] : store.enqueue({ callId, queue, jobs })
      if (enqueued[0] === 'full' || enqueued[0] === 'draining') return { outcome: enqueued[0] }
      step(schedule, tick, isSkipped)
      return isSkipped ? { outcome: 'skipped' } : { outcome: 'ticked', enqueued }
    },

    async due(worker, leadMs, limit) {
      const now = store.now()
      const lead = scheduleLeadAfter(data().lead, worker, leadMs, now)
      data().lead = lead
      const [isLead, leftMs] = [lead.worker === worker, lead.until - now]
      const { origin } = data()
      if (!isLead) return { now, origin, isLead, leadMs: leftMs, due: [] }
      const waiting = [...data().byName.values()]
        .filter(({ nextAt }) => nextAt !== undefined)
        .sort((a, b) => a.nextAt! - b.nextAt! || compareBytes(a.definition.name, b.definition.name))
      const due = waiting.filter(({ nextAt }) => nextAt! <= now).slice(0, limit)
      const nextAt = waiting[due.length]?.nextAt
      return { now, origin, isLead, leadMs: leftMs, due: due.map(told), ...(nextAt === undefined ? {} : { nextAt }) }
    },

    async resign(worker) {
      if (data().lead?.worker === worker) data().lead = undefined
    },

    async changed(forMs, signal) {
      await store.nextSchedule(forMs, signal)
    },
  }
}
