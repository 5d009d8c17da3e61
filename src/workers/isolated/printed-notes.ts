/** The notes of an isolated job: its log is printed, and its progress goes to its guard, a thread. */

import { timerMs } from '../../core/platform/timer.js'
import { JobUpdates, type JobUpdatesParts, type Noting } from '../../runtime/run/job-updates.js'
import type { GuardedMessage } from './child-messages.js'

type ProgressMessage = GuardedMessage & { readonly word: 'progress' }

const progressGapMs = 100

export class PrintedNotes extends JobUpdates {
  readonly #tell: (progress: ProgressMessage) => void
  #sentAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(parts: JobUpdatesParts, tell: (progress: ProgressMessage) => void) {
    super(parts)
    this.#tell = tell
  }

  /** The handler's log lines come between its other output. */
  override log(_: unknown, text: string): void {
    process.stdout.write(`${String(text).toWellFormed()}\n`)
  }

  /** Straight to the guard: a handler that blocks this loop would otherwise report nothing. */
  override progressed(job: Noting): void {
    super.progressed(job)
    clearTimeout(this.#timer)
    const earlyMs = this.#sentAt + progressGapMs - performance.now()
    if (earlyMs <= 0) this.#send(job)
    else this.#timer = setTimeout(() => this.#send(job), timerMs(earlyMs))
  }

  #send(job: Noting): void {
    const { unsentProgress: progress } = job
    // It has been sent with the job's last beat.
    if (progress === undefined) return
    this.#sentAt = performance.now()
    job.unsentProgress = undefined
    this.#tell({ word: 'progress', ...progress })
  }
}
