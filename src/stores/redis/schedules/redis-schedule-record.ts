/**
 * The record of a schedule as Redis stores it: its revision, its numbers, the id of its last job and its definition,
 * separated by NUL.
 */

import type { StoredSchedule } from '../../contract/schedules.js'
import { definitionIn, definitionText } from '../../rules/schedule-record.js'

/** The numbers of a record, in this order; -1 if absent. Scripts know the first five (`scheduleRecords`). */
const numbers = ['nextAt', 'lastAt', 'ticked', 'skipped', 'missed', 'paused', 'createdAt', 'updatedAt'] as const

export function recordText(schedule: Omit<StoredSchedule, 'shards'>): string {
  const values = numbers.map((name) => Number(schedule[name] ?? -1))
  return [schedule.revision, values.join(' '), schedule.lastId ?? '', definitionText(schedule.definition)].join('\0')
}

/** Undefined for an unreadable record: one damaged schedule must not stop the others. */
export function recordIn(text: string): Omit<StoredSchedule, 'shards'> | undefined {
  const [revision, values, lastId, ...rest] = text.split('\0')
  const definition = definitionIn(rest.join('\0'))
  if (definition === undefined || revision === undefined || values === undefined) return undefined
  const [nextAt, lastAt, ticked, skipped, missed, paused, createdAt, updatedAt] = values.split(' ').map(Number)
  return {
    ...{ definition, revision, paused: paused === 1 },
    ...(nextAt === -1 ? {} : { nextAt: nextAt! }),
    ...(lastAt === -1 ? {} : { lastAt: lastAt! }),
    ...(lastId === '' ? {} : { lastId: lastId! }),
    ...{ ticked: ticked!, skipped: skipped!, missed: missed!, createdAt: createdAt!, updatedAt: updatedAt! },
  }
}

/** Lua functions that read a record into its parts and write it. `next` and `last` are -1 if there is none. */
export const scheduleRecords = String.raw`
local SCHEDULES, SCHEDULE_DUE = KEYS[#KEYS - 1], KEYS[#KEYS]
local function read_schedule(name)
  local text = redis.call('HGET', SCHEDULES, name)
  if not text then return nil end
  local revision, numbers, last_id, definition = string.match(text, '^(.-)%z(.-)%z(.-)%z(.*)$')
  local next_at, last_at, ticked, skipped, missed, rest = string.match(numbers, '^(%S+) (%S+) (%S+) (%S+) (%S+) (.*)$')
  return { name = name, revision = revision, next = next_at, last = last_at, ticked = ticked, skipped = skipped,
    missed = missed, rest = rest, last_id = last_id, definition = definition }
end
local function write_schedule(s)
  local numbers = table.concat({ s.next, s.last, s.ticked, s.skipped, s.missed, s.rest }, ' ')
  redis.call('HSET', SCHEDULES, s.name, table.concat({ s.revision, numbers, s.last_id, s.definition }, '\0'))
  if s.next == '-1' then redis.call('ZREM', SCHEDULE_DUE, s.name) else redis.call('ZADD', SCHEDULE_DUE, s.next, s.name) end
end
`
