/** The life of the workers of one mill, as the user's hooks hear of it. */

import type { Events } from '../core/events.js'
import type { WorkerHooks } from './mill-options.js'

export class WorkerLife {
  readonly #hooks: WorkerHooks
  readonly #events: Events
  #started: Promise<void> | undefined
  #living = 0
  #isFatalTold = false

  constructor(hooks: WorkerHooks, events: Events) {
    this.#hooks = hooks
    this.#events = events
  }

  /** A worker is about to claim: calls `onWorkerStart`, once for all of them. Rejects as that does; the next start tries again. */
  async begin(): Promise<void> {
    this.#started ??= Promise.resolve(this.#hooks.onWorkerStart?.())
    try {
      await this.#started
    } catch (error) {
      this.#started = undefined
      throw error
    }
    this.#living += 1
  }

  /** A worker has ended: tells of the error that ended it, and of the end of the last. Never rejects. */
  async end(error: unknown): Promise<void> {
    this.#living -= 1
    // Now: others may end while `onFatal` is being told, and each would then find itself the last.
    const isLast = this.#living === 0
    if (error !== undefined && !this.#isFatalTold) {
      this.#isFatalTold = true
      await this.#call('onFatal', () => this.#hooks.onFatal?.(error))
    }
    if (!isLast) return
    this.#started = undefined
    await this.#call('onWorkerStop', () => this.#hooks.onWorkerStop?.())
  }

  async #call(hook: string, call: () => void | Promise<void> | undefined): Promise<void> {
    try {
      await call()
    } catch (error) {
      this.#events.emit('hook.failed', { hook, error })
    }
  }
}
