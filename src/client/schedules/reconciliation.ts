/**
 * The reconciliation of schedules: writes the declared ones, and removes those that the same configuration once declared
 * and does no longer.
 */

import type { Events } from '../../core/events.js'
import type { CheckedSchedule } from '../../core/schedule/schedule-options.js'
import type { ScheduleChange, Schedules, StoredSchedule } from '../../stores/contract/schedules.js'
import type { Store } from '../../stores/contract/store.js'
import type { DraftRules } from '../enqueue/draft-content.js'
import { enqueueDueBefore, type TickParts } from './due-enqueue.js'
import { changeTo } from './schedule-change.js'
import { scheduleDraft } from './schedule-draft.js'
import type { ScheduleDifference } from './schedule-view.js'
import { allSchedules, schedulesOf } from './schedules-facet.js'

/** The schedules of a configuration, and its name. */
export interface Declaration {
  readonly by: string
  readonly schedules: ReadonlyMap<string, CheckedSchedule>
}

interface Reconciliation {
  readonly differences: ScheduleDifference[]
  /** The schedules that other configurations have declared, by the names of those. */
  readonly foreign: ReadonlyMap<string, readonly string[]>
}

/** The number of tries while others write the same schedule. */
const mostTries = 10

/**
 * Changes the store to match the declaration. Schedules that were set at run time or declared by another configuration
 * are left alone. New ones tick from `since` on, an instant, by default the time of the store. Repeating changes
 * nothing. Throws the errors of enqueueing a job of one of them; nothing was changed then.
 */
export async function reconcile(
  store: Store,
  { by, schedules: declared }: Declaration,
  rules: DraftRules,
  events: Events,
  since?: number,
): Promise<Reconciliation> {
  const schedules = schedulesOf(store)
  const definitions = await Promise.all(
    [...declared].map(([name, schedule]) => scheduleDraft(name, schedule, by, rules)),
  )
  const differences: ScheduleDifference[] = []
  for (const definition of definitions) {
    const { name, queue } = definition
    const difference = await insist(async (): Promise<ScheduleDifference | 'same' | undefined> => {
      const stored = await schedules.get(name)
      const now = since ?? (await store.depth([queue])).now
      const wanted = changeTo(definition, stored, now, rules)
      if (wanted === undefined) return 'same'
      if (!(await replaced({ ...rules, schedules, events }, wanted, stored, now))) return undefined
      const takenFrom = stored?.definition.declaredBy
      return {
        ...{ schedule: name, change: stored === undefined ? 'added' : 'changed' },
        ...(takenFrom === undefined || takenFrom === by ? {} : { takenFrom }),
      }
    })
    if (difference !== undefined && difference !== 'same') differences.push(difference)
  }
  const others = await removeOthers(schedules, declared, by)
  return { differences: [...differences, ...others.differences], foreign: others.foreign }
}

/** Writes the change; false if somebody else was faster. Ticks that are due by the times of before come first. */
export async function replaced(
  parts: TickParts & { readonly schedules: Schedules },
  change: ScheduleChange,
  stored: StoredSchedule | undefined,
  now: number,
): Promise<boolean> {
  const isDropped = stored?.nextAt !== undefined && stored.nextAt <= now && stored.nextAt !== change.nextAt
  const present = isDropped ? await enqueueDueBefore(parts, stored, now, 'changed') : stored
  if (isDropped && present === undefined) return false
  return parts.schedules.put(change, present)
}

async function removeOthers(
  schedules: Schedules,
  declared: ReadonlyMap<string, unknown>,
  by: string,
): Promise<Reconciliation> {
  const differences: ScheduleDifference[] = []
  const foreign = new Map<string, string[]>()
  for (const { definition, revision } of await allSchedules(schedules)) {
    const { name, declaredBy } = definition
    if (declaredBy === undefined || declared.has(name)) continue
    if (declaredBy !== by) foreign.set(declaredBy, [...(foreign.get(declaredBy) ?? []), name])
    else if (await schedules.remove(name, revision)) differences.push({ schedule: name, change: 'removed' })
  }
  return { differences, foreign }
}

/** The result of the step, tried again while others are in its way; undefined if they always are. */
export async function insist<T>(step: () => Promise<T | undefined>): Promise<T | undefined> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const answer = await step()
    if (answer !== undefined) return answer
  }
  return undefined
}
