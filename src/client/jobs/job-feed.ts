/**
 * The feed of one job: its present state, its changes, its log as it grows, and its end.
 *
 * It looks again and again, and has the store watch for the end meanwhile. So it needs no live messages, costs nothing to
 * other jobs of the queue, and misses no end. A look says how the job has ended, because the store keeps its result for
 * whoever waits; if nothing is kept, the mark of the last look says whether it has completed.
 */

import { hasCode } from '../../core/errors.js'
import { isEndState, type JobEvent, type JobHandle, type JobRecord } from '../../core/job/job.js'
import { systemRandom } from '../../core/platform/clock.js'
import { longestTimerMs, outageDelayMs, timerMs } from '../../core/platform/timer.js'
import { recordJson } from '../../core/values/json.js'
import { newIn } from './log-tail.js'
import type { Mark, ResultWatcher } from './result-watcher.js'

/** Between two looks: while something changes, a worker reports it once a second; while nothing does, twice as long each time. */
const leastRestMs = 500
const mostRestMs = 2_000

interface Followed {
  readonly handle: JobHandle
  readonly watcher: ResultWatcher
  readonly isOrdered: (queue: string) => boolean
  /** The present state of its queue; undefined while that is not known, and for an ordered one. */
  readonly mark: () => Promise<Mark | undefined> | undefined
  /** Whether a job that was `seen`, and of which nothing is found, has completed. */
  readonly hasCompleted: (seen: Mark | undefined) => Promise<boolean>
}

/** What hears of an outage of the store, during which the feed waits. */
export interface OutageEars {
  /** Called with each failure. */
  readonly failed: (error: unknown) => void
  /** Called when the job is read again, before its news. */
  readonly over: () => void
}

export class JobFeed {
  readonly #followed: Followed
  readonly #signals: readonly AbortSignal[]
  readonly #outage: OutageEars | undefined
  readonly #over = new AbortController()
  readonly #end = () => this.#finish()
  /** Its queue, while the store is told that its result is waited for. */
  #expected: string | undefined
  /** The job was there after this mark. */
  #seen: Mark | undefined
  #watch: 'none' | 'begun' | 'ended' = 'none'
  #watchError: { readonly error: unknown } | undefined
  /** Ends the present rest. */
  #wake = () => {}

  /** The feed ends when one of the `signals` aborts. */
  constructor(followed: Followed, signals: readonly AbortSignal[], outage?: OutageEars) {
    this.#followed = followed
    this.#signals = signals
    this.#outage = outage
  }

  events(): AsyncGenerator<JobEvent, undefined> {
    const events = this.#events()
    const leave = events.return.bind(events)
    // A reader that waits for the next event is let go at once.
    events.return = (value) => {
      this.#finish()
      return leave(value)
    }
    return events
  }

  async *#events(): AsyncGenerator<JobEvent, undefined> {
    for (const one of this.#signals) one.addEventListener('abort', this.#end)
    if (this.#signals.some(({ aborted }) => aborted)) this.#finish()
    const changes = new JobChanges()
    let restMs = leastRestMs
    try {
      for (let failures = 0; !this.#isOver; ) {
        const hadEnded = this.#watch === 'ended'
        const look = await this.#look().catch((error: unknown) => ({ error }))
        if (this.#isOver) return
        if ('error' in look) {
          if (!hasCode(look.error, 'store-unavailable')) throw look.error
          this.#outage?.failed(look.error)
          await this.#rest(outageDelayMs(failures, systemRandom))
          failures += 1
          continue
        }
        if (failures > 0) this.#outage?.over()
        failures = 0
        const { job, state } = look
        // Another job has its id since.
        if (job === undefined || (hadEnded && changes.isOther(job))) {
          yield { type: 'end', state }
          return
        }
        const news = changes.since(job)
        yield* news
        const { log: _, ...rest } = job
        if (isEndState(job.state)) {
          yield { type: 'end', state: job.state, job: rest }
          return
        }
        restMs = news.length > 0 ? leastRestMs : Math.min(restMs * 2, mostRestMs)
        // It had ended, and was revived.
        if (hadEnded) this.#watch = 'none'
        // It has ended since this look, or its queue was not known before: looks again at once.
        if (hadEnded || this.#watch === 'begun') await this.#rest(restMs)
      }
    } finally {
      this.#finish()
    }
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** The record, without which `state` says how the job has ended, if that is known. Watches for the end from now on. */
  async #look(): Promise<{ readonly job: JobRecord | undefined; readonly state?: 'completed' | undefined }> {
    const { handle, watcher, isOrdered, mark: markOf, hasCompleted } = this.#followed
    try {
      if (this.#watchError !== undefined) throw this.#watchError.error
      const { queue } = handle
      const isNew = queue !== undefined && !isOrdered(queue) && this.#expected === undefined
      if (isNew) this.#expected = queue
      const sent = isNew ? await watcher.expect(queue, handle.id) : undefined
      // Requested before the job, so that a found job was there after the mark.
      const marking = this.#seen === undefined ? markOf() : undefined
      const [mark, job] = await Promise.all([marking, handle.record(), sent?.told])
      if (job === undefined) return { job, state: (await hasCompleted(this.#seen)) ? 'completed' : undefined }
      this.#seen ??= mark
      if (this.#watch === 'none' && queue !== undefined && !isEndState(job.state)) this.#watchEnd(queue)
      return { job }
    } catch (error) {
      // The store may not have heard that it is waited for.
      this.#leave()
      this.#watchError = undefined
      throw error
    }
  }

  #watchEnd(queue: string): void {
    const { handle, watcher } = this.#followed
    this.#watch = 'begun'
    watcher.ended(queue, handle.id, longestTimerMs, { mark: this.#seen, signal: this.#over.signal }).then(
      (mark) => {
        this.#seen = mark ?? this.#seen
        this.#watch = 'ended'
        this.#wake()
      },
      (error: unknown) => {
        this.#watch = 'none'
        this.#watchError = { error }
        this.#wake()
      },
    )
  }

  /** Until the watch is over, or for `ms`. */
  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timerMs(ms))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#isOver || this.#watch === 'ended' || this.#watchError !== undefined) this.#wake()
    })
  }

  #leave(): void {
    if (this.#expected !== undefined) this.#followed.watcher.leave(this.#expected, this.#followed.handle.id)
    this.#expected = undefined
  }

  #finish(): void {
    if (this.#isOver) return
    for (const one of this.#signals) one.removeEventListener('abort', this.#end)
    this.#over.abort()
    this.#leave()
    this.#wake()
  }
}

/** What has changed since the last look. */
class JobChanges {
  #createdAt: number | undefined
  #record = ''
  #log = ''

  /** Whether it is another job than at the last look, of the same id. */
  isOther({ createdAt }: JobRecord): boolean {
    return this.#createdAt !== undefined && this.#createdAt !== createdAt.getTime()
  }

  since({ log = this.#log, ...job }: JobRecord): JobEvent[] {
    const events: JobEvent[] = []
    const record = recordJson(job)
    if (record !== this.#record) events.push({ type: 'job', job })
    const { text, isGap } = newIn(this.#log, log)
    if (text !== '') events.push({ type: 'log', text, isGap })
    this.#createdAt = job.createdAt.getTime()
    this.#record = record
    this.#log = log
    return events
  }
}
