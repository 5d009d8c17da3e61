/**
 * The limits of a queue in a SQL store: the jobs that its bounds on running jobs, its holds and its shut lanes leave to
 * claims. Pure.
 */

import type { HeldLanes } from './held-lanes.js'
import { type CountedQueue, hasLanes, isBusy, isStopped, opensAt, ordinary } from './queue-row.js'

/** Finds the shards of an ordered queue, or a plain queue alone. */
interface QueueShelf {
  shardsOf(name: string): readonly CountedQueue[]
}

export class ShardLimits {
  readonly #queues: QueueShelf
  readonly #lanes: HeldLanes

  constructor(queues: QueueShelf, lanes: HeldLanes) {
    this.#queues = queues
    this.#lanes = lanes
  }

  /** How many more jobs may run, over all shards. */
  room(queue: CountedQueue): number {
    if (queue.max_running === null) return Number.POSITIVE_INFINITY
    const shards = queue.shards === 1 ? [queue] : this.#queues.shardsOf(queue.name)
    return queue.max_running - shards.reduce((sum, { running }) => sum + running, 0)
  }

  /** Whether the queue grants nothing before a claim has ended. */
  isFull(queue: CountedQueue): boolean {
    return isBusy(queue) || this.room(queue) <= 0
  }

  /** Whether the queue grants nothing, whatever is ready. */
  isClosed(queue: CountedQueue, mono: number): boolean {
    return isStopped(queue) || this.isFull(queue) || opensAt(queue) > mono
  }

  /** Whether there are ready jobs that an ordinary claim would receive now. */
  isClaimable(queue: CountedQueue, mono: number): boolean {
    if (ordinary(queue) === 0 || this.isClosed(queue, mono)) return false
    if (!hasLanes(queue)) return true
    const isOpen = this.#lanes.isOpen(queue, '')
    if (queue.open_lanes > (isOpen ? 1 : 0)) return true
    return this.#lanes.readyIn(queue, '') > 0 && (isOpen || this.#isGrouplessOpen(queue))
  }

  /** Whether jobs without a group may be granted although their lane has no turn. */
  #isGrouplessOpen(queue: CountedQueue): boolean {
    return this.#lanes.shutUntil(queue, '') === undefined && this.#lanes.roomIn(queue, '') > 0
  }

  /** Whether a claim made alone would receive a suspect, if its group lets it start. */
  isOpenForSuspects(queue: CountedQueue, mono: number): boolean {
    return queue.suspects > 0 && !this.isClosed(queue, mono)
  }

  /** Whether the end of a claim made room for a job that is ready. */
  isFreed(queue: CountedQueue, mono: number): boolean {
    const { exclusive, max_running, max_per_group } = queue
    const isBounded = max_running !== null || max_per_group !== null
    if (exclusive !== 'shard' && !isBounded) return false
    // Without a bound, a shard that runs a claim keeps no other shard shut.
    const shards = isBounded ? this.#queues.shardsOf(queue.name) : [queue]
    return shards.some((shard) => this.isClaimable(shard, mono) || this.isOpenForSuspects(shard, mono))
  }

  /** Whether the lane of a group opens by itself. */
  hasShutLane(queue: CountedQueue): boolean {
    return this.#lanes.opensAt(queue) !== undefined
  }

  /** When ready jobs that are shut can be granted; undefined if that does not happen by itself. */
  opensAt(queue: CountedQueue, mono: number): number | undefined {
    if (queue.ready === 0) return undefined
    const whole = opensAt(queue)
    if (whole > mono) return whole
    return hasLanes(queue) ? this.#lanes.opensAt(queue) : undefined
  }

  /** When a job that has just become ready can be granted. -Infinity: now; undefined: not before a claim has ended. */
  readyAt(queue: CountedQueue, { suspect, grp }: { suspect: number; grp: string | null }): number | undefined {
    if (this.isFull(queue)) return undefined
    const whole = opensAt(queue)
    if (suspect === 1 || !hasLanes(queue)) return whole
    const group = grp ?? ''
    if (this.#lanes.roomIn(queue, group) <= 0) return undefined
    return Math.max(whole, this.#lanes.shutUntil(queue, group) ?? Number.NEGATIVE_INFINITY)
  }
}
