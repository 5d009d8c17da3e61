/** The bytes of a position: how keys of a Redis store write where a job stands in a listing, and which cursors name such a place. Pure. */

import type { ListQuery } from '../../contract/job-records.js'
import { type ListPosition, positionIn } from '../../rules/listing-cursor.js'

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

/**
 * The position that a cursor names. `lengths`: how many parts those of each order have; if the last is an id (`endsInId`) it
 * is text, as the first of a listing by id is; all others are whole numbers. Throws `InvalidArgumentError` for what is none.
 */
export function positionAt(
  cursor: string,
  by: ListQuery['by'],
  lengths: Record<ListQuery['by'], readonly number[]>,
  endsInId = false,
): ListPosition {
  return positionIn(cursor, by, (parts) => {
    if (!lengths[by].includes(parts.length)) return false
    return parts.every((part, i) => {
      const isText = by === 'id' ? i === 0 : endsInId && i === parts.length - 1
      return isText ? typeof part === 'string' : Number.isInteger(part)
    })
  })
}
