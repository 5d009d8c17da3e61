/**
 * The calls by which a worker, a listener or a throttled queue claims. They react to each answer: they report crashes
 * and damaged queues, put unheard claims back, and keep the leads.
 */

import { hasCode } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import { timerMs } from '../../core/platform/timer.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import { slicesOf } from '../../core/values/pages.js'
import type { Claimed, Claimer, ClaimFrom, Rung, Wait } from '../../stores/contract/claim.js'
import type { Damage } from '../../stores/contract/damage.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import type { FoundEnds } from '../found-ends.js'

/** A claim waits in the store for this long at most, and for this share of its lease. */
const longestMs = 1_000
const leaseShare = 0.1

export class ClaimCalls {
  readonly leads: Leads
  readonly damaged: DamagedQueues
  readonly unheard: UnheardClaims
  readonly #worker: string
  readonly #events: Events
  readonly #connect: () => Promise<Store>
  readonly #answered: (answer: Claimed) => void
  readonly #ends: Pick<FoundEnds, 'tell'>

  constructor(
    surroundings: WorkerSurroundings,
    {
      queues,
      connect,
      held,
      fellDue,
      answered,
      ends,
    }: {
      readonly queues: readonly string[]
      /** Opens the store, once. */
      readonly connect: () => Promise<Store>
      /** The known claims whose end the store has not yet taken. */
      readonly held: () => readonly ClaimKey[]
      /** Called when a target that it leads has fallen due (`leads.takeDue()`). */
      readonly fellDue: () => void
      /** Called first with every answer. */
      readonly answered: (answer: Claimed) => void
      readonly ends: Pick<FoundEnds, 'tell'>
    },
  ) {
    this.#worker = surroundings.worker
    this.#events = surroundings.events
    this.#connect = connect
    this.#answered = answered
    this.#ends = ends
    this.leads = new Leads(fellDue)
    this.damaged = new DamagedQueues(queues, surroundings.events, () => surroundings.clock.mono())
    this.unheard = new UnheardClaims(surroundings, connect, held)
  }

  /** Ms for which the claimer may rest; Infinity if no queue is damaged and no claim unheard. */
  get dueInMs(): number {
    return Math.min(this.unheard.dueInMs, this.damaged.dueInMs)
  }

