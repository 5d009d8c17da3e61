/** In flight: the claims of a worker, from the answer that brings them to the answer to their settle. */

import { hasCode, WorkerStoppedError } from '../../core/errors.js'
import type { Registry } from '../../core/registry.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import type { LeaseKeeper } from '../../runtime/leases/lease-keeper.js'
import { type ClaimDecoder, longestForeignMs } from '../../runtime/run/claim-decoder.js'
import { type Execution, isIsolated, JobExecution, type Leased } from '../../runtime/run/execution.js'
import type { Executor, RunReport } from '../../runtime/run/executor.js'
import type { JobUpdates } from '../../runtime/run/job-updates.js'
import { emitSettled, refOf } from '../../runtime/run/run-events.js'
import {
  type Answered,
  answerInDoubt,
  type SettlementRules,
  type Settler,
  settlementOf,
} from '../../runtime/run/settlement.js'
import { cancelledWhileRunning, type Verdict } from '../../runtime/run/verdict.js'
import type { SoloGate } from '../../runtime/solo-gate.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { EndHook, EndHooks } from '../end-hooks.js'
import type { ChildVerdict } from '../isolated/child-messages.js'
import { verdictOfChild } from '../isolated/child-messages.js'
import type { PoolReport, ProcessPool } from '../isolated/process-pool.js'
import { LoopTurn, longestInBacklogMs, RunningBatches, SlotBatch, type Slots } from '../slots.js'
import type { DepartureSizes } from './claim-plan.js'
import { type DepartingShare, longestInARowMs, type Prefetch } from './claim-plan.js'
import { type GrouplessJobs, HeldGroups, type LimitedQueues } from './limited-queues.js'
import type { Punctuality, Trip } from './punctuality.js'
import { type After, Departures, Gathering } from './waiting-jobs.js'

interface InFlightParts extends WorkerSurroundings {
  readonly punctuality: Punctuality
  readonly sizes: DepartureSizes
  readonly after: After
  readonly slots: Slots
  /** Makes the executor that runs the executions. */
  readonly executor: (report: RunReport) => Executor
  readonly settler: Settler
  readonly keeper: LeaseKeeper
  readonly soloGate: SoloGate
  readonly prefetch: Prefetch
  readonly registry: Registry
  readonly limited: LimitedQueues
  readonly rules: SettlementRules
  readonly decoder: ClaimDecoder
  readonly notes: JobUpdates
  readonly hooks: EndHooks
  readonly groupless: GrouplessJobs
  readonly maxBlockMs: number
  /** Called with a queue whose job was put back because of its short lease: other queues come first now. */
  readonly deferred: (queue: string) => void
  /** Makes the pool that runs isolated jobs; undefined if there are none. */
  readonly processes: ((report: PoolReport) => ProcessPool) | undefined
}

/**
 * It
 *
 * 1. takes over the jobs of a claim: has them decoded and their leases kept, and settles those that cannot run here;
 * 2. lets jobs of throttled queues wait for their instants (`Departures`), and batches for more jobs (`Gathering`);
 * 3. begins as many as there are slots for, except jobs that were lost, cancelled or held meanwhile, or are too late;
 * 4. settles each when there is a verdict on it;
 * 5. forgets its lease, and reports its end to events and hooks, when the store has answered;
 * 6. frees its slot or goes on with the slot's batch, and retires the slot of a handler that does not end;
 * 7. puts back jobs that have waited too long (`relieve`).
 *
 * When it is closed, it puts back every job that no handler has begun, and so do claims that still arrive. It leaves isolated
 * jobs that may outlive the worker. `giveUpAll` then aborts those that still run, and releases their jobs.
 */
