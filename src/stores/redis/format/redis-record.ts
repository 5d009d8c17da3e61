/**
 * A job's record in Redis: written once when the job is added, and read by every claim. Scripts read parts of it too.
 */

import type { JobFields } from '../../../core/job/job-fields.js'
import type { Payload } from '../../../core/values/codec.js'
import type { NewJob } from '../../contract/new-job.js'
import { firstUndated } from '../lua/record-lua.js'

/**
 * A record is a head that the enqueue script writes, and a body that is written here:
 * - first state, 1 byte: `l` in the ready list, `r` ready, `s` scheduled, `w` waiting for members; a capital if the head also has `createdAt`
 * - stamp, 7 bytes · sequence, 6 bytes · createdAt in ms, 6 bytes, only if it does not follow from the stamp
 * - flags, 1 byte: 64, plus 1 `rememberMs` (behind which there is a `!` if deaths of the job are to be reported, and, after a space, the
 * places of a join or member: `joins-lua.ts`), 2 `priority`, 4 `codec`, 8 `group`, 16 `meta`, 32 payload is bytes
 * - task, then the flagged ones of the others in that order, each as text and NUL; for meta its length in bytes, with
 * `b`   first if it is bytes
 * - meta, payload
 */
interface StoredRecord {
  readonly stamp: number
  readonly seq: number
  readonly createdAt: number
  readonly task: string
  readonly rememberMs: number
  readonly places?: string
  readonly priority: number
  readonly codec?: string
  readonly group?: string
  readonly meta?: Payload
  readonly payload: Payload
}

export const recordFlags = { plain: 64, rememberMs: 1, priority: 2, codec: 4, group: 8, meta: 16, bytes: 32 } as const

/** The body of a new job's record. */
export function recordBody(job: NewJob): Payload {
  const { task, rememberMs, priority, group, reportsDeath } = job
  let flags: number = recordFlags.plain
  let fields = `${task}\0`
  if (rememberMs > 0 || reportsDeath) {
    flags += recordFlags.rememberMs
    fields += `${rememberText(job)}\0`
  }
  if (priority !== 0) {
    flags += recordFlags.priority
    fields += `${priority}\0`
  }
  return withContent(job, '', flags, fields, group)
}

/** The same for a join or member, without its places: the enqueue script puts them behind `rememberMs`. */
export function placedBody(job: NewJob): Payload {
  const { task, priority, group, join } = job
  const flags = recordFlags.plain + recordFlags.rememberMs + (priority === 0 ? 0 : recordFlags.priority)
  const fields = `${task}\0${rememberText(job)}${join === undefined ? '' : ' w'}\0${priority === 0 ? '' : `${priority}\0`}`
  return withContent(job, '', flags, fields, group)
}

/** How much of such a body stands before the places. */
export function placesAt(job: NewJob): number {
  return 1 + job.task.length + 1 + rememberText(job).length
}

function rememberText({ rememberMs, reportsDeath }: NewJob): string {
  return reportsDeath ? `${rememberMs}!` : String(rememberMs)
}

/** `before`, flags, fields, and then the content, in the form of a record. */
export function withContent(
  { codec, meta, payload }: NewJob,
  before: string,
  flags: number,
  fields: string,
  group?: string,
): Payload {
  let allFlags = flags
  let texts = fields
  if (codec !== undefined) {
    allFlags += recordFlags.codec
    texts += `${codec}\0`
  }
  if (group !== undefined) {
    allFlags += recordFlags.group
    texts += `${group}\0`
  }
  if (meta !== undefined) {
    allFlags += recordFlags.meta
    texts += typeof meta === 'string' ? `${Buffer.byteLength(meta)}\0` : `b${meta.byteLength}\0`
  }
  if (typeof payload !== 'string') allFlags += recordFlags.bytes
  const head = `${before}${String.fromCharCode(allFlags)}${texts}`
  if (typeof payload === 'string' && (meta === undefined || typeof meta === 'string'))
    return `${head}${meta ?? ''}${payload}`
  return Buffer.concat([Buffer.from(head), Buffer.from(meta ?? ''), Buffer.from(payload as string)])
}

/**
 * A job's order for the enqueue script: its priority; when it is due; `e` and in how many ms it expires; `b` and the ms
 * that bound its delay; `w` if it may replace another job; NUL and its fields. Empty if the job is ready at once with
 * priority 0 and has none of these.
 */
export function recordOrder(job: NewJob): string {
  return job.fields === undefined ? placeOrder(job) : `${placeOrder(job)}\0${fieldsText(job.fields)}`
}

