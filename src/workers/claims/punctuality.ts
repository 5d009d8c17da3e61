/**
 * The punctuality of a claimer of throttled queues: when the jobs of a claim must begin, how many it may claim at once
 * so that all begin in time, and how late they may begin.
 */

import {
  isolatedStartDelayMs,
  type Span,
  type StartWindow,
  startDelayMs,
  startWindowOf,
} from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import type { Claimed, ClaimFrom } from '../../stores/contract/claim.js'
import type { LimitedQueues } from './limited-queues.js'

/** A call to the store, on the monotonic clock, and the instant in its answer, on the store's. */
export interface Trip {
  /** From before it was sent. */
  readonly sentAt: number
  readonly answeredAt: number
  /** Whole ms. */
  readonly now: number
  /** How late the call said that jobs may begin; default 0. */
  readonly lateMs?: number
}

/** The trip of a claim, with the lateness that it declared for the queue that granted. */
export function tripOf(from: readonly ClaimFrom[], answer: Claimed, sentAt: number, answeredAt: number): Trip {
  const lateMs = from.find(({ queue }) => queue === answer.queue)?.lateMs ?? 0
  return { sentAt, answeredAt, now: answer.now, lateMs }
}

/** After this many jobs in time, a claim may bring twice as many. */
const trialJobs = 16

/** After this many jobs in a row that their own preparation made late, the task's next job begins however late it is. */
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

/** The punctuality of a worker or a listener. */
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

/** How many departures are remembered. */
const kept = 16
/** A start that was late may be later next time. */
const margin = 1.5
/** A process that stood still for longer than this may do so once; a permit that counts for that long is lost. */
const mostMs = 10_000

interface Delay {
  readonly dueBy: number
  ms: number
}

/**
 * How late the latest departures would have been without it, and so how late the next claim tells the store that jobs
 * may begin. A process whose loop is blocked, whose tasks have slow schemas, or whose store is far away, then starts
 * fewer jobs in a window, instead of putting all of them back.
 */
export class Lateness {
  readonly #delays: Delay[] = []

  /** A job whose start was due by this instant, without any lateness, began at `at`, or would have. */
  noted(dueBy: number, at: number): void {
    const ms = Math.max(0, at - dueBy)
    // Jobs granted together are one departure.
    const same = this.#delays.findLast((delay) => delay.dueBy === dueBy)
    if (same !== undefined) same.ms = Math.max(same.ms, ms)
    else this.#delays.push({ dueBy, ms })
    if (this.#delays.length > kept) this.#delays.shift()
  }

  /** How late the jobs of the next claim may begin, in whole ms. One departure that was late by chance does not count. */
  get declaredMs(): number {
    let [first, second] = [0, 0]
    for (const { ms } of this.#delays) {
      if (ms > first) [first, second] = [ms, first]
      else if (ms > second) second = ms
    }
    return Math.min(mostMs, Math.ceil(second * margin))
  }
}

/** How far two clocks may drift apart: more than `ntpd` and `chrony` slew either. */
const driftPerMs = 0.001
/** The quickest of this many trips measures how far away the store is. */
const tripsKept = 8

/**
 * The clock of a store as this process sees it: translates the store's instants to the monotonic clock of this process. Each
 * trip bounds the difference from both sides; the quickest trips bound it best.
 */
export class StoreClock {
  /** The difference of the store's clock from ours: between these two, when they were last narrowed. */
  #ahead: Span | undefined
  #narrowedAt = 0
  readonly #trips: number[] = []

  /** The span of our clock in which the store acted. */
  grantedIn({ sentAt, answeredAt, now }: Trip): Span {
    this.#trips.push(answeredAt - sentAt)
    if (this.#trips.length > tripsKept) this.#trips.shift()
    // It acted between the two instants, in the ms that it named.
    const measured = { from: now - answeredAt, to: now + 1 - sentAt }
    const known =
      this.#ahead === undefined ? measured : widened(this.#ahead, (answeredAt - this.#narrowedAt) * driftPerMs)
    const both = { from: Math.max(measured.from, known.from), to: Math.min(measured.to, known.to) }
    // One of the clocks was set.
    this.#ahead = both.from <= both.to ? both : measured
    this.#narrowedAt = answeredAt
    return {
      from: Math.max(sentAt, now - this.#ahead.to),
      to: Math.min(answeredAt, now + 1 - this.#ahead.from),
    }
  }

  /** The shortest of the latest trips, in ms; 0 while there were few, as one may be slow by chance. */
  get quickestMs(): number {
    return this.#trips.length < tripsKept ? 0 : Math.min(...this.#trips)
  }
}

function widened({ from, to }: Span, byMs: number): Span {
  return { from: from - byMs, to: to + byMs }
}
