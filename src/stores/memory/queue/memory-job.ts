/** A job as the memory store holds it. */

import type { JobState, Progress } from '../../../core/job/job.js'
import type { JobFields } from '../../../core/job/job-fields.js'
import type { Claim } from '../../contract/claim.js'
import type { Checkpoint, JobProcess } from '../../contract/job-beat.js'
import {
  type JobRemains,
  payloadsInPage,
  payloadsInRecord,
  resultDropped,
  type StoredJob,
} from '../../contract/job-records.js'
import type { NewJob, ScoredPayload } from '../../contract/new-job.js'
import type { StoredStep } from '../../contract/steps.js'
import type { HeldClaim } from '../../contract/worker-registry.js'
import { leavesRemains } from '../../rules/bounds.js'
import { weightOf } from '../../rules/claim-weight.js'
import type { PayloadEntry } from '../../rules/payloads.js'
import { dueAt, waitedBeyond } from '../../rules/sequence.js'
import type { PayloadSet } from './payload-set.js'

export interface MemoryJob {
  /** The number of its arrival in the queue: breaks ties. */
  readonly seq: number
  readonly queue: string
  spec: NewJob
  readonly createdAt: number
  state: JobState
  updatedAt: number
  /** µs: its place among ready jobs, and its due time. */
  stamp: number
  attempt: number
  crashes: number
  /** Only while ready or running: for claims made alone, because a worker died while it held the job. */
  suspect: boolean
  fence: number
  leaseUntil: number
  alone: boolean
  cancelRequested: boolean
  worker: string | undefined
  process: JobProcess
  progress: Progress | undefined
  checkpoint: Checkpoint | undefined
  log: string
  fields: JobFields | undefined
  startedAt: number | undefined
  finishedAt: number | undefined
  /** When a waiting job is cancelled, or a kept result is dropped; undefined: never. */
  expiresAt: number | undefined
  result: StoredJob['result']
  error: string | undefined
  reason: string | undefined
  /** What it has reached, in this order. */
  steps: readonly StoredStep[]
  /** The signal that it waits for. */
  awaits: { readonly signal: string; readonly until: number | undefined } | undefined
  /** When its last wait for members or for a signal was over. */
  waitedUntil: number | undefined
  /** The payloads of a waiting or dead job of an ordered queue. */
  payloads: PayloadSet | undefined
  /** The payloads that the claim of a running job took. */
  inHand: readonly PayloadEntry[]
  /** The payloads that wait behind a running job. */
  successor: Successor | undefined
}

/**
 * Payloads that wait for the end of a claim, and the times of the job that they become if nothing of the claim goes
 * back.
 */
interface Successor {
  readonly stamp: number
  readonly createdAt: number
  /** It waits only for the end of the claim: it is ready then, wherever the clock has been set meanwhile. */
  readonly isReady: boolean
  readonly payloads: PayloadSet
}

export function isWaiting(job: MemoryJob | undefined): boolean {
  return job?.state === 'ready' || job?.state === 'scheduled'
}

/** By arrival. */
export const bySeq = (a: MemoryJob, b: MemoryJob): number => a.seq - b.seq

/** By the bytes of the id. */
export const byId = (a: MemoryJob, b: MemoryJob): number =>
  Buffer.compare(Buffer.from(a.spec.id), Buffer.from(b.spec.id))

export function newMemoryJob(
  spec: NewJob,
  place: Pick<MemoryJob, 'seq' | 'queue' | 'createdAt' | 'state' | 'stamp'>,
): MemoryJob {
  return {
    ...place,
    spec,
    updatedAt: place.createdAt,
    attempt: 1,
    crashes: 0,
    suspect: false,
    fence: 0,
    leaseUntil: 0,
    alone: false,
    cancelRequested: false,
    worker: undefined,
    process: {},
    progress: undefined,
    checkpoint: undefined,
    log: '',
    fields: spec.fields,
    startedAt: undefined,
    finishedAt: undefined,
    expiresAt: undefined,
    result: undefined,
    error: undefined,
    reason: undefined,
    steps: [],
    awaits: undefined,
    waitedUntil: undefined,
    payloads: undefined,
    inHand: [],
    successor: undefined,
  }
}

/** An ended job whose id is remembered. */
export interface RememberedJob {
  readonly seq: number
  readonly id: string
  readonly task: string
  readonly state: 'completed' | 'cancelled'
  readonly priority: number
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly runAt: number
  readonly finishedAt: number
  readonly until: number
  readonly reason: string | undefined
  /** Of a job that was cancelled after it had begun. */
  readonly remains: JobRemains | undefined
}

export function rememberedJob(
  job: MemoryJob,
  state: RememberedJob['state'],
  finishedAt: number,
  forMs: number,
  remains?: JobRemains,
): RememberedJob {
  const { id, task, priority } = job.spec
  return {
    seq: job.seq,
    id,
    task,
    state,
    priority,
    attempt: job.attempt,
    crashes: job.crashes,
    createdAt: job.createdAt,
    runAt: dueAt(job.stamp),
    finishedAt,
    until: finishedAt + forMs,
    reason: job.reason,
    remains,
  }
}

