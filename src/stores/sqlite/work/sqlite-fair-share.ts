/** The fair share of one claim from a queue of a SQLite store: from which pools, and how many of each, its limits let it take. */

import { upkeepLimit } from '../../rules/bounds.js'
import { mostVisits, shareOf } from '../../rules/fair-share.js'
import type { ReadyPool } from '../file/sqlite-schema.js'
import { hasLanes, isStopped, ordinary, type QueueRow } from '../rows/sqlite-queue.js'
import type { Moment, SqliteThrottle } from '../rows/sqlite-throttle.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/** The hand that takes. */
export interface Hand {
  /** Makes the first jobs of a pool, at most so many, running ones. How many that were. */
  take(pool: ReadyPool, most: number): number
  /** Whether it can carry no more. */
  isFull(): boolean
}

/** Most lanes whose turns are looked up at once. */
const mostTurns = 64

export class SqliteFairShare {
  readonly #session: SqliteTransaction
  readonly #firstSuspect: (queue: QueueRow) => string

  /** `firstSuspect`: the group of the suspect that a claim alone is given. */
  constructor(session: SqliteTransaction, firstSuspect: (queue: QueueRow) => string) {
    this.#session = session
    this.#firstSuspect = firstSuspect
  }

  /** At most so many; of the queue in its order, or lane by lane: with none, the lanes are opened for others. Alone one, suspects first: nobody else is ever given them. */
  take(queue: QueueRow, limit: number, alone: boolean, moment: Moment, hand: Hand): void {
    const { throttles, limits, lanes } = this.#session
    if (limit <= 0) {
      lanes.openDue(queue, moment.mono, upkeepLimit)
      return
    }
    const throttle = throttles.of(queue)
    const whole = throttle?.by === 'queue' ? throttle : undefined
    const byGroup = throttle?.by === 'group' ? throttle : undefined
    const suspect = alone && queue.suspects > 0 ? (queue.laned ? this.#firstSuspect(queue) : '') : undefined
    if (suspect === undefined && ordinary(queue) === 0) {
      if (whole !== undefined && !this.#hasMore(whole, '')) whole.rests('', moment)
      return
    }
    const permits = whole?.permits('', moment).permits ?? Number.POSITIVE_INFINITY
    const most = Math.min(alone ? 1 : limit, limits.room(queue), permits)
    const taken = most > 0 ? this.#takeSome(queue, most, suspect, byGroup, moment, hand) : 0
    if (whole !== undefined) this.#startedInQueue(queue, whole, taken, moment)
    byGroup?.trim(moment)
  }

  #takeSome(
    queue: QueueRow,
    most: number,
    suspect: string | undefined,
    byGroup: SqliteThrottle | undefined,
    moment: Moment,
    hand: Hand,
  ): number {
    if (suspect !== undefined && this.#mayTake(queue, suspect, byGroup, moment))
      return this.#takeSuspect(queue, suspect, byGroup, moment, hand)
    return hasLanes(queue) ? this.#goRound(queue, most, byGroup, moment, hand) : hand.take('free', most)
  }

  #mayTake(queue: QueueRow, group: string, byGroup: SqliteThrottle | undefined, moment: Moment): boolean {
    const { lanes } = this.#session
    if (lanes.roomIn(queue, group) <= 0 || lanes.heldUntil(queue, group) > moment.mono) return false
    return byGroup === undefined || byGroup.permits(group, moment).permits > 0
  }

  #takeSuspect(
    queue: QueueRow,
    group: string,
    byGroup: SqliteThrottle | undefined,
    moment: Moment,
    hand: Hand,
  ): number {
    const taken = hand.take('suspects', 1)
    if (byGroup !== undefined) this.#startedInLane(queue, byGroup, group, taken, moment)
    return taken
  }

  /** Lane by lane, as far as their own limits go. */
  #goRound(queue: QueueRow, most: number, byGroup: SqliteThrottle | undefined, moment: Moment, hand: Hand): number {
    const { lanes } = this.#session
    lanes.openDue(queue, moment.mono, upkeepLimit)
    const isWaiting = lanes.readyIn(queue, '') > 0 && lanes.roomIn(queue, '') > 0
    if (isWaiting && !lanes.isOpen(queue, '') && lanes.shutUntil(queue, '') === undefined) lanes.open(queue, '')
    let taken = 0
    let turns: string[] = []
    // Lanes that have not had their turn in this round.
    let unvisited = 0
    for (let visits = 0; visits < mostVisits && queue.open_lanes > 0; visits += 1) {
      if (taken >= most || hand.isFull()) break
      // Whoever has been visited comes last: those that were looked up stay the first.
      if (turns.length === 0) turns = lanes.turns(queue, Math.min(mostTurns, most - taken)).reverse()
      const group = turns.pop()
      if (group === undefined) {
        // A count that is wrong must not stop a fleet.
        queue.open_lanes = 0
        break
      }
      if (unvisited === 0) unvisited = queue.open_lanes
      const share = shareOf(most - taken, unvisited)
      unvisited -= 1
      lanes.leave(queue, group)
      taken += this.#visit(queue, group, share, byGroup, moment, hand)
    }
    return taken
  }

  #visit(
    queue: QueueRow,
    group: string,
    share: number,
    byGroup: SqliteThrottle | undefined,
    moment: Moment,
    hand: Hand,
  ): number {
    const { lanes } = this.#session
    // Only jobs without a group may have gone without leaving the turns.
    if (lanes.readyIn(queue, group) === 0 || lanes.roomIn(queue, group) <= 0) return 0
    const heldUntil = lanes.heldUntil(queue, group)
    if (heldUntil > moment.mono) {
      lanes.close(queue, group, heldUntil)
      return 0
    }
    const permits = byGroup?.permits(group, moment).permits ?? Number.POSITIVE_INFINITY
    const count = Math.min(share, lanes.readyIn(queue, group), lanes.roomIn(queue, group), permits)
    const taken = count > 0 ? hand.take(group === '' ? 'free' : { group }, count) : 0
    const isOpen = lanes.readyIn(queue, group) > 0 && lanes.roomIn(queue, group) > 0
    if (isOpen) lanes.open(queue, group)
    else lanes.leave(queue, group)
    if (byGroup !== undefined) this.#startedInLane(queue, byGroup, group, taken, moment)
    return taken
  }

  /** So many have been taken, perhaps none. What is left and may not start now is shut. */
  #startedInQueue(queue: QueueRow, throttle: SqliteThrottle, count: number, moment: Moment): void {
    const forMs = this.#deniedForMs(throttle, '', count, moment)
    if (forMs !== undefined && queue.ready > 0) queue.shut_until = moment.mono + forMs
  }

  #startedInLane(queue: QueueRow, throttle: SqliteThrottle, group: string, count: number, moment: Moment): void {
    const { lanes } = this.#session
    const forMs = this.#deniedForMs(throttle, group, count, moment)
    if (forMs === undefined || lanes.readyIn(queue, group) === 0 || lanes.roomIn(queue, group) <= 0) return
    lanes.close(queue, group, moment.mono + forMs)
  }

  /** After how long the next may start; undefined where it may now. */
  #deniedForMs(throttle: SqliteThrottle, subject: string, count: number, moment: Moment): number | undefined {
    if (count > 0) throttle.started(subject, count, this.#hasMore(throttle, subject), moment)
    const { permits, forMs } = throttle.permits(subject, moment)
    return permits > 0 ? undefined : forMs
  }

  /** Whether there is anything in the scope that could be started; of the group, where it counts by group. */
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
