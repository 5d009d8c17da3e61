/**
 * Looks at queues and listings of their jobs, which change nothing in the store: a declared queue that is not stored yet
 * is shown empty, and is not made.
 */

import { hasCode, InvalidArgumentError } from '../../core/errors.js'
import type { JobRecord, JobState } from '../../core/job/job.js'
import { describe } from '../../core/messages/describe.js'
import type { TaskOf } from '../../core/task/any-task.js'
import type { Page } from '../../stores/contract/job-records.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { Store } from '../../stores/contract/store.js'
import type { SeenWorker } from '../../stores/contract/worker-registry.js'
import { noCounts } from '../../stores/rules/queue-counts.js'
import type { ListFilter } from './job-filter.js'

/** The current state of a queue. */
export interface QueueLook {
  readonly depth: QueueDepth
  /**
   * The workers that serve it and whose registration is current. A process that has just died may still be among them.
   */
  readonly workers: readonly SeenWorker[]
}

/** The jobs of a queue that is not stored yet. */
export const noJobs: Page = { jobs: [] }

/** The counts of a queue that is not stored yet. */
export function emptyDepth(queue: string): QueueDepth {
  return { queue, ...noCounts, paused: false, draining: false }
}

/** The counts of the queues, in their order. Throws `UnknownQueueError` for one that is neither stored nor declared. */
export async function depthsIn(
  store: Store,
  names: readonly string[],
  isDeclared: (name: string) => boolean,
): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
  try {
    return await store.depth(names)
  } catch (error) {
    const stored = hasCode(error, 'queue-unknown') ? await store.records?.queues() : undefined
    if (stored === undefined) throw error
    const known = new Set(stored.map(({ name }) => name))
    if (names.some((name) => !known.has(name) && !isDeclared(name))) throw error
    const { now, depths } = await store.depth(names.filter((name) => known.has(name)))
    const byName = new Map(depths.map((depth) => [depth.queue, depth]))
    return {
      now,
      depths: names.map((name) => byName.get(name) ?? emptyDepth(name)),
    }
  }
}

/** The answer of `ask`; `nothing` if the declared queue is not stored yet. */
export async function lookInto<T>(isDeclared: boolean, ask: () => Promise<T>, nothing: T): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!isDeclared || !hasCode(error, 'queue-unknown')) throw error
    return nothing
  }
}

/** A page of a listing of jobs. */
export interface JobPage<Input = unknown, Result = unknown> {
  readonly jobs: JobRecord<Input, Result>[]
  /** Pass it to the next call; absent on the last page. */
  readonly cursor?: string
}

export interface ListOptions<Input = unknown, Result = unknown> extends ListFilter {
  /**
   * Lists only jobs of this task, and types them. A page examines `limit` jobs, so with this or another filter it may hold
   * fewer or none and still have a `cursor`. Default: all tasks.
   */
  readonly task?: TaskOf<Input, Result> | undefined
  /** Only jobs in this state. Default: all. */
  readonly state?: JobState | undefined
  /**
   * The order. `'time'` (default): running jobs, ready jobs in the order of claiming, scheduled jobs by due time, then
   * the latest ended. `'retry'`: only jobs that have failed.
   */
  readonly by?: 'id' | 'time' | 'retry' | undefined
  readonly cursor?: string | undefined
  /** The most jobs on the page, 1 … 200. Default 50. */
  readonly limit?: number | undefined
}

/**
 * The order. Throws `InvalidArgumentError` for an unknown one.
 * @internal
 */
export function orderOf<T extends string>(by: T, known: readonly T[]): T {
  if (known.includes(by)) return by
  throw new InvalidArgumentError(`by must be one of ${known.join(', ')}; got ${describe(by)}.`)
}

/**
 * The limit. Throws `InvalidArgumentError` if it is not 1 … 200.
 * @internal
 */
export function limitOf(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 200) return limit
  throw new InvalidArgumentError(`limit must be a whole number from 1 to 200; got ${describe(limit)}.`)
}
