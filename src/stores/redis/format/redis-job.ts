/** A job of a Redis store, assembled from its keys. */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { JobState, Progress } from '../../../core/job/job.js'
import type { JobFields } from '../../../core/job/job-fields.js'
import type { Checkpoint, JobProcess } from '../../contract/job-beat.js'
import { resultDropped, type StoredJob } from '../../contract/job-records.js'
import { waitedBeyond } from '../../rules/sequence.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import { readNumber, readRecord } from './redis-record.js'

/** The changes of a job since it was added. */
export interface JobPast {
  /**
   * `l` in the ready list, `r` ready, `x` suspect, `s` scheduled, `w` waiting for members, `a` waiting for a signal, `c`
   * completed, `d` dead. For a running job, its last one.
   */
  readonly state: string
  readonly hasSteps?: true
  readonly updatedAt: number
  readonly stamp: number
  readonly attempt: number
  readonly crashes: number
  /** When its last wait for others, or for a signal, was over. */
  readonly waitedUntil?: number
  readonly reason?: string
}

export function readPast(past: Buffer): JobPast {
  // Behind a plus is when its last wait was over.
  const hasWaited = past[19] === 43
  const reasonAt = hasWaited ? 26 : 19
  return {
    // A capital: the job has steps or signals.
    state: String.fromCharCode(past[0]! | 32),
    ...(past[0]! & 32 ? {} : { hasSteps: true as const }),
    updatedAt: past.readUIntBE(1, 6),
    stamp: readNumber(past, 7, 7),
    attempt: past.readUIntBE(14, 3),
    crashes: past.readUInt16BE(17),
    ...(hasWaited ? { waitedUntil: past.readUIntBE(20, 6) } : {}),
    ...(past.length > reasonAt ? { reason: past.toString('utf8', reasonAt + 1) } : {}),
  }
}

export function readClaim(claim: Buffer) {
  const flags = claim[13]! - 64
  const elementAt = 15 + claim[14]!
  return {
    fence: readNumber(claim, 0, 7),
    claimedAt: claim.readUIntBE(7, 6),
    seq: claim.readUIntBE(elementAt + 7, 6),
    alone: (flags & 1) > 0,
    cancelRequested: (flags & 2) > 0,
    worker: claim.toString('utf8', 15, elementAt),
  }
}

/** Claims store the length of the worker's id in one byte. */
const mostWorkerBytes = 255

/** Throws `InvalidArgumentError` for a worker's id that is too long for a claim. */
export function refuseLongWorker(worker: string): void {
  if (Buffer.byteLength(worker) > mostWorkerBytes)
    throw new InvalidArgumentError(`the id of a worker must be at most ${mostWorkerBytes} bytes; got '${worker}'.`)
}

interface StoredBeat extends JobProcess {
  readonly startedAt?: number
  readonly progress?: Progress
  readonly updatedAt?: number
}

export function readBeat(beat: Buffer): StoredBeat {
  const [startedAt, host, pid, progress, updatedAt, boot, pidns, ticks] = beat.toString().split('\0')
  return {
    ...(startedAt ? { startedAt: Number(startedAt) } : {}),
    ...(host ? { host } : {}),
    ...(boot ? { boot } : {}),
    ...(pidns ? { pidns } : {}),
    ...(pid ? { pid: Number(pid) } : {}),
    ...(ticks ? { ticks: Number(ticks) } : {}),
    ...(progress ? { progress: JSON.parse(progress) as Progress } : {}),
    ...(updatedAt ? { updatedAt: Number(updatedAt) } : {}),
  }
}

/** The data that is remembered of an ended job. */
interface JobMemory {
  readonly seq: number
  /** Whether its notes remain. */
  readonly hasRemains: boolean
  readonly state: 'completed' | 'cancelled'
  readonly priority: number
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly runAt: number
  readonly finishedAt: number
  readonly until: number
  readonly task: string
  readonly reason?: string
}

