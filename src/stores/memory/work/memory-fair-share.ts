/** A queue of the memory store, as the fair share of one claim sees it. */

import type { ClaimFrom } from '../../contract/claim.js'
import { upkeepLimit } from '../../rules/bounds.js'
import { type ClaimLoad, isLoaded } from '../../rules/claim-weight.js'
import { type DealtQueue, dealtThrottles, mostSuspects, type ReadyPool } from '../../rules/fair-share.js'
import type { MemoryJob } from '../queue/memory-job.js'
import { groupOf } from '../queue/memory-limits.js'
import type { MemoryQueue } from '../queue/memory-queue.js'
import type { LimitedShard } from '../queue/memory-throttle.js'

export class MemoryFairShare implements DealtQueue {
  readonly taken: MemoryJob[] = []
  readonly whole: DealtQueue['whole']
  readonly perGroup: DealtQueue['perGroup']
  readonly weights: DealtQueue['weights']
  readonly #queue: MemoryQueue
  readonly #now: number
  readonly #takeOne: (job: MemoryJob) => number
  readonly #load: ClaimLoad
  /** The lane that was taken last, and how many turns of its round it had had before. */
  #visited = { group: '', had: 0 }

  /**
   * `lateMs`: how late the jobs may begin. `load`: of the whole claim. `takeOne`: makes the job a running one, and
   * returns its weight.
   */
  constructor(
    queue: MemoryQueue,
    { now, run }: { readonly now: number; readonly run: string },
    { lateMs = 0, weights }: Pick<ClaimFrom, 'lateMs' | 'weights'>,
    load: ClaimLoad,
    takeOne: (job: MemoryJob) => number,
  ) {
    this.weights = weights
    this.#queue = queue
    this.#now = now
    this.#load = load
    this.#takeOne = takeOne
    const { throttle } = queue.limits
    if (throttle === undefined) return
    const isReadyIn = (one: LimitedShard, group?: string) =>
      (group === undefined ? one.ready.size : one.lane(group).length) > 0
    const { whole, perGroup } = dealtThrottles(
      throttle.told,
      {
        permits: (subject) => throttle.permits(subject, now, run),
        started: (subject, count, hasMore) => throttle.started(subject, count, hasMore, now, lateMs),
        rests: (subject) => throttle.rests(subject, now),
      },
      (group) => throttle.sharing.some((one) => !one.isStopped && isReadyIn(one, group)),
    )
    this.whole = whole
    this.perGroup = perGroup
  }

  get ordinary(): number {
    return this.#queue.ready.size
  }

  get room(): number {
    return this.#queue.limits.room
  }

  get hasLanes(): boolean {
    return this.#queue.hasLanes
  }

  get suspects(): number {
    return this.#queue.suspects.size
  }

  suspectGroups(): string[] {
    return [...new Set(this.#queue.suspects.head(mostSuspects).map(groupOf))]
  }

  openDue(): void {
    this.#queue.lanes.openDue(this.#now, upkeepLimit)
  }

  openFree(): void {
    const { lanes } = this.#queue
    if (this.readyIn('') > 0 && this.roomIn('') > 0 && !lanes.has('')) lanes.open('')
  }

  openLanes(): number {
    return this.#queue.lanes.turns.length
  }

  nextLane(): string | undefined {
    const { lanes } = this.#queue
    const [group] = lanes.turns
    if (group === undefined) return undefined
    this.#visited = { group, had: this.turnsHadBy(group)! }
    lanes.leave(group)
    return group
  }

  turnsHad(): number {
    return this.#visited.had
  }

  turnsHadBy(group: string): number | undefined {
    const { lanes } = this.#queue
    return lanes.turns.includes(group) ? (lanes.had.get(group) ?? 0) : undefined
  }

  keepTurn(): void {
    const { group, had } = this.#visited
    this.#queue.lanes.keepTurn(group, had + 1)
  }

  readyIn(group: string): number {
    return this.#queue.lane(group).length
  }

  roomIn(group: string): number {
    return this.#queue.limits.roomIn(group)
  }

  heldForMs(group: string): number {
    return this.#queue.lanes.heldUntil(group) - this.#now
  }

  visited(group: string, isOpen: boolean): void {
    if (isOpen) this.#queue.lanes.open(group)
  }

  close(group: string, forMs: number): void {
    this.#queue.lanes.close(group, this.#now + forMs)
  }

  shut(forMs: number): void {
    this.#queue.shutUntil = this.#now + forMs
  }

  take(pool: ReadyPool, most: number): number {
    const before = this.taken.length
    for (const job of this.#first(pool, most)) {
      if (this.isFull()) break
      this.#load.bytes += this.#takeOne(job)
      this.taken.push(job)
    }
    return this.taken.length - before
  }

  isFull(): boolean {
    return isLoaded(this.#load)
  }

  #first(pool: ReadyPool, most: number): readonly MemoryJob[] {
    const { suspects, ready } = this.#queue
    if (typeof pool === 'object' && 'suspectsOf' in pool)
      return suspects
        .head(mostSuspects)
        .filter((job) => groupOf(job) === pool.suspectsOf)
        .slice(0, most)
    if (pool === 'free' && !this.hasLanes) return ready.head(most)
    return this.#queue.lane(pool === 'free' ? '' : pool.group).slice(0, most)
  }
}