export class InFlight implements RunReport, PoolReport {
  readonly #parts: InFlightParts
  readonly #mono: () => number
  readonly #executor: Executor
  readonly #processes: ProcessPool | undefined
  #backlog: SlotBatch<Execution>[] = []
  readonly #departures: Departures
  readonly #gathering: Gathering
  readonly #running = new RunningBatches<Execution>()
  /** Abandoned executions; their slots are retired. */
  readonly #retired = new Set<Execution>()
  #alone: { readonly claim: Claim; readonly settled: () => void } | undefined
  /** Claims held by processes of their own. */
  readonly #handedOver = new Set<Claim>()
  readonly #heldGroups: HeldGroups
  readonly #turn: LoopTurn
  #taken = 0
  #unsettled = 0
  #isClosed = false

  constructor(parts: InFlightParts) {
    const { clock, punctuality, sizes, after } = parts
    this.#parts = parts
    this.#mono = () => clock.mono()
    this.#executor = parts.executor(this)
    this.#heldGroups = new HeldGroups(this.#mono, parts.rules.canHold)
    this.#processes = parts.processes?.(this)
    this.#turn = new LoopTurn(this.#mono, () => this.#begin())
    const begin = (batches: readonly SlotBatch<Execution>[]) => {
      this.#backlog.unshift(...batches)
      this.#begin()
    }
    this.#departures = new Departures(parts, punctuality, sizes, after, begin)
    this.#gathering = new Gathering(after, (batch) => begin([new SlotBatch([batch], this.#mono())]))
  }

  /** Free slots, less the waiting executions; negative if more wait than there are slots. */
  get free(): number {
    return this.#parts.slots.free - this.#backlog.length - this.#departures.slots - this.#gathering.size
  }

  departing(queue: string): DepartingShare {
    return this.#departures.of(queue)
  }

  /** Batches that wait for more jobs. */
  get gathering(): Pick<Gathering, 'queues' | 'lacking' | 'beginAll'> {
    return this.#gathering
  }

  get backlog(): number {
    return this.#backlog.length
  }

  get taken(): number {
    return this.#taken
  }

  /** Claims whose settles the store has not answered yet. */
  get unsettled(): number {
    return this.#unsettled
  }

