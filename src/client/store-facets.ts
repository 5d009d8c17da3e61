/** The facets of a store: each as the store has it, or the error that it has none. */

import { UnsupportedByStoreError } from '../core/errors.js'
import type { Morgue, Records } from '../stores/contract/job-records.js'
import type { Joins } from '../stores/contract/joins.js'
import type { Schedules, StoredSchedule } from '../stores/contract/schedules.js'
import type { Store } from '../stores/contract/store.js'

export function recordsOf(store: Store): Records {
  if (store.records !== undefined) return store.records
  throw new UnsupportedByStoreError(
    store.traits.name,
    'looking up and administering jobs',
    'Use a store that keeps records, such as sqlite:.',
  )
}

/** The morgue, which a store without other records may have too. */
export function morgueOf(store: Store): Morgue {
  return store.morgue ?? recordsOf(store).morgue
}

/** The remedy for a store that keeps no schedules. */
export const withoutSchedules =
  'Give them to a second mill on sqlite: or redis: that runs a task which enqueues into this one, or enqueue from a timer of your own.'

/** The remedy for a store that keeps no deaths. */
export const withoutDeaths =
  'Leave `onDead` out and use `onExhausted`, which is called at most once, or use a store that keeps deaths until they are reported.'

export function schedulesOf({ schedules, traits }: Store): Schedules {
  if (schedules !== undefined) return schedules
  throw new UnsupportedByStoreError(traits.name, 'schedules', withoutSchedules)
}

export function joinsOf({ joins, traits }: Store): Joins {
  if (joins !== undefined) return joins
  throw new UnsupportedByStoreError(
    traits.name,
    'jobs that wait for others',
    'Use another store, such as sqlite: or redis:, or count the ends of the jobs in a database of yours and let the last one enqueue what comes next.',
  )
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