export function readMemory(memory: Buffer): JobMemory {
  const end = memory.indexOf(0, 38)
  return {
    seq: memory.readUIntBE(0, 6) % 2 ** 47,
    hasRemains: memory[0]! > 127,
    state: memory[6] === 'c'.charCodeAt(0) ? 'completed' : 'cancelled',
    priority: 32_767 - memory.readUInt16BE(7),
    attempt: memory.readUIntBE(9, 3),
    crashes: memory.readUInt16BE(12),
    createdAt: memory.readUIntBE(14, 6),
    runAt: memory.readUIntBE(20, 6),
    finishedAt: memory.readUIntBE(26, 6),
    until: memory.readUIntBE(32, 6),
    task: memory.toString('utf8', 38, end),
    ...(memory.length > end + 1 ? { reason: memory.toString('utf8', end + 2) } : {}),
  }
}

/**
 * The stored form of a result or checkpoint: `t` (text) or `b` (bytes), codec, NUL, payload. Empty if there is none.
 */
export function resultBytes({ payload, codec }: NonNullable<StoredJob['result']>): string | Buffer {
  if (payload === undefined) return ''
  return typeof payload === 'string'
    ? `t${codec ?? ''}\0${payload}`
    : Buffer.concat([Buffer.from(`b${codec ?? ''}\0`), payload])
}

export function readResult(result: Buffer): NonNullable<StoredJob['result']> {
  return result.length === 0 ? {} : readPayload(result)
}

export function readPayload(result: Buffer): Checkpoint {
  const end = result.indexOf(0, 1)
  const codec = result.toString('utf8', 1, end)
  const payload =
    result[0] === 'b'.charCodeAt(0) ? Uint8Array.from(result.subarray(end + 1)) : result.toString('utf8', end + 1)
  return { payload, ...(codec === '' ? {} : { codec }) }
}

/** `steps-lua.ts` describes the form. */
export function readWait(wait: Buffer): NonNullable<StoredJob['awaits']> {
  const until = readNumber(wait, 0, 6)
  return { signal: wait.toString('utf8', 6), ...(until === 0 ? {} : { until }) }
}

/** `redis-records.ts` describes the form. */
export function readFields(fields: Buffer): JobFields {
  const found = fields.toString().split('\0').slice(0, -1)
  return Object.fromEntries(
    found.map((field) => {
      const end = field.indexOf('=')
      return [field.slice(0, end), JSON.parse(field.slice(end + 1))]
    }),
  )
}

const fresh = { attempt: 1, crashes: 0 }

/** The state of a job without a claim, by the letter of its past. */
export const stateOf: Record<string, JobState> = {
  l: 'ready',
  r: 'ready',
  x: 'ready',
  s: 'scheduled',
  w: 'waiting',
  a: 'waiting',
  c: 'completed',
  d: 'dead',
}

/** A job as it was read. */
export interface JobView {
  /** The stored job unless it has expired. */
  readonly job: StoredJob | undefined
  /** The places of a join or member (`joins-lua.ts`). */
  readonly places?: string
  /** What is remembered of it, whether or not its result is kept. Undefined once that is forgotten. */
  readonly memory: StoredJob | undefined
}

export const nothingThere: JobView = { job: undefined, memory: undefined }

