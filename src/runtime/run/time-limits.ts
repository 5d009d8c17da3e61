/**
 * Time limits: report when an execution is slow, abort it when its time is over, and have it given up if it does not
 * end then.
 */

import { TimeLimitError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import { longestTimerMs } from '../../core/platform/timer.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { exactDuration } from '../../core/values/duration.js'
import { LinkedList, ListNode } from '../../core/values/linked-list.js'
import { listOfOne } from '../../core/values/list-of-one.js'
import type { Execution } from './execution.js'
import { refOf } from './run-events.js'

/**
 * The time that an overdue handler has to end by itself before its job is given up; never longer than its time limit.
 */
const abortGraceMs = 5_000

/** The countdowns of one task. */
interface Countdowns {
  readonly slow: Countdown<Execution> | undefined
  readonly over: Countdown<Execution>
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
    execution.limits = listOfOne(over.start(execution))
    if (slow !== undefined) execution.limits.push(slow.start(execution))
  }

  /** There is a verdict on it. */
  stop(execution: Execution): void {
    for (const limit of execution.limits ?? []) limit.stop()
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
      execution.limits!.push(grace.start(execution))
      execution.abort(new TimeLimitError(name, exactDuration(timeLimitMs)))
    })
    return { slow, over }
  }
}

/** A member of a countdown, until it is due. */
export class Due<Member> extends ListNode {
  readonly countdown: Countdown<Member>
  readonly member: Member
  /** On the clock of the countdown. */
  readonly at: number

  constructor(countdown: Countdown<Member>, member: Member, at: number) {
    super()
    this.countdown = countdown
    this.member = member
    this.at = at
  }

  /** Harmless once it has stopped, or was called back. */
  stop(): void {
    this.countdown.stop(this)
  }
}

/**
 * Calls back for each member that has stayed in it for a set time. One timer serves all members, for they
 * fall due in the order in which they came; most have left long before.
 */
export class Countdown<Member> {
  readonly #forMs: number
  readonly #due: (member: Member) => void
  readonly #mono: () => number
  readonly #members = new LinkedList<Due<Member>>()
  #timer: NodeJS.Timeout | undefined

  /** `mono`: the monotonic clock that it counts by. */
  constructor(forMs: number, due: (member: Member) => void, mono: () => number) {
    this.#forMs = forMs
    this.#due = due
    this.#mono = mono
  }

  start(member: Member): Due<Member> {
    const due = new Due(this, member, this.#mono() + this.#forMs)
    this.#members.add(due)
    if (this.#timer === undefined) this.#wait()
    else if (this.#members.size === 1) this.#timer.ref()
    return due
  }

  stop(due: Due<Member>): void {
    // The timer stays for the next member, but without members it must not keep the process alive.
    if (this.#members.remove(due) && this.#members.size === 0) this.#timer?.unref()
  }

  #wait(): void {
    const { first } = this.#members
    const leftMs = first === undefined ? undefined : Math.max(1, Math.ceil(first.at - this.#mono()))
    this.#timer = leftMs === undefined ? undefined : setTimeout(() => this.#look(), Math.min(leftMs, longestTimerMs))
  }

  #look(): void {
    const now = this.#mono()
    try {
      for (let { first } = this.#members; first !== undefined && first.at <= now; { first } = this.#members) {
        this.#members.remove(first)
        this.#due(first.member)
      }
    } finally {
      this.#wait()
    }
  }
}
