/**
 * The workbench: the claims in hand of a worker — those that wait for a slot, those that run, those being settled.
 * It begins what there are slots for, and settles what has ended.
 */

import { JobCancelledError, WorkerStoppedError } from '../core/errors.js'
import type { Events } from '../core/events.js'
import type { Registry } from '../core/registry.js'
import { messageOf } from '../core/shown.js'
import { Execution, refOf } from '../runtime/execution.js'
import { type Bench, type Executor, foreignJobDelayMs } from '../runtime/executor.js'
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

export interface WorkbenchParts {
  readonly worker: string
  readonly slots: Slots
  /** Makes the executor that runs what lies on a bench. */
  readonly executor: (bench: Bench) => Executor
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

export class Workbench implements Bench {
  readonly #parts: WorkbenchParts
  readonly #executor: Executor
  readonly #rules: SettlementRules
  #backlog: Batch<Execution>[] = []
  /** Those that run, each with the batch that its slot is at work on. */
  readonly #running = new Map<Execution, Batch<Execution>>()
  /** Given up, with their slots retired. */
  readonly #retired = new Set<Execution>()
  #alone: { readonly claim: Claim; readonly settled: () => void } | undefined
  #taken = 0
  #unsettled = 0
  #isClosed = false

  constructor(parts: WorkbenchParts) {
    const { executor, events, rules } = parts
    this.#parts = parts
    this.#executor = executor(this)
    this.#rules = {
      ...rules,
      resultDropped: (claim, error) => events.emit('result.dropped', { ...refOf(claim), error: messageOf(error) }),
    }
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
    const waiting = [...this.#backlog, ...this.#running.values()].flatMap((batch) => batch.waiting)
    return [...this.#running.keys(), ...waiting]
  }

  /** Takes claims of one queue in hand, made by a call sent at `sentAt`, and begins them as far as there are slots. */
  accept(claims: readonly Claim[], sentAt: number): void {
    this.#taken += claims.length
    const executions = this.#prepared(claims)
    if (executions.length === 0) return
    if (this.#isClosed) {
      for (const execution of executions) this.#putBack(execution, 'stopping')
      return
    }
    const { leaseMs, renewLease } = this.#parts.registry.queue(claims[0]!.queue)
    const { keeper, maxBlockMs, mono } = this.#parts
    if (renewLease) {
      keeper.keep(executions, { leaseMs, sentAt, maxBlockMs })
      const now = mono()
      for (const execution of executions) this.#backlog.push(new Batch([execution], now))
    } else this.#backlog.push(this.#limitedBatch(executions, sentAt, leaseMs))
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
    for (const batch of [...this.#backlog.splice(0), ...this.#running.values()]) this.#putBackRest(batch, 'stopping')
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
    const reason = 'the worker is stopping and its grace is over; the job is released.'
    for (const execution of [...this.#running.keys()]) this.#executor.giveUp(execution, new WorkerStoppedError(reason))
  }

  /** Fails the job that was claimed alone, if there is one: an error that nobody caught can only be its own. */
  failAlone(error: Error): void {
    const alone = [...this.#running.keys()].find(({ claim }) => claim === this.#alone?.claim)
    if (alone !== undefined) this.#executor.giveUp(alone, error)
  }

  /** Resolves when nothing runs any more. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await this.#parts.slots.freed()
  }

  /** Those that can be run here; the others are settled. */
  #prepared(claims: readonly Claim[]): Execution[] {
    const executions: Execution[] = []
    for (const claim of claims) {
      const prepared = this.#executor.prepare(claim)
      if (prepared instanceof Execution) executions.push(prepared)
      else this.#settle(claim, prepared.verdict)
    }
    return executions
  }

  #limitedBatch(executions: Execution[], sentAt: number, leaseMs: number): Batch<Execution> {
    const { mono } = this.#parts
    return new Batch(executions, mono(), {
      timeLimitMs: ({ task }) => task.timeLimitMs,
      leftMs: () => sentAt + leaseMs - mono(),
      // One that no lease of this queue is long enough for must not come back again and again.
      defer: (execution) => {
        const delayMs = execution.task.timeLimitMs < leaseMs ? 0 : foreignJobDelayMs
        this.#putBack(execution, 'deferred', delayMs)
      },
    })
  }

  #begin(): void {
    const { slots } = this.#parts
    while (slots.free > 0 && this.#backlog.length > 0) {
      slots.take()
      this.#next(this.#backlog.shift()!)
    }
  }

  /** The slot takes the next job of its batch, or is free. */
  #next(batch: Batch<Execution>): void {
    const { mono, slots } = this.#parts
    for (let next = batch.next(); next !== undefined; next = batch.next()) {
      const now = mono()
      if (this.#mayBegin(next, now)) {
        this.#run(next, batch, now)
        return
      }
    }
    slots.give()
    this.#begin()
  }

  /** False for one that was lost or cancelled while it waited for a slot; it is settled then. */
  #mayBegin(execution: Execution, now: number): boolean {
    if (execution.abortReason instanceof JobCancelledError) {
      this.#settle(execution.claim, { kind: 'cancel', reason: 'cancelled while running' }, 0, execution)
      return false
    }
    if (!this.#parts.keeper.isOverdue(execution, now)) return true
    // This loop stood still for longer than the lease: somebody else may have run it by now.
    this.#putBack(execution, 'lease-lost')
    return false
  }

  #run(execution: Execution, batch: Batch<Execution>, now: number): void {
    execution.begunAt = now
    this.#running.set(execution, batch)
    this.#parts.keeper.begin(execution)
    void this.#executor.run(execution)
  }

  decided(execution: Execution, verdict: Verdict): void {
    const { pace, mono } = this.#parts
    const { claim, begunAt } = execution
    const runMs = mono() - begunAt!
    pace.ran(claim.queue, runMs)
    this.#settle(claim, verdict, runMs, execution)
    if (execution.phase === 'abandoned') this.#abandon(execution)
  }

  released(execution: Execution): void {
    const batch = this.#running.get(execution)
    if (batch !== undefined) {
      this.#running.delete(execution)
      this.#next(batch)
      return
    }
    this.#parts.slots.give(this.#retired.delete(execution))
    this.#begin()
  }

  /** Its slot begins nothing before the handler has ended: what is left of its batch is for other slots. */
  #abandon(execution: Execution): void {
    const { slots, events, worker } = this.#parts
    const batch = this.#running.get(execution)!
    this.#running.delete(execution)
    // A stop waits for verdicts, not for handlers that ignore their signal.
    if (this.#isClosed) {
      slots.wake()
      return
    }
    this.#putBackRest(batch, 'slot-retired')
    slots.retire()
    this.#retired.add(execution)
    events.emit('slot.retired', { ...refOf(execution.claim), worker, left: slots.total - slots.retired })
  }

  #putBackRest(batch: Batch<Execution>, reason: string): void {
    for (const execution of batch.rest()) this.#putBack(execution, reason)
  }

  /** Releases a job whose handler was not called. */
  #putBack(execution: Execution, reason: string, delayMs = 0): void {
    this.#parts.keeper.forget(execution)
    this.#settle(execution.claim, { kind: 'release', delayMs, reason })
  }

  #settle(claim: Claim, verdict: Verdict, runMs = 0, ran?: Execution): void {
    const { events, registry, settler, keeper } = this.#parts
    const item = settlementOf(claim, verdict, registry.queue(claim.queue).results, this.#rules)
    this.#unsettled += 1
    settler.settle(item, (answer) => {
      this.#unsettled -= 1
      // Not before: a settle may wait for the store longer than the lease has left. And then in any case: a lease that
      // went on being kept for a settle that was given up would keep the job from everybody.
      if (ran !== undefined) keeper.forget(ran)
      this.#settled(claim)
      if (answer === undefined) return
      report(events, claim, verdict, answer, runMs)
      if (answer === 'ok' && ran !== undefined) tellExhausted(events, ran, verdict)
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
