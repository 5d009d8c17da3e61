/** Upkeep that no call waits for: floors are raised, and counts and old calls put together. One process does it at a time. */

import { systemClock } from '../../../core/platform/clock.js'
import { callMemoryMs } from '../../rules/bounds.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { type SqlFunction, sqlFunction } from '../schema/sql-function.js'

const everyMs = 1_000

/**
 * Raises the floors of a queue: below a floor nothing is left that a claim could take. It looks no further back than the floors were. Takes a
 * queue, and the margin in µs that floors keep from now. Returns null.
 *
 * It looks for the first job while nobody keeps the floors, and locks each floor before that: a job that comes back meanwhile waits for the
 * end of this transaction, or has lowered the floor, and a raise would undo that. What it cannot lock at once it leaves to the next
 * second: who waits for it may hold anything.
 */
const raiseFloors = sqlFunction(
  'raise_floors_1',
  'p_q int, p_margin bigint',
  'json',
  `DECLARE t bigint := @.us(); r bigint := -2147483649; f bigint; s bigint; o text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(@lock + 12, p_q) THEN RETURN NULL; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @.fold_left_1(p_q);
  PERFORM @.raise_leases_1(p_q);
  SELECT ord INTO o FROM @.queue WHERE qid = p_q;
  -- Lock, and look in the next statement.
  IF o = 'lifo' OR NOT pg_try_advisory_xact_lock(@lock + 13, p_q) THEN RETURN NULL; END IF;
  LOOP
    r := @.next_rank_1(p_q, 0, r);
    EXIT WHEN r IS NULL;
    INSERT INTO @.floor VALUES (p_q, r, -9223372036854775807) ON CONFLICT DO NOTHING;
    SELECT stamp INTO f FROM @.floor WHERE qid = p_q AND rank = r FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    SELECT stamp INTO s FROM @.job WHERE qid = p_q AND pool = 0 AND rank = r AND stamp >= f AND stamp <= t - p_margin AND fence = 0
      ORDER BY qid, pool, rank, stamp, seq LIMIT 1;
    -- Each raise leaves a dead row: all processes together make one a second.
    UPDATE @.floor SET stamp = coalesce(s, t - p_margin) WHERE qid = p_q AND rank = r AND f <= coalesce(s, t - p_margin) - ${everyMs * 1_000};
  END LOOP;
  RETURN NULL;
END`,
)

/**
 * Looks from the very beginning for what was committed late, below a floor, which then goes down to it; and removes what limits no longer
 * need. Takes a queue. Returns null.
 */
const keepUp = sqlFunction(
  'keep_up_2',
  'p_q int',
  'json',
  `DECLARE t bigint := @.us(); r bigint := -2147483649; f bigint; s bigint; key text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(@lock + 2, p_q) THEN RETURN NULL; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  LOOP
    SELECT rank, stamp INTO r, f FROM @.floor WHERE qid = p_q AND rank > r ORDER BY qid, rank LIMIT 1;
    EXIT WHEN r IS NULL;
    SELECT stamp INTO s FROM @.job WHERE qid = p_q AND pool = 0 AND rank = r AND stamp < f AND fence = 0
      ORDER BY qid, pool, rank, stamp, seq LIMIT 1;
    UPDATE @.floor SET stamp = s WHERE qid = p_q AND rank = r AND stamp > s;
  END LOOP;
  PERFORM @.lower_leases_1(p_q);
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
  RETURN NULL;
END`,
)

/**
 * Adds counts up, and forgets old calls: at most 10,000 of each, as other calls wait meanwhile. Takes a queue, and how long calls are
 * remembered, in ms. Returns null.
 */
const keepCounts = sqlFunction(
  'keep_counts_1',
  'p_q int, p_for bigint',
  'json',
  `DECLARE old bigint := @.us() / 1000 - p_for;
BEGIN
  IF NOT pg_try_advisory_xact_lock(@lock + 15, p_q) THEN RETURN NULL; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  IF (SELECT count(*) FROM (SELECT FROM @.tally WHERE qid = p_q LIMIT 100) x) = 100 THEN
    WITH d AS (DELETE FROM @.tally WHERE ctid = ANY (array(SELECT ctid FROM @.tally WHERE qid = p_q LIMIT 10000)) RETURNING *)
    INSERT INTO @.tally SELECT p_q, sum(waiting), sum(retries), sum(dead), sum(processed), sum(failed), sum(crashed), sum(expired) FROM d;
  END IF;
  DELETE FROM @.call WHERE ctid = ANY (array(SELECT ctid FROM @.call WHERE qid = p_q AND at_ms <= old LIMIT 10000));
  RETURN NULL;
END`,
)

export const upkeepFunctions = [raiseFloors, keepUp, keepCounts]

/** Floors keep this distance from now: what commits a moment late is then still found by the next claim. */
const marginUs = 250_000

export class PostgresUpkeep {
  readonly #connection: PostgresConnection
  readonly #dueAt = new Map<string, number>()

  constructor(connection: PostgresConnection) {
    this.#connection = connection
  }

  /** A claim asked this queue: at most once a second, and a twentieth of the time, each part of its upkeep is done behind the claim. */
  asked(qid: number): void {
    this.#behind(raiseFloors, [qid, marginUs])
    this.#behind(keepUp, [qid])
    this.enqueued(qid)
  }

  /** Jobs were sent to this queue: the same for what an enqueue leaves. Perhaps no worker claims for a long time. */
  enqueued(qid: number): void {
    this.#behind(keepCounts, [qid, callMemoryMs])
  }

  #behind(part: SqlFunction, values: readonly [qid: number, ...number[]]): void {
    const now = systemClock.mono()
    const key = `${part.name} ${values[0]}`
    if ((this.#dueAt.get(key) ?? Number.NEGATIVE_INFINITY) > now) return
    this.#dueAt.set(key, Number.POSITIVE_INFINITY)
    const done = () => {
      const ended = systemClock.mono()
      this.#dueAt.set(key, ended + Math.max(everyMs, 20 * (ended - now)))
    }
    // Nobody waits for it: the next one makes up for one that fails.
    this.#connection.call(part, values).then(done, done)
  }
}
