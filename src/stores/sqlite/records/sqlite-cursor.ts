/** The cursor of a listing: where the page before ended, as opaque text. */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { ListQuery } from '../../contract/job-records.js'

/** Where a job stands in a listing. */
export type ListPlace = readonly (number | string)[]

export function cursorOf(place: ListPlace, by: ListQuery['by']): string {
  return Buffer.from(JSON.stringify([by, ...place])).toString('base64url')
}

/** Throws `InvalidArgumentError` where it is none of such a listing. */
export function placeAt(
  cursor: string,
  by: ListQuery['by'],
  isPlace: (parts: readonly unknown[]) => boolean,
): ListPlace {
  const parts = parsed(cursor)
  if (Array.isArray(parts) && parts[0] === by && isPlace(parts.slice(1))) return parts.slice(1) as ListPlace
  throw new InvalidArgumentError(
    `'${cursor}' is not a cursor of a listing by ${by}. Use the cursor of the page before, with the same query.`,
  )
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}
