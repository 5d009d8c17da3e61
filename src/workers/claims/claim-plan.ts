/**
 * The plan of a claim: which queues and shards it asks, and how many jobs each may grant. That follows from the free
 * slots, from the jobs worth claiming before there are slots for them (`Prefetch`), and from the jobs of throttled
 * queues that may wait for their instants (`DepartureSizes`).
 */

import type { Queue } from '../../core/queue/queue.js'
import type { ThrottleRule } from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import type { ClaimFrom } from '../../stores/contract/claim.js'
import type { Store } from '../../stores/contract/store.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import type { ClaimTarget } from './claim-calls.js'
import type { LimitedQueues } from './limited-queues.js'
import type { Punctuality } from './punctuality.js'
import type { ShardPicker } from './shard-picker.js'

export interface ClaimPlanParts {
  readonly store: Pick<Store, 'traits' | 'claimWhenRung'>
  readonly registry: Registry
  readonly needsHeads: boolean
  readonly shards: ShardPicker
  readonly limited: LimitedQueues
  readonly punctuality: Punctuality
  readonly sizes: DepartureSizes
  /** The jobs that the worker holds. */
  readonly inFlight: Pick<InHand, 'free' | 'backlog'> & {
    readonly gathering: { lacking(queue: string): number }
    departing(queue: string): DepartingShare
  }
  readonly prefetch: Prefetch
  /** How many more jobs may be claimed before the worker is replaced. */
  readonly mayTake: () => number
}

/**
 * A rung claim, which waits in the store during a rest, asks for this many jobs at most: if the process stands still
 * when it is made, nobody else can take them. More than one, so that the answer can say that none is left.
 */
const mostWhenRung = 2

export class ClaimPlan {
  readonly #parts: ClaimPlanParts

  constructor(parts: ClaimPlanParts) {
    this.#parts = parts
  }

  /**
   * The entries for these queues, in this order; none if there is no room for the first. `asked`: jobs that claims
   * under way may bring.
   */
  of(drawn: readonly string[], asked: number): ClaimFrom[] {
    const from: ClaimFrom[] = []
    for (const [i, queue] of drawn.entries()) {
      const limit = this.#room(queue, asked)
      // Do not skip the queue drawn first if it has no room: prefetching queues would take every slot from the others.
      if (limit <= 0 && i === 0) return []
      if (limit > 0) for (const target of this.#parts.shards.next(queue)) from.push(this.one(target, limit))
    }
    return from.slice(0, mostPerTrip)
  }

  /**
   * The entries of a rung claim, which waits in the store during a rest on these queues; none if that cannot be. Room
   * for a batch changes during a rest.
   */
  whenRung(queues: readonly string[]): ClaimFrom[] {
    const { store, registry, needsHeads } = this.#parts
    if (store.claimWhenRung === undefined || needsHeads) return []
    if (!queues.every((queue) => this.isFree(queue) && registry.batchSize(queue) === 1)) return []
    const from = this.of(queues, 0)
    return from.length === queues.length
      ? from.map((one) => ({ ...one, limit: Math.min(one.limit, mostWhenRung) }))
      : []
  }

  /** Whether a claim on the queue needs no answer to the one before, nor an exact moment: limits and shards do. */
  isFree(queue: string): boolean {
    const { registry, limited } = this.#parts
    return !registry.queue(queue).ordered && !limited.isLimited(queue)
  }

  one({ queue, ...shard }: ClaimTarget, limit: number): ClaimFrom {
    const { registry, punctuality } = this.#parts
    const { leaseMs, groupWeights } = registry.queue(queue)
    const maxPayloads = registry.orderedTask(queue)?.maxPayloads
    const lateMs = punctuality.lateMsOf(queue)
    return {
      ...{ queue, ...shard, limit, leaseMs },
      ...(maxPayloads === undefined ? {} : { maxPayloads }),
      ...(lateMs === 0 ? {} : { lateMs }),
      ...(groupWeights === undefined ? {} : { weights: groupWeights }),
    }
  }

  /** How many jobs of this queue may be claimed now. */
  #room(name: string, asked: number): number {
    const { registry, limited, punctuality, sizes, inFlight, prefetch, store, mayTake, needsHeads } = this.#parts
    const queue = registry.queue(name)
    const most = Math.min(queue.claimSize, store.traits.maxClaim, mayTake() - asked, punctuality.mostOf(name))
    const { free, backlog, gathering } = inFlight
    const batchSize = registry.batchSize(name)
    const ahead = needsHeads ? 0 : prefetch.ahead(name)
    const worth = { ahead, worthwhile: prefetch.worthwhile(name), inARow: prefetch.inARow(name) }
    const lacking = batchSize > 1 ? gathering.lacking(name) : 0
    const startable = needsHeads ? free - asked : sizes.roomOf(name, free - asked, inFlight.departing(name))
    const inHand = { free: startable, backlog: backlog + asked, lacking, ...worth }
    return roomFor(queue, limited.isLimited(name), inHand, batchSize, most)
  }
}

