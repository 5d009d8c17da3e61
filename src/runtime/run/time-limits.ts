/**
 * Time limits: report when an execution is slow, abort it when its time is over, and have it given up if it does not
 * end then.
 */

import { TimeLimitError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { exactDuration } from '../../core/values/duration.js'
import { Countdown } from './countdown.js'
import { type Execution, refOf } from './execution.js'

/**
 * The time that an overdue handler has to end by itself before its job is given up; never longer than its time limit.
 */
const abortGraceMs = 5_000

/** The countdowns of one task. */
interface Countdowns {
  readonly slow: Countdown<Execution> | undefined
  readonly over: Countdown<Execution>
  readonly grace: Countdown<Execution>
}

export class TimeLimits {
  readonly #events: Events
  readonly #giveUp: (execution: Execution, reason: Error) => void
  readonly #mono: () => number
  readonly #countdowns = new Map<AnyTask, Countdowns>()

  /** `giveUp` is called for executions that do not end once their time is over. */
  constructor(events: Events, giveUp: (execution: Execution, reason: Error) => void, mono: () => number) {
    this.#events = events
    this.#giveUp = giveUp
    this.#mono = mono
  }

  /** Its handler is about to be called. */
  start(execution: Execution): void {
    const { slow, over } = this.#of(execution.task)
    slow?.start(execution)
    over.start(execution)
  }

  /** There is a verdict on it. */
  stop(execution: Execution): void {
    const { slow, over, grace } = this.#of(execution.task)
    slow?.stop(execution)
    over.stop(execution)
    grace.stop(execution)
  }

  #of(task: AnyTask): Countdowns {
    let countdowns = this.#countdowns.get(task)
    if (countdowns === undefined) {
      countdowns = this.#countdownsOf(task)
      this.#countdowns.set(task, countdowns)
    }
    return countdowns
  }

  #countdownsOf({ name, timeLimitMs, slowAfterMs }: AnyTask): Countdowns {
    const countdown = (forMs: number, due: (execution: Execution) => void) =>
      new Countdown<Execution>(forMs, due, this.#mono)
    const slow =
      slowAfterMs === undefined
        ? undefined
        : countdown(slowAfterMs, ({ leased }) => {
            for (const { claim } of leased)
              this.#events.emit('job.slow', { ...refOf(claim), attempt: claim.attempt, runMs: slowAfterMs })
          })
    const grace = countdown(Math.min(abortGraceMs, timeLimitMs), (execution) =>
      this.#giveUp(execution, new TimeLimitError(name, exactDuration(timeLimitMs))),
    )
    const over = countdown(timeLimitMs, (execution) => {
      // Before its listeners are called: an error of theirs must not leave it without an end.
      grace.start(execution)
      execution.abort(new TimeLimitError(name, exactDuration(timeLimitMs)))
    })
    return { slow, over, grace }
  }
}
