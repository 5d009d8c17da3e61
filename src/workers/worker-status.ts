/** The status of a worker: what it does at this moment. */

import type { Phase, Progress } from '../core/job/job.js'
import { defined } from '../core/values/defined.js'
import type { Execution } from '../runtime/run/execution.js'

export interface WorkerStatus {
  readonly id: string
  readonly state: 'starting' | 'running' | 'stopping' | 'stopped' | 'failed'
  readonly concurrency: number
  /** Slots held by handlers that go on after their job was given up. */
  readonly retired: number
  readonly jobs: readonly JobStatus[]
  /** Attempts that have ended, but whose settles the store has not answered. */
  readonly unsettled: number
  /** Queues that the store cannot use, in whole or in part: their jobs wait. */
  readonly damaged: readonly string[]
  /** Ms since the store last answered this worker. */
  readonly silentMs: number
}

export interface JobStatus {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Unknown for an adopted job. */
  readonly attempt?: number
  /** `'adopted'`: this worker watches the job's own process, which another worker has started. */
  readonly phase: Phase | 'adopted'
  /** Ms since its handler was called, or its process was started; 0 while it waits for a slot. */
  readonly forMs: number
  readonly progress?: Progress
}

/**
 * The status of each job of an execution.
 * @internal
 */
export function jobStatuses({ leased, task, begunAt, phase, lastProgress }: Execution, now: number): JobStatus[] {
  return leased.map(({ claim }) => ({
    queue: claim.queue,
    id: claim.id,
    task: task.name,
    attempt: claim.attempt,
    phase,
    forMs: begunAt === undefined ? 0 : Math.round(now - begunAt),
    ...defined({ progress: lastProgress }),
  }))
}
