/** The change of a schedule: what is to be written in the place of what is stored. Pure. */

import type { Packing } from '../../core/packing/packing.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import type { ScheduleChange, ScheduleDefinition, StoredSchedule } from '../../stores/contract/schedules.js'
import { definitionText } from '../../stores/rules/schedule-record.js'
import { openedJob } from './scheduled-job.js'

/** A clock that was set back further has a past whose ticks come again; else no instant ticks twice. */
export const setBackMs = 60_000

/**
 * Undefined if it is stored already. A schedule keeps its pause, and, as long as its rule is the same, its next tick, be that
 * overdue.
 */
export function changeTo(
  definition: ScheduleDefinition,
  stored: StoredSchedule | undefined,
  now: number,
  { newId, packing }: { readonly newId: () => string; readonly packing: Packing },
): ScheduleChange | undefined {
  const paused = stored?.paused ?? false
  const isSameRule = stored !== undefined && JSON.stringify(stored.definition.rule) === JSON.stringify(definition.rule)
  const nextAt = paused ? undefined : ((isSameRule ? stored.nextAt : undefined) ?? nextTick(definition, stored, now))
  const isSame = stored !== undefined && plainText(stored.definition, packing) === plainText(definition, packing)
  // Whoever was to move it to another queue may have died half way; then it has no next tick.
  if (isSame && stored.nextAt === nextAt) return undefined
  return { definition, revision: newId(), paused, ...(nextAt === undefined ? {} : { nextAt }) }
}

/** One that cannot be read is like no other. */
function plainText(definition: ScheduleDefinition, packing: Packing): string {
  try {
    return definitionText({ ...definition, job: openedJob(definition, packing) })
  } catch {
    return definitionText(definition)
  }
}

/** The first tick from now on. */
export function nextTick(
  { rule }: Pick<ScheduleDefinition, 'rule'>,
  stored: Pick<StoredSchedule, 'lastAt'> | undefined,
  now: number,
): number | undefined {
  const lastAt = stored?.lastAt ?? now
  return ticksOf(rule).next(lastAt > now && lastAt <= now + setBackMs ? lastAt : now)
}