  /** Rejects as the store does, and with the error of a damaged queue if no queue it serves can be used. */
  async claim(from: readonly ClaimFrom[], how: Omit<Claimer, 'worker'>): Promise<Claimed> {
    const store = await this.#connect()
    const asked = store.claim(from, { worker: this.#worker, ...how })
    asked.catch((error: unknown) => this.unheard.failed(error))
    const answer = await asked
    this.#onAnswer(from, answer)
    return answer
  }

  /**
   * `Store.claimWhenRung`, which the store must have, on entries that name their leases. Waits for a second, or a tenth
   * of the shortest lease, at most: leases are reckoned from the moment in which the claim is sent. Rejects like
   * `claim`.
   */
  async claimWhenRung(from: readonly ClaimFrom[], forMs: number, signal: AbortSignal): Promise<Rung> {
    const store = await this.#connect()
    const shortest = Math.min(...from.map((one) => one.leaseMs!))
    const mostMs = Math.min(forMs, longestMs, shortest * leaseShare)
    const asked = store.claimWhenRung!(from, { worker: this.#worker, leaseMs: shortest }, mostMs, signal)
    asked.catch((error: unknown) => this.unheard.failed(error))
    const rung = await asked
    if (rung.claimed !== undefined) this.#onAnswer(from, rung.claimed)
    return rung
  }

  #onAnswer(from: readonly ClaimFrom[], answer: Claimed): void {
    this.#answered(answer)
    if (answer.isInDoubt) this.unheard.suspected()
    this.damaged.onAnswer(from, answer.damaged)
    this.#ends.tell(answer)
    this.leads.onWaits(answer.waits)
  }

  /**
   * Lets the store recover, promote and ring on, and takes nothing. Never rejects: a failure is emitted as
   * `store.failed`.
   */
  async ask(targets: readonly (ClaimTarget & { readonly leaseMs: number })[]): Promise<void> {
    const from = targets.map((target) => ({ ...target, limit: 0 }))
    try {
      for (const some of slicesOf(from, mostPerTrip)) await this.claim(some, { leaseMs: some[0]!.leaseMs })
    } catch (error) {
      this.#events.emit('store.failed', { call: 'claim', error, retryMs: undefined })
    }
  }
}

/** The target of one entry of a claim: a queue, or a shard of an ordered queue. */
export interface ClaimTarget {
  readonly queue: string
  readonly shard?: number
}

export function targetOf({ queue, shard }: ClaimTarget): ClaimTarget {
  return shard === undefined ? { queue } : { queue, shard }
}

/** The same text for the same target. */
export function targetName({ queue, shard }: ClaimTarget): string {
  return shard === undefined ? queue : `${queue}\0${shard}`
}

/** The queues and shards that this claimer alone asks again when something falls due, with their timers. */
class Leads {
  readonly #fellDue: () => void
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #due: ClaimTarget[] = []
  #isStopped = false

  /** `fellDue`: called when targets have fallen due; `takeDue()` returns them. Targets of one moment share a call. */
  constructor(fellDue: () => void) {
    this.#fellDue = fellDue
  }

  /** Notes the leads in a claim's answer. */
  onWaits(waits: readonly Wait[]): void {
    if (this.#isStopped) return
    for (const wait of waits) if (wait.reason !== 'suspect') this.#note(wait)
  }

  /** The targets that have fallen due and have no newer answer. */
  takeDue(): ClaimTarget[] {
    return this.#due.splice(0)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    this.#due = []
  }

  #note(wait: Wait): void {
    const target = targetOf(wait)
    const name = targetName(target)
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
    this.#due = this.#due.filter((one) => targetName(one) !== name)
    const { lead, forMs } = wait
    if (!lead || forMs === undefined) return
    const due = () => {
      this.#timers.delete(name)
      // Shards that share a limit are due together: one claim covers them all.
      if (this.#due.push(target) === 1) setImmediate(this.#fellDue)
    }
    this.#timers.set(name, setTimeout(due, timerMs(Math.max(1, Math.ceil(forMs)))).unref())
  }
}

interface Known extends Damage {
  /** When the store looks at it again, on the monotonic clock. */
  readonly until: number
}

/** The queues of a claimer that the store cannot use and leaves out. Each look at them is reported. */
class DamagedQueues {
  readonly #served: readonly string[]
  readonly #events: Events
  readonly #mono: () => number
  readonly #known = new Map<string, Known>()

  /** `served`: all queues of the claimer. */
  constructor(served: readonly string[], events: Events, mono: () => number) {
    this.#served = served
    this.#events = events
    this.#mono = mono
  }

  /** Queues with a shard that is left out. */
  get names(): string[] {
    return [...new Set([...this.#known.values()].map(({ queue }) => queue))]
  }

  /** Ms until one is worth asking again; Infinity if none is damaged. */
  get dueInMs(): number {
    if (this.#known.size === 0) return Number.POSITIVE_INFINITY
    return Math.max(0, Math.min(...[...this.#known.values()].map(({ until }) => until)) - this.#mono())
  }

  /** Notes the damage that a claim on `from` reported. Throws a damage's error if no usable queue is left. */
  onAnswer(from: readonly ClaimFrom[], damaged: readonly Damage[] = []): void {
    if (this.#known.size === 0 && damaged.length === 0) return
    const now = this.#mono()
    const named = new Set(damaged.map(damageName))
    const mended = [...this.#known].filter(([name, known]) => !named.has(name) && from.some(asks(known)))
    for (const one of damaged) this.#note(one, now)
    for (const [name, { queue }] of mended) this.#mend(name, queue)
    const whole = [...this.#known.values()].filter(({ isWhole }) => isWhole)
    if (this.#served.every((name) => whole.some(({ queue }) => queue === name))) throw whole[0]!.error
  }

  #note(damage: Damage, now: number): void {
    const { queue, shard, error, forMs } = damage
    const before = this.#known.get(damageName(damage))
    this.#known.set(damageName(damage), { ...damage, until: now + forMs })
    // Known from the last look, and not asked since.
    const isOld = before !== undefined && (forMs === 0 || before.until > now)
    if (!isOld) this.#events.emit('queue.damaged', { queue, shard, error, retryMs: forMs })
  }

  #mend(name: string, queue: string): void {
    this.#known.delete(name)
    for (const [other, known] of this.#known)
      if (known.queue === queue) this.#known.set(other, { ...known, isWhole: false })
    if (!this.names.includes(queue)) this.#events.emit('queue.mended', { queue })
  }
}

function asks(known: Damage) {
  return ({ queue, shard }: ClaimFrom) => queue === known.queue && (shard === undefined || shard === known.shard)
}

function damageName({ queue, shard }: Damage): string {
  return `${queue} ${shard}`
}

/** A call that was cut off may be carried out after the first look, if its request arrives late. */
const secondLookMs = 5_000
/** The pause after a look that failed. The call itself waits for the store. */
const againMs = 250

/** Claims that the store made in a call whose answer was lost. They are put back at once. */
class UnheardClaims {
  readonly #surroundings: WorkerSurroundings
  readonly #connect: () => Promise<Pick<Store, 'settle' | 'traits' | 'workers'>>
  readonly #held: () => readonly ClaimKey[]
  /** The instants of the next looks, on the monotonic clock, soonest first. */
  #looksAt: readonly number[] = []

  /** `held`: the known claims whose end the store has not yet taken. */
  constructor(
    surroundings: WorkerSurroundings,
    connect: () => Promise<Pick<Store, 'settle' | 'traits' | 'workers'>>,
    held: () => readonly ClaimKey[],
  ) {
    this.#surroundings = surroundings
    this.#connect = connect
    this.#held = held
  }

  /** Ms until the next look; Infinity if no answer was lost. */
  get dueInMs(): number {
    const [next] = this.#looksAt
    return next === undefined ? Number.POSITIVE_INFINITY : Math.max(0, next - this.#surroundings.clock.mono())
  }

  /** Notes the error with which a claim rejected. */
  failed(error: unknown): void {
    if (hasCode(error, 'store-unavailable') && error.inDoubt) this.suspected()
  }

  /** A claim may exist that no answer reported. */
  suspected(): void {
    const now = this.#surroundings.clock.mono()
    this.#looksAt = [now, now + secondLookMs]
  }

  /**
   * Looks for unheard claims, if it is time, and puts them back: uncounted, into their old places. Call it while no
   * claim is under way. It costs a turn of the event loop even if none are due: check `dueInMs` first where that
   * matters. Never rejects: a failure is emitted as `store.failed`, and tried again.
   */
  async putBack(): Promise<void> {
    if (this.dueInMs > 0) return
    const { events, clock } = this.#surroundings
    const [, ...later] = this.#looksAt
    this.#looksAt = later
    try {
      await this.#look()
    } catch (error) {
      events.emit('store.failed', { call: 'workers.held', error, retryMs: againMs })
      const again = clock.mono() + againMs
      this.#looksAt = [again, ...later.map((at) => Math.max(at, again + secondLookMs))]
    }
  }

  async #look(): Promise<void> {
    const { worker, events } = this.#surroundings
    const store = await this.#connect()
    const { workers, traits } = store
    if (workers === undefined) return
    for (;;) {
      const made = await workers.held(worker)
      const heard = new Set(this.#held().map(claimName))
      const unheard = made.filter((claim) => !heard.has(claimName(claim))).slice(0, traits.maxBatch)
      if (unheard.length === 0) return
      const answers = await store.settle(
        unheard.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'release', delayMs: 0 })),
      )
      for (const [i, { queue, id, task }] of unheard.entries())
        if (answers[i] === 'ok') events.emit('job.released', { queue, id, task, reason: 'unheard', delayMs: 0 })
      // Nothing was put back: another claimer has them by now.
      if (!answers.includes('ok')) return
    }
  }
}

function claimName({ queue, fence, id }: ClaimKey): string {
  return `${queue} ${fence} ${id}`
}

/**
 * The claims of a worker that are under way: nearly always one. While claims come back as large as they can be, a
 * second one is sent before the first is answered. The store then has the next claim at hand when it has done one, and
 * what is settled meanwhile shares its commit.
 */
export class ClaimsUnderWay {
  readonly #trips = new Set<Promise<void>>()
  readonly #hasEnded: () => void
  #jobs = 0

  /** `hasEnded`: called each time that one of them has ended. */
  constructor(hasEnded: () => void) {
    this.#hasEnded = hasEnded
  }

  get count(): number {
    return this.#trips.size
  }

  /** The most jobs that they can bring. */
  get jobs(): number {
    return this.#jobs
  }

  /** `trip`: ends when its answer is in hand. */
  add(jobs: number, trip: Promise<void>): void {
    this.#jobs += jobs
    const ended = trip.finally(() => {
      this.#jobs -= jobs
      this.#trips.delete(ended)
      this.#hasEnded()
    })
    this.#trips.add(ended)
    // Perhaps nobody waits for this one: what fails it fails the next one too.
    ended.catch(() => {})
  }

  /** Resolves when the answer to one of them is in hand; rejects with its error. */
  next(): Promise<void> {
    return Promise.race(this.#trips)
  }

  /** Resolves when none is left, however they end. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#trips)
  }
}
