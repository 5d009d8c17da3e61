/** The row of a payload of an ordered job in a SQL store: its digest, its weight, and what a claim takes of a set. Pure. */

import { hash } from 'node:crypto'
import type { Merge } from '../../core/queue/queue.js'
import type { NewJob, ScoredPayload } from '../contract/new-job.js'
import { type CallPlace, payloadContent, payloadMark } from '../rules/payloads.js'
import { fromStored } from './stored-text.js'

/** A payload as stored. */
export interface PayloadRow {
  readonly seq: number
  readonly score: number
  readonly codec: string | null
  readonly meta: string | Uint8Array | null
  readonly payload: string | Uint8Array
}

/** The payloads that a claim takes from a set. */
export interface PayloadHead {
  readonly rows: readonly PayloadRow[]
  readonly bytes: number
  /** Whether payloads are left in the set. */
  readonly hasMore: boolean
}

const digestBytes = 16

/** The same bytes for payloads that are one and, as far as SHA-256 goes, for no others, as `payloadIdentity`. */
export function payloadDigest(job: NewJob, merge: Merge, place: CallPlace): Uint8Array {
  const content = payloadContent(job, payloadMark(job, merge, place))
  return hash('sha256', content, 'buffer').subarray(0, digestBytes)
}

/**
 * The first of these payloads, at most `limit` and at most `most` bytes, but at least one. Reads no further than the first
 * that it leaves.
 */
export function headWithin(set: Iterable<PayloadRow>, limit: number, most: number): PayloadHead {
  const rows: PayloadRow[] = []
  let bytes = 0
  for (const row of set) {
    const size = bytesOf(row)
    if (rows.length > 0 && (rows.length === limit || bytes + size > most)) return { rows, bytes, hasMore: true }
    rows.push(row)
    bytes += size
  }
  return { rows, bytes, hasMore: false }
}

/** All of these payloads, whatever they weigh. */
export function wholeHead(rows: readonly PayloadRow[]): PayloadHead {
  return { rows, bytes: rows.reduce((sum, row) => sum + bytesOf(row), 0), hasMore: false }
}

function bytesOf({ payload, meta }: PayloadRow): number {
  return Buffer.byteLength(payload) + (meta === null ? 0 : Buffer.byteLength(meta))
}

/** A payload as it is handed over or shown. */
export function scoredPayload({ score, codec, meta, payload }: PayloadRow): ScoredPayload {
  return {
    score,
    payload: typeof payload === 'string' ? fromStored(payload) : payload,
    ...(codec === null ? {} : { codec }),
    ...(meta === null ? {} : { meta: typeof meta === 'string' ? fromStored(meta) : meta }),
  }
}
