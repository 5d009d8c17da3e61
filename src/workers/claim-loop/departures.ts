/**
 * The departures of a worker: jobs of throttled queues that were granted together begin together, a little later, each
 * at the instant that its limit counted. Jobs that miss their instant are put back.
 */

import type { Events } from '../../core/events.js'
import { type Execution, refOf } from '../../runtime/run/execution.js'
import { isIsolated } from '../../runtime/run/job-execution.js'
import type { Trip } from '../../runtime/store-clock.js'
import type { Punctuality, Start } from './punctuality.js'
import type { SlotBatch } from './slot-batch.js'

interface DeparturesParts {
  readonly punctuality: Punctuality
  readonly events: Events
  readonly mono: () => number
  /** Calls `work` after `ms`, unless the returned function is called before. */
  readonly after: (ms: number, work: () => void) => () => void
  /** Called with the slot batches that are to begin now. */
  readonly begin: (stints: readonly SlotBatch<Execution>[]) => void
}

interface Departure {
  readonly start: Start
  /** The number of jobs granted together. */
  readonly jobs: number
}

export class Departures {
  readonly #parts: DeparturesParts
  readonly #waiting = new Map<readonly SlotBatch<Execution>[], () => void>()
  readonly #departures = new WeakMap<Execution, Departure>()
  #size = 0

  constructor(parts: DeparturesParts) {
    this.#parts = parts
  }

  /** The slot batches that wait for their instants. */
  get waiting(): readonly SlotBatch<Execution>[] {
    return [...this.#waiting.keys()].flat()
  }

  get size(): number {
    return this.#size
  }

  /**
   * Makes the jobs that a trip brought from this queue wait for their instant. False if the queue has no throttle: they
   * may begin.
   */
  add(queue: string, executions: readonly Execution[], stints: readonly SlotBatch<Execution>[], trip: Trip): boolean {
    const { punctuality, mono, after, begin } = this.#parts
    const start = punctuality.startOf(queue, trip)
    if (start === undefined) return false
    for (const execution of executions) {
      this.#departures.set(execution, { start, jobs: executions.length })
      // A task whose own preparation is slow must still run.
      const isExcused = start.isFar || punctuality.isSlow(execution.task.name)
      execution.start = isExcused ? { from: start.from, to: Number.POSITIVE_INFINITY } : start
    }
    // The process of an isolated job starts at once, and waits itself.
    const isolated = stints.filter(({ waiting }) => waiting.some(isIsolated))
    const others = stints.filter((stint) => !isolated.includes(stint))
    if (others.length > 0) {
      const due = () => {
        this.#waiting.delete(others)
        this.#size -= others.length
        begin(others)
      }
      this.#size += others.length
      this.#waiting.set(others, after(Math.max(0, start.from - mono()), due))
    }
    if (isolated.length > 0) begin(isolated)
    return true
  }

  /** Removes and returns all that waits. */
  rest(): readonly SlotBatch<Execution>[] {
    const { waiting } = this
    for (const cancel of this.#waiting.values()) cancel()
    this.#waiting.clear()
    this.#size = 0
    return waiting
  }

  /** Whether the job came too late for its instant before it was begun. */
  isMissed(execution: Execution, now: number): boolean {
    const departure = this.#of(execution)
    if (departure === undefined || departure.start.isFar || now <= departure.start.to) return false
    this.#parts.punctuality.missed(queueOf(execution), departure.jobs)
    return true
  }

  /** Its handler has begun, or was not called because the preparation took too long. */
  ended(execution: Execution): void {
    const departure = this.#of(execution)
    if (departure === undefined) return
    const { punctuality, events, mono } = this.#parts
    const { handlerAt, isLate, task } = execution
    if (isLate) {
      punctuality.prepared(task.name, false, mono())
      punctuality.missed(queueOf(execution), departure.jobs)
      for (const { claim } of execution.leased) events.emit('permit.wasted', { ...refOf(claim), reason: 'late' })
      return
    }
    if (handlerAt === undefined) return
    const lateMs = handlerAt - departure.start.to
    punctuality.prepared(task.name, lateMs <= 0, handlerAt)
    if (lateMs <= 0) punctuality.kept(queueOf(execution))
    else
      for (const { claim } of execution.leased)
        events.emit('start.late', { ...refOf(claim), lateMs: Math.ceil(lateMs) })
  }

  /** Undefined for a job of a queue without a throttle. Most jobs are, by the thousand: keep it cheap. */
  #of(execution: Execution): Departure | undefined {
    return execution.start === undefined ? undefined : this.#departures.get(execution)
  }
}

function queueOf({ leased }: Execution): string {
  return leased[0]!.claim.queue
}
