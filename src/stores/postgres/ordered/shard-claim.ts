/** A claim of one shard of an ordered queue in the database: headers are locked, then their payloads are read. */

import { sqlFunction } from '../schema/sql-function.js'
import { payloadSets } from './payload-sets.js'

/** How long an id without payloads is left alone while a push holds it, in µs. */
export const heldUs = 100_000

/**
 * Takes ids, whose headers the caller has locked, with their payloads: the row of the queue, the places of the headers, the
 * instant in µs, the fence, worker, lease in ms and whether the claim is made alone; the most payloads of each id, null for
 * all of them; the weight at which a claim is full, and the weight that this one has already.
 *
 * Returns `{jobs, taken, load}`: the jobs as `ClaimedColumns` has them, their number, and the weight with them.
 */
const takeIds = sqlFunction(
  'take_ids_1',
  `q @.queue, p_got tid[], t bigint, p_fence bigint, p_worker text, p_lease bigint, p_alone boolean, p_payloads int, p_most bigint,
   p_load bigint`,
  'json',
  `DECLARE heads bigint[] := array(SELECT head FROM @.job WHERE ctid = ANY (p_got)); jobs json; taken_n int; taken_weight bigint;
BEGIN
  -- A statement of its own after the lock: it sees what was committed before the lock was had.
  WITH s AS (${payloadSets('@.payload p WHERE p.head = ANY (heads)')}),
  o AS (SELECT *, row_number() OVER w AS place, sum(weight) OVER w AS bytes FROM s WHERE stays WINDOW w AS (PARTITION BY head ORDER BY score, seq)),
  i AS (SELECT *, place = 1 OR p_payloads IS NULL OR (place <= p_payloads AND bytes <= p_most) AS taken FROM o),
  x AS (SELECT head, array_agg(seq ORDER BY score, seq) FILTER (WHERE taken) AS hand, bool_or(NOT taken) AS has_more,
      sum(weight) FILTER (WHERE taken) AS bytes,
      json_agg(json_build_array(score, payload, codec, meta) ORDER BY score, seq) FILTER (WHERE taken) AS payloads FROM i GROUP BY head),
  h AS (SELECT x.*, j.id, sum(x.bytes) OVER (ORDER BY j.pool, j.stamp, j.seq, j.id) - x.bytes AS before FROM @.job j JOIN x USING (head) WHERE j.ctid = ANY (p_got)),
  d AS (DELETE FROM @.payload p USING s WHERE NOT s.stays AND p.head = s.head AND p.seq = s.seq),
  u AS (UPDATE @.job j SET fence = p_fence, updated_ms = t / 1000, hand = h.hand, next_stamp = CASE WHEN h.has_more THEN t END,
      next_created_ms = CASE WHEN h.has_more THEN j.created_ms END
    FROM h WHERE j.id = h.id AND j.qid + 0 = q.qid AND h.before < p_most - p_load RETURNING j.*, h.payloads, h.has_more, h.bytes),
  b AS (INSERT INTO @.bunch SELECT p_fence, t / 1000 + p_lease, min(stamp), max(stamp), q.qid, count(*), 0, 0,
      CASE WHEN min(pool) = max(pool) THEN min(pool) ELSE 3 END, p_alone, p_worker
    FROM u HAVING count(*) > 0),
  c AS (INSERT INTO @.lane_count SELECT q.qid, grp, count(*) FROM u WHERE grp IS NOT NULL GROUP BY grp),
  y AS (INSERT INTO @.tally (qid, waiting, retries) SELECT q.qid, -count(*), -count(*) FILTER (WHERE attempt > 1) FROM u HAVING count(*) > 0)
  SELECT json_agg(json_build_array(id, task, '', NULL, NULL, 0, attempt, crashes, created_ms, stamp, NULL, error, NULL, 0, grp, NULL, payloads, has_more)
      ORDER BY stamp, seq, id), count(*), coalesce(sum(bytes), 0) INTO jobs, taken_n, taken_weight FROM u;
  PERFORM @.clear_bare_1(q, p_got, t);
  RETURN json_build_object('jobs', jobs, 'taken', taken_n, 'load', p_load + taken_weight);
END`,
)

/**
 * An id that has ended while a push held it has no payloads: it goes, or is left alone for a moment if a push still holds it. Takes the
 * row of the queue, places of headers that the caller has locked, and the instant in µs. Returns how many of them were so.
 */
