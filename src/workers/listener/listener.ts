/**
 * A listener: hands the jobs of one queue to its callers, whatever their tasks, and keeps their leases. It is the
 * low-level interface for long work that runs in processes of its own.
 */
/// <reference lib="esnext.disposable" preserve="true" />

import { setTimeout as delay } from 'node:timers/promises'
import { ClosedError, hasCode, LeaseLostError, WorkerStoppedError } from '../../core/errors.js'
import { timerMs } from '../../core/platform/timer.js'
import { longWorkResults } from '../../core/queue/queue.js'
import { callForms, callOptions, refuseMore } from '../../core/values/call-check.js'
import { type Duration, durationMs } from '../../core/values/duration.js'
import { onceThere } from '../../runtime/outage.js'
import { nextWorkerId, processIdentity } from '../../runtime/process/process-identity.js'
import type { Execution, JobExecution } from '../../runtime/run/execution.js'
import { emitSettled, emitStarted, refOf } from '../../runtime/run/run-events.js'
import { answerInDoubt, settlementOf } from '../../runtime/run/settlement.js'
import { TimeLimits } from '../../runtime/run/time-limits.js'
import { cancelledWhileRunning, type Verdict, withHold } from '../../runtime/run/verdict.js'
import { processSoloGate } from '../../runtime/solo-gate.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { ClaimKey, SettleAnswer } from '../../stores/contract/settle.js'
import type { WorkerSignal } from '../../stores/contract/worker-registry.js'
import { keyIn, tokenOf } from '../claim-token.js'
import { FoundEnds } from '../found-ends.js'
import { assembleListener, type ListenerAssembly, type ListenerParts } from './assemble-listener.js'
import type { ListenerClaim } from './listener-claim.js'
import { ListenerHand } from './listener-claim.js'
import { ListenerClaims, type ListenerGrant, once } from './listener-claims.js'

const defaultGraceMs = 30_000
/** How long the store may take at the end for the last settles, and for calls whose failure harms nobody. */
const settleMs = 5_000
const courtesyMs = 500
/** How often another listener may win the race of an attach. */
const mostAttachRaces = 3

const checkNext = callOptions('listener.next', { signal: callForms.signal })
const checkClose = callOptions('listener.close', { grace: callForms.own })

/**
 * A listener, made by `mill.listener(queue)`. It opens the store at its first call, and is then one of the workers of
 * the registry. Throws `UnsupportedByStoreError` if the store keeps no registry, and the errors of opening.
 */
export class QueueListener<Input = unknown> implements AsyncDisposable {
  readonly id: string
  readonly queue: string
  readonly #parts: ListenerParts
  readonly #claims: ListenerClaims
  readonly #limits: TimeLimits
  readonly #ends: FoundEnds
  /** The claims held here, each with the function that lets others claim. */
  readonly #hands = new Map<JobExecution, { readonly hand: ListenerHand; readonly letGo: () => void }>()
  /** The claims that it attaches to: the store may already have passed them to this listener. */
  readonly #attaching = new Map<string, { readonly key: ClaimKey; readonly hand: Promise<ListenerHand | undefined> }>()
  /** Claims that could not be read here, until the store has taken their end. */
  readonly #refused = new Set<Claim>()
  readonly #identity = processIdentity()
  /** How late its next job may begin. */
  #lateMs = 0
  #opening: Promise<ListenerAssembly> | undefined
  #closing: Promise<void> | undefined
  #emptied: (() => void)[] = []

