/** The administration of a SQLite store's throttles: shows what they have counted, and sets their rules. */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { ThrottleRule } from '../../../core/queue/throttle.js'
import type { ThrottleState } from '../../contract/throttles.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteThrottleAdmin {
  readonly #session: SqliteTransaction

  constructor(session: SqliteTransaction) {
    this.#session = session
  }

  state(queue: string, group?: string): ThrottleState | undefined {
    const { queues, throttles, clock } = this.#session
    const throttle = throttles.of(queues.get(queue))
    if (throttle === undefined) return undefined
    const mono = clock.mono()
    const { told, by } = throttle
    const subject = by === 'queue' ? '' : group
    const quietForMs = throttle.quietForMs(mono)
    return {
      throttle: told,
      queues: [...new Set(throttles.sharing(told.scope).map(({ name }) => name))].sort(),
      hits: subject === undefined ? told.rules.map(() => 0) : throttle.hits(subject, mono),
      forMs: Math.max(
        subject === undefined ? quietForMs : throttle.waitMs(subject, mono),
        ...queues.rowsOf(queue).map((row) => this.#heldUntil(row, group) - mono),
      ),
      quietForMs,
      ...(by === 'group' ? { groups: throttle.groups(mono) } : {}),
    }
  }

  #heldUntil(row: QueueRow, group: string | undefined): number {
    const whole = row.held_until ?? Number.NEGATIVE_INFINITY
    return group === undefined ? whole : Math.max(whole, this.#session.lanes.heldUntil(row, group))
  }

  /**
   * Sets the rules of the whole scope. Jobs that its throttle has shut are open again, and waiting workers are rung.
   */
  set(queue: string, rules: readonly ThrottleRule[]): void {
    const { queues, throttles, lanes } = this.#session
    const throttle = throttles.of(queues.get(queue))
    if (throttle === undefined)
      throw new InvalidArgumentError(
        `queue '${queue}' has no throttle whose rules could be set; give it one by \`throttle\` in its options first.`,
      )
    throttle.change(rules)
    for (const row of throttles.sharing(throttle.told.scope)) {
      row.shut_until = null
      lanes.openAll(row)
      this.#session.ring(row)
    }
  }
}
