/** The cursor of a listing: the position where the page before ended, as opaque text. Pure. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { ListQuery } from '../contract/job-records.js'
import { compareBytes } from './byte-order.js'

/** The position of a job in a listing, compared part by part. No two jobs of a listing have the same. */
export type ListPosition = readonly (number | string)[]

export function comparePositions(a: ListPosition, b: ListPosition): number {
  for (const [i, part] of a.entries()) {
    const other = b[i]
    const difference =
      typeof part === 'string' ? compareBytes(part, String(other)) : part - (other === undefined ? 0 : Number(other))
    if (difference !== 0) return difference
  }
  return 0
}

export function cursorAt(position: ListPosition, by: ListQuery['by']): string {
  return Buffer.from(JSON.stringify([by, ...position])).toString('base64url')
}

/**
 * Throws `InvalidArgumentError` for a text that is no cursor of a listing in this order; `isPosition` judges its parts.
 */
export function positionIn(
  cursor: string,
  by: ListQuery['by'],
  isPosition: (parts: readonly unknown[]) => boolean,
): ListPosition {
  const parts = parsed(cursor)
  if (Array.isArray(parts) && parts[0] === by && isPosition(parts.slice(1))) return parts.slice(1) as ListPosition
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