/** The note of these fields: for each its name, `=`, its value as JSON, and NUL. */
function fieldsText(fields: JobFields): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}\0`)
    .join('')
}

function placeOrder({ priority, delayMs, runAt, expiresMs, atMostMs, ifWaiting }: NewJob): string {
  const expiry = expiresMs === undefined ? '' : `e${Math.ceil(expiresMs)}`
  const bound = atMostMs === undefined ? '' : `b${Math.ceil(atMostMs)}`
  const more = `${expiry}${bound}${ifWaiting === undefined ? '' : 'w'}`
  // Whole numbers, rounded so that no job is early.
  if (runAt !== undefined) return `${priority}r${Math.max(0, Math.trunc(runAt))}${more}`
  if (delayMs !== undefined && delayMs > 0) return `${priority}d${Math.ceil(delayMs)}${more}`
  return priority === 0 && more === '' ? '' : `${priority}${more}`
}

export function readRecord(record: Buffer): StoredRecord {
  const text = record.toString('latin1')
  const flagsAt = flagsOf(text, 0)
  const taskEnd = text.indexOf('\0', flagsAt)
  const stamp = numberAt(text, 1, 7)
  const flags = text.charCodeAt(flagsAt)
  const content = new RecordContent(text, flags, taskEnd + 1, text.length)
  const { rememberMs, places, priority, codec, group, meta, payload } = content
  return {
    stamp,
    seq: numberAt(text, 8, 6),
    createdAt: createdAtIn(text, 0, Math.floor(stamp / 1_000)),
    task: utf8(text.slice(flagsAt + 1, taskEnd)),
    rememberMs,
    ...(places === undefined ? {} : { places }),
    priority,
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(group === undefined ? {} : { group }),
    ...(meta === undefined ? {} : { meta }),
  }
}

/** Where the flags of a record are that begins at `from` of a text in Latin-1, one character per byte. */
export function flagsOf(text: string, from: number): number {
  return from + (text.charCodeAt(from) < firstUndated ? 20 : 14)
}

/** When the job of such a record was created. */
export function createdAtIn(text: string, from: number, dueAt: number): number {
  return text.charCodeAt(from) < firstUndated ? numberAt(text, from + 14, 6) : dueAt
}

/** The content of a record, from behind its task on, or of an ordered job's payload, from behind its flags on. */
export class RecordContent {
  readonly rememberMs: number
  readonly places: string | undefined
  readonly priority: number
  readonly codec: string | undefined
  readonly group: string | undefined
  readonly meta: Payload | undefined
  readonly payload: Payload

  constructor(text: string, flags: number, from: number, to: number) {
    let at = from
    const field = (flag: number) => {
      if ((flags & flag) === 0) return undefined
      const end = text.indexOf('\0', at)
      const value = utf8(text.slice(at, end))
      at = end + 1
      return value
    }
    const remembered = field(recordFlags.rememberMs) ?? '0'
    const space = remembered.indexOf(' ')
    this.rememberMs = Number.parseInt(remembered, 10)
    this.places = space < 0 ? undefined : remembered.slice(space + 1)
    this.priority = Number(field(recordFlags.priority) ?? 0)
    this.codec = field(recordFlags.codec)
    this.group = field(recordFlags.group)
    const metaLength = field(recordFlags.meta)
    if (metaLength !== undefined) {
      const isBytes = metaLength.startsWith('b')
      const end = at + Number(isBytes ? metaLength.slice(1) : metaLength)
      this.meta = payloadIn(text.slice(at, end), isBytes)
      at = end
    }
    this.payload = payloadIn(text.slice(at, to), (flags & recordFlags.bytes) > 0)
  }
}

function payloadIn(latin1: string, isBytes: boolean): Payload {
  return isBytes ? Uint8Array.from(Buffer.from(latin1, 'latin1')) : utf8(latin1)
}

const beyondAscii = /[\x80-\xff]/

/** The text whose UTF-8 bytes are the characters of a Latin-1 string. */
export function utf8(latin1: string): string {
  return beyondAscii.test(latin1) ? Buffer.from(latin1, 'latin1').toString() : latin1
}

/** Reads a big-endian number. */
export function numberAt(text: string, at: number, length: number): number {
  let value = 0
  for (let i = at; i < at + length; i += 1) value = value * 256 + text.charCodeAt(i)
  return value
}

/** `readUIntBE` reads at most 6 bytes. */
export function readNumber(bytes: Buffer, at: number, length: number): number {
  return length <= 6 ? bytes.readUIntBE(at, length) : bytes[at]! * 2 ** 48 + bytes.readUIntBE(at + 1, 6)
}
