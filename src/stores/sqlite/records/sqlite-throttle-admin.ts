/**
 * The administration of a SQLite store's throttles: shows what they have counted, sets their rules, and shows and ends
 * holds and pauses of groups.
 */

import { groupRules, type Throttle, type ThrottleRule } from '../../../core/queue/throttle.js'
import type { GroupRates, HoldsQuery, StoredHold, StoredHolds, ThrottleState } from '../../contract/throttles.js'
import { refuseRates } from '../../rules/throttle/own-rates.js'
import { throttleState } from '../../rules/throttle/throttle-state.js'
import { changedBy } from '../../rules/throttle/throttle-subjects.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteThrottleAdmin {
  readonly #transaction: SqliteTransaction
  readonly #paused: Statement
  readonly #held: Statement
  readonly #count: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
    const among = '(?2 IS NULL OR grp IN (SELECT value FROM json_each(?2)))'
    this.#paused = db.prepare(`SELECT grp FROM lane WHERE qid = ?1 AND paused = 1 AND ${among} ORDER BY grp LIMIT ?3`)
    this.#held = db.prepare(
      `SELECT grp, held_until FROM lane WHERE qid = ?1 AND held_until > ?3 AND ${among} ORDER BY held_until, grp LIMIT ?4`,
    )
    this.#count = db.prepare(
      `SELECT (SELECT count(*) FROM lane WHERE qid = ?1 AND paused = 1 AND ${among}) AS paused,
         (SELECT count(*) FROM lane WHERE qid = ?1 AND held_until > ?3 AND ${among}) AS held`,
    )
  }

  state(queue: string, group?: string): ThrottleState | undefined {
    const { queues, throttles, clock } = this.#transaction
    const throttle = throttles.of(queues.get(queue))
    if (throttle === undefined) return undefined
    const mono = clock.mono()
    const { settings } = throttle
    const state = throttleState(settings, throttle, mono, group)
    const heldForMs = queues.rowsOf(queue).map((row) => this.#heldUntil(row, group) - mono)
    return {
      ...state,
      queues: [...new Set(throttles.sharing(settings.scope).map(({ name }) => name))].sort(),
      forMs: Math.max(state.forMs, ...heldForMs),
      ...(groupRules(settings) === undefined ? {} : { groups: throttle.groups(mono) }),
    }
  }

  #heldUntil(row: QueueRow, group: string | undefined): number {
    const whole = row.held_until ?? Number.NEGATIVE_INFINITY
    return group === undefined ? whole : Math.max(whole, this.#transaction.lanes.heldUntil(row, group))
  }

  /**
   * Sets the rules of the whole scope. Jobs that its throttle has shut are open again, and waiting workers are rung.
   */
  set(queue: string, rules: readonly ThrottleRule[], by?: Throttle['by']): void {
    const { queues, throttles, lanes } = this.#transaction
    const throttle = throttles.of(queues.get(queue))
    const changed = changedBy(queue, throttle?.settings, by)
    throttle!.change(rules, changed)
    for (const row of throttles.sharing(throttle!.row.scope)) {
      row.shut_until = null
      lanes.openAll(row)
      this.#transaction.ring(row)
    }
  }

  /** Sets the rules of one group in the whole scope. If its lane is shut, it is open again. */
  setRate(queue: string, group: string, rules: readonly ThrottleRule[] | undefined): void {
    const { queues, throttles, lanes } = this.#transaction
    const throttle = throttles.of(queues.get(queue))
    refuseRates(queue, throttle?.settings)
    throttle!.setRate(group, rules)
    for (const row of throttles.sharing(throttle!.row.scope)) {
      lanes.look(row, group)
      this.#transaction.ring(row)
    }
  }

  rates(queue: string, limit: number): GroupRates {
    const { queues, throttles } = this.#transaction
    const throttle = throttles.of(queues.get(queue))
    return { rates: throttle?.rates(limit) ?? [], total: throttle?.settings.own?.groups ?? 0 }
  }

  holds(queue: string, { groups, limit }: HoldsQuery): StoredHolds {
    const { queues, clock } = this.#transaction
    const row = queues.get(queue)
    const { qid, held_until } = row
    const mono = clock.mono()
    const among = groups === undefined ? null : JSON.stringify(groups)
    const whole: StoredHold[] = held_until !== null && held_until > mono ? [{ forMs: held_until - mono }] : []
    const { paused, held } = this.#countOf(row, groups, mono)
    const pausedGroups = this.#paused.all(qid, among, limit) as { grp: string }[]
    const heldGroups = this.#held.all(qid, among, mono, limit) as { grp: string; held_until: number }[]
    const holds = [
      ...whole,
      ...pausedGroups.map(({ grp }) => ({ group: grp })),
      ...heldGroups.map(({ grp, held_until }) => ({ group: grp, forMs: held_until - mono })),
    ]
    return { holds: holds.slice(0, limit), total: whole.length + paused + held }
  }

  release(queue: string, group?: string): number {
    const { queues, clock, lanes } = this.#transaction
    const mono = clock.mono()
    const first = queues.get(queue)
    const { held } = this.#countOf(first, group === undefined ? undefined : [group], mono)
    const ended = held + (group === undefined && (first.held_until ?? 0) > mono ? 1 : 0)
    for (const row of queues.rowsOf(queue)) {
      if (group !== undefined) lanes.release(row, group)
      else {
        row.held_until = null
        lanes.releaseAll(row)
      }
      this.#transaction.ring(row)
    }
    return ended
  }

  #countOf(
    { qid }: QueueRow,
    groups: readonly string[] | undefined,
    mono: number,
  ): { readonly paused: number; readonly held: number } {
    const among = groups === undefined ? null : JSON.stringify(groups)
    return this.#count.get(qid, among, mono) as { paused: number; held: number }
  }

  pause(queue: string, group: string): void {
    for (const row of this.#transaction.queues.rowsOf(queue)) this.#transaction.lanes.pause(row, group, 1)
  }

  resume(queue: string, group: string): void {
    for (const row of this.#transaction.queues.rowsOf(queue)) {
      this.#transaction.lanes.pause(row, group, 0)
      this.#transaction.ring(row)
    }
  }
}
