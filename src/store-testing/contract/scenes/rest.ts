/** A rest: a wait under way on a handle of its own, like that of a worker in another process. */

import assert from 'node:assert/strict'
import type { Store } from '../../../stores/contract/store.js'
import { type Scene, soon } from './scene.js'

/** Longer than any case may take: a wait that ends sooner ended for another reason. */
const longMs = 25_000
/** How long an undisturbed rest is watched. */
const quietMs = 60
const quietQueue = 'nobody-rings-here'

export class Rest {
  readonly store: Store
  /** The queues that the wait resolves with. */
  readonly rung: Promise<string[]>
  readonly #abort = new AbortController()

  private constructor(store: Store, queues: readonly string[]) {
    this.store = store
    this.rung = store.wait(queues, longMs, this.#abort.signal)
  }

  /** Begins to wait, and resolves once the wait is under way, that is once later calls have been answered. */
  static async begin(scene: Scene, queues: readonly string[] = [scene.queue], on?: Store): Promise<Rest> {
    const store = on ?? (await scene.harness.open())
    const rest = new Rest(store, queues)
    for (let i = 0; i < 5; i++) await store.depth([queues[0]!])
    return rest
  }

  /** The wait resolves with this queue. */
  async wakes(queue: string): Promise<void> {
    assert.deepEqual(await soon(this.rung), [queue])
  }

  /** Nobody wakes it: it resolves with none when it is given up. */
  async isUndisturbed(): Promise<void> {
    await this.#quiet()
    this.#abort.abort()
    assert.deepEqual(await soon(this.rung), [])
  }

  /** Waits long enough to hear a ring. */
  async #quiet(): Promise<void> {
    await this.store.open([{ name: quietQueue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    assert.deepEqual(await this.store.wait([quietQueue], quietMs, new AbortController().signal), [])
  }
}
