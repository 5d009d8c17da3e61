/** The registry of workers: the facet of a store that knows which worker processes live and which claims each holds. */

import type { Progress } from '../../core/job/job.js'
import type { Buried, Crash } from './claim.js'
import type { JobProcess } from './job-beat.js'
import type { ClaimKey } from './settle.js'

/** The record of a living worker process. */
export interface WorkerRecord {
  readonly id: string
  readonly host: string
  readonly boot: string
  readonly pidns: string
  readonly pid: number
  readonly ticks: number
  /** All queues it claims from. */
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly running: number
  readonly startedAt: number
  /**
   * `'stopping'`: it takes no more jobs and ends with those in hand. This and the fields below are absent if the worker
   * does not report them.
   */
  readonly state?: 'running' | 'stopping'
  /** Its version of Millrace. */
  readonly version?: string
  /** The name of its selector; `'custom'`: a function. */
  readonly selector?: string
  /** The number of tasks that it can run. */
  readonly tasks?: number
  /** The names of these tasks, old ones included; absent if it runs every job. */
  readonly taskNames?: readonly string[]
  /** The memory of its process. */
  readonly rssBytes?: number
  /** The delay of its event loop since its last beat, in ms: the 99th percentile. */
  readonly loopDelayMs?: number
}

/** A worker as the registry lists it. */
export interface SeenWorker extends WorkerRecord {
  /** When it reported last. */
  readonly seenAt: number
  /** How long ago that was when it was listed, by the store's clock, in ms. */
  readonly silentMs: number
}

/**
 * An operator's signal to a worker: to end, or to end so that a supervisor, if there is one, starts another in its
 * place.
 */
export type WorkerSignal = 'stop' | 'recycle'

export interface WorkerRegistry {
  /**
   * Writes or renews the record; it lapses after `ttlMs`. Resolves with the latest signal to this worker, until the
   * record is removed.
   */
  beat(worker: WorkerRecord, ttlMs: number): Promise<WorkerSignal | undefined>
  /**
   * Leaves a signal for the worker, which its next beat receives. Resolves with false if the record does not exist or
   * has lapsed.
   */
  signal(id: string, signal: WorkerSignal): Promise<boolean>
  /**
   * Removes the record, and ends the worker's leads in the queues of that record; without a record, in all queues.
   * Harmless if there is nothing.
   */
  remove(id: string): Promise<void>
  /** The records that have not lapsed, by id. */
  list(): Promise<SeenWorker[]>
  /**
   * All claims that this worker holds, oldest first, including those with an expired lease. None may be missing, however
   * many they are: a listener takes a claim that is not among them for one that another listener keeps.
   */
  held(worker: string): Promise<HeldClaim[]>
  /**
   * Ends those of the claims that are current and held by `worker`, as if their leases had expired. Call it only if the
   * worker is known to be dead. The record goes too once the worker holds nothing. Each claim is atomic; repeating
   * changes nothing. `error`: how the worker died, if that is known; it becomes the last error of the jobs.
   */
  gone(
    claims: readonly ClaimKey[],
    worker: string,
    error?: string,
  ): Promise<{ readonly crashed: Crash[]; readonly buried: Buried[] }>
  /**
   * Hands a claim over: if it is current and held by `from`, then `to` holds it from now on, with the same fence and
   * lease. Only one of several callers gets true.
   */
  adopt(claim: ClaimKey, from: string, to: string): Promise<boolean>
}

/** A claim with the reports of its beats. */
export interface HeldClaim extends ClaimKey, JobProcess {
  readonly task: string
  readonly alone: boolean
  readonly startedAt?: number
  readonly progress?: Progress
}

/** The stored record of a worker; undefined if it cannot be read: one damaged record must not hide the others. */
export function storedWorker(text: string): Omit<WorkerRecord, 'id'> | undefined {
  try {
    const record = JSON.parse(text) as Partial<WorkerRecord> | null
    const isWhole = typeof record?.host === 'string' && typeof record.pid === 'number' && Array.isArray(record.queues)
    return isWhole ? (record as WorkerRecord) : undefined
  } catch {
    return undefined
  }
}
