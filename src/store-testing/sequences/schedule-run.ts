/**
 * The schedules of a command run: carries out commands about them, based on the stored schedule or an earlier reading
 * of it.
 */

import type { Schedules, ScheduleTick, StoredSchedule } from '../../stores/contract/schedules.js'
import { tickId } from '../../stores/rules/schedule-tick.js'
import type { ScheduleCommand, ScheduleIdea } from './command.js'

const leadMs = 15_000

export class ScheduleRun {
  /** By name, as they were read some time ago. */
  readonly #read = new Map<string, StoredSchedule>()

  async answer(schedules: Schedules, command: ScheduleCommand, now: number): Promise<unknown> {
    switch (command.verb) {
      case 'put schedule': {
        const { nextInMs, ...change } = command.schedule
        const expects = await this.#idea(schedules, change.definition.name, command.by)
        const next = nextInMs === undefined ? {} : { nextAt: now + nextInMs }
        return schedules.put({ ...change, ...next, paused: nextInMs === undefined }, expects)
      }
      case 'remove schedule': {
        const expects = command.by && (await this.#idea(schedules, command.name, command.by))
        return schedules.remove(command.name, expects?.revision)
      }
      case 'tick': {
        const schedule = await this.#idea(schedules, command.name, command.by)
        return schedule && schedules.tick(tickOf(schedule, command, now))
      }
      case 'due': {
        // Each store has its own.
        const { origin: _, ...due } = await schedules.due(command.worker, leadMs, command.limit)
        return due
      }
      case 'resign':
        return schedules.resign(command.worker)
      case 'schedules':
        return schedules.list(command.after, command.limit)
    }
  }

  async #idea(schedules: Schedules, name: string, by: ScheduleIdea): Promise<StoredSchedule | undefined> {
    if (by === 'read') return this.#read.get(name)
    const stored = await schedules.get(name)
    if (stored !== undefined) this.#read.set(name, stored)
    return stored
  }
}

/** Its job has its own id, or is named after the instant. */
function tickOf(schedule: StoredSchedule, command: ScheduleCommand & { verb: 'tick' }, now: number): ScheduleTick {
  const { definition, revision, nextAt, shards, lastId } = schedule
  const { name, queue, rule, job } = definition
  const { callId, count, heedsLast, isLast, passes } = command
  const [at, everyMs] = [nextAt ?? now, rule.everyMs!]
  // An ordered job that had another id may be in another shard, where not every store looks.
  const unless = heedsLast ? (job.id ?? lastId) : undefined
  return {
    ...{ name, queue, revision, callId, skips: 1, misses: 2 },
    ...(nextAt === undefined ? {} : { dueAt: nextAt }),
    ...(isLast ? {} : { nextAt: at + everyMs * Math.max(1, count) }),
    ...(passes ? { lastAt: at } : {}),
    ...(unless === undefined ? {} : { unless }),
    jobs: Array.from({ length: count }, (_, i) => ({ ...job, id: job.id ?? tickId(name, at + i * everyMs, shards) })),
  }
}
