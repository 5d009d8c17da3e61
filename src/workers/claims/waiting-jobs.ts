/**
 * Jobs that wait for more than a free slot: those of throttled queues wait for their instants (`Departures`), batches
 * for more jobs (`Gathering`). Slots are kept for them.
 */

import type { Surroundings } from '../../core/surroundings.js'
import type { AnyBatchTask } from '../../core/task/task.js'
import { BatchExecution } from '../../runtime/run/batch-execution.js'
import { type Execution, isIsolated } from '../../runtime/run/execution.js'
import { refOf } from '../../runtime/run/run-events.js'
import type { SlotBatch } from '../slots.js'
import type { DepartingShare, DepartureSizes } from './claim-plan.js'
import type { Punctuality, Start, Trip } from './punctuality.js'

/** Calls `work` after `ms`, unless the returned function is called before. */
export type After = (ms: number, work: () => void) => () => void

const nothing: DepartingShare = { jobs: 0, slots: 0 }

interface Departure {
  readonly start: Start
  /** The number of jobs granted together. */
  readonly jobs: number
  /** The number of their groups. */
  readonly groups: number
  /** Those whose handlers have not ended. */
  left: number
  /** When the last of the others' handlers began, on the monotonic clock. */
  lastAt: number
}

/**
 * Jobs of throttled queues that were granted together begin a little later, at the instant that their limit counted, and
 * one after the other in each slot if they are more. Jobs that begin too late for it are put back.
 */
export class Departures {
  readonly #surroundings: Pick<Surroundings, 'events' | 'clock'>
  readonly #punctuality: Punctuality
  readonly #sizes: DepartureSizes
  readonly #after: After
  readonly #begin: (batches: readonly SlotBatch<Execution>[]) => void
  readonly #waiting = new Map<readonly SlotBatch<Execution>[], () => void>()
  readonly #departures = new WeakMap<Execution, Departure>()
  readonly #shares = new Map<string, DepartingShare>()

  /** `begin` is called with the slot batches that are to begin now. */
  constructor(
    surroundings: Pick<Surroundings, 'events' | 'clock'>,
    punctuality: Punctuality,
    sizes: DepartureSizes,
    after: After,
    begin: (batches: readonly SlotBatch<Execution>[]) => void,
  ) {
    this.#surroundings = surroundings
    this.#punctuality = punctuality
    this.#sizes = sizes
    this.#after = after
    this.#begin = begin
  }