  /** All claims whose end the store has not answered. */
  get held(): readonly ClaimKey[] {
    const claims = this.executions.flatMap(({ leased }) => leased.map(({ claim }) => claim))
    return [...claims, ...this.#handedOver, ...this.#parts.settler.unanswered]
  }

  /** The running executions, then those that wait for a slot. */
  get executions(): Execution[] {
    const batches = [...this.#departures.waiting, ...this.#backlog, ...this.#running.batches]
    return [...this.#running.works, ...this.#gathering.waiting, ...batches.flatMap(({ waiting }) => waiting)]
  }

  /** Takes over the claims of one queue that a call brought, and begins as many as there are slots for. */
  accept(claims: readonly Claim[], trip: Trip): void {
    this.#taken += claims.length
    if (claims.length === 0) return
    this.#parts.groupless.note(claims)
    const executions = this.#parts.decoder.of(claims, (claim, verdict) => this.#refuse(claim, verdict))
    if (executions.length === 0) return
    const { queue } = claims[0]!
    if (this.#isClosed) {
      for (const execution of executions) this.#putBack(execution, 'stopping')
      return
    }
    for (const execution of executions) execution.claimedAt = trip.sentAt
    const { leaseMs, renewLease } = this.#parts.registry.queue(queue)
    const mono = this.#mono
    const { keeper, maxBlockMs, limited, soloGate } = this.#parts
    const batches: SlotBatch<Execution>[] = []
    if (renewLease) {
      const leased = executions.flatMap((execution) => execution.leased)
      keeper.keep(leased, { leaseMs, sentAt: trip.sentAt, maxBlockMs })
      const waits = this.#alone === undefined && soloGate.isOpen && !limited.isThrottled(queue)
      const now = mono()
      for (const execution of waits ? this.#gathering.add(queue, executions) : executions)
        batches.push(new SlotBatch([execution], now))
    } else if (limited.isLimited(queue))
      for (const execution of executions) batches.push(this.#boundedBatch([execution], trip.sentAt, leaseMs))
    else batches.push(this.#boundedBatch(executions, trip.sentAt, leaseMs))
    if (this.#departures.add(queue, executions, batches, trip)) return
    this.#backlog.push(...batches)
    if (this.free > 0) this.#begin()
    // After the loop has sent its next claim: store and handlers then work at the same time.
    else process.nextTick(() => this.#begin())
  }

  /** Runs the only claim of this process; resolves when the store has answered its settle. */
  runAlone(claim: Claim, trip: Trip): Promise<void> {
    return new Promise((settled) => {
      this.#alone = { claim, settled }
      this.accept([claim], trip)
    })
  }

  /** Puts back every job that no handler has begun, and takes no more. Processes that may outlive the worker do. */
  close(): void {
    this.#isClosed = true
    const waiting = [...this.#departures.rest(), ...this.#backlog.splice(0), ...this.#running.batches]
    for (const batch of waiting) this.#putBackRest(batch, 'stopping')
    for (const batch of this.#gathering.rest()) this.#putBack(batch, 'stopping')
    for (const execution of this.#running.works)
      if (isIsolated(execution) && this.#processes!.leave(execution)) this.released(execution)
  }

  /** Puts back jobs that have waited too long for a slot, behind a running job of their slot, or for their instant. */
  relieve(): void {
    const now = this.#mono()
    for (const batch of this.#running.batches)
      if (batch.arrivedAt <= now - longestInARowMs) this.#putBackRest(batch, 'no-slot')
    const waiting = this.#backlog.splice(0)
    for (const batch of waiting)
      if (this.#departures.isMissed(batch.waiting[0]!, now)) this.#putBackRest(batch, 'late')
      else if (batch.arrivedAt <= now - longestInBacklogMs) this.#putBackRest(batch, 'no-slot')
      else this.#backlog.push(batch)
    // There may be room although no slot was given back: after a long turn jobs wait while slots are free.
    if (this.#backlog.length < waiting.length) this.#parts.slots.wake()
  }

  /** Aborts all running executions and releases them now, whatever their handlers do. */
  giveUpAll(): void {
    const reason = 'the worker is stopping and its grace is over; the job is released.'
    for (const execution of this.#running.works)
      if (isIsolated(execution)) this.#processes!.stop(execution)
      else this.#executor.giveUp(execution, new WorkerStoppedError(reason))
  }

  /** Fails the job that was claimed alone, if there is one: an uncaught error can only be its own. */
  failAlone(error: Error): void {
    const alone = this.#running.works.find(({ leased }) => leased[0]!.claim === this.#alone?.claim)
    if (alone !== undefined) this.#executor.giveUp(alone, error)
  }

  /** Resolves when nothing runs any more. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await this.#parts.slots.freed()
  }

  /** Resolves when no job runs in a process of its own any more. */
  async processesEnded(): Promise<void> {
    while (this.#running.works.some(isIsolated)) await this.#parts.slots.freed()
  }

  #boundedBatch(executions: Execution[], sentAt: number, leaseMs: number): SlotBatch<Execution> {
    const mono = this.#mono
    return new SlotBatch(executions, mono(), {
      timeLimitMs: ({ task }) => task.timeLimitMs,
      leftMs: () => sentAt + leaseMs - mono(),
      // A job too long for any lease of this queue must not come back again and again.
      defer: (execution) => {
        const delayMs = execution.task.timeLimitMs < leaseMs ? 0 : longestForeignMs
        this.#putBack(execution, 'deferred', delayMs)
        this.#parts.deferred(execution.leased[0]!.claim.queue)
      },
    })
  }

  /** Keeps slots for jobs that wait for their instant, or for more jobs. */
  #begin(): void {
    const { slots } = this.#parts
    while (slots.free > this.#departures.slots + this.#gathering.size && this.#backlog.length > 0) {
      const now = this.#turn.next()
      if (now === undefined) return
      this.#next(this.#backlog.shift()!.in(slots.take()), now)
    }
  }

  /** Begins the next execution of the batch in a slot that was taken for it, or frees the slot. */
  #next(batch: SlotBatch<Execution>, now: number): void {
    for (let next = batch.next(); next !== undefined; next = batch.next()) {
      if (this.#mayBegin(next, now)) return void this.#run(next, batch, now)
    }
    this.#parts.slots.give(batch.slot)
    this.#begin()
  }

  /** Settles jobs that were lost, cancelled or held while they waited for a slot. False if none is left. */
  #mayBegin(execution: Execution, now: number): boolean {
    const { keeper } = this.#parts
    if (this.#departures.isMissed(execution, now)) {
      this.#putBack(execution, 'late')
      return false
    }
    for (const job of execution.leased) {
      if (job.abortReason !== undefined && hasCode(job.abortReason, 'job-cancelled')) {
        this.#wasted(job.claim, 'cancelled')
        this.#settle(job.claim, cancelledWhileRunning, 0, job)
        // This loop stood still for longer than the lease: another worker may have run it by now.
      } else if (keeper.isOverdue(job, now)) this.#putBackOne(job, 'lease-lost')
      else if (this.#heldGroups.areHolding(job.claim, execution.claimedAt, now)) this.#putBackOne(job, 'held')
      else continue
      execution.leased = execution.leased.filter((one) => one !== job)
    }
    return execution.leased.length > 0
  }

  #run(execution: Execution, batch: SlotBatch<Execution>, now: number): void {
    execution.begunAt = now
    execution.slot = batch.slot
    this.#running.add(batch, execution)
    if (isIsolated(execution)) void this.#processes!.run(execution)
    else {
      for (const job of execution.leased) this.#parts.keeper.begin(job, now)
      void this.#executor.run(execution)
    }
  }

  decided(execution: Execution, verdicts: readonly Verdict[]): void {
    const mono = this.#mono
    const { prefetch, hooks } = this.#parts
    const { leased, begunAt } = execution
    const runMs = mono() - begunAt!
    prefetch.ran(leased[0]!.claim.queue, runMs)
    this.#departures.ended(execution)
    const hook = hooks.of(execution, verdicts, runMs)
    for (let i = 0; i < leased.length; i += 1) this.#settle(leased[i]!.claim, verdicts[i]!, runMs, leased[i], hook)
    if (execution.phase === 'abandoned') this.#abandon(execution)
  }

  handedOver(execution: JobExecution): void {
    const { claim } = execution
    this.#handedOver.add(claim)
    this.#parts.keeper.forget(execution)
    this.#settled(claim)
    // It was still being started when the worker began to stop.
    if (this.#isClosed && this.#processes!.leave(execution)) this.released(execution)
  }

  reported(execution: JobExecution, verdict: ChildVerdict): void {
    const { prefetch, events } = this.#parts
    const { claim } = execution
    prefetch.ran(claim.queue, verdict.runMs)
    // Its process may end before the worker hears that it keeps the lease.
    this.#parts.keeper.forget(execution)
    execution.isLate = verdict.reason === 'late' && verdict.kind === 'release'
    this.#departures.ended(execution)
    this.#letGo(claim)
    const given = verdictOfChild(verdict)
    this.#heldGroups.onVerdict(claim, given, verdict.answer)
    emitSettled(events, claim, given, verdict.answer, verdict.runMs)
    for (const [queue, jobs] of Object.entries(verdict.enqueued ?? {})) events.counter?.enqueued(queue, jobs)
  }

  lost(execution: JobExecution, child: number | undefined): void {
    this.#parts.keeper.forget(execution)
    this.#parts.hooks.lost(execution, this.#mono() - execution.begunAt!)
    this.#letGo(execution.claim)
    this.#parts.events.emit('lease.lost', { ...refOf(execution.claim), ...(child && { child }) })
  }

  released(execution: Execution): void {
    const batch = this.#running.remove(execution.slot, execution)
    if (batch !== undefined && batch.waiting.length > 0) {
      const now = this.#turn.next()
      // The slot goes on with its batch: nobody who waits for a free one has to look.
      if (now !== undefined) return void this.#next(batch, now)
      this.#backlog.unshift(batch)
    }
    this.#parts.slots.give(execution.slot, this.#retired.delete(execution))
    this.#begin()
  }

  /** The slot begins nothing before the handler has ended: the rest of its batch goes elsewhere. */
  #abandon(execution: Execution): void {
    const { slots, events, worker } = this.#parts
    const batch = this.#running.remove(execution.slot, execution)!
    // A stop waits for verdicts, not for handlers that ignore their signal.
    if (this.#isClosed) return void slots.wake()
    this.#putBackRest(batch, 'slot-retired')
    slots.retire()
    this.#retired.add(execution)
    events.emit('slot.retired', { ...refOf(execution.leased[0]!.claim), worker, left: slots.total - slots.retired })
  }

  #putBackRest(batch: SlotBatch<Execution>, reason: string): void {
    for (const execution of batch.rest()) this.#putBack(execution, reason)
  }

  /** Releases the jobs of an execution whose handler was not called. */
  #putBack({ leased }: Execution, reason: string, delayMs = 0): void {
    for (const job of leased) this.#putBackOne(job, reason, delayMs)
  }

  #putBackOne(job: Leased, reason: string, delayMs = 0): void {
    this.#parts.keeper.forget(job)
    this.#wasted(job.claim, reason)
    this.#settle(job.claim, { kind: 'release', delayMs, reason })
  }

  /** The job cannot run here. */
  #refuse(claim: Claim, verdict: Verdict): void {
    this.#wasted(claim, 'reason' in verdict && verdict.reason !== undefined ? verdict.reason : verdict.kind)
    this.#settle(claim, verdict)
  }

  /** Permits are not given back: that could let more jobs start in a window than its limit. */
  #wasted(claim: Claim, reason: string): void {
    const { limited, events } = this.#parts
    if (limited.isThrottled(claim.queue)) events.emit('permit.wasted', { ...refOf(claim), reason })
  }

  #settle(claim: Claim, verdict: Verdict, runMs = 0, kept?: Leased, hook?: EndHook): void {
    const { events, registry, settler, keeper, notes, rules } = this.#parts
    const item = settlementOf(claim, verdict, registry.queue(claim.queue).results, rules, kept?.ran, runMs)
    this.#unsettled += 1
    const holds = verdict.holdMs !== undefined
    if (holds) this.#heldGroups.onVerdict(claim, verdict)
    const answered: Answered = (told, isInDoubt) => {
      const isHeld = isInDoubt && kept !== undefined && keeper.isHeld(kept, this.#mono())
      // A job that its handler has completed inside is gone because of that, and its verdict is what to do if it is not.
      const answer = verdict.endsInside ? told : answerInDoubt(told, isHeld)
      this.#unsettled -= 1
      if (holds) this.#heldGroups.onVerdict(claim, verdict, answer)
      // Only now, as a settle may outlast the lease; and always, as a kept lease keeps the job from everybody.
      if (kept !== undefined) keeper.forget(kept)
      this.#letGo(claim)
      if (answer !== undefined) emitSettled(events, claim, verdict, answer, runMs, isInDoubt)
      void hook?.answered(claim.id, answer)
    }
    settler.settle(item, answered, kept instanceof JobExecution ? notes.lastUpdate(kept, verdict) : undefined)
  }

  #letGo(claim: Claim): void {
    if (this.#handedOver.size === 0 || !this.#handedOver.delete(claim)) this.#settled(claim)
  }

  #settled(claim: Claim): void {
    this.#parts.soloGate.give()
    if (this.#alone?.claim !== claim) return
    const { settled } = this.#alone
    this.#alone = undefined
    settled()
  }
}
