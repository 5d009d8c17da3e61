/** The fair share of one claim from a queue of the memory store: the ready jobs that its limits let it have. */

import { upkeepLimit } from '../../rules/bounds.js'
import { type ClaimLoad, isLoaded } from '../../rules/claim-weight.js'
import { mostVisits, shareOf } from '../../rules/fair-share.js'
import type { MemoryJob } from '../queue/memory-job.js'
import { groupOf } from '../queue/memory-limits.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

export class MemoryFairShare {
  readonly #queue: MemoryQueue
  readonly #now: number
  readonly #run: string
  readonly #takeOne: (job: MemoryJob) => number
  readonly #load: ClaimLoad
  readonly #taken: MemoryJob[] = []

  /** `takeOne`: makes the job a running one, and says what it weighs. `load`: of the whole claim. */
  constructor(
    queue: MemoryQueue,
    at: { readonly now: number; readonly run: string },
    load: ClaimLoad,
    takeOne: (job: MemoryJob) => number,
  ) {
    this.#queue = queue
    this.#now = at.now
    this.#run = at.run
    this.#load = load
    this.#takeOne = takeOne
  }

  /** At most so many; of the queue in its order, or lane by lane: with none, the lanes are opened for others. Alone one, suspects first: nobody else is ever given them. */
  take(limit: number, alone: boolean): readonly MemoryJob[] {
    const queue = this.#queue
    const { limits, lanes, suspects, ready } = queue
    if (limit <= 0) {
      lanes.openDue(this.#now, upkeepLimit)
      return []
    }
    const suspect = alone ? suspects.first : undefined
    const throttle = limits.throttle?.by === 'queue' ? limits.throttle : undefined
    if (suspect === undefined && ready.size === 0) {
      if (throttle !== undefined && !this.#hasMore('')) throttle.rests('', this.#now)
      return []
    }
    const permit = this.#permits('queue', '')
    const most = Math.min(alone ? 1 : limit, limits.room, permit)
    if (most > 0) {
      if (suspect !== undefined && this.#mayTake(groupOf(suspect))) this.#takeSuspect(suspect)
      else if (queue.hasLanes) this.#goRound(most)
      else this.#takeSome(ready.head(most))
    }
    if (throttle !== undefined) this.#started('queue', '', this.#taken.length)
    return this.#taken
  }

  #mayTake(group: string): boolean {
    const { limits, lanes } = this.#queue
    return limits.roomIn(group) > 0 && lanes.heldUntil(group) <= this.#now && this.#permits('group', group) > 0
  }

  #takeSuspect(suspect: MemoryJob): void {
    this.#takeJob(suspect)
    this.#started('group', groupOf(suspect), 1)
  }

  /** Lane by lane, as far as their own limits go. */
  #goRound(most: number): void {
    const queue = this.#queue
    const { lanes, limits } = queue
    lanes.openDue(this.#now, upkeepLimit)
    if (queue.lane('').length > 0 && limits.roomIn('') > 0 && !lanes.has('')) lanes.open('')
    // Lanes that have not had their turn in this round.
    let unvisited = 0
    for (let visits = 0; visits < mostVisits && this.#taken.length < most && lanes.turns.length > 0; visits += 1) {
      if (isLoaded(this.#load)) break
      if (unvisited === 0) unvisited = lanes.turns.length
      const share = shareOf(most - this.#taken.length, unvisited)
      unvisited -= 1
      const group = lanes.turns[0]!
      lanes.leave(group)
      this.#visit(group, share)
    }
  }

  #visit(group: string, share: number): void {
    const queue = this.#queue
    const { lanes, limits } = queue
    const lane = queue.lane(group)
    // Only jobs without a group may have gone without leaving the turns.
    if (lane.length === 0 || limits.roomIn(group) <= 0) return
    const heldUntil = lanes.heldUntil(group)
    if (heldUntil > this.#now) {
      lanes.close(group, heldUntil)
      return
    }
    const count = Math.min(share, lane.length, limits.roomIn(group), this.#permits('group', group))
    const taken = this.#takeSome(lane.slice(0, Math.max(0, count)))
    const isOpen = lane.length > taken && limits.roomIn(group) > 0
    if (isOpen) lanes.open(group)
    this.#started('group', group, taken)
  }

  /** As many of them as the claim can carry. How many that were. */
  #takeSome(jobs: readonly MemoryJob[]): number {
    const before = this.#taken.length
    for (const job of jobs) {
      if (isLoaded(this.#load)) break
      this.#takeJob(job)
    }
    return this.#taken.length - before
  }

  #takeJob(job: MemoryJob): void {
    this.#load.bytes += this.#takeOne(job)
    this.#taken.push(job)
  }

  /** How many the throttle permits, where it counts by that; what it denies is shut. */
  #permits(by: 'queue' | 'group', group: string): number {
    const { throttle } = this.#queue.limits
    if (throttle?.by !== by) return Number.POSITIVE_INFINITY
    return throttle.permits(group, this.#now, this.#run).permits
  }

  /** So many have been taken, perhaps none. What is left and may not start now is shut. */
  #started(by: 'queue' | 'group', group: string, count: number): void {
    const queue = this.#queue
    const { throttle } = queue.limits
    if (throttle?.by !== by) return
    if (count > 0) throttle.started(group, count, this.#hasMore(group), this.#now)
    const { permits, forMs } = throttle.permits(group, this.#now, this.#run)
    if (permits > 0) return
    const until = this.#now + forMs
    if (by === 'group') {
      if (queue.lane(group).length > 0 && queue.limits.roomIn(group) > 0) queue.lanes.close(group, until)
    } else if (queue.ready.size > 0 || queue.suspects.size > 0) queue.shutUntil = until
  }

  /** Whether there is anything in the scope that could be started; of the group, where it counts by group. */
  #hasMore(group: string): boolean {
    const { throttle } = this.#queue.limits
    return throttle!.sharing.some(
      (queue) => !queue.isStopped && (throttle!.by === 'group' ? queue.lane(group).length > 0 : queue.ready.size > 0),
    )
  }
}
