/**
 * What lasts for a time in a queue of the memory store: the ids of ended jobs, those whose results somebody waits for, the
 * calls that it has answered, jobs that expire; and how all of it follows a clock that was set back.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { Roster } from '../../../core/values/roster.js'
import type { Enqueued } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs, longestExpectMs } from '../../rules/bounds.js'
import type { Lead } from '../../rules/wake-lead.js'
import { bySeq, isWaiting, type MemoryJob, type RememberedJob } from './memory-job.js'
import type { MemoryLanes } from './memory-lanes.js'
import { SortedList } from './sorted-list.js'

/** The ids that a queue remembers of ended jobs, in the order in which they are forgotten. */
export class RememberedIds {
  readonly #byId = new Map<string, RememberedJob>()
  readonly #byTime = new SortedList<RememberedJob>((a, b) => a.until - b.until || a.seq - b.seq)

  get(id: string, now: number): RememberedJob | undefined {
    const job = this.#byId.get(id)
    return job !== undefined && job.until > now ? job : undefined
  }

  add(job: RememberedJob): void {
    this.delete(job.id)
    this.#byId.set(job.id, job)
    this.#byTime.add(job)
  }

  delete(id: string): void {
    const job = this.#byId.get(id)
    if (job === undefined) return
    this.#byId.delete(id)
    this.#byTime.remove(job)
  }

  /** Forgets at most `count` ids whose time is over. */
  expire(count: number, now: number): void {
    for (const job of this.#byTime.head(count)) {
      if (job.until > now) break
      this.delete(job.id)
    }
  }

  list(now: number): RememberedJob[] {
    return [...this.#byTime].filter((job) => job.until > now)
  }
}

/** The ids of a queue's jobs whose results somebody waits for, each with those who wait and until when. */
export class ExpectedIds {
  readonly #untilById = new Map<string, Map<string, number>>()

  /** `by` waits until that instant; undefined: no longer. */
  set(id: string, by: string, until: number | undefined): void {
    const waiting = this.#untilById.get(id) ?? new Map<string, number>()
    if (until === undefined) waiting.delete(by)
    else waiting.set(by, until)
    if (waiting.size > 0) this.#untilById.set(id, waiting)
    else this.#untilById.delete(id)
  }

  /**
   * Until when somebody waits for it; -Infinity: nobody does. An instant that is further away than anybody may wait is from
   * before the clock was set back.
   */
  until(id: string, now: number): number {
    const all = [...(this.#untilById.get(id)?.values() ?? [])]
    return Math.max(Number.NEGATIVE_INFINITY, ...all.filter((until) => until <= now + longestExpectMs))
  }

  /** Forgets those whose time is over. */
  expire(now: number): void {
    for (const [id, waiting] of this.#untilById)
      for (const [by, until] of waiting) if (until <= now) this.set(id, by, undefined)
  }
}

interface KnownCall {
  readonly id: string
  readonly at: number
  readonly answers: Enqueued[]
}

/** The calls of a queue: a call sent again gets its first answer and is not repeated. */
export class CallMemory {
  readonly #calls = new Roster<string, KnownCall>()

  /** The first answer to the call, while it is remembered. */
  answersTo(id: string, now: number): Enqueued[] | undefined {
    const call = this.#calls.get(id)
    return call !== undefined && call.at + callMemoryMs > now ? [...call.answers] : undefined
  }

  remember(id: string, answers: Enqueued[], now: number): void {
    this.#calls.delete(id)
    this.#calls.set(id, { id, at: now, answers })
    for (let first = this.#calls.firstKey(); first !== undefined; first = this.#calls.firstKey()) {
      if (this.#calls.size <= callMemoryCount && this.#calls.get(first)!.at + callMemoryMs > now) break
      this.#calls.delete(first)
    }
  }

  list(now: number): KnownCall[] {
    return [...this.#calls.values()].filter((call) => call.at + callMemoryMs > now)
  }

  /** Follows a clock that was set back. */
  turnBack(byMs: number): void {
    for (const [id, call] of [...this.#calls]) this.#calls.set(id, { ...call, at: call.at - byMs })
  }
}

/** The waiting jobs of a queue that have a time to begin, by that time. */
export class ExpiringJobs {
  readonly #jobs = new SortedList<MemoryJob>((a, b) => a.expiresAt! - b.expiresAt! || bySeq(a, b))

  /** The job is in a state. */
  add(job: MemoryJob): void {
    if (job.expiresAt !== undefined && isWaiting(job)) this.#jobs.add(job)
  }

  /** The job leaves its state. */
  leave(job: MemoryJob): void {
    if (job.expiresAt !== undefined && isWaiting(job)) this.#jobs.remove(job)
  }

  /** The first expired jobs, at most `count`. */
  due(count: number, now: number): MemoryJob[] {
    return this.#jobs.head(count).filter((job) => job.expiresAt! <= now)
  }
}

/** The parts of a queue that last until an instant. */
interface Lasting {
  heldUntil: number
  shutUntil: number
  sparesUntil: number
  lead: Lead | undefined
  suspectLead: Lead | undefined
  readonly lanes: MemoryLanes
  readonly calls: CallMemory
  readonly running: SortedList<MemoryJob>
}

/** Follows a clock that was set back: what lasts until an instant then lasts no longer than intended. */
export class SetBackClock {
  readonly #queue: Lasting
  /** When an instant until which something lasts was last written, or may have been. */
  #seenAt = Number.NEGATIVE_INFINITY

  constructor(queue: Lasting) {
    this.#queue = queue
  }

  isSo(now: number): boolean {
    return now < this.#seenAt - toleratedStepMs
  }

  /** The instant from which to tell how long something lasts, for calls that change nothing. */
  asSeen(now: number): number {
    return this.isSo(now) ? this.#seenAt : now
  }

  /** Follows a clock that was set back; returns whether it was. Called before any such instant is written. */
  follow(now: number): boolean {
    const isSo = this.isSo(now)
    if (isSo) turnBack(this.#queue, this.#seenAt - now)
    this.#seenAt = now
    return isSo
  }
}

/**
 * Nobody knows how long ago the latest instant was written: everything lasts from now on as long as it was to last from
 * then on. `byMs`: how far the clock is behind that instant. Due times stay: users give them on the wall clock.
 */
function turnBack(queue: Lasting, byMs: number): void {
  queue.heldUntil -= byMs
  queue.shutUntil -= byMs
  queue.sparesUntil -= byMs
  queue.lead = earlier(queue.lead, byMs)
  queue.suspectLead = earlier(queue.suspectLead, byMs)
  queue.lanes.turnBack(byMs)
  queue.calls.turnBack(byMs)
  // All by the same amount: their order stays.
  for (const job of queue.running) job.leaseUntil -= byMs
}

function earlier(lead: Lead | undefined, byMs: number): Lead | undefined {
  return lead === undefined ? undefined : { ...lead, wakeAt: lead.wakeAt - byMs }
}
