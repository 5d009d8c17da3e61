/** The sender: takes calls to the store. What one tick enqueues travels together, and shares a commit. */

import { setTimeout as delay } from 'node:timers/promises'
import { StoreUnavailableError } from '../core/errors.js'
import type { EnqueueCall, Enqueued, Store } from '../stores/store.js'

interface Outgoing {
  readonly call: EnqueueCall
  readonly resolve: (answers: Enqueued[]) => void
  readonly reject: (error: unknown) => void
}

/** Most jobs that travel together: one call too many would make a store hold its write lock for long. */
const mostJobs = 1_000
/** After a store was away in the middle of a call. The store remembers the call for a minute, and answers it twice alike. */
const resendAfterMs = [50, 200, 1_000] as const

export class Sender {
  readonly #connect: () => Promise<Store>
  #outgoing: Outgoing[] = []

  constructor(connect: () => Promise<Store>) {
    this.#connect = connect
  }

  /**
   * The answer per job. Atomic: all jobs of the call are accepted, or none. A call that was in doubt is sent again, the
   * same as before; throws `StoreUnavailableError` where it still is.
   */
  send(call: EnqueueCall): Promise<Enqueued[]> {
    return new Promise((resolve, reject) => {
      if (this.#outgoing.length === 0) setImmediate(() => this.#flush())
      this.#outgoing.push({ call, resolve, reject })
    })
  }

  #flush(): void {
    let load: Outgoing[] = []
    let jobs = 0
    for (const outgoing of this.#outgoing) {
      if (jobs + outgoing.call.jobs.length > mostJobs && load.length > 0) {
        void this.#carry(load)
        load = []
        jobs = 0
      }
      load.push(outgoing)
      jobs += outgoing.call.jobs.length
    }
    this.#outgoing = []
    void this.#carry(load)
  }

  async #carry(load: readonly Outgoing[]): Promise<void> {
    try {
      const store = await this.#connect()
      const answers = await this.#insist(() => store.enqueue(load.map(({ call }) => call)))
      load.forEach(({ resolve }, i) => {
        resolve(answers[i]!)
      })
    } catch (error) {
      for (const { reject } of load) reject(error)
    }
  }

  async #insist<T>(call: () => Promise<T>): Promise<T> {
    for (const afterMs of resendAfterMs) {
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error
        await delay(afterMs)
      }
    }
    return call().catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error
      throw new StoreUnavailableError(
        `${error.message} Whether the job was stored is in doubt. To be safe enqueue it with an id of your own: repeating that stores it once.`,
        { cause: error },
      )
    })
  }
}