/** Reads one view of the view script of plain queues. `hiddenUntil`: dead jobs that ended until then have expired. */
export function viewIn(queue: string, id: string, reply: RedisReply, now: number, hiddenUntil: number): JobView {
  const [record, past, claim, error, beat, result, worker, expiry, ended, checkpoint, log, expiresAt, fields, ...rest] =
    listIn(reply)
  const [remains, wait] = rest
  const { updatedAt: saidAt, ...facts } = beat === null ? {} : readBeat(bytesIn(beat!))
  const noted = {
    ...(fields === null ? {} : { fields: readFields(bytesIn(fields!)) }),
    ...(worker === null ? {} : { worker: textIn(worker) }),
    ...facts,
    ...(checkpoint === null ? {} : { checkpoint: readPayload(bytesIn(checkpoint!)) }),
    ...(log === null ? {} : { log: textIn(log) }),
    ...(error === null ? {} : { error: textIn(error) }),
  }
  const remembered = ended === null ? undefined : readMemory(bytesIn(ended!))
  const known = remembered === undefined || remembered.until <= now ? undefined : rememberedJob(queue, id, remembered)
  const memory = known && remembered!.hasRemains ? { ...known, ...noted, ...contentOf(remains) } : known
  if (record === null) return { ...nothingThere, memory }
  const { stamp: firstStamp, seq: _, createdAt, rememberMs, places, ...written } = readRecord(bytesIn(record))
  const since =
    past === null
      ? { state: firstState(bytesIn(record)), updatedAt: createdAt, stamp: firstStamp, ...fresh, stamped: 0 }
      : readPast(bytesIn(past!))
  const held = claim === null ? undefined : readClaim(bytesIn(claim))
  const stamp = since.stamp ?? firstStamp
  const state = held === undefined ? stateOf[since.state]! : 'running'
  const isOver = state === 'completed' || state === 'dead'
  const reason = 'reason' in since ? since.reason : undefined
  const waited = 'waitedUntil' in since ? waitedBeyond(stamp, since.waitedUntil) : undefined
  const job: StoredJob = {
    ...written,
    queue,
    id,
    state,
    attempt: since.attempt,
    crashes: since.crashes,
    ...(since.state === 'x' ? { suspect: true } : {}),
    createdAt,
    updatedAt: held === undefined ? since.updatedAt : (saidAt ?? held.claimedAt),
    runAt: Math.floor(stamp / 1_000),
    ...(waited !== undefined && (state === 'ready' || state === 'running') ? { waitedUntil: waited } : {}),
    ...(expiresAt === null ? {} : { expiresAt: numberIn(expiresAt) }),
    ...(isOver ? { finishedAt: since.updatedAt } : {}),
    ...noted,
    ...(held === undefined ? {} : { worker: held.worker }),
    ...(result === null ? {} : { result: readResult(bytesIn(result)) }),
    ...(reason === undefined ? {} : { reason }),
    ...(places?.startsWith('w') ? { isJoin: true } : {}),
    ...(wait === null ? {} : { awaits: readWait(bytesIn(wait!)) }),
    ...('hasSteps' in since ? { hasSteps: true as const } : {}),
  }
  const isHidden =
    (state === 'completed' && expiry !== null && numberIn(expiry) <= now) ||
    (state === 'dead' && since.updatedAt <= hiddenUntil)
  const isRemembered = state === 'completed' && since.updatedAt + rememberMs > now
  return {
    job: isHidden ? undefined : job,
    ...(places?.includes('.') ? { places } : {}),
    memory: isRemembered ? { ...bare(job), updatedAt: since.updatedAt, ...droppedIn(job) } : memory,
  }
}

/** The content of a cancelled job, from the record that it left. */
function contentOf(remains: RedisReply | undefined): Partial<StoredJob> {
  if (!remains) return {}
  const { payload, codec, meta, group } = readRecord(bytesIn(remains))
  return {
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
    ...(group === undefined ? {} : { group }),
  }
}

/** Why there is no result in the record of a job that had one. */
function droppedIn({ result }: StoredJob): { readonly reason?: string } {
  return result?.payload === undefined ? {} : { reason: resultDropped }
}

/** The letter of the job's first state. */
export function firstState(record: Buffer): string {
  return String.fromCharCode(record[0]! | 32)
}

/** The part of an ended job that is remembered. */
function bare(job: StoredJob): StoredJob {
  const { queue, id, task, state, priority, attempt, crashes, createdAt, updatedAt, runAt, finishedAt, reason } = job
  return {
    ...{ queue, id, task, state, payload: '', priority, attempt, crashes, createdAt, updatedAt, runAt },
    ...(finishedAt === undefined ? {} : { finishedAt }),
    ...(reason === undefined ? {} : { reason }),
  }
}

function rememberedJob(queue: string, id: string, memory: JobMemory): StoredJob {
  const { seq: _, until: __, hasRemains: ___, ...known } = memory
  return { queue, id, ...known, payload: '', updatedAt: memory.finishedAt }
}
