/** The life of the workers of one mill: the user's hooks around it, and what their handlers need. */

import type { Events } from '../core/events.js'
import { warnOfWaiting } from '../runtime/outage.js'
import type { HandlerContext } from './handler-context.js'
import type { WorkerHooks } from './options/mill-options.js'

export class WorkerLife {
  readonly context: HandlerContext
  readonly #hooks: WorkerHooks
  readonly #events: Events
  #started: Promise<void> | undefined
  /** Pending while the context is closed and `onWorkerStop` runs. */
  #stopping: Promise<void> = Promise.resolve()
  #living = 0
  #isFatalTold = false
  #isTellingFatal = false

  constructor(hooks: WorkerHooks, context: HandlerContext, events: Events) {
    this.#hooks = hooks
    this.context = context
    this.#events = events
  }

  /**
   * A worker is about to claim: calls `onWorkerStart`, once for all workers. Rejects if that rejects; the next start
   * tries again. With `isOver`, which says whether the worker was stopped, it then opens the context for handlers that
   * run in this process. Rejects with `ContextError` if that fails.
   */
  async begin(isOver?: () => boolean): Promise<void> {
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
    if (isOver === undefined) return
    try {
      await this.context.ready({ isOver, failed: this.#contextFailed() })
    } catch (error) {
      await this.end(undefined)
      throw error
    }
  }

  #contextFailed(): (error: unknown, retryMs: number | undefined) => void {
    let isWarned = false
    return (error, retryMs) => {
      if (!isWarned && retryMs !== undefined && !this.#events.has('context.failed'))
        warnOfWaiting('what the handlers need could not be opened: ', error, 'MILLRACE_CONTEXT_FAILED')
      isWarned = true
      this.#events.emit('context.failed', { error, retryMs })
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
    this.#stopping = this.closeContext().then(() => this.#call('onWorkerStop', () => this.#hooks.onWorkerStop?.()))
    await this.#stopping
  }

  /** For a mill whose handlers were called without a worker. Never rejects. */
  closeContext(): Promise<void> {
    return this.#call('context', () => this.context.close())
  }

  async #call(hook: string, call: () => void | Promise<void> | undefined): Promise<void> {
    try {
      await call()
    } catch (error) {
      this.#events.emit('hook.failed', { hook, error })
    }
  }
}
