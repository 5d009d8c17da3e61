/** What the limits of a queue of a SQLite store leave to claims: of its bounds on what runs, its holds, its shut lanes. */

import type { SqliteLanes } from './sqlite-lanes.js'
import { hasLanes, isBusy, isStopped, opensAt, ordinary, type QueueRow, type SqliteQueues } from './sqlite-queue.js'

export class SqliteLimits {
  readonly #queues: SqliteQueues
  readonly #lanes: SqliteLanes

  constructor(queues: SqliteQueues, lanes: SqliteLanes) {
    this.#queues = queues
    this.#lanes = lanes
  }

  /** How many more may run, over all shards. */
  room(queue: QueueRow): number {
    if (queue.max_running === null) return Number.POSITIVE_INFINITY
    const shards = queue.shards === 1 ? [queue] : this.#queues.shardsOf(queue.name)
    return queue.max_running - shards.reduce((sum, { running }) => sum + running, 0)
  }

  /** Whether it grants nothing before a claim has ended. */
  isFull(queue: QueueRow): boolean {
    return isBusy(queue) || this.room(queue) <= 0
  }

  /** Whether nothing is granted whatever is ready. */
  isClosed(queue: QueueRow, mono: number): boolean {
    return isStopped(queue) || this.isFull(queue) || opensAt(queue) > mono
  }

  /** Whether there are ready jobs that a claim in company may be given now. */
  isClaimable(queue: QueueRow, mono: number): boolean {
    if (ordinary(queue) === 0 || this.isClosed(queue, mono)) return false
    if (!hasLanes(queue)) return true
    const isOpen = this.#lanes.isOpen(queue, '')
    if (queue.open_lanes > (isOpen ? 1 : 0)) return true
    return this.#lanes.readyIn(queue, '') > 0 && (isOpen || this.#isGrouplessOpen(queue))
  }

  /** Whether jobs without a group may be given though their lane has no turn. */
  #isGrouplessOpen(queue: QueueRow): boolean {
    return this.#lanes.shutUntil(queue, '') === undefined && this.#lanes.roomIn(queue, '') > 0
  }

  /** Whether a claim alone would be given a suspect. */
  isOpenForSuspects(queue: QueueRow, mono: number): boolean {
    return queue.suspects > 0 && !this.isClosed(queue, mono)
  }

  /** Whether the end of a claim made room, and there is something for it. */
  isFreed(queue: QueueRow, mono: number): boolean {
    const { exclusive, max_running, max_per_group } = queue
    const isBounded = max_running !== null || max_per_group !== null
    if (exclusive !== 'shard' && !isBounded) return false
    // A shard in use keeps none of the others shut.
    const shards = isBounded ? this.#queues.shardsOf(queue.name) : [queue]
    return shards.some((shard) => this.isClaimable(shard, mono) || this.isOpenForSuspects(shard, mono))
  }

  /** When jobs that are ready and shut can be granted, as far as that comes by itself. */
  opensAt(queue: QueueRow, mono: number): number | undefined {
    if (queue.ready === 0) return undefined
    const whole = opensAt(queue)
    if (whole > mono) return whole
    return hasLanes(queue) ? this.#lanes.opensAt(queue) : undefined
  }

  /** The same for a job that has just become ready. -Infinity: now; undefined: not before a claim has ended. */
  readyAt(queue: QueueRow, { suspect, grp }: { suspect: number; grp: string | null }): number | undefined {
    if (this.isFull(queue)) return undefined
    const whole = opensAt(queue)
    if (suspect === 1 || !hasLanes(queue)) return whole
    const group = grp ?? ''
    if (this.#lanes.roomIn(queue, group) <= 0) return undefined
    return Math.max(whole, this.#lanes.shutUntil(queue, group) ?? Number.NEGATIVE_INFINITY)
  }
}
