/** Upkeep that no call waits for: floors are raised, and counts and old calls put together. One process does it at a time. */

import { systemClock } from '../../../core/platform/clock.js'
import { callMemoryMs } from '../../rules/bounds.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'

/**
 * Raises the floors of a queue: below a floor nothing is left that a claim could take. Looks from the very beginning, so it
 * finds what was committed late. Takes a queue, the margin in µs that floors keep from now, and how long calls are
 * remembered, in ms. Returns null.
 *
 * It locks a floor before it looks for the first job: a job that comes back meanwhile lowers the floor, and a raise would
 * undo that.
 */
const keepUp = sqlFunction(
  'keep_up_1',
  'p_q int, p_margin bigint, p_for bigint',
  'json',
  `DECLARE t bigint := @.us(); r bigint := -2147483649; s bigint; o text; key text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(@lock + 2, p_q) THEN RETURN NULL; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT ord INTO o FROM @.queue WHERE qid = p_q;
  LOOP
    EXIT WHEN o = 'lifo';
    SELECT rank INTO r FROM @.job WHERE qid = p_q AND pool = 0 AND rank > r ORDER BY qid, pool, rank LIMIT 1;
    EXIT WHEN r IS NULL;
    INSERT INTO @.floor VALUES (p_q, r, -9223372036854775807) ON CONFLICT DO NOTHING;
    PERFORM FROM @.floor WHERE qid = p_q AND rank = r FOR UPDATE;
    SELECT stamp INTO s FROM @.job WHERE qid = p_q AND pool = 0 AND rank = r AND stamp <= t - p_margin AND fence = 0
      ORDER BY qid, pool, rank, stamp, seq LIMIT 1;
    UPDATE @.floor SET stamp = coalesce(s, t - p_margin) WHERE qid = p_q AND rank = r AND stamp <> coalesce(s, t - p_margin);
  END LOOP;
  IF (SELECT count(*) FROM (SELECT FROM @.tally WHERE qid = p_q LIMIT 100) x) = 100 THEN
    WITH d AS (DELETE FROM @.tally WHERE qid = p_q RETURNING *)
    INSERT INTO @.tally SELECT p_q, sum(waiting), sum(retries), sum(dead), sum(processed), sum(failed), sum(crashed), sum(expired) FROM d;
  END IF;
  SELECT coalesce('t' || throttle, 'q' || name) INTO key FROM @.queue WHERE qid = p_q AND limited;
  IF key IS NOT NULL THEN
    DELETE FROM @.pace WHERE scope = key AND version < (SELECT max(version) FROM @.pace WHERE scope = key);
    DELETE FROM @.lane WHERE ctid = ANY (array(SELECT ctid FROM @.lane l WHERE qid = p_q AND held_until <= t / 1000 AND turn IS NULL AND shut_until IS NULL
      AND due IS NULL AND NOT blocked AND NOT paused ORDER BY qid, held_until LIMIT 1000 FOR UPDATE SKIP LOCKED));
    IF (SELECT count(*) FROM (SELECT FROM @.lane_count WHERE qid = p_q LIMIT 1000) x) = 1000 THEN
      WITH d AS (DELETE FROM @.lane_count WHERE qid = p_q RETURNING *)
      INSERT INTO @.lane_count SELECT p_q, grp, sum(n) FROM d GROUP BY grp HAVING sum(n) <> 0;
    END IF;
  END IF;
  PERFORM @.fold_left_1(p_q);
  DELETE FROM @.call WHERE qid = p_q AND at_ms <= t / 1000 - p_for;
  RETURN NULL;
END`,
)

export const upkeepFunctions = [keepUp]

/** Floors keep this distance from now: what commits a moment late is then still found by the next claim. */
const marginUs = 250_000
const everyMs = 1_000

export class PostgresUpkeep {
  readonly #connection: PostgresConnection
  readonly #lastAt = new Map<number, number>()

  constructor(connection: PostgresConnection) {
    this.#connection = connection
  }

  /** A claim asked this queue: at most once a second, or a twentieth of the time, its upkeep is done behind the claim. */
  asked(qid: number): void {
    const now = systemClock.mono()
    if ((this.#lastAt.get(qid) ?? Number.NEGATIVE_INFINITY) > now) return
    this.#lastAt.set(qid, Number.POSITIVE_INFINITY)
    const done = () => {
      const ended = systemClock.mono()
      this.#lastAt.set(qid, ended + Math.max(everyMs, 20 * (ended - now)))
    }
    // Nobody waits for it: the next one makes up for one that fails.
    this.#connection.call(keepUp, [qid, marginUs, callMemoryMs]).then(done, done)
  }
}
