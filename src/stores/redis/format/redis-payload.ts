/** The payloads of ordered jobs as Redis stores them: a digest, which is the same for payloads that are one, and a body. */

import { hash } from 'node:crypto'
import type { Payload } from '../../../core/values/codec.js'
import type { NewJob } from '../../contract/new-job.js'
import type { ScoredPayload } from '../../contract/scored-payload.js'
import { type CallPlace, payloadContent, payloadMark } from '../../rules/payloads.js'
import { recordFlags } from './redis-record.js'

/** The characters of a digest: 132 bits of SHA-256, as text, which is cheaper to send than bytes. */
export const digestLength = 22

/** 64 plus those that apply. So a body is never empty and is unambiguous. */
export const payloadFlags = { none: 64, codec: 4, meta: 16, bytes: 32 } as const

/**
 * Two digests of a payload and its body. The first digest is its identity with `merge: 'distinct'`, the second with any
 * other rule: only the enqueue script knows which holds. The body is: flags, 1 byte; the codec and NUL; the length of meta
 * in bytes and NUL, with `b` first if meta is bytes; meta; payload. Codec and meta are present only if flagged.
 */
export function payloadBody(job: NewJob, place: CallPlace): Payload {
  const { payload, codec, meta } = job
  const content = digestOf(payloadContent(job))
  const digests = content + digestOf(`${payloadMark(job, 'all', place)}\0${content}`)
  let flags: number = payloadFlags.none
  let fields = ''
  if (codec !== undefined) {
    flags += payloadFlags.codec
    fields += `${codec}\0`
  }
  if (meta !== undefined) {
    flags += payloadFlags.meta
    fields += typeof meta === 'string' ? `${Buffer.byteLength(meta)}\0` : `b${meta.byteLength}\0`
  }
  if (typeof payload !== 'string') flags += payloadFlags.bytes
  const head = `${digests}${String.fromCharCode(flags)}${fields}`
  if (typeof payload === 'string' && (meta === undefined || typeof meta === 'string'))
    return `${head}${meta ?? ''}${payload}`
  return Buffer.concat([Buffer.from(head), Buffer.from(meta ?? ''), Buffer.from(payload as string)])
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
  const flags = value[14]!
  let at = 15
  const field = () => {
    const end = value.indexOf(0, at)
    const text = value.toString('utf8', at, end)
    at = end + 1
    return text
  }
  const codec = flags & payloadFlags.codec ? field() : undefined
  let meta: Payload | undefined
  if (flags & payloadFlags.meta) {
    const length = field()
    const isBytes = length.startsWith('b')
    const end = at + Number(isBytes ? length.slice(1) : length)
    meta = kept(value, at, end, isBytes)
    at = end
  }
  const payload = kept(value, at, value.length, (flags & payloadFlags.bytes) > 0)
  return {
    score: scoreAt(value, 0),
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
  }
}

/** The value that follows the name in an ordered job's record. Undefined if the payloads are in their set. */
export function ownValue(record: Buffer): Buffer | undefined {
  const flagsAt = record[0]! < 97 ? 20 : 14
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
export function scoreAt(bytes: Buffer, at: number): number {
  const isNegative = bytes[at]! < 128
  for (let i = 0; i < 8; i += 1) scoreBytes[i] = isNegative ? 255 - bytes[at + i]! : bytes[at + i]!
  if (!isNegative) scoreBytes[0]! -= 128
  return scoreBytes.readDoubleBE(0)
}

/** Bytes are copied, because the buffer that contains them is as large as the whole reply. */
function kept(value: Buffer, from: number, to: number, isBytes: boolean): Payload {
  return isBytes ? Uint8Array.from(value.subarray(from, to)) : value.toString('utf8', from, to)
}
