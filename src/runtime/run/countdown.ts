/**
 * A countdown: calls back for each member that has stayed in it for a set time. One timer serves all members, for they
 * fall due in the order in which they came; most have left long before.
 */

import { Roster } from '../../core/values/roster.js'

/** The longest a timer can wait: 24 days. */
const longestTimerMs = 2 ** 31 - 1

export class Countdown<Member> {
  readonly #forMs: number
  readonly #due: (member: Member) => void
  readonly #mono: () => number
  readonly #dueAt = new Roster<Member, number>()
  #timer: NodeJS.Timeout | undefined

  /** `mono`: the monotonic clock that it counts by. */
  constructor(forMs: number, due: (member: Member) => void, mono: () => number) {
    this.#forMs = forMs
    this.#due = due
    this.#mono = mono
  }

  start(member: Member): void {
    this.#dueAt.set(member, this.#mono() + this.#forMs)
    if (this.#timer === undefined) this.#wait()
    else if (this.#dueAt.size === 1) this.#timer.ref()
  }

  /** Harmless for one that is not in it, or has been called back. */
  stop(member: Member): void {
    // The timer stays for the next member, but without members it must not keep the process alive.
    if (this.#dueAt.delete(member) && this.#dueAt.size === 0) this.#timer?.unref()
  }

  get #first(): readonly [Member, number] | undefined {
    const [first] = this.#dueAt
    return first
  }

  #wait(): void {
    const first = this.#first
    const leftMs = first === undefined ? undefined : Math.max(1, Math.ceil(first[1] - this.#mono()))
    this.#timer = leftMs === undefined ? undefined : setTimeout(() => this.#look(), Math.min(leftMs, longestTimerMs))
  }

  #look(): void {
    const now = this.#mono()
    try {
      for (let first = this.#first; first !== undefined && first[1] <= now; first = this.#first) {
        this.#dueAt.delete(first[0])
        this.#due(first[0])
      }
    } finally {
      this.#wait()
    }
  }
}