/** The executions that a worker holds, and those worth claiming. For ordered queues these are batches. */
export interface InHand {
  /** Free slots, less the waiting executions; negative if more wait than there are slots. */
  readonly free: number
  readonly backlog: number
  /** The executions worth claiming before there are slots for them. */
  readonly ahead: number
  /** The executions that a claim must have room for, if the present ones last until then. */
  readonly worthwhile: number
  /** Jobs that would join a waiting batch. */
  readonly lacking: number
  /** Executions that one slot may take, to run one after the other. */
  readonly inARow: number
}

/**
 * How many jobs a claim on the queue may bring: at most `most`; 0 if a claim is not worth its trip. `batchSize`: jobs per execution. If the queue is limited, claimed
 * jobs must start at once.
 */
export function roomFor(
  { renewLease, ordered, exclusive }: Queue,
  isLimited: boolean,
  { free, backlog, ahead, worthwhile, inARow, lacking }: InHand,
  batchSize: number,
  most: number,
): number {
  // A shard gives one batch at a time, and nothing more until that has ended.
  if (ordered && exclusive === 'shard') return free > 0 ? Math.min(most, batchSize) : 0
  if (isLimited) return Math.min(most, Math.max(0, free) * batchSize + lacking)
  // One claim for one slot, which runs all of it: no more than can begin soon, for other workers may be idle.
  if (!renewLease) return free > 0 ? Math.min(most, inARow * batchSize) : 0
  // Not for every job that begins: a claim must be worth its trip, or its price.
  const isWorthIt = free > 0 || (worthwhile > 0 ? free + ahead >= worthwhile : backlog <= ahead / 2)
  return Math.min(most, (isWorthIt ? Math.max(0, free + ahead) * batchSize : 0) + lacking)
}

/** The weight of the newest measurement: about the last twenty count. */
const newest = 0.05
/** Jobs that run longer are not worth prefetching: a claim is short compared with them. */
const slowMs = 20
/** A prefetched job waits for its slot no longer than this, by the measurements. */
const longestWaitMs = 20
/** The prefetched jobs last for this many claims: the next claim is made when half of them are left. */
const claimsAhead = 2
/** If each call is paid for, jobs wait longer for their slots, so that a call brings more of them. */
const longestPaidWaitMs = 500
/**
 * A job that one slot took together with others begins no later than this, by the measurements: another worker may be
 * idle. Jobs that have not begun after this time are put back.
 */
export const longestInARowMs = 250

/**
 * Measures how long jobs run and claims take, and computes how many jobs are worth claiming before there are slots for
 * them. A slot that becomes free while a claim is on its way then finds its next job at hand, and need not wait for a
 * disk.
 */
export class Prefetch {
  readonly #concurrency: number
  readonly #paidFor: number | undefined
  readonly #runMsOf = new Map<string, number>()
  #runMs: number | undefined
  #claimMs: number | undefined

  /** `paidFor`: the most jobs of one call, if each call is paid for. */
  constructor(concurrency: number, paidFor?: number) {
    this.#concurrency = concurrency
    this.#paidFor = paidFor
  }

  /** Notes how long a job of this queue ran. */
  ran(queue: string, ms: number): void {
    this.#runMs = averaged(this.#runMs, ms)
    this.#runMsOf.set(queue, averaged(this.#runMsOf.get(queue), ms))
  }

  claimed(ms: number): void {
    this.#claimMs = averaged(this.#claimMs, ms)
  }