const clearBare = sqlFunction(
  'clear_bare_1',
  'q @.queue, p_got tid[], t bigint',
  'int',
  `DECLARE bare tid[]; free tid[];
BEGIN
  bare := array(SELECT ctid FROM @.job WHERE ctid = ANY (p_got) AND fence = 0 AND NOT EXISTS (SELECT FROM @.payload p WHERE p.head = job.head));
  IF cardinality(bare) > 0 THEN
    free := array(SELECT ctid FROM @.job WHERE ctid = ANY (bare) FOR UPDATE SKIP LOCKED);
    WITH d AS (DELETE FROM @.job WHERE ctid = ANY (free) AND NOT EXISTS (SELECT FROM @.payload p WHERE p.head = job.head) RETURNING attempt)
    INSERT INTO @.tally (qid, waiting, retries) SELECT q.qid, -count(*), -count(*) FILTER (WHERE attempt > 1) FROM d HAVING count(*) > 0;
    UPDATE @.job SET stamp = (t + ${heldUs}) * CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END, flags = flags | 1 WHERE ctid = ANY (bare) AND fence = 0;
  END IF;
  RETURN cardinality(bare);
END`,
)

/** Takes the head of an id, the most payloads that a claim takes of it, null for all, and their most weight. Returns the weight of these. */
const weighId = sqlFunction(
  'weigh_id_1',
  'p_head bigint, p_payloads int, p_most bigint',
  'bigint',
  `BEGIN
  RETURN (SELECT coalesce(sum(weight) FILTER (WHERE place = 1 OR p_payloads IS NULL OR (place <= p_payloads AND bytes <= p_most)), 0)
    FROM (SELECT weight, row_number() OVER w AS place, sum(weight) OVER w AS bytes
      FROM (${payloadSets('@.payload p WHERE p.head = p_head')}) s WHERE stays WINDOW w AS (ORDER BY score, seq)) x);
END`,
)

/**
 * Takes a shard and what `take_ids_1` takes, but for the places and the fence; and the most ids. Returns as it does, and
 * `fence`, and `more`: whether ready ids are left that claims in company receive.
 */
const claimShard = sqlFunction(
  'claim_shard_1',
  'q @.queue, p_limit int, t bigint, p_worker text, p_lease bigint, p_alone boolean, p_payloads int, p_most bigint, p_load bigint',
  'json',
  `DECLARE got tid[] := '{}'; more boolean; start_at bigint; until_at bigint; f bigint; answer json;
BEGIN
  -- A reshard lets no claim in while it sets out.
  IF NOT pg_try_advisory_xact_lock_shared(@lock + 7, q.qid) OR (SELECT stopped OR shard < 0 FROM @.queue WHERE qid = q.qid) IS DISTINCT FROM false THEN
    RETURN json_build_object('taken', 0, 'load', p_load, 'more', false, 'busy', false);
  END IF;
  IF EXISTS (SELECT FROM @.inbox WHERE name = q.name) THEN PERFORM @.empty_inbox_1(q); t := @.us(); END IF;
  IF q.exclusive = 'shard' THEN
    -- Lock, and look in the next statement. Who waited here, with the locks of shards that were asked before, could wait for ever.
    IF NOT pg_try_advisory_xact_lock(@lock + 8, q.qid) THEN p_limit := 0;
    ELSIF EXISTS (SELECT FROM @.bunch WHERE qid = q.qid) THEN p_limit := 0; END IF;
  END IF;
  IF q.ord = 'lifo' THEN
    start_at := -t; until_at := 9223372036854775807;
  ELSE
    start_at := coalesce((SELECT stamp FROM @.floor WHERE qid = q.qid AND rank = 0), -9223372036854775807); until_at := t;
  END IF;
  IF p_alone AND p_limit > 0 THEN
    got := array(SELECT ctid FROM @.job WHERE qid = q.qid AND pool = 1 AND rank = 0 AND fence = 0 ORDER BY qid, pool, rank, stamp, seq, id LIMIT 1
      FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  IF p_limit > cardinality(got) THEN
    got := got || array(SELECT ctid FROM @.job WHERE qid = q.qid AND pool = 0 AND rank = 0 AND stamp >= start_at AND stamp <= until_at AND fence = 0
      ORDER BY qid, pool, rank, stamp, seq, id LIMIT p_limit - cardinality(got) FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  IF cardinality(got) > 0 THEN
    f := nextval('@.fence_seq');
    answer := @.take_ids_1(q, got, t, f, p_worker, p_lease, p_alone, p_payloads, p_most, p_load);
  END IF;
  more := EXISTS (SELECT FROM @.job WHERE qid = q.qid AND pool = 0 AND rank = 0 AND stamp >= start_at AND stamp <= until_at AND fence = 0);
  RETURN json_build_object('jobs', answer -> 'jobs', 'taken', coalesce((answer ->> 'taken')::int, 0), 'load', coalesce((answer ->> 'load')::bigint, p_load),
    'fence', f, 'more', more, 'busy', q.exclusive = 'shard' AND EXISTS (SELECT FROM @.bunch WHERE qid = q.qid));
END`,
)

export const shardClaimFunctions = [takeIds, clearBare, weighId, claimShard]
