/** The registry of workers: the facet of a store that knows which worker processes live, and what each of them holds. */

import type { Progress } from '../../core/job.js'
import type { Buried, Crash } from './claim.js'
import type { JobProcess } from './job-beat.js'
import type { ClaimKey } from './settle.js'

/** A worker process that says it lives. */
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
  /** `'stopping'`: it takes no more jobs, and ends when those in hand have. What follows is absent where a worker does not say it. */
  readonly state?: 'running' | 'stopping'
  /** Of its Millrace. */
  readonly version?: string
  /** The name of its selector; `'custom'`: a function. */
  readonly selector?: string
  /** Tasks that it can run. */
  readonly tasks?: number
  /** What its process takes of memory. */
  readonly rssBytes?: number
  /** How late its event loop was since its last beat: 99 of 100 times no later than so many ms. */
  readonly loopDelayMs?: number
}

/** What an operator wants of a worker: that it ends, or that it ends and another takes its place where somebody sees to that. */
export type WorkerOrder = 'stop' | 'recycle'

export interface WorkerRegistry {
  /** Writes or renews the record; it lapses after `ttlMs`. Answers with the latest order to this worker, until it is removed. */
  beat(worker: WorkerRecord, ttlMs: number): Promise<WorkerOrder | undefined>
  /** Leaves an order to the worker, which its next beat is told. False: there is none that has not lapsed. */
  order(id: string, order: WorkerOrder): Promise<boolean>
  /**
   * Takes the record out, and ends what the worker leads in the queues of that record; in all, where there is none. Harmless
   * where there is nothing.
   */
  remove(id: string): Promise<void>
  /** Those that have not lapsed, by id. */
  list(): Promise<(WorkerRecord & { readonly seenAt: number })[]>
  /** Claims that this worker holds, oldest first, at most 1,000; those whose lease has ended too. */
  held(worker: string): Promise<HeldClaim[]>
  /**
   * Ends those of the claims that are current and held by `worker`, as if their leases had run out: for whoever knows
   * that the worker is dead. It is removed too, once it holds nothing. Each claim is atomic; repeating changes nothing.
   */
  gone(claims: readonly ClaimKey[], worker: string): Promise<{ readonly crashed: Crash[]; readonly buried: Buried[] }>
  /**
   * Hands a claim on: where it is current and held by `from`, `to` holds it from now on, with the same fence and lease. Of
   * all who try one is told true.
   */
  adopt(claim: ClaimKey, from: string, to: string): Promise<boolean>
}

/** A claim with what its beats said. */
export interface HeldClaim extends ClaimKey, JobProcess {
  readonly task: string
  readonly alone: boolean
  readonly startedAt?: number
  readonly progress?: Progress
}

/** The record of a worker as it is stored; undefined if it cannot be read: one damaged record keeps nobody from the others. */
export function storedWorker(text: string): Omit<WorkerRecord, 'id'> | undefined {
  try {
    const record = JSON.parse(text) as Partial<WorkerRecord> | null
    const isWhole = typeof record?.host === 'string' && typeof record.pid === 'number' && Array.isArray(record.queues)
    return isWhole ? (record as WorkerRecord) : undefined
  } catch {
    return undefined
  }
}
