/** The notes of an isolated job: its log is printed, and its progress is told to its guard, a thread. */

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

  /** What a handler logs stands between what it prints. */
  override log(_: unknown, text: string): void {
    process.stdout.write(`${String(text).toWellFormed()}\n`)
  }

  /** To the guard at once: a handler that blocks this loop would else report nothing. */
  override progressed(job: Noting): void {
    super.progressed(job)
    clearTimeout(this.#timer)
    const earlyMs = this.#sentAt + progressGapMs - performance.now()
    if (earlyMs <= 0) this.#send(job)
    else this.#timer = setTimeout(() => this.#send(job), timerMs(earlyMs))
  }

  #send(job: Noting): void {
    const { unsentProgress: progress } = job
    // It has been sent with the last words of the job.
    if (progress === undefined) return
    this.#sentAt = performance.now()
    job.unsentProgress = undefined
    this.#tell({ word: 'progress', ...progress })
  }
}
