/** The payloads of ordered jobs as Redis stores them: a digest, which is the same for payloads that are one, and a body. */

import { hash } from 'node:crypto'
import type { Payload } from '../../../core/values/codec.js'
import type { NewJob, ScoredPayload } from '../../contract/new-job.js'
import { type CallPlace, payloadContent, payloadMark } from '../../rules/payloads.js'
import { flagsOf, RecordContent, recordFlags, utf8, withContent } from './redis-record.js'

/** The characters of a digest: 132 bits of SHA-256, as text, which is cheaper to send than bytes. */
export const digestLength = 22

/**
 * Two digests of a payload and its body. The first digest is its identity with `merge: 'distinct'`, the second with any
 * other rule: only the enqueue script knows which holds. The body has the flags, codec, meta and payload
 * in the form of a record. So it is never empty and is unambiguous.
 */
export function payloadBody(job: NewJob, place: CallPlace): Payload {
  const content = digestOf(payloadContent(job))
  const digests = content + digestOf(`${payloadMark(job, 'all', place)}\0${content}`)
  return withContent(job, digests, recordFlags.plain, '')
}

/** The form of a score for the enqueue script. */
export function scoreText(score: number | undefined): string {
  return score === undefined ? '' : String(score)
}

function digestOf(text: Payload): string {
  return hash('sha256', text, 'base64').slice(0, digestLength)
}

/** Reads a payload in the form of a set: place and body. */
export function readPayload(value: Buffer): ScoredPayload {
  return scoredPayloadIn(value, value.toString('latin1'), 0, value.length)
}

/** The same for a part of `bytes`, which are also given as a text in Latin-1. */
export function scoredPayloadIn(bytes: Buffer, text: string, from: number, to: number): ScoredPayload {
  const score = scoreAt(bytes, from)
  const flags = text.charCodeAt(from + 14)
  if (flags === recordFlags.plain) return { score, payload: utf8(text.slice(from + 15, to)) }
  const { payload, codec, meta } = new RecordContent(text, flags, from + 15, to)
  return {
    score,
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
  }
}

/** The value that follows the name in an ordered job's record. Undefined if the payloads are in their set. */
export function ownValue(record: Buffer): Buffer | undefined {
  const flagsAt = flagsOf(record.toString('latin1', 0, 1), 0)
  const taskEnd = record.indexOf(0, flagsAt + 1)
  const nameEnd = record[flagsAt]! & recordFlags.group ? record.indexOf(0, taskEnd + 1) : taskEnd
  return record.length === nameEnd + 1 ? undefined : record.subarray(nameEnd + 1 + digestLength)
}

/** The payloads of a claim in their order, in the form of `claimed-payloads`. */
export function readInHand(packed: Buffer): Buffer[] {
  const values: Buffer[] = []
  for (let at = 4; at < packed.length; ) {
    const end = at + 4 + packed.readUInt32BE(at)
    values.push(packed.subarray(at + 4 + digestLength, end))
    at = end
  }
  return values
}

const scoreBytes = Buffer.alloc(8)

/**
 * Reads a score. Negative numbers are stored with all bits inverted, others with the sign inverted, so that they sort.
 */
function scoreAt(bytes: Buffer, at: number): number {
  const isNegative = bytes[at]! < 128
  for (let i = 0; i < 8; i += 1) scoreBytes[i] = isNegative ? 255 - bytes[at + i]! : bytes[at + i]!
  if (!isNegative) scoreBytes[0]! -= 128
  return scoreBytes.readDoubleBE(0)
}
