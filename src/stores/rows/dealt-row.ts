/**
 * A queue of a SQL store as the fair share of one claim sees it: its row, its lanes, its limits and its throttle. All that
 * the share decides is written into these rows; the jobs are taken by the claim. Pure.
 */

import type { ClaimFrom } from '../contract/claim.js'
import { upkeepLimit } from '../rules/bounds.js'
import { type DealtQueue, dealtThrottles, type ReadyPool, turnStep } from '../rules/fair-share.js'
import type { HeldLanes } from './held-lanes.js'
import { running } from './job-row.js'
import { type CountedQueue, hasLanes, isStopped, ordinary } from './queue-row.js'
import type { Moment, ScopeThrottle } from './scope-throttle.js'
import type { ShardLimits } from './shard-limits.js'

/** The parts that the claim itself supplies. */
export type Hand = Pick<DealtQueue, 'take' | 'isFull' | 'suspectGroups'>

/** The most lanes that are looked up at once. */
const mostTurns = 64

export class DealtRow implements DealtQueue {
  readonly whole: DealtQueue['whole']
  readonly perGroup: DealtQueue['perGroup']
  readonly weights: DealtQueue['weights']
  readonly #queue: CountedQueue
  readonly #lanes: HeldLanes
  readonly #limits: ShardLimits
  readonly #mono: number
  readonly #hand: Hand
  /** The next lanes, as far as they were looked up, in reverse order. */
  #turns: string[] = []
  /** The lane that was taken last, and the number of its turn. */
  #visited = { group: '', turn: 0 }

  constructor(
    of: {
      readonly queue: CountedQueue
      readonly lanes: HeldLanes
      readonly limits: ShardLimits
      readonly throttle: ScopeThrottle | undefined
      /** The queues and shards that the throttle limits. */
      readonly sharing: () => readonly CountedQueue[]
      readonly moment: Moment
      /** How late the jobs may begin, and the turns of groups. */
      readonly from: Pick<ClaimFrom, 'lateMs' | 'weights'>
    },
    hand: Hand,
  ) {
    const { queue, lanes, limits, throttle, sharing, moment } = of
    const { lateMs = 0, weights } = of.from
    this.weights = weights
    this.#queue = queue
    this.#lanes = lanes
    this.#limits = limits
    this.#mono = moment.mono
    this.#hand = hand
    if (throttle === undefined) return
    const isReadyIn = (one: CountedQueue, group?: string) =>
      (group === undefined ? ordinary(one) : lanes.readyIn(one, group)) > 0
    const { whole, perGroup } = dealtThrottles(
      throttle.settings,
      {
        permits: (subject) => throttle.permits(subject, moment),
        started: (subject, count, hasMore) => throttle.started(subject, count, hasMore, moment, lateMs),
        rests: (subject) => throttle.rests(subject, moment),
      },
      (group) => sharing().some((one) => !isStopped(one) && isReadyIn(one, group)),
    )
    this.whole = whole
    this.perGroup = perGroup
  }

  get ordinary(): number {
    return ordinary(this.#queue)
  }

  get room(): number {
    return this.#limits.room(this.#queue)
  }

  get hasLanes(): boolean {
    return hasLanes(this.#queue)
  }

  get suspects(): number {
    return this.#queue.suspects
  }

  suspectGroups(): readonly string[] {
    return this.#queue.laned ? this.#hand.suspectGroups() : ['']
  }

  openDue(): void {
    this.#lanes.openDue(this.#queue, this.#mono, upkeepLimit)
  }

  openFree(): void {
    const isWaiting = this.readyIn('') > 0 && this.roomIn('') > 0
    if (isWaiting && !this.#lanes.isOpen(this.#queue, '') && this.#lanes.shutUntil(this.#queue, '') === undefined)
      this.#lanes.open(this.#queue, '')
  }

  openLanes(): number {
    return this.#queue.open_lanes
  }

  nextLane(left: number): string | undefined {
    // A lane that was visited comes last, so those that were looked up stay the first.
    if (this.#turns.length === 0) this.#turns = this.#lanes.turns(this.#queue, Math.min(mostTurns, left)).reverse()
    const group = this.#turns.pop()
    // A wrong count must not stop a fleet.
    if (group === undefined) this.#queue.open_lanes = 0
    else {
      this.#visited = { group, turn: this.#lanes.turnOf(this.#queue, group) ?? 0 }
      this.#lanes.leave(this.#queue, group)
    }
    return group
  }

  turnsHad(): number {
    return this.#visited.turn % turnStep
  }

  turnsHadBy(group: string): number | undefined {
    const turn = this.#lanes.turnOf(this.#queue, group)
    return turn === undefined ? undefined : turn % turnStep
  }

  keepTurn(): void {
    const { group, turn } = this.#visited
    this.#lanes.giveTurn(this.#queue, group, turn + 1)
    // It comes before those that were looked up.
    this.#turns = []
  }

  readyIn(group: string): number {
    return this.#lanes.readyIn(this.#queue, group)
  }

  roomIn(group: string): number {
    return this.#lanes.roomIn(this.#queue, group)
  }

  heldForMs(group: string): number {
    return this.#lanes.heldUntil(this.#queue, group) - this.#mono
  }

  visited(group: string, isOpen: boolean): void {
    if (isOpen) this.#lanes.open(this.#queue, group)
    else this.#lanes.leave(this.#queue, group)
  }

  close(group: string, forMs: number): void {
    this.#lanes.close(this.#queue, group, this.#mono + forMs)
  }

  shut(forMs: number): void {
    this.#queue.shut_until = this.#mono + forMs
  }

  take(pool: ReadyPool, most: number): number {
    return this.#hand.take(pool, most)
  }

  isFull(): boolean {
    return this.#hand.isFull()
  }
}

/** Counts ready jobs of a pool as running: `taken` jobs, of which `retries` had failed. `group`: theirs, or `''`. */
export function countTaken(
  queue: CountedQueue,
  lanes: HeldLanes,
  pool: ReadyPool,
  taken: number,
  retries: number,
  group: string,
): void {
  queue.ready -= taken
  queue.running += taken
  queue.retries -= retries
  if (pool === 'free' || 'group' in pool) {
    lanes.take(queue, group, taken)
    return
  }
  queue.suspects -= taken
  if (group === '') return
  lanes.count(queue, { state: running, suspect: 1, grp: group }, 1)
  lanes.refresh(queue, group)
}
