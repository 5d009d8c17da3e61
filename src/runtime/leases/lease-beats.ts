/**
 * Lease beats: which leases are kept, when each is renewed, and what the store's answers mean. They tick in the loop of
 * a worker or in a thread.
 */

import type { JobRef } from '../../core/events.js'
import type { Progress } from '../../core/job/job.js'
import { Roster } from '../../core/values/roster.js'
import { answersIn } from '../../stores/contract/damage.js'
import type { Beat } from '../../stores/contract/job-beat.js'
import type { ClaimKey, ExtendAnswer, ExtendItem } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { claimsOf, type LeaseBatch, type Letter, type Numbers, type Report, tickMs } from './lease-messages.js'

interface LeaseBeatsParts {
  readonly connect: () => Promise<Pick<Store, 'traits' | 'extend'>>
  readonly mono: () => number
  readonly host: string
  readonly pid: number
  readonly report: (report: Report) => void
  /** Whether the store records when a handler began: a beat is then sent for that alone. */
  readonly announces: boolean
}

interface KeptLease extends ClaimKey {
  readonly number: number
  readonly task: string
  readonly leaseMs: number
  readonly maxBlockMs: number
  readonly isPatient: boolean
  /** After this instant the store may have given the job away. */
  deadline: number
  beatAt: number
  nextBeat: number
  /** When its handler began. */
  begunAt: number | undefined
  isAnnounced: boolean
  isCancelled: boolean
  /** Reported once. It stays listed until the keeper forgets it: otherwise the thread could go to sleep too early. */
  isLost: boolean
  progress: Progress | undefined
}

/** The unread rest of a batch, from first to last. */
interface Unread {
  readonly batch: LeaseBatch
  first: number
  readonly last: number
}

/** A handler that runs longer than this is announced by a beat; most end sooner and cost none. */
const announceAfterMs = 1_000
/** Progress is sent at most this often. */
const progressGapMs = 1_000

export class LeaseBeats {
  readonly #parts: LeaseBeatsParts
  readonly #kept = new Roster<number, KeptLease>()
  /** Kept leases that were not looked at yet: most are forgotten before that. */
  #unread: Unread[] = []
  #isBeating = false

  constructor(parts: LeaseBeatsParts) {
    this.#parts = parts
  }

  /** Leases that have not been forgotten, including lost ones. */
  get size(): number {
    return this.#unread.reduce((size, { first, last }) => size + last - first + 1, this.#kept.size)
  }

  take({ kept = [], begun = [], progress = [], forgotten = [], renewed = [] }: Letter): void {
    for (const batch of kept) this.#unread.push({ batch, first: batch.first, last: batch.last })
    for (const [number, at] of begun) this.begin(number, at)
    for (const [number, latest] of progress) {
      const lease = this.#lease(number)
      if (lease !== undefined) lease.progress = latest
    }
    for (const numbers of forgotten) this.#forget(numbers)
    for (const { leases, sentAt } of renewed)
      for (const number of leases) {
        const lease = this.#lease(number)
        if (lease !== undefined && sentAt > lease.beatAt) prolong(lease, sentAt)
      }
  }

