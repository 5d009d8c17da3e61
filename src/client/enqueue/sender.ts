/** The sender: sends calls to the store. The calls of one tick travel together and share a commit. */

import { setImmediate as atEndOfTick } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode, StoreUnavailableError } from '../../core/errors.js'
import type { JobKey, StoredJob } from '../../stores/contract/job-records.js'
import type { GraphAnswer, Sealed, StoredJoin } from '../../stores/contract/joins.js'
import { areApart, type EnqueueCall, type Enqueued } from '../../stores/contract/new-job.js'
import type { Store } from '../../stores/contract/store.js'
import { joinsOf, recordsOf } from '../store-facets.js'

/** Calls for one queue that travel together. If another queue is unavailable, they are not held up or left in doubt. */
interface Load {
  readonly calls: EnqueueCall[]
  jobs: number
  /** One promise for all of them; each call takes its own answer out, or waits for it. */
  readonly answers: Promise<readonly (Enqueued[] | Promise<Enqueued[]>)[]>
}

/** The most jobs that travel together: more would make a store hold its write lock for long. */
const mostJobs = 1_000
/**
 * Delays before a call is sent again, if the store became unavailable during it. The store remembers the call for a
 * minute, and gives it the same answer twice.
 */
const resendAfterMs = [50, 200, 1_000] as const
/** After this time the call is not sent again: its caller waits for the answer. */
const resendWithinMs = 3_000

export class Sender {
  readonly #connect: () => Promise<Store>
  readonly #mono: () => number
  /** The calls of this tick, by queue, as long as there is room. */
  readonly #open = new Map<string, Load>()
  /**
   * The most jobs that travel with another call. A remote store gets one full call of single jobs at a time, so that
   * the next trip is on its way while it works on one. Calls to other stores share a commit.
   */
  #mostSingle = mostJobs
  /** The same for calls of many jobs. To a remote store they go two by two: a trip has a cost of its own there. */
  #mostMany = mostJobs

  constructor(connect: () => Promise<Store>, mono: () => number) {
    this.#connect = connect
    this.#mono = mono
  }

  /**
   * Sends a call and returns the answer per job. It is atomic: the store accepts all jobs of the call, or none. A call
   * in doubt is sent again unchanged; throws `StoreUnavailableError` if it stays in doubt.
   */
  async send(call: EnqueueCall): Promise<Enqueued[]> {
    const load = this.#loadFor(call.queue, call.jobs.length)
    const at = load.calls.push(call) - 1
    load.jobs += call.jobs.length
    const answers = await load.answers
    return answers[at]!
  }

  /** Throws `UnsupportedByStoreError` if the store has no joins. */
  async refuseWithoutJoins(): Promise<void> {
    joinsOf(await this.#connect())
  }

  /** Sends a graph of jobs, which the store accepts as a whole or not at all. In doubt it is sent again unchanged. */
  async sendGraph(calls: readonly EnqueueCall[]): Promise<GraphAnswer> {
    const joins = joinsOf(await this.#connect())
    return this.#insist((isResent) => joins.enqueue(isResent ? calls.map((call) => ({ ...call, isResent })) : calls))
  }

  /** The join as it is stored; undefined if it is gone. */
  async lookAt(join: JobKey): Promise<StoredJoin | undefined> {
    const joins = joinsOf(await this.#connect())
    return this.#insist(() => joins.look(join))
  }

  /** The record of a job; undefined if nothing is kept of it. */
  async recordOf({ queue, id }: JobKey): Promise<StoredJob | undefined> {
    const records = recordsOf(await this.#connect())
    return this.#insist(() => records.get(queue, id))
  }

  /** See `Joins.seal`. `isResent`: a try before may have sealed the join, which then may have run and left nothing. */
  async seal(
    join: JobKey,
    sizes: Readonly<Record<string, number>>,
  ): Promise<{ readonly answer: Sealed; readonly isResent: boolean }> {
    const joins = joinsOf(await this.#connect())
    return this.#insist(async (isResent) => ({ answer: await joins.seal(join, sizes), isResent }))
  }

  #loadFor(queue: string, jobs: number): Load {
    const open = this.#open.get(queue)
    if (open !== undefined && open.jobs + jobs <= (jobs > 1 ? this.#mostMany : this.#mostSingle)) return open
    const calls: EnqueueCall[] = []
    const load = { calls, jobs: 0, answers: this.#carry(queue, calls) }
    this.#open.set(queue, load)
    return load
  }

  /** Sends the calls when the tick is over. */
  async #carry(queue: string, calls: readonly EnqueueCall[]): Promise<readonly (Enqueued[] | Promise<Enqueued[]>)[]> {
    // The promise of Node's own `timers/promises` takes longer, which counts when jobs come one at a time.
    await new Promise<void>((resolve) => atEndOfTick(resolve))
    if (this.#open.get(queue)?.calls === calls) this.#open.delete(queue)
    const store = await this.#connect()
    if (store.traits.remote) {
      this.#mostSingle = store.traits.maxBatch
      this.#mostMany = 2 * store.traits.maxBatch
    }
    const sent = (some: readonly EnqueueCall[], isResent: boolean) =>
      store.enqueue(isResent ? some.map((call) => ({ ...call, isResent })) : some)
    return this.#insist<(Enqueued[] | Promise<Enqueued[]>)[]>((isResent, doubt) =>
      sent(calls, isResent).catch((error: unknown) => {
        if (!areApart(error)) throw error
        return calls.map(async (call) => (await this.#insist(() => sent([call], true), doubt))[0]!)
      }),
    )
  }

  /** `before`: why a try before this call left it in doubt. */
  async #insist<T>(
    call: (isResent: boolean, doubt: StoreUnavailableError | undefined) => Promise<T>,
    before?: StoreUnavailableError,
  ): Promise<T> {
    const startedAt = this.#mono()
    let doubt = before
    for (let resends = 0; ; resends += 1) {
      try {
        return await call(resends > 0, doubt)
      } catch (error) {
        const isAway = hasCode(error, 'store-unavailable')
        if (isAway && error.inDoubt) doubt = error
        // A later try that has certainly changed nothing says nothing of the one before.
        if (doubt === undefined) throw error
        if (!isAway) throw inDoubt(doubt, error)
        const afterMs = resendAfterMs[resends]
        // A call in doubt is sent again once, however long it took to learn of the doubt.
        const isLate = resends > 0 && this.#mono() - startedAt > resendWithinMs
        if (afterMs === undefined || isLate) throw inDoubt(doubt)
        await delay(afterMs)
      }
    }
  }
}

function inDoubt(error: StoreUnavailableError, cause: unknown = error): StoreUnavailableError {
  return new StoreUnavailableError(
    `${error.message} Whether the job was stored is in doubt. To be safe enqueue it with an id of your own: repeating that stores it once.`,
    { cause },
  )
}
