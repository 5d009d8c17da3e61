/** Queue administration: one queue and its jobs, the same for every store that keeps records. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Codec } from '../core/codec.js'
import { type Duration, durationMs } from '../core/duration.js'
import { InvalidArgumentError } from '../core/errors.js'
import { isJobId, jobIdForm } from '../core/ids.js'
import { type JobRecord, type JobState, jobStates } from '../core/job.js'
import { shown } from '../core/shown.js'
import type { Page, Records, Step, Where } from '../stores/job-records.js'
import type { Depth, Store } from '../stores/store.js'
import { recordOf } from './job-record.js'
import { recordsOf } from './records-facet.js'

export interface JobPage {
  readonly jobs: JobRecord[]
  /** Hand it to the next call; absent on the last page. */
  readonly cursor?: string
}

export interface ListOptions {
  /** Only jobs in this state. Default: all. */
  readonly state?: JobState
  /** `'time'` (default): running, ready in the order of claiming, scheduled by due time, then the latest ended. `'retry'`: those that failed. */
  readonly by?: 'id' | 'time' | 'retry'
  readonly cursor?: string
  /** 1 … 200. Default 50. */
  readonly limit?: number
}

/** How often a drain looks whether it is done. */
const drainLookMs = 100

export class QueueAdmin {
  readonly name: string
  readonly #connect: () => Promise<Store>
  readonly #codec: Codec

  constructor(name: string, connect: () => Promise<Store>, codec: Codec) {
    this.name = name
    this.#connect = connect
    this.#codec = codec
  }

  async depth(): Promise<Depth> {
    const { depths } = await (await this.#connect()).depth([this.name])
    return depths[0]!
  }

  /** No job is started from now on; running ones go on. */
  async pause(): Promise<void> {
    await (await this.#records()).pause(this.name)
  }

  /** Ends a pause or a drain. */
  async resume(): Promise<void> {
    await (await this.#records()).resume(this.name)
  }

  /** Refuses new jobs from now on and resolves when none waits or runs. It goes on refusing until `resume()`. */
  async drain(): Promise<void> {
    await (await this.#records()).drain(this.name)
    for (;;) {
      const { ready, scheduled, running } = await this.depth()
      if (ready + scheduled + running === 0) return
      await delay(drainLookMs)
    }
  }

  /** Removes waiting and dead jobs, never running ones; resolves with how many. */
  async clear(): Promise<number> {
    const records = await this.#records()
    return total(() => records.clear(this.name))
  }

  readonly jobs = {
    list: async (options: ListOptions = {}): Promise<JobPage> => {
      const { state, by = 'time', cursor, limit = 50 } = options
      if (state !== undefined && !jobStates.includes(state)) {
        throw new InvalidArgumentError(`state must be one of ${jobStates.join(', ')}; got ${shown(state)}.`)
      }
      const query = {
        by: order(by, ['id', 'time', 'retry']),
        limit: limitOf(limit),
        ...(state && { state }),
        ...(cursor && { cursor }),
      }
      return this.#page(await (await this.#records()).list(this.name, query))
    },
    /** The job, or undefined where nothing is kept of it. */
    get: async (id: string): Promise<JobRecord | undefined> => {
      const job = await (await this.#records()).get(this.name, id)
      return job === undefined ? undefined : recordOf(job, this.#codec)
    },
    /** Waiting jobs never run; running ones are told at their next beat. Resolves with how many. */
    cancel: (where: string[] | 'all' | 'failed', reason?: string) =>
      this.#change(where, (records, which) => records.cancel(this.name, which, reason)),
    /** Removes waiting jobs and kept results; never running or dead ones. Resolves with how many. */
    delete: (where: string[] | 'all' | 'failed') =>
      this.#change(where, (records, which) => records.delete(this.name, which)),
    /** Scheduled jobs are due now. Resolves with how many. */
    runNow: (where: string[] | 'all' | 'failed') =>
      this.#change(where, (records, which) => records.runNow(this.name, which)),
    /** Waiting jobs go to the morgue. Resolves with how many. */
    bury: (where: string[] | 'all' | 'failed') =>
      this.#change(where, (records, which) => records.bury(this.name, which)),
    /** Ends the current claim of a running job as a failure; `last` buries it. False where it does not run. */
    fail: async (
      id: string,
      reason: string,
      options: { readonly delay?: Duration; readonly last?: boolean } = {},
    ): Promise<boolean> => {
      const delayMs = durationMs(options.delay ?? 0, 'fail({ delay })')
      return (
        (await (await this.#records()).fail(this.name, id, { delayMs, reason, last: options.last ?? false })) === 'ok'
      )
    },
  }

  readonly morgue = {
    list: async (
      options: Omit<ListOptions, 'state' | 'by'> & { readonly by?: 'id' | 'time' } = {},
    ): Promise<JobPage> => {
      const { by = 'time', cursor, limit = 50 } = options
      const query = { by: order(by, ['id', 'time']), limit: limitOf(limit), ...(cursor && { cursor }) }
      return this.#page(await (await this.#records()).morgue.list(this.name, query))
    },
    /** Back into the queue, ready now, with all attempts. Resolves with how many. */
    revive: (where: string[] | 'all' | 'failed') =>
      this.#change(where, (records, which) => records.morgue.revive(this.name, which)),
    delete: (where: string[] | 'all' | 'failed') =>
      this.#change(where, (records, which) => records.morgue.delete(this.name, which)),
  }

  async #records(): Promise<Records> {
    return recordsOf(await this.#connect())
  }

  #page({ jobs, cursor }: Page): JobPage {
    return { jobs: jobs.map((job) => recordOf(job, this.#codec)), ...(cursor && { cursor }) }
  }

  async #change(
    where: string[] | 'all' | 'failed',
    step: (records: Records, where: Where) => Promise<Step>,
  ): Promise<number> {
    const which = whereOf(where)
    const records = await this.#records()
    return total(() => step(records, which))
  }
}

/** Steps until there is nothing more; each is bounded, so that no store is held for long. */
async function total(step: () => Promise<Step>): Promise<number> {
  let changed = 0
  for (;;) {
    const done = await step()
    changed += done.changed
    if (!done.more) return changed
  }
}

function whereOf(where: unknown): Where {
  if (where === 'all' || where === 'failed') return where
  if (!Array.isArray(where))
    throw new InvalidArgumentError(`which jobs must be a list of ids, 'all' or 'failed'; got ${shown(where)}.`)
  for (const id of where)
    if (!isJobId(id)) throw new InvalidArgumentError(`a job id must be ${jobIdForm}; got ${shown(id)}.`)
  return { ids: where }
}

function order<T extends string>(by: T, known: readonly T[]): T {
  if (known.includes(by)) return by
  throw new InvalidArgumentError(`by must be one of ${known.join(', ')}; got ${shown(by)}.`)
}

function limitOf(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 200) return limit
  throw new InvalidArgumentError(`limit must be a whole number from 1 to 200; got ${shown(limit)}.`)
}
