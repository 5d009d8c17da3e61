/** The sender: takes drafts to the store. What one tick enqueues goes out as one call, and shares a commit. */

import type { EnqueueCall, Enqueued, Store } from '../stores/store.js'

interface Outgoing {
  readonly call: EnqueueCall
  readonly resolve: (answers: Enqueued[]) => void
  readonly reject: (error: unknown) => void
}

export class Sender {
  readonly #connect: () => Promise<Store>
  #outgoing: Outgoing[] = []

  constructor(connect: () => Promise<Store>) {
    this.#connect = connect
  }

  /** The answer per job. Atomic: all jobs of the call are accepted, or none. */
  send(call: EnqueueCall): Promise<Enqueued[]> {
    return new Promise((resolve, reject) => {
      if (this.#outgoing.length === 0) setImmediate(() => void this.#flush())
      this.#outgoing.push({ call, resolve, reject })
    })
  }

  async #flush(): Promise<void> {
    const outgoing = this.#outgoing
    this.#outgoing = []
    try {
      const store = await this.#connect()
      const answers = await store.enqueue(outgoing.map(({ call }) => call))
      outgoing.forEach(({ resolve }, i) => {
        resolve(answers[i]!)
      })
    } catch (error) {
      for (const { reject } of outgoing) reject(error)
    }
  }
}
