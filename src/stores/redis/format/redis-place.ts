/** Places in listings: what orders the jobs of a page, what a cursor says, and how keys write it. Pure. */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { ListQuery } from '../../contract/job-records.js'

/** Where a job stands in a listing, compared part by part; the first of a listing by time is the section. */
export type Place = readonly (number | string)[]

export function comparePlaces(a: Place, b: Place): number {
  for (const [i, part] of a.entries()) {
    const other = b[i]
    const difference =
      typeof part === 'string' ? compareBytes(part, String(other)) : part - (other === undefined ? 0 : Number(other))
    if (difference !== 0) return difference
  }
  return 0
}

/** UTF-8 byte order, as all stores list ids. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** Big-endian, of so many bytes; what does not fit, in a cursor that was made up, is brought to the edge. */
export function numberBytes(given: number, length: number): Buffer {
  const value = Math.min(Math.max(0, given), 2 ** (8 * length) - 1)
  const bytes = Buffer.alloc(length)
  if (length <= 6) bytes.writeUIntBE(value, 0, length)
  else {
    bytes[0] = Math.floor(value / 2 ** 48)
    bytes.writeUIntBE(value % 2 ** 48, 1, 6)
  }
  return bytes
}

export function cursorOf(place: Place, by: ListQuery['by']): string {
  return Buffer.from(JSON.stringify([by, ...place])).toString('base64url')
}

/**
 * What a cursor says. `lengths`: how many parts the places of each order have; where the last is an id (`endsInId`) it is
 * text, as the first of a listing by id; all others are whole numbers. Throws `InvalidArgumentError` for what is none.
 */
export function placeOf(
  cursor: string,
  by: ListQuery['by'],
  lengths: Record<ListQuery['by'], readonly number[]>,
  endsInId = false,
): Place {
  const parts = parse(cursor)
  if (!Array.isArray(parts) || parts[0] !== by || !isPlace(parts.slice(1), by, lengths, endsInId)) {
    throw new InvalidArgumentError(
      `'${cursor}' is not a cursor of a listing by ${by}. Use the cursor of the page before, with the same query.`,
    )
  }
  return parts.slice(1)
}

function isPlace(
  parts: readonly unknown[],
  by: ListQuery['by'],
  lengths: Record<ListQuery['by'], readonly number[]>,
  endsInId: boolean,
): boolean {
  if (!lengths[by].includes(parts.length)) return false
  return parts.every((part, i) => {
    const isText = by === 'id' ? i === 0 : endsInId && i === parts.length - 1
    return isText ? typeof part === 'string' : Number.isInteger(part)
  })
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}
