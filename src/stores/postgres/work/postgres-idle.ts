/**
 * The idle mode: a process that has nothing to do leaves the server alone, so that one that goes to sleep can. All processes
 * wake at the same instants of the clock, to look around once; and when the next change is known to be due.
 */

import { systemClock } from '../../../core/platform/clock.js'
import type { IdleMode } from '../../contract/store.js'
import { sqlFunction } from '../schema/sql-function.js'

/**
 * Takes nothing. Returns for how many ms nothing in the store will change by itself: no job falls due, no lease, lane, hold,
 * join or wait for a signal ends, and no schedule ticks. Null: nothing will.
 */
export const nextChange = sqlFunction(
  'next_change_1',
  '',
  'json',
  `DECLARE t bigint := @.us(); ms bigint := t / 1000; q @.queue; soonest bigint; l bigint;
BEGIN
  FOR q IN SELECT * FROM @.queue WHERE NOT stopped LOOP
    SELECT min(lease_ms) INTO l FROM @.bunch WHERE qid = q.qid AND lease_ms > ms;
    soonest := least(soonest, l, CASE WHEN q.held_until > ms THEN q.held_until END,
      (SELECT min(lease_ms) FROM @.beat WHERE qid = q.qid AND lease_ms > ms), @.next_place_1(q.qid, q.ord, t, 0) / 1000 + 1,
      (SELECT min(shut_until) FROM @.lane WHERE qid = q.qid AND shut_until > ms), (SELECT min(held_until) FROM @.lane WHERE qid = q.qid AND held_until > ms),
      (SELECT min(due) / 1000 + 1 FROM @.lane WHERE qid = q.qid AND due > t));
  END LOOP;
  soonest := least(soonest, (SELECT min(next_at) FROM @.schedule WHERE next_at > ms), (SELECT min(due_at) FROM @.join_job WHERE due_at > ms),
    (SELECT min(until) FROM @.signal_wait WHERE until > ms));
  RETURN to_json(soonest - ms);
END`,
)

/** How long a process stays awake after it did something, and how long it looks around. All that it repeats fits in. */
const awakeMs = 7_000

export class PostgresIdle implements IdleMode {
  readonly #pollMs: number
  #quietAt = systemClock.mono() + awakeMs
  /** When the next change is due, as far as this process knows, on the monotonic clock. */
  #changeAt = Number.POSITIVE_INFINITY
  readonly #woken: () => void

  /** `woken`: called when the process has something to do. */
  constructor(pollMs: number, woken: () => void) {
    this.#pollMs = pollMs
    this.#woken = woken
  }

  /** This process does something. */
  touched(): void {
    const wasAsleep = this.isAsleep()
    this.#quietAt = systemClock.mono() + awakeMs
    if (wasAsleep) this.#woken()
  }

  /** The answer of `nextChange`. */
  knows(inMs: number | null): void {
    this.#changeAt = inMs === null ? Number.POSITIVE_INFINITY : systemClock.mono() + inMs
  }

  isAsleep(): boolean {
    return this.asleepForMs() > 0
  }

  /** 0 while it is awake. */
  asleepForMs(): number {
    const now = systemClock.mono()
    const sinceLook = systemClock.now() % this.#pollMs
    const toChange = this.#changeAt - now
    if (now < this.#quietAt || sinceLook < awakeMs || (toChange <= 0 && toChange > 0 - awakeMs)) return 0
    return Math.min(this.#pollMs - sinceLook, toChange > 0 ? toChange : Number.POSITIVE_INFINITY)
  }
}
