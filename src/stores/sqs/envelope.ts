/**
 * The envelope: a job as the body of a message, and the entry that sends it. JSON, so that any language can send one;
 * `docs/stores/sqs-envelope.schema.json` is its schema. Version 1. Pure.
 */

import { createHash } from 'node:crypto'
import { PayloadTooLargeError } from '../../core/errors.js'
import type { Payload } from '../../core/values/codec.js'
import type { NewJob } from '../contract/new-job.js'
import { longestDelayS, mostBatchBytes, type SendEntry } from './client/sqs-api.js'

export interface Envelope {
  /** Absent: the id of the message. */
  readonly id?: string
  readonly task: string
  readonly payload: Payload
  readonly codec?: string
  readonly meta?: Payload
  readonly group?: string
  /** Ms since 1970. Absent: the time at which the message was sent. */
  readonly createdAt?: number
  /** Ms since 1970; absent: at once. A message delivered earlier is sent on. */
  readonly dueAt?: number
  /** Attempts before this message was sent. */
  readonly attempts?: number
  /** Why the job was put back last; absent: it was not, or no error says why. */
  readonly error?: string
}

/** Why a message is in a dead-letter queue, and the last error of its job. */
export interface DeadLetter {
  readonly reason?: string
  readonly error?: string
}

const version = 1

/** Bytes kept free for fields that are added when a job is sent on: times, attempts, a reason. */
const growthBytes = 512

/** For a new job: it must still fit when it is sent on. Throws `PayloadTooLargeError` if no message can hold it. */
export function newEnvelopeText(envelope: Envelope): string {
  return envelopeText(envelope, mostBatchBytes - growthBytes)
}

/**
 * For a dead job, or one that is sent on: its texts, of which the first that the queue takes is sent. `added` is what its
 * envelope gets. The second is without its error, and has as much of its reason as fits, as a queue may take less than SQS.
 * The last, unless it would lose something, is the envelope as it came, which the queue has taken before: one of another
 * sender may have room for nothing.
 */
export function envelopeForms(
  envelope: Envelope,
  added: Partial<Envelope> & DeadLetter,
  mayBeAsItCame = true,
): string[] {
  const { error, reason, ...rest } = { ...envelope, ...added }
  const whole = textOf({
    ...rest,
    ...(reason === undefined ? {} : { reason }),
    ...(error === undefined ? {} : { error }),
  })
  const bare = textOf({ ...rest, ...reasonWithin(mostBatchBytes - Buffer.byteLength(textOf(rest)), reason) })
  const forms = [...new Set([whole, bare, ...(mayBeAsItCame ? [textOf(envelope)] : [])])]
  const fitting = forms.filter((text) => Buffer.byteLength(text) <= mostBatchBytes)
  return fitting.length > 0 ? fitting : forms.slice(-1)
}

/** As much of the reason as takes at most this many bytes of an envelope. */
function reasonWithin(bytes: number, reason = ''): DeadLetter {
  const chars = [...reason]
  while (chars.length > 0 && Buffer.byteLength(`,${escaped({ reason: chars.join('') }).slice(1, -1)}`) > bytes)
    chars.pop()
  return chars.length === 0 ? {} : { reason: chars.join('') }
}

/** Throws `PayloadTooLargeError` if the text takes more than `mostBytes`. */
export function envelopeText(envelope: Envelope & DeadLetter, mostBytes = mostBatchBytes): string {
  const body = textOf(envelope)
  const bytes = Buffer.byteLength(body)
  if (bytes > mostBytes) throw new PayloadTooLargeError(`job '${envelope.id}', as a message,`, bytes, mostBytes)
  return body
}

function textOf({ payload, meta, ...rest }: Envelope & DeadLetter): string {
  return escaped({ v: version, ...rest, ...bytesOrText('payload', payload), ...bytesOrText('meta', meta) })
}

