/** The sender: takes calls to the store. What one tick enqueues travels together, and shares a commit. */

import { setTimeout as delay, setImmediate as endOfTick } from 'node:timers/promises'
import { hasCode } from '../../core/error-codes.js'
import { StoreUnavailableError } from '../../core/errors.js'
import type { EnqueueCall, Enqueued } from '../../stores/contract/new-job.js'
import type { Store } from '../../stores/contract/store.js'

/** Calls for one queue that travel together: where another queue is away, they are not held up, or left in doubt. */
interface Load {
  readonly calls: EnqueueCall[]
  jobs: number
  /** One promise for all of them: each call takes its answer out. */
  readonly answers: Promise<Enqueued[][]>
}

/** Most jobs that travel together: one call too many would make a store hold its write lock for long. */
const mostJobs = 1_000
/** After a store was away in the middle of a call. The store remembers the call for a minute, and answers it twice alike. */
const resendAfterMs = [50, 200, 1_000] as const
/** A store that has been away for so long is not asked again: somebody waits for the answer. */
const resendWithinMs = 3_000

export class Sender {
  readonly #connect: () => Promise<Store>
  readonly #mono: () => number
  /** What this tick enqueues, by queue, as long as there is room. */
  readonly #open = new Map<string, Load>()
  /** What a remote store takes in one trip, so that the next is on its way while it works on one; others share a commit. */
  #mostJobs = mostJobs

  constructor(connect: () => Promise<Store>, mono: () => number) {
    this.#connect = connect
    this.#mono = mono
  }

  /**
   * The answer per job. Atomic: all jobs of the call are accepted, or none. A call that was in doubt is sent again, the
   * same as before; throws `StoreUnavailableError` where it still is.
   */
  async send(call: EnqueueCall): Promise<Enqueued[]> {
    const load = this.#loadFor(call.queue, call.jobs.length)
    const at = load.calls.push(call) - 1
    load.jobs += call.jobs.length
    const answers = await load.answers
    return answers[at]!
  }

  #loadFor(queue: string, jobs: number): Load {
    const open = this.#open.get(queue)
    if (open !== undefined && open.jobs + jobs <= this.#mostJobs) return open
    const calls: EnqueueCall[] = []
    const load = { calls, jobs: 0, answers: this.#carry(queue, calls) }
    this.#open.set(queue, load)
    return load
  }

  /** Carries what is among the calls when the tick is over. */
  async #carry(queue: string, calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    await endOfTick()
    if (this.#open.get(queue)?.calls === calls) this.#open.delete(queue)
    const store = await this.#connect()
    if (store.traits.remote) this.#mostJobs = store.traits.maxBatch
    return this.#insist((isResent) => store.enqueue(isResent ? calls.map((call) => ({ ...call, isResent })) : calls))
  }

  async #insist<T>(call: (isResent: boolean) => Promise<T>): Promise<T> {
    const startedAt = this.#mono()
    for (let resends = 0; ; resends += 1) {
      try {
        return await call(resends > 0)
      } catch (error) {
        if (!hasCode(error, 'store-unavailable') || !error.inDoubt) throw error
        const afterMs = resendAfterMs[resends]
        // However long it took to learn that a call is in doubt, it is sent again once.
        const isLate = resends > 0 && this.#mono() - startedAt > resendWithinMs
        if (afterMs === undefined || isLate) throw inDoubt(error)
        await delay(afterMs)
      }
    }
  }
}

function inDoubt(error: StoreUnavailableError): StoreUnavailableError {
  return new StoreUnavailableError(
    `${error.message} Whether the job was stored is in doubt. To be safe enqueue it with an id of your own: repeating that stores it once.`,
    { cause: error },
  )
}
