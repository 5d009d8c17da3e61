/** A queue of a SQLite store, as the fair share of one claim sees it. */

import { upkeepLimit } from '../../rules/bounds.js'
import type { DealtQueue, ReadyPool } from '../../rules/fair-share.js'
import { hasLanes, isStopped, ordinary, type QueueRow } from '../rows/sqlite-queue.js'
import type { Moment, SqliteThrottle } from '../rows/sqlite-throttle.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/**
 * The parts that the claim itself supplies. `firstSuspect`: the group of the suspect that a claim made alone would
 * receive.
 */
export type Hand = Pick<DealtQueue, 'take' | 'isFull'> & { firstSuspect(): string }

/** The most lanes that are looked up at once. */
const mostTurns = 64

export class SqliteFairShare implements DealtQueue {
  readonly throttle: DealtQueue['throttle']
  readonly #session: SqliteTransaction
  readonly #queue: QueueRow
  readonly #mono: number
  readonly #hand: Hand
  /** The next lanes, as far as they were looked up, in reverse order. */
  #turns: string[] = []

  /** `lateMs`: how late the jobs may begin. */
  constructor(session: SqliteTransaction, queue: QueueRow, moment: Moment, lateMs: number, hand: Hand) {
    this.#session = session
    this.#queue = queue
    this.#mono = moment.mono
    this.#hand = hand
    const throttle = session.throttles.of(queue)
    this.throttle = throttle && {
      by: throttle.by,
      hasMore: (subject) => this.#hasMore(throttle, subject),
      permits: (subject) => throttle.permits(subject, moment),
      started: (subject, count) => throttle.started(subject, count, this.#hasMore(throttle, subject), moment, lateMs),
      rests: () => throttle.rests('', moment),
    }
  }

  get ordinary(): number {
    return ordinary(this.#queue)
  }

  get room(): number {
    return this.#session.limits.room(this.#queue)
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
    this.#session.lanes.openDue(this.#queue, this.#mono, upkeepLimit)
  }

  openFree(): void {
    const { lanes } = this.#session
    const isWaiting = this.readyIn('') > 0 && this.roomIn('') > 0
    if (isWaiting && !lanes.isOpen(this.#queue, '') && lanes.shutUntil(this.#queue, '') === undefined)
      lanes.open(this.#queue, '')
  }

  openLanes(): number {
    return this.#queue.open_lanes
  }

  nextLane(left: number): string | undefined {
    const { lanes } = this.#session
    // A lane that was visited comes last, so those that were looked up stay the first.
    if (this.#turns.length === 0) this.#turns = lanes.turns(this.#queue, Math.min(mostTurns, left)).reverse()
    const group = this.#turns.pop()
    // A wrong count must not stop a fleet.
    if (group === undefined) this.#queue.open_lanes = 0
    else lanes.leave(this.#queue, group)
    return group
  }

  readyIn(group: string): number {
    return this.#session.lanes.readyIn(this.#queue, group)
  }

  roomIn(group: string): number {
    return this.#session.lanes.roomIn(this.#queue, group)
  }

  heldForMs(group: string): number {
    return this.#session.lanes.heldUntil(this.#queue, group) - this.#mono
  }

  visited(group: string, isOpen: boolean): void {
    const { lanes } = this.#session
    if (isOpen) lanes.open(this.#queue, group)
    else lanes.leave(this.#queue, group)
  }

  close(group: string, forMs: number): void {
    this.#session.lanes.close(this.#queue, group, this.#mono + forMs)
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

  #hasMore(throttle: SqliteThrottle, group: string): boolean {
    const { throttles, lanes } = this.#session
    return throttles
      .sharing(throttle.row.scope)
      .some(
        (queue) =>
          !isStopped(queue) && (throttle.by === 'group' ? lanes.readyIn(queue, group) > 0 : ordinary(queue) > 0),
      )
  }
}
