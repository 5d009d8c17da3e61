/**
 * The workbench: the claims in hand of a worker — those that wait for a slot, those that run, those being settled.
 * It begins what there are slots for, and settles what has ended.
 */

import { JobCancelledError, WorkerStoppedError } from '../core/errors.js'
import type { Events } from '../core/events.js'
import type { Registry } from '../core/registry.js'
import { messageOf } from '../core/shown.js'
import type { Execution } from '../runtime/execution.js'
import { type Executor, foreignJobDelayMs, type Prepared, refOf } from '../runtime/executor.js'
import type { LeaseKeeper } from '../runtime/lease-keeper.js'
import type { Pace } from '../runtime/pace.js'
import { type SettlementRules, settlementOf } from '../runtime/settlement.js'
import type { Settler } from '../runtime/settler.js'
import type { Solitude } from '../runtime/solitude.js'
import type { Verdict } from '../runtime/verdict.js'
import type { Claim } from '../stores/store.js'
import { Batch } from './batch.js'
import { report, tellExhausted } from './report.js'
import type { Slots } from './slots.js'

type Runnable = Exclude<Prepared, { verdict: Verdict }>

export interface WorkbenchParts {
  readonly worker: string
  readonly slots: Slots
  readonly executor: Executor
  readonly settler: Settler
  readonly keeper: LeaseKeeper
  readonly solitude: Solitude
  readonly pace: Pace
  readonly registry: Registry
  readonly events: Events
  readonly mono: () => number
  readonly rules: Omit<SettlementRules, 'resultDropped'>
  readonly maxBlockMs: number
}

/** A claimed job that no slot took for so long is put back: some other worker may be idle. */
const longestInBacklogMs = 1_000

export class Workbench {
  readonly #parts: WorkbenchParts
  #backlog: Batch<Runnable>[] = []
  /** Batches of several jobs that a slot is at work on. */
  readonly #begunBatches = new Set<Batch<Runnable>>()
  readonly #waiting = new Set<Execution>()
  readonly #running = new Set<Execution>()
  #alone: { readonly claim: Claim; readonly settled: () => void } | undefined
  #taken = 0
  #unsettled = 0
  #isClosed = false

  constructor(parts: WorkbenchParts) {
    this.#parts = parts
  }

  /** Slots that nothing in hand will take; below zero where more waits than there are slots. */
  get free(): number {
    return this.#parts.slots.free - this.#backlog.length
  }

  /** What waits for a slot. */
  get backlog(): number {
    return this.#backlog.length
  }

  /** Claims taken in hand so far. */
  get taken(): number {
    return this.#taken
  }

  /** Claims whose settles the store has not answered yet. */
  get unsettled(): number {
    return this.#unsettled
  }

