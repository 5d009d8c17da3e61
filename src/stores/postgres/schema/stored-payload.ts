/** Payloads and texts as a Postgres store keeps them: all in columns of text, which cannot hold a NUL character. Pure. */

import type { Payload } from '../../../core/values/codec.js'
import type { ScoredPayload } from '../../contract/new-job.js'
import { fromStored, toStored } from '../../rows/stored-text.js'

/** Before bytes, which are kept in base 64. */
const bytesMark = '\u0002'
/** Before text that happens to begin with one of these two marks. */
const textMark = '\u0003'

export function payloadText(payload: Payload): string {
  if (typeof payload === 'string') return storedText(payload)
  return bytesMark + Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64')
}

export function payloadFrom(text: string): Payload {
  if (!text.startsWith(bytesMark)) return textFrom(text)
  return new Uint8Array(Buffer.from(text.slice(1), 'base64'))
}

/** A payload of an ordered job as the database answers. */
export type ScoredColumns = [score: number, payload: string, codec: string | null, meta: string | null]

export function scoredFrom([score, payload, codec, meta]: ScoredColumns): ScoredPayload {
  return {
    score,
    payload: payloadFrom(payload),
    ...(codec === null ? {} : { codec }),
    ...(meta === null ? {} : { meta: payloadFrom(meta) }),
  }
}

export function storedText(text: string): string {
  const kept = toStored(text)
  return kept.startsWith(bytesMark) || kept.startsWith(textMark) ? textMark + kept : kept
}

export function textFrom(stored: string): string {
  return fromStored(stored.startsWith(textMark) ? stored.slice(1) : stored)
}

/** A piece of a log: pieces that are put together are the whole log in the same form. */
export function logText(log: string): string {
  return log.replaceAll('\u0001', '\u0001\u0002').replaceAll('\0', '\u0001\u0003')
}

export function logFrom(stored: string): string {
  return stored.replaceAll('\u0001\u0003', '\0').replaceAll('\u0001\u0002', '\u0001')
}
