/** A queue of a SQLite store, as the fair share of one claim sees it. */

import { groupRules } from '../../../core/queue/throttle.js'
import type { Moment } from '../../rows/scope-throttle.js'
import { upkeepLimit } from '../../rules/bounds.js'
import type { DealtQueue, ReadyPool } from '../../rules/fair-share.js'
import { subjectOf } from '../../rules/throttle/throttle-subjects.js'
import { hasLanes, isStopped, ordinary, type QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/**
 * The parts that the claim itself supplies. `firstSuspect`: the group of the suspect that a claim made alone would
 * receive.
 */
export type Hand = Pick<DealtQueue, 'take' | 'isFull'> & { firstSuspect(): string }

/** The most lanes that are looked up at once. */
const mostTurns = 64

export class SqliteFairShare implements DealtQueue {
  readonly whole: DealtQueue['whole']
  readonly perGroup: DealtQueue['perGroup']
  readonly #transaction: SqliteTransaction
  readonly #queue: QueueRow
  readonly #mono: number
  readonly #hand: Hand
  /** The next lanes, as far as they were looked up, in reverse order. */
  #turns: string[] = []

  /** `lateMs`: how late the jobs may begin. */
  constructor(transaction: SqliteTransaction, queue: QueueRow, moment: Moment, lateMs: number, hand: Hand) {
    this.#transaction = transaction
    this.#queue = queue
    this.#mono = moment.mono
    this.#hand = hand
    const throttle = transaction.throttles.of(queue)
    const counting = (subjectOf: (group: string) => string, hasMore: (group: string) => boolean) => ({
      hasMore,
      permits: (group: string) => throttle!.permits(subjectOf(group), moment),
      started: (group: string, count: number) =>
        throttle!.started(subjectOf(group), count, hasMore(group), moment, lateMs),
      rests: () => throttle!.rests(subjectOf(''), moment),
    })
    const some = (has: (one: QueueRow) => boolean) =>
      transaction.throttles.sharing(throttle!.row.scope).some((one) => !isStopped(one) && has(one))
    if (throttle?.by === 'queue')
      this.whole = counting(
        () => '',
        () => some((one) => ordinary(one) > 0),
      )
    if (throttle !== undefined && groupRules(throttle.told) !== undefined)
      this.perGroup = counting(
        (group) => subjectOf(throttle.told, group),
        (group) => some((one) => transaction.lanes.readyIn(one, group) > 0),
      )
  }

  get ordinary(): number {
    return ordinary(this.#queue)
  }

  get room(): number {
    return this.#transaction.limits.room(this.#queue)
  }

  get hasLanes(): boolean {
    return hasLanes(this.#queue)
  }

  firstSuspect(): string | undefined {
    const { suspects, laned } = this.#queue
    if (suspects === 0) return undefined
    return laned ? this.#hand.firstSuspect() : ''
  }

  openDue(): void {
    this.#transaction.lanes.openDue(this.#queue, this.#mono, upkeepLimit)
  }

  openFree(): void {
    const { lanes } = this.#transaction
    const isWaiting = this.readyIn('') > 0 && this.roomIn('') > 0
    if (isWaiting && !lanes.isOpen(this.#queue, '') && lanes.shutUntil(this.#queue, '') === undefined)
      lanes.open(this.#queue, '')
  }

  openLanes(): number {
    return this.#queue.open_lanes
  }

  nextLane(left: number): string | undefined {
    const { lanes } = this.#transaction
    // A lane that was visited comes last, so those that were looked up stay the first.
    if (this.#turns.length === 0) this.#turns = lanes.turns(this.#queue, Math.min(mostTurns, left)).reverse()
    const group = this.#turns.pop()
    // A wrong count must not stop a fleet.
    if (group === undefined) this.#queue.open_lanes = 0
    else lanes.leave(this.#queue, group)
    return group
  }

  readyIn(group: string): number {
    return this.#transaction.lanes.readyIn(this.#queue, group)
  }

  roomIn(group: string): number {
    return this.#transaction.lanes.roomIn(this.#queue, group)
  }

  heldForMs(group: string): number {
    return this.#transaction.lanes.heldUntil(this.#queue, group) - this.#mono
  }

  visited(group: string, isOpen: boolean): void {
    const { lanes } = this.#transaction
    if (isOpen) lanes.open(this.#queue, group)
    else lanes.leave(this.#queue, group)
  }

  close(group: string, forMs: number): void {
    this.#transaction.lanes.close(this.#queue, group, this.#mono + forMs)
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