/** SQS takes the characters of XML 1.0: JSON escapes all others except these two. */
function escaped(value: object): string {
  return JSON.stringify(value).replace(/[\ufffe\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16)}`)
}

export function envelopeOf(job: NewJob, createdAt: number, dueAt: number | undefined): Envelope {
  const { id, task, payload, codec, meta, group } = job
  return {
    ...{ id, task, payload, createdAt },
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
    ...(group === undefined ? {} : { group }),
    ...(dueAt === undefined ? {} : { dueAt }),
  }
}

/** The envelope in a message, or the reason why there is none. */
export function readEnvelope(body: string): (Envelope & DeadLetter) | { readonly problem: string } {
  const parsed = parsedObject(body)
  if (parsed === undefined) return { problem: 'its body is no JSON object' }
  const { v, id, task, payload, payload64, codec, meta, meta64, group, createdAt, dueAt, attempts, reason, error } =
    parsed
  if (v !== version) return { problem: `its body has no "v": ${version}` }
  if (typeof task !== 'string' || task === '') return { problem: 'its body names no task' }
  const content = payloadIn(payload, payload64)
  if (content === undefined) return { problem: 'its body has no text "payload", nor Base64 "payload64"' }
  const texts = { id, codec, group, reason, error }
  const numbers = { createdAt, dueAt, attempts }
  const wrongText = Object.entries(texts).find(([, value]) => value !== undefined && typeof value !== 'string')
  if (wrongText !== undefined) return { problem: `"${wrongText[0]}" in its body is no text` }
  const wrongNumber = Object.entries(numbers).find(([, value]) => value !== undefined && !isCount(value))
  if (wrongNumber !== undefined) return { problem: `"${wrongNumber[0]}" in its body is no whole number from 0 up` }
  const extra = payloadIn(meta, meta64)
  if (extra === undefined && (meta !== undefined || meta64 !== undefined))
    return { problem: '"meta" in its body is no text, or "meta64" no Base64' }
  return {
    ...{ task, payload: content },
    ...(extra === undefined ? {} : { meta: extra }),
    ...(Object.fromEntries(
      Object.entries({ ...texts, ...numbers }).filter(([, value]) => value !== undefined),
    ) as object),
  }
}

function bytesOrText(name: string, payload: Payload | undefined): Record<string, string> {
  if (payload === undefined) return {}
  return typeof payload === 'string'
    ? { [name]: payload }
    : { [`${name}64`]: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64') }
}

function payloadIn(text: unknown, base64: unknown): Payload | undefined {
  if (typeof text === 'string' && base64 === undefined) return text
  if (text !== undefined || typeof base64 !== 'string') return undefined
  // Cut off, it would be decoded as other bytes.
  if (base64.length % 4 !== 0 || !/^[A-Za-z\d+/]*={0,2}$/.test(base64)) return undefined
  return Uint8Array.from(Buffer.from(base64, 'base64'))
}

function parsedObject(body: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(body)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

interface Sending {
  readonly body: string
  readonly delayMs?: number
  /** The message group: SQS balances by it, and on a FIFO queue keeps order within it. */
  readonly lane?: string | undefined
  /** FIFO queues: a message that is sent again with the same id within 5 minutes exists once. */
  readonly sendId: string
}

/**
 * The entry that sends a message: its body, its delay, and for a FIFO queue its lane. A delay longer than SQS allows is cut: the
 * message is sent on when it arrives.
 */
export function sendEntry({ body, delayMs = 0, lane, sendId }: Sending, isFifo: boolean): SendEntry {
  return {
    MessageBody: body,
    ...(delayMs === 0 || isFifo ? {} : { DelaySeconds: Math.min(longestDelayS, Math.ceil(delayMs / 1_000)) }),
    ...(lane === undefined ? {} : { MessageGroupId: laneName(lane) }),
    ...(isFifo ? { MessageDeduplicationId: laneName(sendId) } : {}),
  }
}

/** The name of a message group: the group or id itself if SQS takes it, otherwise a digest of it. */
function laneName(lane: string): string {
  return /^[\u0021-\u007e]{1,128}$/.test(lane) ? lane : createHash('sha256').update(lane).digest('hex')
}
