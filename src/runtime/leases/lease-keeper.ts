/**
 * The lease keeper: has the leases of all claims of this worker renewed, and gives a claim up before its lease can end
 * unnoticed. Beats come from a thread, so that a handler that blocks the loop keeps its lease. They come from this loop
 * if there is no thread, and until the thread is up. The thread receives all letters from its start.
 */

import type { Worker } from 'node:worker_threads'
import { JobCancelledError, LeaseLostError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { Progress } from '../../core/job/job.js'
import { LinkedList } from '../../core/values/linked-list.js'
import type { Store } from '../../stores/contract/store.js'
import { HeldLease, type Leased, type LeaseTerms } from '../run/execution.js'
import { refOf } from '../run/run-events.js'
import { deadlineAfter, LeaseBeats } from './lease-beats.js'
import { type LeaseBatch, type Letter, leaseBatch, type Report, tickMs } from './lease-messages.js'
import { LeaseThread } from './lease-thread-handle.js'

export class LeaseKeeper {
  readonly #events: Events
  readonly #mono: () => number
  readonly #beats: LeaseBeats
  readonly #thread: LeaseThread | undefined
  /** Whether the thread alone beats. */
  #isEntrusted = false
  readonly #latestBegun = new Float64Array(new SharedArrayBuffer(16))
  /** In the order of their numbers. */
  readonly #held = new LinkedList<HeldLease>()
  #forgotten: { readonly first: number; last: number }[] = []
  #lastNumber = 0
  #answeredAt: number
  #timer: NodeJS.Timeout | undefined
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  /**
   * `startThread` starts the thread that beats. Absent, or with a store that cannot be opened twice: beats come from this
   * loop. `blockedTo`: the file descriptor to which the thread writes a line while the loop is blocked; absent: none.
   */
  constructor({
    store,
    events,
    mono,
    host,
    pid,
    startThread,
    blockedTo,
  }: {
    readonly store: Store
    readonly events: Events
    readonly mono: () => number
    readonly host: string
    readonly pid: number
    readonly startThread?: () => Worker
    readonly blockedTo?: number
  }) {
    this.#events = events
    this.#mono = mono
    this.#answeredAt = mono()
    const report = (news: Report) => this.#onReport(news)
    this.#beats = new LeaseBeats({
      ...{ connect: async () => store, mono, host, pid },
      report: (news) => {
        // A thread that takes longer to start than a lease lasts would think all leases ended.
        if (news.kind === 'renewed' && this.#thread !== undefined) this.#send({ renewed: [news] })
        report(news)
      },
      announces: store.traits.tellsCrashes,
    })
    if (startThread === undefined || !store.traits.beatsFromThread) return
    this.#thread = new LeaseThread({
      startThread,
      hello: { latestBegun: this.#latestBegun, host, pid, blockedTo },
      mono,
      report,
      onStart: () => this.#tellThread(),
      onDeath: (error, retryMs) => {
        this.#takeOver()
        events.emit('store.failed', { call: 'lease-thread', error, retryMs })
      },
    })
  }

  /** When the store last answered a beat (monotonic); before the first answer, when the keeper started. */
  get answeredAt(): number {
    return this.#answeredAt
  }

  /**
   * Starts the thread; leases may be kept at once. Resolves when the thread is up. If it cannot start, that is emitted
   * as `store.failed` and tried again; beats come from this loop meanwhile. Never rejects. Starting twice is harmless.
   */
  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  async #start(): Promise<void> {
    this.#answeredAt = this.#mono()
    if (this.#stopped === undefined) await this.#thread?.start()
  }

  /**
   * Keeps leases of one queue that were claimed together, until each is forgotten. Call it before any of their handlers
   * begins: the handler may block the loop at once. `sentAt`: monotonic, from before the claim was sent. A loop blocked
   * for `maxBlockMs` loses these leases, whatever holds for others. `isPatient`: the work goes on while the store is
   * away, and only the store can say that a lease is lost. Default: each is given up before it can have ended.
   */
  keep(jobs: readonly Leased[], terms: LeaseTerms): void {
    if (jobs.length === 0 || this.#stopped !== undefined) return
    const first = this.#lastNumber + 1
    for (const job of jobs) {
      this.#lastNumber += 1
      job.lease = new HeldLease(this.#lastNumber, job, terms)
      this.#held.add(job.lease)
    }
    this.#send({ kept: [leaseBatch(jobs, first, terms)] })
    this.#timer ??= setInterval(() => this.#tick(), tickMs)
  }

  /** Notes when its handler began (monotonic): a beat may report it from now on. */
  begin({ lease }: Leased, at: number): void {
    if (lease?.isIn !== true) return
    lease.begunAt = at
    this.#latestBegun[1] = at
    this.#latestBegun[0] = lease.number
  }

  /**
   * Whether its lease may have ended by `now` (monotonic), by all that this loop has heard; false for a lease that was
   * never kept.
   */
  isOverdue({ lease }: Leased, now: number): boolean {
    if (lease === undefined || this.#stopped !== undefined) return false
    return !lease.isIn || deadlineAfter(lease.sentAt, lease.terms.leaseMs) <= now
  }

  /** Whether its lease is kept and cannot be over by `now` (monotonic). */
  isHeld(leased: Leased, now: number): boolean {
    return this.#stopped === undefined && leased.lease?.isIn === true && !this.isOverdue(leased, now)
  }

  /** Stops keeping a settled lease. Harmless for one that is not kept. */
  forget({ lease }: Leased): void {
    if (lease === undefined || !this.#held.remove(lease)) return
    const { number } = lease
    // Leases claimed together are mostly settled together, in the same order.
    const latest = this.#forgotten.at(-1)
    if (latest?.last === number - 1) latest.last = number
    else this.#forgotten.push({ first: number, last: number })
  }

  /**
   * Keeps nothing any longer, and ends the thread within a second; unsettled claims then end with their leases. A
   * second call waits for the first.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#held.clear()
    this.#beats.clear()
    await this.#thread?.stop()
  }

  #tick(): void {
    const begun: [number, number][] = []
    const progress: [number, Progress][] = []
    for (const held of this.#held) {
      const { number, job, begunAt, isBegunTold } = held
      if (begunAt !== undefined && !isBegunTold) {
        held.isBegunTold = true
        begun.push([number, begunAt])
      }
      // It stays with the job, whose end may overtake the beat.
      const { unsentProgress: latest } = job
      if (latest === undefined || latest === held.toldProgress) continue
      held.toldProgress = latest
      progress.push([number, latest])
    }
    this.#send({ ...(begun.length > 0 && { begun }), ...(progress.length > 0 && { progress }) })
    void this.#beats.tick()
    if (this.#held.size > 0) return
    // A timer without work would keep the process alive.
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #send(news: Omit<Letter, 'at' | 'forgotten'>): void {
    const letter = this.#letter(news)
    if (!this.#isEntrusted && this.#thread?.isUp === true) {
      // It has been sent all there is.
      this.#isEntrusted = true
      this.#beats.clear()
    }
    if (!this.#isEntrusted) this.#beats.take(letter)
    this.#thread?.post(letter)
  }

  #letter(news: Omit<Letter, 'at' | 'forgotten'> = {}): Letter {
    const at = this.#mono()
    if (this.#forgotten.length === 0) return { at, ...news }
    const forgotten = this.#forgotten
    this.#forgotten = []
    return { at, ...news, forgotten }
  }

  /** Sends all kept leases. The thread has just been started and knows nothing. */
  #tellThread(): void {
    // The thread cannot forget a lease that it never kept.
    this.#beats.take(this.#letter())
    this.#thread!.post(this.#everything())
  }

  /** The thread has died: this loop takes over. */
  #takeOver(): void {
    if (!this.#isEntrusted) return
    this.#isEntrusted = false
    this.#beats.clear()
    this.#beats.take(this.#everything())
  }

  #everything(): Letter {
    const kept: LeaseBatch[] = []
    const begun: [number, number][] = []
    for (const held of this.#held) {
      const { number, job, terms, sentAt, begunAt } = held
      kept.push(leaseBatch([job], number, { ...terms, sentAt }))
      if (begunAt !== undefined) begun.push([number, begunAt])
    }
    this.#forgotten = []
    return { at: this.#mono(), kept, begun }
  }

  #onReport(news: Report): void {
    // A call that was under way at the stop may fail because the store is being closed.
    if (this.#stopped !== undefined) return
    switch (news.kind) {
      case 'renewed':
        this.#answeredAt = Math.max(this.#answeredAt, news.answeredAt)
        for (const held of this.#heldOf(news.leases)) held.sentAt = news.sentAt
        return
      case 'lost':
        for (const { job } of this.#heldOf(news.leases)) this.#lose(job)
        return
      case 'cancelled':
        for (const { job } of this.#heldOf(news.leases)) this.#cancel(job)
        return
      case 'failed':
        this.#events.emit('store.failed', { call: 'extend', error: news.error, retryMs: tickMs })
        return
      case 'blocked':
        this.#events.emit('loop.blocked', { forMs: news.forMs, jobs: news.jobs, givenUp: news.givenUp })
    }
  }

  #heldOf(numbers: readonly number[]): HeldLease[] {
    const wanted = new Set(numbers)
    return [...this.#held].filter(({ number }) => wanted.has(number))
  }

  #lose(job: Leased): void {
    this.forget(job)
    // Its end is on the way to the store, and once settled ends the lease too: its answer says which of the two it was.
    if (job.isDecided) return
    const { queue, id } = job.claim
    this.#events.emit('lease.lost', refOf(job.claim))
    job.abort(new LeaseLostError(queue, id))
  }

  #cancel(job: Leased): void {
    const { queue, id } = job.claim
    job.abort(new JobCancelledError(queue, id))
  }
}