  /** The slot batches that wait for their instants. */
  get waiting(): readonly SlotBatch<Execution>[] {
    return [...this.#waiting.keys()].flat()
  }

  /** How many slots are kept for all of them. */
  get slots(): number {
    let slots = 0
    for (const share of this.#shares.values()) slots += share.slots
    return slots
  }

  of(queue: string): DepartingShare {
    return this.#shares.get(queue) ?? nothing
  }

  /**
   * Makes the jobs that a trip brought from this queue wait for their instant. False if the queue has no throttle: they
   * may begin.
   */
  add(queue: string, executions: readonly Execution[], batches: readonly SlotBatch<Execution>[], trip: Trip): boolean {
    const [punctuality, sizes] = [this.#punctuality, this.#sizes]
    const { clock } = this.#surroundings
    const start = punctuality.startOf(queue, trip)
    if (start === undefined) return false
    const { length } = executions
    const groups = new Set(executions.flatMap(({ leased }) => leased.map(({ claim }) => claim.group))).size
    const departure: Departure = { start, jobs: length, groups, left: length, lastAt: start.from }
    for (const execution of executions) {
      this.#departures.set(execution, departure)
      // A task whose own preparation is slow must still run.
      const isExcused = start.isFar || punctuality.isSlow(execution.task.name)
      execution.start = isExcused ? { from: start.from, to: Number.POSITIVE_INFINITY } : start
    }
    // The process of an isolated job starts at once, and waits itself.
    const isolated = batches.filter(({ waiting }) => waiting.some(isIsolated))
    const others = batches.filter((batch) => !isolated.includes(batch))
    if (others.length > 0) {
      const slots = Math.ceil(others.length / sizes.inARow(queue))
      const due = () => {
        this.#waiting.delete(others)
        this.#share(queue, -others.length, -slots)
        for (const batch of others) batch.arrivedAt = clock.mono()
        this.#begin(others)
      }
      this.#share(queue, others.length, slots)
      this.#waiting.set(others, this.#after(Math.max(0, start.from - clock.mono()), due))
    }
    if (isolated.length > 0) this.#begin(isolated)
    return true
  }

  /** Removes and returns all that waits. */
  rest(): readonly SlotBatch<Execution>[] {
    const { waiting } = this
    for (const cancel of this.#waiting.values()) cancel()
    this.#waiting.clear()
    this.#shares.clear()
    return waiting
  }

  /** Whether the job came too late for its instant before it was begun. */
  isMissed(execution: Execution, now: number): boolean {
    const departure = this.#of(execution)
    if (departure === undefined || departure.start.isFar || now <= departure.start.to) return false
    this.#missed(execution, departure, now)
    return true
  }

  /** Its handler has begun, or was not called because the preparation took too long. */
  ended(execution: Execution): void {
    const departure = this.#of(execution)
    if (departure === undefined) return
    const [punctuality, sizes] = [this.#punctuality, this.#sizes]
    const { events, clock } = this.#surroundings
    const { handlerAt, isLate, task } = execution
    if (isLate) {
      punctuality.prepared(task.name, false, clock.mono())
      this.#missed(execution, departure, clock.mono())
      for (const { claim } of execution.leased) events.emit('permit.wasted', { ...refOf(claim), reason: 'late' })
      return
    }
    if (handlerAt === undefined) return
    departure.left -= 1
    departure.lastAt = Math.max(departure.lastAt, handlerAt)
    if (departure.left === 0)
      sizes.departed(queueOf(execution), departure.jobs, departure.lastAt - departure.start.from, departure.groups)
    const lateMs = handlerAt - departure.start.to
    punctuality.prepared(task.name, lateMs <= 0, handlerAt)
    punctuality.began(queueOf(execution), departure.start, handlerAt)
    if (lateMs > 0)
      for (const { claim } of execution.leased)
        events.emit('start.late', { ...refOf(claim), lateMs: Math.ceil(lateMs) })
  }

  #share(queue: string, jobs: number, slots: number): void {
    const before = this.of(queue)
    this.#shares.set(queue, { jobs: before.jobs + jobs, slots: before.slots + slots })
  }

  #missed(execution: Execution, { start, jobs, groups }: Departure, at: number): void {
    const queue = queueOf(execution)
    this.#punctuality.missed(queue, start, at, jobs)
    this.#sizes.departed(queue, jobs, Number.POSITIVE_INFINITY, groups)
  }

  /** Undefined for a job of a queue without a throttle. Most jobs are, by the thousand: keep it cheap. */
  #of(execution: Execution): Departure | undefined {
    return execution.start === undefined ? undefined : this.#departures.get(execution)
  }
}

function queueOf({ leased }: Execution): string {
  return leased[0]!.claim.queue
}

interface WaitingBatch {
  readonly batch: BatchExecution
  readonly cancel: () => void
}

/**
 * Batches that are not full and wait a moment for more jobs of their task. Each counts as running, so that it has a slot
 * when it begins.
 */
export class Gathering {
  readonly #after: After
  readonly #begin: (execution: BatchExecution) => void
  readonly #waiting = new Map<string, Map<AnyBatchTask, WaitingBatch>>()
  /** The number of waiting batches. Kept as a count: every claim and every end of a job asks for it. */
  #size = 0

  /** `begin` is called with a batch that has waited long enough. */
  constructor(after: After, begin: (execution: BatchExecution) => void) {
    this.#after = after
    this.#begin = begin
  }

  get size(): number {
    return this.#size
  }

  get waiting(): readonly BatchExecution[] {
    return [...this.#waiting.values()].flatMap((batches) => [...batches.values()].map(({ batch }) => batch))
  }

  /** The queues whose jobs would join a batch. */
  get queues(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  /** How many jobs of this queue would join a batch; no more than fit each, whatever their tasks. */
  lacking(queue: string): number {
    const batches = [...(this.#waiting.get(queue)?.values() ?? [])]
    return batches.length === 0 ? 0 : Math.min(...batches.map(({ batch }) => batch.mostJobs - batch.leased.length))
  }

  /** Keeps the executions that are to wait; returns the others, which begin now. */
  add(queue: string, executions: readonly Execution[]): readonly Execution[] {
    if (!executions.some(mayWait)) return executions
    return executions.flatMap((execution) => (mayWait(execution) ? this.#joined(queue, execution) : [execution]))
  }

  /** Begins all waiting batches as they are. */
  beginAll(): void {
    for (const batch of this.rest()) this.#begin(batch)
  }

  /** Removes and returns all that waits. */
  rest(): readonly BatchExecution[] {
    const { waiting } = this
    for (const batches of this.#waiting.values()) for (const { cancel } of batches.values()) cancel()
    this.#waiting.clear()
    this.#size = 0
    return waiting
  }

  #joined(queue: string, execution: BatchExecution): Execution[] {
    const { task } = execution
    const before = this.#take(queue, task)
    if (before === undefined) return this.#begun(queue, execution)
    before.batch.join(execution)
    if (before.batch.leased.length < before.batch.mostJobs) {
      this.#keep(queue, before)
      return []
    }
    before.cancel()
    return [before.batch, ...(execution.leased.length === 0 ? [] : this.#begun(queue, execution))]
  }

  /** Starts a new batch; one that is already full begins at once. */
  #begun(queue: string, batch: BatchExecution): Execution[] {
    const { task } = batch
    if (batch.leased.length === batch.mostJobs) return [batch]
    const due = () => {
      this.#take(queue, task)
      this.#begin(batch)
    }
    this.#keep(queue, { batch, cancel: this.#after(task.batch.waitMs, due) })
    return []
  }

  #keep(queue: string, waiting: WaitingBatch): void {
    const batches = this.#waiting.get(queue) ?? new Map<AnyBatchTask, WaitingBatch>()
    this.#waiting.set(queue, batches.set(waiting.batch.task, waiting))
    this.#size += 1
  }

  #take(queue: string, task: AnyBatchTask): WaitingBatch | undefined {
    const batches = this.#waiting.get(queue)
    const found = batches?.get(task)
    if (batches?.delete(task)) this.#size -= 1
    if (batches?.size === 0) this.#waiting.delete(queue)
    return found
  }
}

function mayWait(execution: Execution): execution is BatchExecution {
  return execution instanceof BatchExecution && execution.task.batch.waitMs > 0
}
