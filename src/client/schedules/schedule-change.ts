/** The change of a schedule: the record that replaces the stored one. Pure. */

import type { Packing } from '../../core/packing/packing.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import type { ScheduleChange, ScheduleDefinition, StoredSchedule } from '../../stores/contract/schedules.js'
import { definitionText } from '../../stores/rules/schedule-record.js'
import { openedJob } from './scheduled-job.js'

/** If the clock was set back by more, past ticks come again; otherwise no instant ticks twice. */
export const setBackMs = 60_000

/**
 * Undefined if it is stored already. A schedule keeps its pause and, as long as its rule is the same, its next tick,
 * even an overdue one.
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
  // A process that was moving it to another queue may have died half way; then it has no next tick.
  if (isSame && stored.nextAt === nextAt) return undefined
  return { definition, revision: newId(), paused, ...(nextAt === undefined ? {} : { nextAt }) }
}

/** The definition as plain text. A definition that cannot be read equals no other. */
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
