/** A repeating task: work that is done again and again between `start()` and `stop()`, never twice at once. */

import { timerMs } from '../core/platform/timer.js'

export class Repeating {
  readonly #everyMs: number
  readonly #work: () => Promise<void>
  readonly #failed: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #underWay: Promise<void> | undefined

  constructor(everyMs: number, work: () => Promise<void>, failed: (error: unknown) => void) {
    this.#everyMs = everyMs
    this.#work = work
    this.#failed = failed
  }

  /** Works at once, then at each interval. Starting twice is harmless. */
  start(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#once(), timerMs(this.#everyMs))
    this.#once()
  }

  /** Resolves when the work under way has ended. Stopping twice, or before the start, is harmless. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    await this.#underWay
  }

  #once(): void {
    this.#underWay ??= this.#work()
      .catch(this.#failed)
      .finally(() => {
        this.#underWay = undefined
      })
  }
}
