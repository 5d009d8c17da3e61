/**
 * Values as a SQL store keeps them. Databases refuse text with a NUL character, or drivers cut it there, so such text is
 * stored as JSON after a mark. So is text that happens to begin with the mark.
 */

import type { Payload } from '../../core/values/codec.js'

export type SqlValue = string | number | bigint | Uint8Array | null

export type Row = Record<string, SqlValue>

const mark = '\u0001'

export function toStored(text: string): string {
  return text.includes('\0') || text.startsWith(mark) ? mark + JSON.stringify(text) : text
}

export function fromStored(text: string): string {
  return text.startsWith(mark) ? (JSON.parse(text.slice(1)) as string) : text
}

export function storedOrNull(text: string | undefined): string | null {
  return text === undefined ? null : toStored(text)
}

/** Node 22 binds an array whose buffer is empty as NULL. This one has a buffer with a byte in it. */
const noBytes = new Uint8Array(1).subarray(1)

export function payloadToStored(payload: Payload): SqlValue {
  if (typeof payload === 'string') return toStored(payload)
  return payload.length === 0 ? noBytes : payload
}

/** For any column: a value that is not text is returned as it is. */
export function valueFromStored<T>(value: T): T | string {
  return typeof value === 'string' ? fromStored(value) : value
}
