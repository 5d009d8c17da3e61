/** The records facet: a store's administration, or the error that it has none. */

import { UnsupportedByStoreError } from '../core/errors.js'
import type { Morgue, Records } from '../stores/contract/job-records.js'
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
