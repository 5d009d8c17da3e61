/**
 * A job's record in Redis: written once when the job is added, and read by every claim. Scripts read parts of it too.
 */

import type { Payload } from '../../../core/values/codec.js'
import type { NewJob } from '../../contract/new-job.js'

/**
 * A record is a head that the enqueue script writes, and a body that is written here:
 * - first state, 1 byte: `l` in the ready list, `r` ready, `s` scheduled; a capital if the head also has `createdAt`
 * - stamp, 7 bytes · sequence, 6 bytes · createdAt in ms, 6 bytes, only if it does not follow from the stamp
 * - flags, 1 byte: 64, plus 1 `rememberMs`, 2 `priority`, 4 `codec`, 8 `group`, 16 `meta`, 32 payload is bytes
 * - task, then the flagged ones of the others in that order, each as text and NUL; for meta its length in bytes, with
 * `b`   first if it is bytes
 * - meta, payload
 */
interface JobRecordParts {
  readonly stamp: number
  readonly seq: number
  readonly createdAt: number
  readonly task: string
  readonly rememberMs: number
  readonly priority: number
  readonly codec?: string
  readonly group?: string
  readonly meta?: Payload
  readonly payload: Payload
}

export const recordFlags = { plain: 64, rememberMs: 1, priority: 2, codec: 4, group: 8, meta: 16, bytes: 32 } as const

/** The body of a new job's record. */
export function recordBody(job: NewJob): Payload {
  const { task, rememberMs, priority, codec, group, meta, payload } = job
  let flags: number = recordFlags.plain
  let fields = ''
  if (rememberMs > 0) {
    flags += recordFlags.rememberMs
    fields += `${rememberMs}\0`
  }
  if (priority !== 0) {
    flags += recordFlags.priority
    fields += `${priority}\0`
  }
  if (codec !== undefined) {
    flags += recordFlags.codec
    fields += `${codec}\0`
  }
  if (group !== undefined) {
    flags += recordFlags.group
    fields += `${group}\0`
  }
  if (meta !== undefined) {
    flags += recordFlags.meta
    fields += typeof meta === 'string' ? `${Buffer.byteLength(meta)}\0` : `b${meta.byteLength}\0`
  }
  if (typeof payload !== 'string') flags += recordFlags.bytes
  const head = `${String.fromCharCode(flags)}${task}\0${fields}`
  if (typeof payload === 'string' && (meta === undefined || typeof meta === 'string'))
    return `${head}${meta ?? ''}${payload}`
  return Buffer.concat([Buffer.from(head), Buffer.from(meta ?? ''), Buffer.from(payload as string)])
}

/**
 * A job's order for the enqueue script: its priority; when it is due; `e` and in how many ms it expires; `b` and the ms
 * that bound its delay; `w` if it may replace another job. Empty if the job is ready at once with priority 0 and has none of these.
 */
export function recordOrder({ priority, delayMs, runAt, expiresMs, atMostMs, ifWaiting }: NewJob): string {
  const expiry = expiresMs === undefined ? '' : `e${Math.ceil(expiresMs)}`
  const bound = atMostMs === undefined ? '' : `b${Math.ceil(atMostMs)}`
  const more = `${expiry}${bound}${ifWaiting === undefined ? '' : 'w'}`
  // Whole numbers, rounded so that no job is early.
  if (runAt !== undefined) return `${priority}r${Math.max(0, Math.trunc(runAt))}${more}`
  if (delayMs !== undefined && delayMs > 0) return `${priority}d${Math.ceil(delayMs)}${more}`
  return priority === 0 && more === '' ? '' : `${priority}${more}`
}

export function readRecord(record: Buffer): JobRecordParts {
  const isDated = record[0]! < 97
  const stamp = readNumber(record, 1, 7)
  const seq = record.readUIntBE(8, 6)
  const createdAt = isDated ? record.readUIntBE(14, 6) : Math.floor(stamp / 1_000)
  const bodyAt = isDated ? 20 : 14
  const flags = record[bodyAt]!
  let at = bodyAt + 1
  const field = () => {
    const end = record.indexOf(0, at)
    const text = record.toString('utf8', at, end)
    at = end + 1
    return text
  }
  const task = field()
  const rememberMs = flags & recordFlags.rememberMs ? Number(field()) : 0
  const priority = flags & recordFlags.priority ? Number(field()) : 0
  const codec = flags & recordFlags.codec ? field() : undefined
  const group = flags & recordFlags.group ? field() : undefined
  let meta: Payload | undefined
  if (flags & recordFlags.meta) {
    const length = field()
    const isBytes = length.startsWith('b')
    const end = at + Number(isBytes ? length.slice(1) : length)
    meta = kept(record, at, end, isBytes)
    at = end
  }
  const payload = kept(record, at, record.length, (flags & recordFlags.bytes) > 0)
  return {
    stamp,
    seq,
    createdAt,
    task,
    rememberMs,
    priority,
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(group === undefined ? {} : { group }),
    ...(meta === undefined ? {} : { meta }),
  }
}

/** Bytes are copied, because the buffer that contains them is as large as the whole reply. */
function kept(record: Buffer, from: number, to: number, isBytes: boolean): Payload {
  return isBytes ? Uint8Array.from(record.subarray(from, to)) : record.toString('utf8', from, to)
}

/** `readUIntBE` reads at most 6 bytes. */
export function readNumber(bytes: Buffer, at: number, length: number): number {
  return length <= 6 ? bytes.readUIntBE(at, length) : bytes[at]! * 2 ** 48 + bytes.readUIntBE(at + 1, 6)
}
