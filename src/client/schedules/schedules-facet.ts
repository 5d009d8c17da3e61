/** The schedules facet: a store's schedules, or the error that it has none. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Schedules, StoredSchedule } from '../../stores/contract/schedules.js'
import type { Store } from '../../stores/contract/store.js'

/** The remedy for a store that keeps no schedules. */
export const withoutSchedules =
  'Give them to a second mill on sqlite: or redis: that runs a task which enqueues into this one, or enqueue from a timer of your own.'

export function schedulesOf({ schedules, traits }: Store): Schedules {
  if (schedules !== undefined) return schedules
  throw new UnsupportedByStoreError(traits.name, 'schedules', withoutSchedules)
}

/** The number of schedules in one request. */
const pageSize = 200

/** All stored schedules, by name. */
export async function allSchedules(schedules: Pick<Schedules, 'list'>): Promise<StoredSchedule[]> {
  const all: StoredSchedule[] = []
  for (;;) {
    const page = await schedules.list(all.at(-1)?.definition.name, pageSize)
    all.push(...page)
    if (page.length < pageSize) return all
  }
}
