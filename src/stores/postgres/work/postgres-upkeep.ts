/** Upkeep that no call waits for: floors are raised, and counts and old calls put together. One process does it at a time. */

import { systemClock } from '../../../core/platform/clock.js'
import { callMemoryMs } from '../../rules/bounds.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Floors keep this distance from now: what commits a moment late is then still found by the next claim. */
const marginUs = 250_000
const everyMs = 1_000

/**
 * Raises the floors of a queue: below a floor nothing is left that a claim could take. Takes a queue, the margin in µs that floors keep
 * from now, how long calls are remembered, in ms, and whether to do the whole. The whole looks from the very beginning, so it finds what was
 * committed late, and puts counts together; otherwise floors rise from where they are, past no more than has come since. Returns null.
 *
 * It locks a floor before it looks for the first job: a job that comes back meanwhile lowers the floor, and a raise would
 * undo that.
 */
const keepUp = sqlFunction(
  'keep_up_1',
  'p_q int, p_margin bigint, p_for bigint, p_whole boolean',
  'json',
  `DECLARE t bigint := @.us(); r bigint := -2147483649; f bigint; at bigint; o text; key text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(@lock + 2, p_q) THEN RETURN NULL; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT ord INTO o FROM @.queue WHERE qid = p_q;
  LOOP
    EXIT WHEN o = 'lifo';
    r := @.next_rank_1(p_q, 0, r);
    EXIT WHEN r IS NULL;
    INSERT INTO @.floor VALUES (p_q, r, -9223372036854775807) ON CONFLICT DO NOTHING;
    SELECT stamp INTO f FROM @.floor WHERE qid = p_q AND rank = r FOR UPDATE;
    at := NULL;
    SELECT stamp INTO at FROM @.job WHERE qid = p_q AND pool = 0 AND rank = r AND stamp <= t - p_margin AND fence = 0
      AND stamp >= CASE WHEN p_whole THEN -9223372036854775807 ELSE f END ORDER BY qid, pool, rank, stamp, seq LIMIT 1;
    at := coalesce(at, t - p_margin);
    -- Each change leaves a dead row: several processes together raise it once a second.
    UPDATE @.floor SET stamp = at WHERE qid = p_q AND rank = r AND (at < f OR at - ${everyMs} * 1000 >= f);
  END LOOP;
  PERFORM @.raise_leases_1(p_q, p_whole);
  IF NOT p_whole THEN
    PERFORM @.fold_left_1(p_q);
    RETURN NULL;
  END IF;
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

interface DueUpkeep {
  readonly at: number
  readonly wholeAt: number
}

export class PostgresUpkeep {
  readonly #connection: PostgresConnection
  readonly #due = new Map<number, DueUpkeep>()

  constructor(connection: PostgresConnection) {
    this.#connection = connection
  }

  /**
   * A claim asked this queue: at most once a second its upkeep is done behind the claim. The whole of it takes at most a twentieth of
   * the time.
   */
  asked(qid: number): void {
    const now = systemClock.mono()
    const { at, wholeAt } = this.#due.get(qid) ?? never
    if (at > now) return
    this.#due.set(qid, { at: Number.POSITIVE_INFINITY, wholeAt })
    const isWhole = wholeAt <= now
    const done = () => {
      const ended = systemClock.mono()
      const pausedUntil = ended + Math.max(everyMs, 20 * (ended - now))
      this.#due.set(qid, isWhole ? { at: ended + everyMs, wholeAt: pausedUntil } : { at: pausedUntil, wholeAt })
    }
    // Nobody waits for it: the next one makes up for one that fails.
    this.#connection.call(keepUp, [qid, marginUs, callMemoryMs, isWhole]).then(done, done)
  }
}

const never: DueUpkeep = { at: Number.NEGATIVE_INFINITY, wholeAt: Number.NEGATIVE_INFINITY }
