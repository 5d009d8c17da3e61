/**
 * The punctuality of a worker: when claimed jobs of throttled queues must begin, and how many the worker may claim at
 * once so that all begin in time.
 */

import { isolatedStartDelayMs, type StartWindow, startDelayMs, startWindowOf } from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import { StoreClock, type Trip } from '../../runtime/store-clock.js'
import { Lateness } from './lateness.js'
import type { LimitedQueues } from './limited-queues.js'

/** After this many jobs in time, a claim may bring twice as many. */
const trialJobs = 16

/** After this many jobs in a row that were late by their own doing, the task's next job begins however late it is. */
const mostTooLate = 3

/** A throttled queue's recent record. */
interface ServedQueue {
  readonly clock: StoreClock
  readonly lateness: Lateness
  /** The most jobs of a claim. */
  most: number
  /** Jobs in time since `most` last changed. */
  inTime: number
}

/** The time in which handlers must begin. */
export interface Start extends StartWindow {
  /** The store is too far away for jobs to begin in time: each begins as soon as it can. */
  readonly isFar: boolean
}

export class Punctuality {
  readonly #limited: LimitedQueues
  readonly #registry: Registry
  readonly #services = new Map<string, ServedQueue>()
  readonly #delays = new Map<string, number>()
  /**
   * Tasks whose last jobs were late because of the steps before the handler (a schema, a middleware, the start of its
   * process): how many in a row, and when the last was.
   */
  readonly #slow = new Map<string, { readonly times: number; readonly at: number }>()

  constructor(limited: LimitedQueues, registry: Registry) {
    this.#limited = limited
    this.#registry = registry
  }

  /** The span in which the handlers of a call's jobs must begin; undefined if the queue has no throttle. */
  startOf(queue: string, trip: Trip): Start | undefined {
    const spreadMs = this.#limited.spreadOf(queue)
    if (spreadMs === undefined) return undefined
    const { clock } = this.#service(queue)
    const start = startWindowOf(clock.grantedIn(trip), spreadMs, this.#delayOf(queue), trip.lateMs ?? 0)
    return { ...start, isFar: trip.sentAt + clock.quickestMs > start.to }
  }

  /** The most jobs that one claim of the queue may bring. */
  mostOf(queue: string): number {
    return this.#services.get(queue)?.most ?? Number.POSITIVE_INFINITY
  }

  /** How late the jobs of the queue's next claim may begin, in ms. */
  lateMsOf(queue: string): number {
    return this.#services.get(queue)?.lateness.declaredMs ?? 0
  }

  /** A job missed its instant: it would begin `at`. `jobs`: the number granted together, itself included. */
  missed(queue: string, { dueBy }: Start, at: number, jobs: number): void {
    const service = this.#service(queue)
    service.lateness.noted(dueBy, at)
    service.most = Math.max(1, Math.floor(jobs / 2))
    service.inTime = 0
  }

  /** A job began. */
  began(queue: string, { to, dueBy }: Start, at: number): void {
    const service = this.#service(queue)
    service.lateness.noted(dueBy, at)
    if (at > to) return
    service.inTime += 1
    if (service.inTime < trialJobs) return
    service.most *= 2
    service.inTime = 0
  }

  /**
   * Whether the task's next job begins however late it is. The jobs before it were put back; otherwise the task would
   * never run.
   */
  isSlow(task: string): boolean {
    return (this.#slow.get(task)?.times ?? 0) >= mostTooLate
  }

  /** The steps before a handler took too long, or were done in time at `at`. */
  prepared(task: string, inTime: boolean, at: number): void {
    const before = this.#slow.get(task)
    if (!inTime) this.#slow.set(task, { times: (before?.times ?? 0) + 1, at })
    else if (before !== undefined && at > before.at) this.#slow.delete(task)
  }

  #service(queue: string): ServedQueue {
    const found = this.#services.get(queue)
    if (found !== undefined) return found
    const made = { clock: new StoreClock(), lateness: new Lateness(), most: Number.POSITIVE_INFINITY, inTime: 0 }
    this.#services.set(queue, made)
    return made
  }

  /** The same for all jobs of a scope. Jobs in processes of their own need longer. */
  #delayOf(queue: string): number {
    const known = this.#delays.get(queue)
    if (known !== undefined) return known
    const sharing = this.#limited.sharing(queue)
    const isIsolated = [...sharing].some((name) => this.#registry.isolates(name))
    const delay = isIsolated ? isolatedStartDelayMs : startDelayMs
    this.#delays.set(queue, delay)
    return delay
  }
}
