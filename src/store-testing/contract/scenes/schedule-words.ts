/** The vocabulary of schedules in contract cases: one that ticks each hour, and its ticks. */

import assert from 'node:assert/strict'
import type { ScheduleChange, Schedules, ScheduleTick, StoredSchedule } from '../../../stores/contract/schedules.js'
import type { Store } from '../../../stores/contract/store.js'
import { tickId } from '../../../stores/rules/schedule-record.js'
import { newJob } from './scene.js'

export const hourMs = 3_600_000

export function schedulesOf(store: Store): Schedules {
  const { schedules } = store
  assert.ok(schedules, 'the store has schedules')
  // Bound, so that cases may destructure single verbs.
  return {
    put: (...args) => schedules.put(...args),
    remove: (...args) => schedules.remove(...args),
    get: (name) => schedules.get(name),
    list: (...args) => schedules.list(...args),
    tick: (tick) => schedules.tick(tick),
    due: (...args) => schedules.due(...args),
    resign: (worker) => schedules.resign(worker),
    changed: (...args) => schedules.changed(...args),
  }
}

/** A schedule that is due at `nextAt` and enqueues a mail each time. */
export function hourly(
  name: string,
  nextAt: number | undefined,
  more: Partial<Omit<ScheduleChange, 'definition'>> & { readonly definition?: object } = {},
): ScheduleChange {
  const { id: _, ...job } = newJob({ id: name })
  const { definition, ...change } = more
  return {
    definition: {
      ...{ name, queue: 'mail', rule: { everyMs: hourMs, timeZone: 'UTC' }, onMissed: 'latest', overlap: 'allow' },
      ...{ jitterMs: 0, job },
      ...definition,
    },
    revision: `${name}-1`,
    paused: false,
    ...(nextAt === undefined ? {} : { nextAt }),
    ...change,
  }
}

/** The tick of a schedule at its next instant; the one after is an hour later. */
export function tickOf(schedule: StoredSchedule, more: Partial<ScheduleTick> = {}): ScheduleTick {
  const { definition, revision, nextAt, shards } = schedule
  assert.ok(nextAt !== undefined, 'the schedule has a next tick')
  const { name, queue, job } = definition
  const id = job.id ?? tickId(name, nextAt, shards)
  return {
    ...{ name, queue, revision, dueAt: nextAt, nextAt: nextAt + hourMs, lastAt: nextAt },
    ...{ callId: `call of ${id} ${++calls}`, jobs: [{ ...job, id }], skips: 0, misses: 0 },
    ...more,
  }
}

let calls = 0

/** The stored schedule; it must exist. */
export async function storedSchedule(store: Store, name: string): Promise<StoredSchedule> {
  const schedule = await schedulesOf(store).get(name)
  assert.ok(schedule, `schedule '${name}' is stored`)
  return schedule
}