  /** Those that run, then those that wait for a slot. */
  get executions(): Execution[] {
    return [...this.#running, ...this.#waiting]
  }

  /** Takes claims of one queue in hand, made by a call sent at `sentAt`, and begins them as far as there are slots. */
  accept(claims: readonly Claim[], sentAt: number): void {
    this.#taken += claims.length
    const runnable = claims.flatMap((claim) => this.#prepared(claim))
    if (runnable.length === 0) return
    if (this.#isClosed) {
      for (const { execution } of runnable) this.#putBack(execution, 'stopping')
      return
    }
    const { leaseMs, renewLease } = this.#parts.registry.queue(claims[0]!.queue)
    const { keeper, maxBlockMs, mono } = this.#parts
    for (const { execution } of runnable) this.#waiting.add(execution)
    if (renewLease) {
      keeper.keep(
        runnable.map(({ execution }) => execution),
        { leaseMs, sentAt, maxBlockMs },
      )
      const now = mono()
      for (const one of runnable) this.#backlog.push(new Batch([one], now))
    } else this.#backlog.push(this.#limitedBatch(runnable, sentAt, leaseMs))
    this.#begin()
  }

  /** Runs the only claim of this process; resolves when the store has answered its settle. */
  runAlone(claim: Claim, sentAt: number): Promise<void> {
    return new Promise((settled) => {
      this.#alone = { claim, settled }
      this.accept([claim], sentAt)
    })
  }

  /** Puts back what no handler has begun, and takes nothing in hand any more. */
  close(): void {
    this.#isClosed = true
    for (const batch of [...this.#backlog.splice(0), ...this.#begunBatches]) this.#putBackRest(batch, 'stopping')
  }

  /** Puts back what has waited too long for a slot. */
  relieve(): void {
    const since = this.#parts.mono() - longestInBacklogMs
    const stale = this.#backlog.filter(({ arrivedAt }) => arrivedAt <= since)
    if (stale.length === 0) return
    this.#backlog = this.#backlog.filter(({ arrivedAt }) => arrivedAt > since)
    for (const batch of stale) this.#putBackRest(batch, 'no-slot')
  }

  /** Aborts what runs and releases it now, whatever its handlers do. */
  giveUpAll(): void {
    for (const execution of [...this.#running])
      execution.giveUp(new WorkerStoppedError('the worker is stopping and its grace is over; the job is released.'))
  }

  /** Fails the job that was claimed alone, if there is one: an error that nobody caught can only be its own. */
  failAlone(error: Error): void {
    for (const execution of this.#running) if (execution.claim === this.#alone?.claim) execution.giveUp(error)
  }

  /** Resolves when nothing runs any more. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await this.#parts.slots.freed()
  }

  #prepared(claim: Claim): Runnable[] {
    const prepared = this.#parts.executor.prepare(claim)
    if (!('verdict' in prepared)) return [prepared]
    this.#settle(claim, prepared.verdict, this.#parts.mono())
    return []
  }

  #limitedBatch(jobs: Runnable[], sentAt: number, leaseMs: number): Batch<Runnable> {
    const { mono } = this.#parts
    return new Batch(jobs, mono(), {
      timeLimitMs: ({ task }) => task.timeLimitMs,
      leftMs: () => sentAt + leaseMs - mono(),
      // One that no lease of this queue is long enough for must not come back again and again.
      defer: ({ task, execution }) => {
        const delayMs = task.timeLimitMs < leaseMs ? 0 : foreignJobDelayMs
        this.#putBack(execution, 'deferred', delayMs)
      },
    })
  }

  #begin(): void {
    const { slots } = this.#parts
    while (slots.free > 0 && this.#backlog.length > 0) {
      slots.take()
      const batch = this.#backlog.shift()!
      this.#begunBatches.add(batch)
      this.#next(batch)
    }
  }

  /** The slot takes the next job of its batch, or is free. */
  #next(batch: Batch<Runnable>): void {
    for (let next = batch.next(); next !== undefined; next = batch.next()) {
      if (this.#mayBegin(next)) {
        this.#run(next, batch)
        return
      }
    }
    this.#begunBatches.delete(batch)
    this.#parts.slots.give()
    this.#begin()
  }

  /** False for one that was lost or cancelled while it waited for a slot; it is settled then. */
  #mayBegin(runnable: Runnable): boolean {
    const { execution } = runnable
    if (execution.abortReason instanceof JobCancelledError) {
      this.#waiting.delete(execution)
      const verdict = { kind: 'cancel', reason: 'cancelled while running' } as const
      this.#settle(execution.claim, verdict, this.#parts.mono(), runnable)
      return false
    }
    if (!this.#parts.keeper.isOverdue(execution)) return true
    // This loop stood still for longer than the lease: somebody else may have run it by now.
    this.#putBack(execution, 'lease-lost')
    return false
  }

  #run(runnable: Runnable, batch: Batch<Runnable>): void {
    const { executor, keeper, pace, mono, slots } = this.#parts
    const { execution } = runnable
    const begunAt = mono()
    execution.begunAt = begunAt
    this.#waiting.delete(execution)
    this.#running.add(execution)
    keeper.begin(execution)
    const { verdict, released } = executor.run(runnable)
    let isRetired = false
    void verdict.then((decided) => {
      this.#running.delete(execution)
      pace.ran(execution.claim.queue, mono() - begunAt)
      this.#settle(execution.claim, decided, begunAt, runnable)
      // A stop waits for verdicts, not for handlers that ignore their signal.
      if (this.#isClosed) slots.wake()
      else if (execution.phase === 'abandoned') {
        isRetired = true
        this.#retire(execution, batch)
      }
    })
    void released.then(() => {
      if (!isRetired) return this.#next(batch)
      slots.give(true)
      this.#begin()
    })
  }

  /** Here nothing begins before the handler has ended: what is left of its batch is for other slots. */
  #retire({ claim }: Execution, batch: Batch<Runnable>): void {
    const { slots, events, worker } = this.#parts
    this.#begunBatches.delete(batch)
    this.#putBackRest(batch, 'slot-retired')
    slots.retire()
    events.emit('slot.retired', { ...refOf(claim), worker, left: slots.total - slots.retired })
  }

  #putBackRest(batch: Batch<Runnable>, reason: string): void {
    for (const { execution } of batch.rest()) this.#putBack(execution, reason)
  }

  /** Releases a job whose handler was not called. */
  #putBack(execution: Execution, reason: string, delayMs = 0): void {
    this.#waiting.delete(execution)
    this.#parts.keeper.forget(execution)
    this.#settle(execution.claim, { kind: 'release', delayMs, reason }, this.#parts.mono())
  }

  #settle(claim: Claim, verdict: Verdict, begunAt: number, ran?: Runnable): void {
    const { events, registry, settler, keeper, rules, mono } = this.#parts
    const runMs = mono() - begunAt
    const resultDropped = (error: unknown) =>
      events.emit('result.dropped', { ...refOf(claim), error: messageOf(error) })
    const item = settlementOf(claim, verdict, registry.queue(claim.queue).results, { ...rules, resultDropped })
    this.#unsettled += 1
    settler.settle(item, (answer) => {
      this.#unsettled -= 1
      // Not before: a settle may wait for the store longer than the lease has left. And then in any case: a lease that
      // went on being kept for a settle that was given up would keep the job from everybody.
      if (ran !== undefined) keeper.forget(ran.execution)
      this.#settled(claim)
      if (answer === undefined) return
      report(events, claim, verdict, answer, runMs)
      if (answer === 'ok' && ran !== undefined) void tellExhausted(events, ran, verdict)
    })
  }

  #settled(claim: Claim): void {
    this.#parts.solitude.give()
    if (this.#alone?.claim !== claim) return
    const { settled } = this.#alone
    this.#alone = undefined
    settled()
  }
}
