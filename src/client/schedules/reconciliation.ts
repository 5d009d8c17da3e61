/** The reconciliation of schedules: what code declares is written, and what it declared once and does not any more is removed. */

import type { CheckedSchedule } from '../../core/schedule/schedule-options.js'
import type { Schedules } from '../../stores/contract/schedules.js'
import type { Store } from '../../stores/contract/store.js'
import type { DraftRules } from '../enqueue/draft-content.js'
import { changeTo } from './schedule-change.js'
import { scheduleDraft } from './schedule-draft.js'
import type { ScheduleDifference } from './schedule-view.js'
import { allSchedules, schedulesOf } from './schedules-facet.js'

/** How often it is tried again when others write the same schedule meanwhile. */
const mostTries = 10

/**
 * Brings the store to what is declared; those that were set at run time are left alone. Their ticks are told
 * from `since` on, an instant, by default the time of the store. Repeating changes nothing. Throws what
 * enqueueing a job of one of them throws; nothing was changed then.
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

/** What the step answers, tried again while others are in its way; undefined where they always are. */
export async function insist<T>(step: () => Promise<T | undefined>): Promise<T | undefined> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const answer = await step()
    if (answer !== undefined) return answer
  }
  return undefined
}
