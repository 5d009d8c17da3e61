/**
 * The punctuality of a worker: when what it claims of throttled queues has to begin, and how much of them it may claim at once
 * to begin all of it in time.
 */

import { isolatedStartDelayMs, type Span, startDelayMs, startWindowOf } from '../../core/queue/start-window.js'
import type { Registry } from '../../core/registry.js'
import { StoreClock, type Trip } from '../../runtime/store-clock.js'
import type { LimitedQueues } from './limited-queues.js'

/** When so many jobs have begun in time, twice as many are claimed at once. */
const trialJobs = 16

/** A task that was too late so often in a row by its own doing begins however late it is. */
const mostTooLate = 3

/** How a throttled queue was served lately. */
interface ServedQueue {
  readonly clock: StoreClock
  /** Most jobs of a claim. */
  most: number
  /** Jobs since then that began in time. */
  inTime: number
}

/** When handlers must begin. */
export interface Start extends Span {
  /** The store is so far away that none begins in time: each begins as soon as it can. */
  readonly isFar: boolean
}

export class Punctuality {
  readonly #limited: LimitedQueues
  readonly #registry: Registry
  readonly #services = new Map<string, ServedQueue>()
  readonly #delays = new Map<string, number>()
  /**
   * Tasks whose last jobs were too late by what went before the handler — a schema, a middleware, the start of its process —
   * how many in a row, and when the last.
   */
  readonly #slow = new Map<string, { readonly times: number; readonly at: number }>()

  constructor(limited: LimitedQueues, registry: Registry) {
    this.#limited = limited
    this.#registry = registry
  }

  /** Between which instants the handlers of jobs must begin that a call has brought; undefined if the queue has no throttle. */
  startOf(queue: string, trip: Trip): Start | undefined {
    const rules = this.#limited.rulesOf(queue)
    if (rules === undefined) return undefined
    const { clock } = this.#service(queue)
    const start = startWindowOf(clock.grantedIn(trip), rules, this.#delayOf(queue))
    return { ...start, isFar: trip.sentAt + clock.quickestMs > start.to }
  }

  /** Most jobs that one claim of the queue may bring. */
  mostOf(queue: string): number {
    return this.#services.get(queue)?.most ?? Number.POSITIVE_INFINITY
  }

  /** A job missed its instant that was granted together with so many, itself included. */
  missed(queue: string, jobs: number): void {
    const service = this.#service(queue)
    service.most = Math.max(1, Math.floor(jobs / 2))
    service.inTime = 0
  }

  /** A job began in time. */
  kept(queue: string): void {
    const service = this.#service(queue)
    service.inTime += 1
    if (service.inTime < trialJobs) return
    service.most *= 2
    service.inTime = 0
  }

  /** Whether the next job of the task begins however late it is: those before it were put back, and the task would never run else. */
  isSlow(task: string): boolean {
    return (this.#slow.get(task)?.times ?? 0) >= mostTooLate
  }

  /** What went before a handler took too long, or was done in time at `at`. */
  prepared(task: string, inTime: boolean, at: number): void {
    const before = this.#slow.get(task)
    if (!inTime) this.#slow.set(task, { times: (before?.times ?? 0) + 1, at })
    else if (before !== undefined && at > before.at) this.#slow.delete(task)
  }

  #service(queue: string): ServedQueue {
    const found = this.#services.get(queue)
    if (found !== undefined) return found
    const made = { clock: new StoreClock(), most: Number.POSITIVE_INFINITY, inTime: 0 }
    this.#services.set(queue, made)
    return made
  }

  /** The same for all jobs of a scope: those in processes of their own need longer. */
  #delayOf(queue: string): number {
    const known = this.#delays.get(queue)
    if (known !== undefined) return known
    const sharing = this.#limited.sharing(queue)
    const isIsolated = [...this.#registry.tasks.values()].some(
      (task) => task.kind === 'plain' && task.isolation !== undefined && sharing.has(task.queue),
    )
    const delay = isIsolated ? isolatedStartDelayMs : startDelayMs
    this.#delays.set(queue, delay)
    return delay
  }
}
