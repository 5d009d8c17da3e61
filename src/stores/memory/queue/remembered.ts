/**
 * What a queue of the memory store remembers for a time: the ids of ended jobs, those whose results somebody waits for, and
 * the calls that it has answered.
 */

import { Roster } from '../../../core/values/roster.js'
import type { Enqueued } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs, longestExpectMs } from '../../rules/bounds.js'
import type { RememberedJob } from './memory-job.js'
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