  /**
   * The jobs worth holding in addition to those that run; 0 for queues that are slow or not measured yet. All other
   * queues get the same number, whatever their own pace: claims of unequal sizes would distort the shares that the
   * selector deals out.
   */
  ahead(queue: string): number {
    if (this.#paidFor !== undefined) {
      const jobs =
        (longestPaidWaitMs * this.#concurrency) / Math.max(this.#runMsOf.get(queue) ?? Number.POSITIVE_INFINITY, 0.001)
      return Math.floor(Math.min(claimsAhead * this.#paidFor, jobs))
    }
    if ((this.#runMsOf.get(queue) ?? slowMs) >= slowMs || this.#claimMs === undefined) return 0
    const jobsPerMs = this.#concurrency / Math.max(this.#runMs!, 0.001)
    return Math.floor(Math.min(claimsAhead * this.#claimMs, longestWaitMs) * jobsPerMs)
  }

  /** The jobs that a claim must have room for to be worth its price. */
  worthwhile(queue: string): number {
    return this.#paidFor === undefined ? 0 : Math.min(this.#paidFor, this.ahead(queue))
  }

  /** Whether the run time of the queue's jobs was measured. */
  hasRun(queue: string): boolean {
    return this.#runMsOf.has(queue)
  }

  /**
   * How many jobs of this queue a slot may take, to run one after the other, if the last must begin within `withinMs`.
   * No bound before the first measurement.
   */
  inARow(queue: string, withinMs = longestInARowMs): number {
    const runMs = this.#runMsOf.get(queue)
    return runMs === undefined ? Number.POSITIVE_INFINITY : 1 + Math.floor(withinMs / Math.max(runMs, 0.001))
  }
}

function averaged(average: number | undefined, value: number): number {
  return average === undefined ? value : average + newest * (value - average)
}

/** All jobs of a departure are to begin in this share of their spread. A job that begins after the spread is put back. */
const spreadShare = 1 / 4
/** However long the spread: meanwhile they have every slot, and jobs of other queues wait. */
const longestReadyMs = 20
/**
 * If a worker has few slots, at most this share of a limit waits in it, or of each group's limit: when it stops, these
 * permits are wasted.
 */
const permitShare = 1 / 10

/** The executions of one queue that wait for their instants, and the slots kept for them. */
export interface DepartingShare {
  readonly jobs: number
  readonly slots: number
}

/**
 * How many jobs of a throttled queue may wait for their instants at once (`Departures`). They may be more than the
 * worker has slots, if a slot can begin several within the spread.
 */
export class DepartureSizes {
  readonly #registry: Registry
  readonly #limited: LimitedQueues
  readonly #prefetch: Prefetch
  /** For each queue: as many may wait as departures have shown to begin in time. */
  readonly #proven = new Map<string, number>()
  /** For each queue whose limits hold for each group: the groups of its last departure. */
  readonly #groups = new Map<string, number>()

  constructor(registry: Registry, limited: LimitedQueues, prefetch: Prefetch) {
    this.#registry = registry
    this.#limited = limited
    this.#prefetch = prefetch
  }

  /** How many executions of this queue a claim may bring, by the free slots and by what already waits. */
  roomOf(queue: string, free: number, departing: DepartingShare): number {
    const inARow = this.inARow(queue)
    if (inARow === 1) return free
    // The free slots themselves need no proof.
    const together = Math.max(free + departing.slots, this.#mostOf(queue))
    return Math.min(free * inARow, together - departing.jobs)
  }

  /** The jobs of this queue that one slot begins in time, one after the other, by the measurements; at least 1. */
  inARow(queue: string): number {
    const registry = this.#registry
    const limited = this.#limited
    const spreadMs = limited.spreadOf(queue)
    const { ordered, renewLease } = registry.queue(queue)
    if (spreadMs === undefined || ordered || !renewLease || limited.isBounded(queue)) return 1
    // The slot of an isolated job is taken for longer than its handler runs.
    if (registry.batchSize(queue) > 1 || registry.isolates(queue)) return 1
    return this.#prefetch.hasRun(queue) ? this.#prefetch.inARow(queue, readyMs(spreadMs)) : 1
  }

  /** The most jobs of this queue that may wait, however many slots are free; 0 until departures have shown more. */
  #mostOf(queue: string): number {
    const whole = shareOf(this.#limited.wholeRulesOf(queue))
    const each = shareOf(this.#limited.groupRulesOf(queue))
    // A claim goes round the groups: the queue may have twice as many as the last one found.
    const ofGroups = Number.isFinite(each) ? 2 * (this.#groups.get(queue) ?? 0) * Math.max(1, each) : each
    const most = Math.min(whole, ofGroups)
    return Math.floor(Math.min(this.#proven.get(queue) ?? 0, most))
  }

  /**
   * Notes a departure of the queue: the number of its jobs, by how many ms the last of them began after its instant
   * (infinity: too late), and the number of their groups.
   */
  departed(queue: string, jobs: number, lagMs: number, groups: number): void {
    this.#groups.set(queue, groups)
    const proven = this.#proven.get(queue) ?? 0
    const withinMs = readyMs(this.#limited.spreadOf(queue) ?? Number.POSITIVE_INFINITY)
    // Twice as many take about twice as long.
    if (lagMs <= withinMs / 2) this.#proven.set(queue, Math.max(proven, jobs * 2))
    else if (lagMs > withinMs) this.#proven.set(queue, Math.min(proven, Math.floor(jobs / 2)))
  }
}

/** The permits that may wait by these rules; without any as many as there are. */
function shareOf(rules: readonly ThrottleRule[] = []): number {
  return Math.min(...rules.map(({ limit }) => limit)) * permitShare
}

function readyMs(spreadMs: number): number {
  return Math.min(spreadMs * spreadShare, longestReadyMs)
}