/** Whether it runs, or ran before as far as one can tell. */
export function hasBegun(job: MemoryJob): boolean {
  const hasNotes = job.error !== undefined || job.checkpoint !== undefined || job.log !== ''
  return leavesRemains({ ...job, isRunning: job.state === 'running', hasNotes })
}

export function remainsOf(job: MemoryJob): JobRemains {
  const { payload, codec, meta, group } = job.spec
  const { fields, startedAt, worker, process, progress, checkpoint, log, error } = job
  return defined({
    ...{ payload, codec, meta, group },
    ...{ fields, startedAt, worker, ...process, progress, checkpoint, log: log || undefined, error },
  })
}

/** The memory of a completed job without its result. */
export function withoutResult(job: MemoryJob): RememberedJob {
  const reason = job.result?.payload === undefined ? undefined : resultDropped
  return rememberedJob({ ...job, reason }, 'completed', job.finishedAt!, job.spec.rememberMs)
}

export function claimOf(job: MemoryJob): Claim {
  const { id, task, payload, codec, meta, priority, group } = job.spec
  return defined({
    queue: job.queue,
    id,
    task,
    payload,
    codec,
    meta,
    payloads: job.inHand.length === 0 ? undefined : job.inHand.map(scored),
    hasMore: job.successor === undefined ? undefined : true,
    priority,
    group,
    attempt: job.attempt,
    crashes: job.crashes,
    fence: job.fence,
    createdAt: job.createdAt,
    runAt: dueAt(job.stamp),
    waitedUntil: waitedBeyond(job.stamp, job.waitedUntil),
    expiresAt: job.expiresAt,
    error: job.error,
    checkpoint: job.checkpoint,
    isJoin: job.spec.join === undefined ? undefined : true,
    isMember: job.spec.memberOf === undefined ? undefined : true,
  })
}

/** The weight that a taken job adds to its claim. */
export function takenWeight({ spec, checkpoint, inHand }: MemoryJob): number {
  const noted = checkpoint === undefined ? 0 : weightOf(checkpoint)
  return inHand.reduce((bytes, entry) => bytes + weightOf(entry), weightOf(spec) + noted)
}

/** A running job as the claim that its worker holds. */
export function heldClaim(job: MemoryJob): HeldClaim {
  const { queue, fence, alone, startedAt, process, progress } = job
  return defined({ queue, id: job.spec.id, fence, task: job.spec.task, alone, startedAt, ...process, progress })
}

/** Its record: in a listing, or by itself. */
export function storedJob(job: MemoryJob, as: 'listed' | 'alone'): StoredJob {
  const { id, task, payload, codec, meta, priority, group } = job.spec
  const payloads = job.state === 'running' ? job.inHand : [...(job.payloads ?? [])]
  return defined({
    queue: job.queue,
    id,
    task,
    state: job.state,
    payload,
    codec,
    meta,
    payloads:
      payloads.length === 0
        ? undefined
        : payloads.slice(0, as === 'alone' ? payloadsInRecord : payloadsInPage).map(scored),
    payloadCount: payloads.length === 0 ? undefined : payloads.length,
    pendingCount: job.successor?.payloads.size,
    priority,
    group,
    attempt: job.attempt,
    crashes: job.crashes,
    suspect: job.suspect ? true : undefined,
    createdAt: job.createdAt,
    updatedAt: job.updatedAt,
    runAt: dueAt(job.stamp),
    waitedUntil:
      job.state === 'ready' || job.state === 'running' ? waitedBeyond(job.stamp, job.waitedUntil) : undefined,
    fields: job.fields,
    expiresAt: job.state === 'completed' ? undefined : job.expiresAt,
    startedAt: job.startedAt,
    finishedAt: job.finishedAt,
    worker: job.worker,
    ...job.process,
    progress: job.progress,
    ...(as === 'alone' ? { checkpoint: job.checkpoint, log: job.log || undefined } : {}),
    result: job.result,
    error: job.error,
    reason: job.reason,
    memberOf: job.spec.memberOf,
    isJoin: job.spec.join === undefined ? undefined : true,
    awaits: job.awaits === undefined ? undefined : defined({ ...job.awaits }),
    hasSteps: job.steps.length === 0 ? undefined : true,
  })
}

export function rememberedRecord(queue: string, job: RememberedJob): StoredJob {
  const { id, task, state, priority, attempt, crashes, createdAt, runAt, finishedAt, reason, remains } = job
  return defined({
    queue,
    id,
    task,
    state,
    ...(remains ?? { payload: '' }),
    priority,
    attempt,
    crashes,
    createdAt,
    updatedAt: finishedAt,
    runAt,
    finishedAt,
    reason,
  })
}

export function scored({ score, payload, codec, meta }: PayloadEntry): ScoredPayload {
  return defined({ score, payload, codec, meta })
}

/** The same without undefined fields: absent means absent. */
export function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  for (const key of Object.keys(value) as (keyof T)[]) if (value[key] === undefined) delete value[key]
  return value as { [K in keyof T]: Exclude<T[K], undefined> }
}