  #forget({ first, last }: Numbers): void {
    for (const rest of this.#unread) if (first <= rest.first && rest.first <= last) rest.first = last + 1
    this.#unread = this.#unread.filter((rest) => rest.first <= rest.last)
    if (this.#unread.some((rest) => rest.first <= last && first <= rest.last)) this.#read()
    if (this.#kept.size === 0) return
    for (let number = first; number <= last; number += 1) this.#kept.delete(number)
  }

  #lease(number: number): KeptLease | undefined {
    this.#read()
    return this.#kept.get(number)
  }

  #leases(): KeptLease[] {
    this.#read()
    return [...this.#kept.values()]
  }

  #read(): void {
    for (const rest of this.#unread) this.#keep(rest)
    this.#unread = []
  }

  #keep({ batch, first, last }: Unread): void {
    const { leaseMs, sentAt, maxBlockMs, isPatient = false } = batch
    const claims = claimsOf(batch)
    const { announces } = this.#parts
    for (let number = first; number <= last; number += 1) {
      const { queue, id, fence, task } = claims[number - batch.first]!
      // Field by field: spreading the claim costs thirty times as much, and there may be thousands a second.
      this.#kept.set(number, {
        queue,
        id,
        fence,
        task,
        number,
        leaseMs,
        maxBlockMs,
        isPatient,
        deadline: isPatient ? Number.POSITIVE_INFINITY : deadlineAfter(sentAt, leaseMs),
        beatAt: sentAt,
        nextBeat: sentAt + Math.min(announces ? announceAfterMs : leaseMs, leaseMs / 3),
        begunAt: undefined,
        isAnnounced: false,
        isCancelled: false,
        isLost: false,
        progress: undefined,
      })
    }
  }

  /** Notes when a handler began. Ignores a number that is not kept. */
  begin(number: number, at: number): void {
    const lease = this.#lease(number)
    if (lease === undefined || lease.begunAt !== undefined) return
    lease.begunAt = at
    if (this.#parts.announces) lease.nextBeat = Math.min(lease.nextBeat, this.#parts.mono() + announceAfterMs)
  }

  /** Jobs whose handlers have begun and whose leases are held. */
  running(): JobRef[] {
    return this.#leases()
      .filter(({ begunAt, isLost }) => begunAt !== undefined && !isLost)
      .map(({ queue, id, task }) => ({ queue, id, task }))
  }

  /** How long the loop may be blocked before the first of these leases must be let go; infinite if none is held. */
  get shortestMaxBlockMs(): number {
    return Math.min(...this.#leases().map(({ maxBlockMs, isLost }) => (isLost ? Number.POSITIVE_INFINITY : maxBlockMs)))
  }

  /**
   * Lets go, on purpose, of every lease for which the loop has been blocked too long, and reports it. Returns their
   * number.
   */
  giveUp(blockedForMs: number): number {
    return this.#lose(this.#leases().filter(({ maxBlockMs }) => maxBlockMs <= blockedForMs))
  }

  /** Keeps nothing any longer, and reports nothing. */
  clear(): void {
    this.#kept.clear()
    this.#unread = []
  }

  /**
   * Reports overdue leases, then sends the due beats, unless an earlier tick's call is still under way. Never rejects.
   */
  async tick(): Promise<void> {
    const now = this.#parts.mono()
    const leases = this.#leases()
    this.#lose(leases.filter(({ deadline }) => deadline <= now))
    if (this.#isBeating) return
    const due = leases.filter((lease) => isDue(lease, now))
    if (due.length === 0) return
    this.#isBeating = true
    try {
      const store = await this.#parts.connect()
      const { maxBatch } = store.traits
      for (let i = 0; i < due.length; i += maxBatch) await this.#beat(store, due.slice(i, i + maxBatch))
    } catch (error) {
      // The next tick tries again; the local deadline bounds how long that can go on.
      this.#parts.report({ kind: 'failed', error })
    } finally {
      this.#isBeating = false
    }
  }

  async #beat(store: Pick<Store, 'extend'>, batch: readonly KeptLease[]): Promise<void> {
    const due = batch.filter((lease) => this.#isHeld(lease))
    if (due.length === 0) return
    const { mono, report, announces } = this.#parts
    const sentAt = mono()
    const items = due.map((lease) => this.#itemOf(lease, sentAt))
    const answers = await store.extend(items).catch((error: unknown) => this.#partOf(error))
    const answeredAt = mono()
    // Leases forgotten meanwhile need no answer, and leases reported as lost stay lost.
    const answered = due.flatMap((lease, i) =>
      this.#isHeld(lease) ? [{ lease, item: items[i]!, answer: answers[i] }] : [],
    )
    this.#lose(answered.filter(({ answer }) => answer === 'lost').map(({ lease }) => lease))
    const renewed = answered.filter(({ answer }) => answer !== undefined && answer !== 'lost')
    for (const { lease, item } of renewed) renew(lease, item, sentAt, announces)
    report({ kind: 'renewed', leases: renewed.map(({ lease }) => lease.number), sentAt, answeredAt })
    this.#cancel(renewed)
  }

  /** A damaged queue must not keep other queues' leases from being renewed. */
  #partOf(error: unknown): readonly (ExtendAnswer | undefined)[] {
    const answers = answersIn(error)
    if (answers === undefined) throw error
    this.#parts.report({ kind: 'failed', error })
    return answers as readonly (ExtendAnswer | undefined)[]
  }

  #cancel(renewed: readonly { lease: KeptLease; answer: ExtendAnswer | undefined }[]): void {
    const cancelled = renewed.filter(({ lease, answer }) => answer === 'cancel' && !lease.isCancelled)
    if (cancelled.length === 0) return
    for (const { lease } of cancelled) lease.isCancelled = true
    this.#parts.report({ kind: 'cancelled', leases: cancelled.map(({ lease }) => lease.number) })
  }

  #lose(leases: readonly KeptLease[]): number {
    const lost = leases.filter(({ isLost }) => !isLost)
    if (lost.length === 0) return 0
    for (const lease of lost) lease.isLost = true
    this.#parts.report({ kind: 'lost', leases: lost.map(({ number }) => number) })
    return lost.length
  }

  #isHeld(lease: KeptLease): boolean {
    return !lease.isLost && this.#kept.get(lease.number) === lease
  }

  #itemOf({ queue, id, fence, leaseMs, begunAt, isAnnounced, progress }: KeptLease, sentAt: number): ExtendItem {
    const { host, pid } = this.#parts
    const beat: Beat = {
      ...(begunAt === undefined || isAnnounced ? {} : { startedMs: Math.max(0, sentAt - begunAt), host, pid }),
      ...(progress === undefined ? {} : { progress }),
    }
    return { queue, id, fence, leaseMs, ...(Object.keys(beat).length === 0 ? {} : { beat }) }
  }
}

function renew(lease: KeptLease, { beat }: ExtendItem, sentAt: number, announces: boolean): void {
  prolong(lease, sentAt)
  if (beat?.startedMs !== undefined) lease.isAnnounced = true
  // It began while the beat was under way.
  else if (announces && lease.begunAt !== undefined && !lease.isAnnounced)
    lease.nextBeat = Math.min(lease.nextBeat, sentAt + announceAfterMs)
  if (lease.progress === beat?.progress) lease.progress = undefined
}

function prolong(lease: KeptLease, sentAt: number): void {
  if (!lease.isPatient) lease.deadline = deadlineAfter(sentAt, lease.leaseMs)
  lease.beatAt = sentAt
  lease.nextBeat = sentAt + lease.leaseMs / 3
}

/** Ticks come late rather than early: a lease that falls due before the next tick is due now. */
function isDue({ beatAt, nextBeat, progress }: KeptLease, now: number): boolean {
  const soon = now + tickMs / 2
  return nextBeat <= soon || (progress !== undefined && beatAt + progressGapMs <= soon)
}

/**
 * The local deadline. It counts from before the call was sent, so that the store's lease cannot end sooner, less a
 * margin for clocks that run at different rates. (Gray & Cheriton, "Leases", 1989.)
 */
export function deadlineAfter(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs - Math.max(1_000, leaseMs / 10)
}
