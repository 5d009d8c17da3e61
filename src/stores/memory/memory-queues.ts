/** The queues of a memory store by name, each with its shards; plain ones have one. */

import { UnknownQueueError } from '../../core/errors.js'
import type { QueueLimits } from '../../core/queue/queue-limits.js'
import { refuseOtherThrottle, type Throttle } from '../../core/queue/throttle.js'
import type { QueueDepth } from '../contract/queue-depth.js'
import type { QueueBasis, QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import { boundsOf, changedLimits, limitsIn, saidLimits } from '../rules/limit-rules.js'
import { shardOf } from '../rules/payloads.js'
import { depthOfShards } from '../rules/queue-counts.js'
import {
  refuseGroupBound,
  refuseOtherForm,
  refusePlain,
  refuseSpreading,
  reshardUnderWay as underWay,
} from '../rules/queue-form.js'
import { ableSince, dueAt } from '../rules/sequence.js'
import type { MemoryJob } from './queue/memory-job.js'
import type { MemoryJoins } from './queue/memory-joins.js'
import { MemoryLimits, type ShardSettings } from './queue/memory-limits.js'
import { MemoryOrderedQueue } from './queue/memory-ordered-queue.js'
import { MemoryQueue } from './queue/memory-queue.js'
import { MemoryThrottle } from './queue/memory-throttle.js'

type MemoryShards = readonly MemoryQueue[]

interface MemoryEntry {
  settings: QueueBasis
  said: QueueLimits
  readonly limits: MemoryLimits<MemoryQueue>
  shards: MemoryShards
  /** The number of shards to which it is being resharded. */
  resharding?: number
}

export class MemoryQueues {
  readonly #entries = new Map<string, MemoryEntry>()
  readonly #throttles = new Map<string, MemoryThrottle>()
  readonly #joins: MemoryJoins

  constructor(joins: MemoryJoins) {
    this.#joins = joins
  }

  /** In the order of their creation. */
  all(): MemoryQueue[] {
    return [...this.#entries.values()].flatMap(({ shards }) => shards)
  }

  throttles(): MemoryThrottle[] {
    return [...this.#throttles.values()]
  }

  stored(): StoredQueue[] {
    return [...this.#entries.values()].map(storedIn)
  }

  shardsOf(name: string): MemoryShards {
    return this.#entry(name).shards
  }

  /** The shard that holds a job with this id. */
  holding(name: string, id: string): MemoryQueue {
    const shards = this.shardsOf(name)
    return shards[shardOf(id, shards.length)]!
  }

  /** The shards of an ordered queue. Throws `InvalidArgumentError` for a plain one. */
  ordered(name: string): readonly MemoryOrderedQueue[] {
    const { shards, settings } = this.#entry(name)
    refusePlain(name, settings.kind)
    return shards as readonly MemoryOrderedQueue[]
  }

  limitsOf(name: string): MemoryLimits<MemoryQueue> {
    return this.#entry(name).limits
  }

  /**
   * Throws if a queue is stored in another form, or with other limits or another throttle, even if the other is a queue
   * of this call. `follows`: only the form of a stored queue counts.
   */
  refuseOthers(queues: readonly QueueSettings[], follows: boolean): void {
    const scopes = new Map([...this.#throttles].map(([scope, { told }]) => [scope, told]))
    for (const settings of queues) {
      const { name, throttle } = settings
      const entry = this.#entries.get(name)
      if (entry !== undefined) {
        refuseOtherForm(name, entry.settings, settings)
        if (follows) continue
        saidLimits(name, entry.said, settings)
        refuseGroupBound(name, settings.maxRunning, entry.resharding ?? entry.shards.length)
      }
      if (throttle === undefined) continue
      refuseOtherThrottle(name, entry?.limits.throttle?.told ?? scopes.get(throttle.scope), throttle)
      scopes.set(throttle.scope, throttle)
    }
  }

  open(settings: QueueSettings, follows: boolean): StoredQueue {
    const { name } = settings
    const entry = this.#entries.get(name)
    if (entry === undefined) {
      const limits = new MemoryLimits<MemoryQueue>()
      const said = limitsIn(settings)
      this.#limit(limits, settings.throttle)
      const shards = newShards(
        basisOf(settings),
        said,
        settings.kind === 'ordered' ? (settings.shards ?? 1) : 1,
        this.#joins,
        limits,
      )
      const made = { settings: basisOf(settings), said, limits, shards }
      this.#entries.set(name, made)
      return storedIn(made)
    }
    if (follows) return storedIn(entry)
    this.#limit(entry.limits, settings.throttle)
    const merge = settings.merge ?? entry.settings.merge
    entry.settings = { ...basisOf(settings), ...(merge === undefined ? {} : { merge }) }
    bound(entry, saidLimits(name, entry.said, settings))
    return storedIn(entry)
  }

  /** See `Records.setLimits`. */
  setLimits(name: string, change: QueueLimits): QueueLimits {
    const entry = this.#entry(name)
    refuseGroupBound(name, change.maxRunning, entry.resharding ?? entry.shards.length)
    bound(entry, changedLimits(entry.said, change))
    for (const shard of entry.shards) shard.relimit()
    return entry.said
  }

  /**
   * Puts all jobs of an ordered queue into `count` shards, which continue the old ones; done at once if no job runs.
   * Returns the number of moved jobs; undefined if some still run, and then nothing is granted any more.
   */
  reshard(name: string, count: number, now: number): number | undefined {
    const old = this.ordered(name)
    const entry = this.#entry(name)
    if (entry.resharding !== undefined && entry.resharding !== count) throw underWay(name, entry.resharding, count)
    if (entry.resharding === undefined && old.length === count) return 0
    refuseSpreading(name, entry.limits.maxRunning, count)
    entry.resharding = count
    for (const shard of old) shard.isHeld = true
    if (old.some((shard) => shard.running.size > 0)) return undefined
    const shards = newShards(entry.settings, entry.said, count, this.#joins, entry.limits) as MemoryOrderedQueue[]
    for (const shard of shards) {
      shard.lastStamp = Math.max(...old.map((one) => one.lastStamp))
      shard.lastFence = Math.max(...old.map((one) => one.lastFence))
      shard.lastScore = Math.max(...old.map((one) => one.lastScore))
      shard.paused = old[0]!.paused
      shard.draining = old[0]!.draining
      shard.heldUntil = old[0]!.heldUntil
      for (const [group, until] of old[0]!.lanes.held) shard.lanes.hold(group, until)
    }
    const jobs = old.flatMap((shard) => shard.kept().filter((job) => !shard.isHidden(job, now)))
    for (const job of jobs) shards[shardOf(job.spec.id, count)]!.adopt(job, now)
    for (const one of old) {
      shards[0]!.processed += one.processed
      shards[0]!.failed += one.failed
      shards[0]!.crashed += one.crashed
    }
    entry.shards = shards
    delete entry.resharding
    return jobs.length
  }

  #limit(limits: MemoryLimits, throttle: Throttle | undefined): void {
    if (throttle === undefined || limits.throttle !== undefined) return
    const known = this.#throttles.get(throttle.scope) ?? new MemoryThrottle(throttle)
    this.#throttles.set(throttle.scope, known)
    known.limits.add(limits)
    limits.throttle = known
  }

  #entry(name: string): MemoryEntry {
    const entry = this.#entries.get(name)
    if (entry === undefined) throw new UnknownQueueError(name, [...this.#entries.keys()])
    return entry
  }
}

function basisOf(settings: QueueSettings): QueueBasis {
  const { maxRunning: _, maxPending: __, maxCrashes: ___, resultsCount: ____, dead: _____, ...basis } = settings
  return basis
}

/** From now on these limits hold. */
function bound(entry: MemoryEntry, said: QueueLimits): void {
  entry.said = said
  entry.limits.maxRunning = boundsOf(said).maxRunning
  for (const shard of entry.shards) shard.settings = shareOf(entry.settings, said, entry.shards.length)
}

function storedIn({ settings, said, shards, resharding, limits: { throttle, maxRunning } }: MemoryEntry): StoredQueue {
  const { name, kind, order, exclusive = 'id' } = settings
  const { paused, draining } = shards[0]!
  return {
    ...{ name, kind, order, exclusive, shards: shards.length, paused, draining, limits: said },
    ...(throttle === undefined ? {} : { throttle: throttle.told }),
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(resharding === undefined ? {} : { resharding }),
  }
}

/** From now on the limits count these shards. */
function newShards(
  settings: QueueBasis,
  said: QueueLimits,
  count: number,
  joins: MemoryJoins,
  limits: MemoryLimits<MemoryQueue>,
): MemoryShards {
  const own = shareOf(settings, said, count)
  limits.maxRunning = own.maxRunning
  limits.shards =
    settings.kind === 'plain'
      ? [new MemoryQueue(own, joins, limits)]
      : Array.from({ length: count }, (_, shard) => new MemoryOrderedQueue(own, shard, joins, limits))
  return limits.shards
}

/** Bounds are divided by the number of shards, rounded up. */
function shareOf(settings: QueueBasis, said: QueueLimits, shards: number): ShardSettings {
  const share = (bound: number) => Math.ceil(bound / shards)
  const bounds = boundsOf(said)
  const { maxPending, resultsCount, dead } = bounds
  return {
    ...settings,
    ...bounds,
    ...(maxPending === undefined ? {} : { maxPending: share(maxPending) }),
    ...(resultsCount === undefined ? {} : { resultsCount: share(resultsCount) }),
    dead: dead.count === undefined ? dead : { ...dead, count: share(dead.count) },
  }
}

/** The depth of a queue: the sum of its shards, of which most queues have one. */
export function depth(shards: readonly MemoryQueue[], now: number): QueueDepth {
  const depths = shards.map((shard) => shardDepth(shard, now))
  return depthOfShards(depths, [], shards[0] instanceof MemoryOrderedQueue)
}

function shardDepth(queue: MemoryQueue, now: number): QueueDepth {
  const { ready, suspects, scheduled } = queue
  const retries = [...ready, ...suspects, ...scheduled].filter((job) => job.attempt > 1).length
  const due = scheduled.first === undefined ? 0 : now - dueAt(scheduled.first.stamp)
  return {
    queue: queue.settings.name,
    ready: ready.size + suspects.size,
    payloads: queue.pending,
    suspects: suspects.size,
    scheduled: scheduled.size,
    waiting: queue.joining.size,
    running: queue.running.size,
    dead: queue.dead.size,
    fresh: queue.waiting - retries,
    retries,
    lagMs: Math.max(0, due, oldestAgeMs([...ready, ...suspects], now) ?? 0),
    processed: queue.processed,
    failed: queue.failed,
    crashed: queue.crashed,
    expired: queue.expired,
    ...(queue.settings.kind === 'plain' && queue.lostAt > 0 ? { lostAt: queue.lostAt } : {}),
    paused: queue.paused,
    draining: queue.draining,
  }
}

/** Ms since the first of these jobs could begin, 0 if none can yet; undefined if there are no jobs. */
export function oldestAgeMs(jobs: Iterable<MemoryJob>, now: number): number | undefined {
  let oldest: number | undefined
  for (const { stamp, waitedUntil } of jobs) {
    const since = ableSince(stamp, waitedUntil)
    oldest = Math.min(oldest ?? since, since)
  }
  return oldest === undefined ? undefined : Math.max(0, now - oldest)
}