  /** @internal */
  constructor(parts: ListenerParts) {
    const { queue, registry, clock, events } = parts
    this.#parts = parts
    this.#ends = new FoundEnds(parts, registry, async () => (await this.#opened()).records)
    this.id = nextWorkerId(this.#identity, true)
    this.queue = queue.name
    const mono = () => clock.mono()
    const overdue = (execution: Execution, reason: Error) => this.#overdue(execution as JobExecution, reason)
    this.#limits = new TimeLimits(events, overdue, mono)
    this.#claims = new ListenerClaims({
      ...{ ...parts, worker: this.id, ends: this.#ends, soloGate: processSoloGate },
      held: () => [
        ...[...this.#hands.values()].map(({ hand }) => hand.claim),
        ...[...this.#attaching.values()].map(({ key }) => key),
        ...this.#refused,
      ],
      connect: () => this.#opened(),
      lateMs: () => this.#lateMs,
      hasRoom: () => this.#hands.size < parts.concurrency,
      unwanted: (granted) => void this.#take(granted).then((hand) => hand?.release()),
    })
  }

  /**
   * Claims the next job of the queue; the caller must settle it. Waits until there is a job, and while `concurrency`
   * claims are held. It does not poll, and waits for a store that is away (`store.failed`). Several calls wait in their
   * order. Rejects with the reason of `signal` once that aborts, and with `ClosedError` once the listener is closed.
   */
  async next(options: { readonly signal?: AbortSignal } = {}): Promise<ListenerClaim<Input>> {
    checkNext(options)
    const { signal } = options
    for (;;) {
      const granted = await this.#claims.next(signal)
      const hand = await this.#take(granted)
      if (hand === undefined || !(await this.#isInTime(hand, granted))) continue
      // Nobody waits for it any more.
      if (signal?.aborted) void hand.release()
      signal?.throwIfAborted()
      emitStarted(this.#parts.events, hand.claim, this.id)
      return hand as ListenerClaim as ListenerClaim<Input>
    }
  }

  /** Waits for the instant that the limit of a throttled queue counted. A job that misses it is put back: false. */
  async #isInTime(hand: ListenerHand, { trip }: ListenerGrant): Promise<boolean> {
    const opened = await this.#opened()
    const { events, clock } = this.#parts
    const start = opened.punctuality.startOf(this.queue, trip)
    if (start === undefined) return true
    const earlyMs = start.from - clock.mono()
    if (earlyMs > 0 && !start.isFar) await delay(timerMs(Math.ceil(earlyMs)))
    if (hand.execution.isDecided) return false
    const now = clock.mono()
    const lateMs = now - start.to
    if (lateMs > 0) opened.punctuality.missed(this.queue, start, now, 1)
    else opened.punctuality.began(this.queue, start, now)
    this.#lateMs = opened.punctuality.lateMsOf(this.queue)
    if (lateMs > 0 && start.isFar) events.emit('start.late', { ...refOf(hand.claim), lateMs: Math.ceil(lateMs) })
    const reason = this.#closing !== undefined ? 'stopping' : lateMs > 0 && !start.isFar ? 'late' : undefined
    if (reason === undefined) return true
    events.emit('permit.wasted', { ...refOf(hand.claim), reason })
    await this.#settleHand(hand, { kind: 'release', delayMs: 0, reason }, opened)
    return false
  }

  /**
   * Takes over, by its `token`, a claim that a listener of another process holds: this one keeps its lease from now on.
   * The other listener, which may be dead, notices within seconds and stops keeping the lease. Ignores `concurrency`.
   * Waits while the store is away. Throws `LeaseLostError` if the claim is no longer current, `InvalidArgumentError`
   * for a text that is no token or a token of another queue or namespace, and `ClosedError` once the listener is
   * closed.
   */
  async attach(token: string): Promise<ListenerClaim<Input>> {
    const hand = await this.#attachOnce(keyIn(token, this.#parts.namespace, this.queue))
    if (hand === undefined) throw new ClosedError(`the listener of queue '${this.queue}'`)
    return hand as ListenerClaim as ListenerClaim<Input>
  }

  /**
   * Takes no more jobs, waits up to `grace` (default `'30s'`) for the held claims to be settled, then aborts the rest
   * and puts them back, uncounted. Jobs that were `started` in another process go on: their lease has a full term left,
   * in which that process, or another listener, must attach. A second call waits for the first.
   */
  async close(options: { readonly grace?: Duration | 'none' } = {}): Promise<void> {
    checkClose(options)
    const { grace } = options
    const graceMs =
      grace === undefined
        ? defaultGraceMs
        : grace === 'none'
          ? Number.POSITIVE_INFINITY
          : durationMs(grace, 'close({ grace })')
    this.#closing ??= this.#close(graceMs).finally(this.#parts.closed)
    return this.#closing
  }

  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Tried again at the next call if it fails. */
  #opened(): Promise<ListenerAssembly> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  async #open(): Promise<ListenerAssembly> {
    const connection = await this.#parts.connect()
    const opened = assembleListener(connection, this.#parts, {
      ...{ id: this.id, identity: this.#identity, ends: this.#ends },
      held: () => this.#hands.size,
      beaten: () => this.#findTakenOver(opened),
      look: () => this.#claims.look(),
      signalled: (signal) => this.#obey(signal),
    })
    void opened.keeper.start()
    opened.heartbeat.start()
    opened.limits?.start()
    opened.recoverer.start()
    return opened
  }

  /** It ends on any signal of an operator: nobody would start another. */
  #obey(signal: WorkerSignal): void {
    if (this.#closing !== undefined) return
    this.#parts.events.emit('worker.signalled', { worker: this.id, signal })
    void this.close().catch(() => {})
  }

  /** Undefined if the job cannot be read here; it is settled then. */
  async #take(granted: ListenerGrant): Promise<ListenerHand | undefined> {
    const { claim, trip, letGo } = granted
    const opened = await this.#opened()
    const { events } = this.#parts
    if (events.has('queue.claimed')) events.emit('queue.claimed', { queue: this.queue, jobs: 1, worker: this.id })
    const refused = (_: Claim, verdict: Verdict) => {
      letGo()
      this.#refused.add(claim)
      void this.#settle(claim, verdict, opened).finally(() => this.#refused.delete(claim))
    }
    const [execution] = opened.decoder.of([claim], refused) as JobExecution[]
    return execution && this.#hold(execution, opened, trip.sentAt, letGo)
  }

  #hold(execution: JobExecution, opened: ListenerAssembly, sentAt: number, letGo: () => void): ListenerHand {
    const { queue, namespace, events, random, clock, children } = this.#parts
    const hand = new ListenerHand(execution, tokenOf(namespace, execution.claim), {
      ...{ store: opened.store, leaseMs: queue.leaseMs, events, random },
      settle: (one, verdict) => this.#settleHand(one, verdict, opened),
      movedOut: () => letGo(),
      joined: (sets) => children.joined(execution, sets),
    })
    this.#hands.set(execution, { hand, letGo })
    execution.begunAt = clock.mono()
    opened.keeper.keep([execution], {
      ...{ leaseMs: queue.leaseMs, sentAt, isPatient: true },
      // A block of this loop does not block the job.
      maxBlockMs: Number.POSITIVE_INFINITY,
    })
    this.#limits.start(execution)
    // Nobody here keeps the lease any more.
    execution.signal.addEventListener('abort', () => {
      if (hasCode(execution.abortReason, 'lease-lost')) this.#drop(execution, opened)
    })
    return hand
  }

  /** Calls for one claim share a hand. Undefined once the listener is closed. */
  #attachOnce(key: ClaimKey): Promise<ListenerHand | undefined> {
    const { random, events } = this.#parts
    const name = `${key.fence} ${key.id}`
    const known = this.#attaching.get(name)
    if (known !== undefined) return known.hand
    const failed = (error: unknown, retryMs: number) => events.emit('store.failed', { call: 'attach', error, retryMs })
    const isOver = () => this.#closing !== undefined
    const hand = onceThere(() => this.#attach(key), { isOver, random, failed }).finally(() =>
      this.#attaching.delete(name),
    )
    this.#attaching.set(name, { key, hand })
    return hand
  }

