/** The life of the workers of one mill, as the user's hooks see it. */

import type { Events } from '../core/events.js'
import type { WorkerHooks } from './options/mill-options.js'

export class WorkerLife {
  readonly #hooks: WorkerHooks
  readonly #events: Events
  #started: Promise<void> | undefined
  /** Pending while `onWorkerStop` runs. */
  #stopping: Promise<void> = Promise.resolve()
  #living = 0
  #isFatalTold = false
  #isTellingFatal = false

  constructor(hooks: WorkerHooks, events: Events) {
    this.#hooks = hooks
    this.#events = events
  }

  /**
   * A worker is about to claim: calls `onWorkerStart`, once for all workers. Rejects if that rejects; the next start
   * tries again.
   */
  async begin(): Promise<void> {
    this.#living += 1
    try {
      // A new start waits for `onWorkerStop`, which may still be closing what `onWorkerStart` opens.
      this.#started ??= this.#stopping.then(() => this.#hooks.onWorkerStart?.())
      await this.#started
    } catch (error) {
      this.#started = undefined
      this.#living -= 1
      throw error
    }
  }

  /** A worker has ended: reports the error that ended it, and the end of the last worker. Never rejects. */
  async end(error: unknown): Promise<void> {
    this.#living -= 1
    if (error !== undefined && !this.#isFatalTold) {
      this.#isFatalTold = true
      this.#isTellingFatal = true
      await this.#call('onFatal', () => this.#hooks.onFatal?.(error))
      this.#isTellingFatal = false
    }
    // `onFatal` may have started another worker, or still be waiting for the others to end.
    if (this.#living > 0 || this.#isTellingFatal || this.#started === undefined) return
    this.#started = undefined
    this.#stopping = this.#call('onWorkerStop', () => this.#hooks.onWorkerStop?.())
    await this.#stopping
  }

  async #call(hook: string, call: () => void | Promise<void> | undefined): Promise<void> {
    try {
      await call()
    } catch (error) {
      this.#events.emit('hook.failed', { hook, error })
    }
  }
}
