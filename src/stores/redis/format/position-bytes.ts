/**
 * The bytes of a position: how keys of a Redis store express a job's place in a listing, and how cursors name it. Pure.
 */

import type { ListQuery } from '../../contract/job-records.js'
import { type ListPosition, positionIn } from '../../rules/listing-cursor.js'

/** A big-endian number of this many bytes. A number that does not fit, from an invented cursor, becomes the limit. */
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

/** The possible numbers of parts of a position in each order. A ready job has more parts than others. */
const lengths: Record<ListQuery['by'], readonly number[]> = { id: [2], time: [4, 6], retry: [3] }

/**
 * The position that a cursor names: whole numbers and the id, which is last, or first in a listing by id. Throws
 * `InvalidArgumentError` for an invalid cursor.
 */
export function positionAt(cursor: string, by: ListQuery['by']): ListPosition {
  return positionIn(cursor, by, (parts) => {
    const idAt = by === 'id' ? 0 : parts.length - 1
    const fits = (part: unknown, i: number) => (i === idAt ? typeof part === 'string' : Number.isInteger(part))
    return lengths[by].includes(parts.length) && parts.every(fits)
  })
}