  async #attach(key: ClaimKey): Promise<ListenerHand> {
    const lost = new LeaseLostError(key.queue, key.id)
    const opened = await this.#opened()
    const { store, workers, records, decoder } = opened
    const { clock, queue } = this.#parts
    for (let races = 0; races < mostAttachRaces; races += 1) {
      const job = await records.get(key.queue, key.id)
      if (job?.state !== 'running' || job.worker === undefined) throw lost
      if (job.worker !== this.id && !(await workers.adopt(key, job.worker, this.id))) continue
      const mine = [...this.#hands.values()].find(({ hand }) => hand.id === key.id && hand.fence === key.fence)
      if (mine !== undefined) return mine.hand
      const sentAt = clock.mono()
      const [answer] = await store.extend([{ ...key, leaseMs: queue.leaseMs }])
      if (answer === 'lost') throw lost
      const isMember = job.memberOf !== undefined
      const claim: Claim = { ...job, fence: key.fence, ...(isMember && { isMember }) }
      let unreadable: unknown
      const [execution] = decoder.of([claim], (_, verdict) => {
        unreadable = 'error' in verdict ? verdict.error : undefined
      }) as JobExecution[]
      if (execution === undefined) throw unreadable ?? lost
      processSoloGate.take(1)
      const hand = this.#hold(
        execution,
        opened,
        sentAt,
        once(() => processSoloGate.give(1)),
      )
      hand.onExtended(answer!)
      return hand
    }
    throw lost
  }

  #settleHand(hand: ListenerHand, verdict: Verdict, opened: ListenerAssembly): Promise<SettleAnswer> {
    const { execution } = hand
    const settled = this.#settle(hand.claim, withHold(verdict, execution.heldMs), opened, execution)
    execution.isDecided = true
    this.#limits.stop(execution)
    return settled.finally(() => this.#drop(execution, opened))
  }

  /** Throws for a result that cannot be kept; never rejects. */
  #settle(claim: Claim, verdict: Verdict, opened: ListenerAssembly, execution?: JobExecution): Promise<SettleAnswer> {
    const { queue, events, clock } = this.#parts
    const { settler, keeper, notes, rules } = opened
    const runMs = execution?.begunAt === undefined ? 0 : clock.mono() - execution.begunAt
    const item = settlementOf(claim, verdict, longWorkResults(queue), rules, undefined, runMs)
    const update = execution && notes.lastUpdate(execution)
    return new Promise((resolve) => {
      settler.settle(
        item,
        (told, isInDoubt) => {
          const isHeld = isInDoubt && execution !== undefined && keeper.isHeld(execution, clock.mono())
          const answer = answerInDoubt(told, isHeld)
          if (answer !== undefined) emitSettled(events, claim, verdict, answer, runMs, isInDoubt)
          // The store never took it: the lease ends, and the job runs again.
          resolve(answer ?? 'lost')
        },
        update,
      )
    })
  }

  /** It is settled, or another listener keeps it. */
  #drop(execution: JobExecution, { keeper }: ListenerAssembly): void {
    const held = this.#hands.get(execution)
    if (held === undefined) return
    keeper.forget(execution)
    held.letGo()
    this.#limits.stop(execution)
    this.#hands.delete(execution)
    this.#claims.look()
    if (this.#hands.size === 0) for (const resolve of this.#emptied.splice(0)) resolve()
  }

  /** The job has passed its time limit and is not settled. */
  #overdue(execution: JobExecution, reason: Error): void {
    const held = this.#hands.get(execution)
    if (held !== undefined && !execution.isDecided) void held.hand.fail(reason)
  }

  /** Listeners of other processes keep the claims that they have attached to. */
  async #findTakenOver(opened: ListenerAssembly): Promise<void> {
    const asked = [...this.#hands.values()]
    if (asked.length === 0) return
    const ours = new Set((await opened.workers.held(this.id)).map(({ id, fence }) => `${fence} ${id}`))
    for (const { hand } of asked) {
      if (ours.has(`${hand.fence} ${hand.id}`) || hand.execution.isDecided) continue
      // A lost claim is missing from the list too.
      const { queue, id, fence } = hand
      const [answer] = await opened.store.extend([{ queue, id, fence, leaseMs: 0 }])
      if (!this.#hands.has(hand.execution)) continue
      if (answer === 'lost') {
        this.#parts.events.emit('lease.lost', refOf(hand.claim))
        hand.onExtended(answer)
      } else this.#drop(hand.execution, opened)
    }
  }

  async #close(graceMs: number): Promise<void> {
    this.#claims.stop()
    const opened = await this.#opening?.catch(() => undefined)
    if (opened === undefined) return
    const { settler, keeper, heartbeat, limits, recoverer, workers } = opened
    recoverer.stop()
    // A claim under way may still bring a job, which goes back at once.
    await endsWithin(courtesyMs, this.#claims.idle())
    await endsWithin(courtesyMs, this.#claims.calls.unheard.putBack())
    for (const { hand } of this.#hands.values()) if (hand.elsewhere !== undefined) await this.#leave(hand, opened)
    await endsWithin(graceMs, this.#empty())
    await limits?.stop()
    await heartbeat.stop()
    opened.signs.stop()
    await endsWithin(
      courtesyMs,
      this.#findTakenOver(opened).catch(() => {}),
    )
    for (const { hand } of [...this.#hands.values()]) this.#putBack(hand, opened)
    await settler.settled(settleMs)
    opened.leavePublisher()
    await keeper.stop()
    await endsWithin(
      courtesyMs,
      workers.remove(this.id).catch(() => {}),
    )
  }

  #empty(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#hands.size === 0) resolve()
      else this.#emptied.push(resolve)
    })
  }

  /** It goes on without this process, with a full lease in which another can attach to it. */
  async #leave(hand: ListenerHand, opened: ListenerAssembly): Promise<void> {
    const { events } = this.#parts
    await endsWithin(
      courtesyMs,
      hand.extend().catch((error: unknown) => {
        events.emit('store.failed', { call: 'extend', error, retryMs: undefined })
      }),
    )
    if (!this.#hands.has(hand.execution)) return
    this.#drop(hand.execution, opened)
    events.emit('job.detached', { ...refOf(hand.claim), worker: this.id, child: hand.elsewhere! })
  }

  #putBack({ execution, claim }: ListenerHand, opened: ListenerAssembly): void {
    if (execution.isDecided) return
    const reason = 'the listener is closed and its grace is over; the job is released.'
    const isCancelled = hasCode(execution.abortReason, 'job-cancelled')
    execution.abort(new WorkerStoppedError(reason))
    const verdict: Verdict = isCancelled ? cancelledWhileRunning : { kind: 'release', delayMs: 0, reason: 'stopping' }
    execution.isDecided = true
    void this.#settle(claim, verdict, opened, execution).then(() => this.#drop(execution, opened))
  }
}

refuseMore('listener.', QueueListener.prototype, { promised: { next: 1, attach: 1, close: 1 } })
