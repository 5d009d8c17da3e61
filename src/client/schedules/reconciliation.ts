/**
 * The reconciliation of schedules: writes the declared ones, and removes those that were once declared and are no
 * longer.
 */

import type { CheckedSchedule } from '../../core/schedule/schedule-options.js'
import type { Schedules } from '../../stores/contract/schedules.js'
import type { Store } from '../../stores/contract/store.js'
import type { DraftRules } from '../enqueue/draft-content.js'
import { changeTo } from './schedule-change.js'
import { scheduleDraft } from './schedule-draft.js'
import type { ScheduleDifference } from './schedule-view.js'
import { allSchedules, schedulesOf } from './schedules-facet.js'

/** The number of tries while others write the same schedule. */
const mostTries = 10

/**
 * Changes the store to match the declaration; schedules set at run time are left alone. New ones tick from `since` on,
 * an instant, by default the time of the store. Repeating changes nothing. Throws the errors of enqueueing a job of one
 * of them; nothing was changed then.
 */
export async function reconcile(
  store: Store,
  declared: ReadonlyMap<string, CheckedSchedule>,
  rules: DraftRules,
  since?: number,
): Promise<ScheduleDifference[]> {
  const schedules = schedulesOf(store)
  const definitions = await Promise.all(
    [...declared].map(([name, schedule]) => scheduleDraft(name, schedule, true, rules)),
  )
  const differences: ScheduleDifference[] = []
  for (const definition of definitions) {
    const { name, queue } = definition
    const change = await insist(async () => {
      const stored = await schedules.get(name)
      const now = since ?? (await store.depth([queue])).now
      const wanted = changeTo(definition, stored, now, rules)
      if (wanted === undefined) return 'same'
      if (!(await schedules.put(wanted, stored))) return undefined
      return stored === undefined ? 'added' : 'changed'
    })
    if (change === 'added' || change === 'changed') differences.push({ schedule: name, change })
  }
  differences.push(...(await removeOthers(schedules, declared)))
  return differences
}

async function removeOthers(
  schedules: Schedules,
  declared: ReadonlyMap<string, CheckedSchedule>,
): Promise<ScheduleDifference[]> {
  const gone: ScheduleDifference[] = []
  for (const { definition, revision } of await allSchedules(schedules)) {
    const { name, isDeclared } = definition
    if (!isDeclared || declared.has(name)) continue
    if (await schedules.remove(name, revision)) gone.push({ schedule: name, change: 'removed' })
  }
  return gone
}

/** The result of the step, tried again while others are in its way; undefined if they always are. */
export async function insist<T>(step: () => Promise<T | undefined>): Promise<T | undefined> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const answer = await step()
    if (answer !== undefined) return answer
  }
  return undefined
}
