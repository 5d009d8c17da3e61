/**
 * Pages and selections of jobs in the database. Each state is read along an index and no further than asked, so that a page of a
 * queue with millions of jobs costs what one of a short queue does.
 */

import { sqlFunction } from '../schema/sql-function.js'
import { endedRow, endedTables, liveRow, liveTables } from './record-functions.js'

/** What orders equal stamps: in an ordered queue the ids, otherwise the arrival. */
const ties = (of: string) => `CASE WHEN p_by_id THEN 0 ELSE ${of}seq END, CASE WHEN p_by_id THEN ${of}id ELSE '' END`

/**
 * Jobs of a queue or shard that wait in a pool, from priority to priority. Takes whether they are ready or not due yet, whether
 * equal stamps are in the order of ids, the place `{rank, stamp, seq}` (of those not due: `{stamp, seq}`, the stamp without its
 * sign) and the id behind which they begin or null, and a limit: for all ready jobs, and for those not due of each priority.
 */
const jobsInLine = sqlFunction(
  'line_1',
  'p_q int, p_pool int, p_ready boolean, p_by_id boolean, p_after bigint[], p_tie text, p_most int',
  'TABLE (id text, rank int, stamp bigint, seq bigint)',
  `#variable_conflict use_column
DECLARE t bigint := @.us(); is_lifo boolean; r bigint := -2147483649; first_rank bigint; place bigint[]; lo bigint; hi bigint; k int; left_n int := p_most;
BEGIN
  SELECT ord = 'lifo' INTO is_lifo FROM @.queue WHERE qid = p_q;
  IF p_ready THEN
    lo := CASE WHEN is_lifo THEN -t ELSE -9223372036854775807 END; hi := CASE WHEN is_lifo THEN 9223372036854775807 ELSE t END;
    IF p_after IS NOT NULL THEN first_rank := p_after[1]; r := first_rank - 1; END IF;
  ELSE
    lo := CASE WHEN is_lifo THEN -9223372036854775807 ELSE t + 1 END; hi := CASE WHEN is_lifo THEN -t - 1 ELSE 9223372036854775807 END;
  END IF;
  LOOP
    SELECT j.rank INTO r FROM @.job j WHERE qid = p_q AND pool = p_pool AND j.rank > r ORDER BY qid, pool, j.rank LIMIT 1;
    EXIT WHEN r IS NULL OR left_n <= 0;
    place := CASE WHEN NOT p_ready THEN p_after WHEN r = first_rank THEN p_after[2:] END;
    IF is_lifo AND NOT p_ready THEN
      RETURN QUERY SELECT j.id, j.rank, j.stamp, j.seq FROM @.job j
        WHERE qid = p_q AND pool = p_pool AND j.rank = r AND j.stamp BETWEEN lo AND least(hi, -place[1]) AND fence = 0
          AND (place IS NULL OR (-j.stamp, ${ties('j.')}) > (place[1], coalesce(place[2], 0), p_tie))
        ORDER BY j.stamp DESC, ${ties('j.')} LIMIT left_n;
    ELSIF p_by_id THEN
      RETURN QUERY SELECT j.id, j.rank, j.stamp, j.seq FROM @.job j
        WHERE qid = p_q AND pool = p_pool AND j.rank = r AND j.stamp BETWEEN greatest(lo, place[1]) AND hi AND fence = 0
          AND (place IS NULL OR (j.stamp, CASE WHEN p_ready THEN j.seq ELSE 0 END, j.id) > (place[1], coalesce(place[2], 0), p_tie))
        ORDER BY j.stamp, CASE WHEN p_ready THEN j.seq ELSE 0 END, j.id LIMIT left_n;
    ELSE
      -- In the order of the index, so that nothing is sorted.
      RETURN QUERY SELECT j.id, j.rank, j.stamp, j.seq FROM @.job j
        WHERE qid = p_q AND pool = p_pool AND j.rank = r AND j.stamp BETWEEN greatest(lo, place[1]) AND hi AND fence = 0
          AND (place IS NULL OR (j.stamp, j.seq) > (place[1], place[2]))
        ORDER BY qid, pool, j.rank, j.stamp, j.seq LIMIT left_n;
    END IF;
    GET DIAGNOSTICS k = ROW_COUNT;
    IF p_ready THEN left_n := left_n - k; END IF;
  END LOOP;
END`,
)

/** The state of a row `j` of `job`. `t`: now. */
const stateOf = 'CASE WHEN j.pool = -1 THEN 5 WHEN j.fence > 0 THEN 2 WHEN abs(j.stamp) > t THEN 0 ELSE 1 END'

/** The number of its arrival. */
const arrival = 'coalesce(j.arrival, abs(j.seq))'

/** Of a row `j` of `job`: it is ready. */
const isReady = 'j.fence = 0 AND j.pool >= 0 AND abs(j.stamp) <= t'

/** Of a row of `ended` with its state: it is not past its time. */
const isShown =
  'CASE e.state WHEN 3 THEN coalesce(e.until_ms > t / 1000, true) ELSE coalesce(e.finished_ms + q.dead_age_ms > t / 1000, true) END'

/** The pools of ready jobs, suspects last. */
const pools = `unnest('{0,2,1}'::int[])`

/**
 * Takes the shards of a queue, the order, the states, the position after which to go on or null, a limit, and a group or null.
 * Returns `[position, row]` of the next jobs that are not past their time; the row is null if the job is not of the group, but in the
 * order of time there are no such ready jobs in the pools without suspects. Jobs of an ordered queue that are otherwise equal are in the
 * order of their ids.
 *
 * A walk in the order of ids asks for the queue within the index of ids: what other queues have between costs its pages there.
 */
export const listJobs = sqlFunction(
  'list_2',
  'p_qids int[], p_by text, p_states int[], p_after json, p_most int, p_group text',
  'json',
  `DECLARE t bigint := @.us(); q @.queue; by_time boolean := p_by = 'time'; by_id boolean := p_by = 'id'; has_tie boolean; walks boolean := p_states && '{0,1}'; a bigint[]; a_tie text := '';
  a_id text; path int; found json;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_qids[1];
  has_tie := q.kind = 'ordered' AND NOT by_id;
  IF by_id THEN
    a_id := p_after ->> 0; a := ARRAY[(p_after ->> 1)::bigint];
  ELSIF p_after IS NOT NULL THEN
    a := array(SELECT x::bigint FROM json_array_elements_text(p_after) WITH ORDINALITY u (x, o) WHERE NOT has_tie OR o < json_array_length(p_after) ORDER BY o);
    IF has_tie THEN a_tie := p_after ->> -1; END IF;
  END IF;
  path := CASE WHEN by_time THEN coalesce(a[1], -1) ELSE -1 END;
  WITH shard AS (SELECT x AS q FROM unnest(p_qids) x),
  placed AS (
    SELECT u.q AS qid, j.id, j.n AS seq, true AS is_live, CASE WHEN by_id THEN '{0}' ELSE ARRAY[0, b.fence] END AS place
      FROM shard u, LATERAL (SELECT * FROM @.bunch b WHERE b.qid = u.q AND (path < 0 OR b.fence >= a[2])) b, LATERAL @.claimed_1(b) j
      WHERE (by_time OR (by_id AND NOT walks)) AND path <= 0 AND 2 = ANY (p_states)
    UNION ALL
    SELECT u.q, l.id, l.seq, true, ARRAY[1, (pool = 1)::int, l.rank, l.stamp] || CASE WHEN has_tie THEN ARRAY[l.seq] ELSE '{}' END
      FROM shard u, ${pools} pool, LATERAL @.line_1(u.q, pool, true, has_tie, CASE WHEN path = 1 AND a[2] = (pool = 1)::int THEN a[3:] END, a_tie, p_most) l
      WHERE by_time AND path <= 1 AND 1 = ANY (p_states) AND (path < 1 OR a[2] <= (pool = 1)::int) AND (pool = 1 OR p_group IS NULL)
    UNION ALL
    SELECT u.q, l.id, l.seq, true, ARRAY[1, 0, l.rank, l.stamp] || CASE WHEN has_tie THEN ARRAY[l.seq] ELSE '{}' END
      FROM shard u, LATERAL (SELECT j.id, j.rank, j.stamp, j.seq FROM @.job j WHERE j.qid = u.q AND j.grp = p_group AND j.pool = 2 AND ${isReady}
        AND (path < 1 OR (j.rank, j.stamp, j.seq) >= (a[3], a[4], a[5])) ORDER BY j.qid, j.grp, j.rank, j.stamp, j.seq LIMIT p_most + 1) l
      WHERE by_time AND p_group IS NOT NULL AND path <= 1 AND 1 = ANY (p_states) AND (path < 1 OR a[2] = 0)
    UNION ALL
    SELECT u.q, l.id, l.seq, true, ARRAY[2, abs(l.stamp)]
      FROM shard u, ${pools} pool, LATERAL @.line_1(u.q, pool, false, has_tie, CASE WHEN path = 2 THEN a[2:] END, a_tie, p_most) l
      WHERE by_time AND path <= 2 AND 0 = ANY (p_states)
    UNION ALL
    SELECT j.qid, j.id, abs(j.seq), true, CASE WHEN by_id THEN '{0}' ELSE ARRAY[3, abs(j.stamp)] END FROM @.job j
      WHERE (by_time OR (by_id AND NOT walks)) AND path <= 3 AND 5 = ANY (p_states) AND j.qid = ANY (p_qids) AND j.pool = -1
    UNION ALL
    SELECT u.q, e.id, -e.seq, false, ARRAY[k + 1, -e.finished_ms] FROM shard u, unnest('{3,4}'::int[]) k, LATERAL (SELECT * FROM @.ended e
        WHERE e.qid = u.q AND e.state = k AND ${isShown} AND (path <= k OR (e.finished_ms, e.seq) < (-a[2], -a[3]))
        ORDER BY e.finished_ms DESC, e.seq DESC LIMIT p_most) e
      WHERE by_time AND NOT has_tie AND path <= k + 1 AND k = ANY (p_states)
    UNION ALL
    SELECT u.q, e.id, 0, false, ARRAY[5, -e.finished_ms] FROM shard u, LATERAL (SELECT * FROM @.ended e
        WHERE e.qid = u.q AND e.state = 4 AND ${isShown} AND (path <= 4 OR (-e.finished_ms, e.id) > (a[2], a_tie))
        ORDER BY e.finished_ms DESC, e.id LIMIT p_most) e
      WHERE by_time AND has_tie AND 4 = ANY (p_states)
    UNION ALL
    SELECT j.qid, j.id, ${arrival}, true, ARRAY[j.attempt::bigint] FROM @.job j
      WHERE p_by = 'retry' AND j.qid = ANY (p_qids) AND j.attempt > 1 AND ${stateOf} = ANY (p_states) AND j.pool >= 0 AND (a IS NULL OR j.attempt >= a[1])
    UNION ALL
    SELECT u.q, j.id, 0, true, '{0}' FROM shard u, LATERAL (SELECT * FROM @.job j WHERE j.qid = u.q AND j.id > coalesce(a_id, '') COLLATE "C"
        AND ${stateOf} = ANY (p_states) ORDER BY j.id LIMIT p_most) j WHERE by_id AND walks
    UNION ALL
    SELECT u.q, e.id, 0, false, '{1}' FROM shard u, LATERAL (SELECT * FROM @.ended e WHERE e.qid = u.q AND e.id >= coalesce(a_id, '') COLLATE "C"
        AND e.state = ANY (p_states) AND e.state IN (3, 4) AND ${isShown} ORDER BY e.id LIMIT p_most + 1) e WHERE by_id AND p_states && '{3,4}'),
  whole AS (
    SELECT qid, id, is_live, CASE WHEN by_id OR has_tie THEN place ELSE place || seq END AS place, CASE WHEN has_tie THEN id ELSE '' END AS tie FROM placed),
  page AS (
    SELECT * FROM whole WHERE p_after IS NULL OR CASE WHEN by_id THEN (id, place) > (a_id COLLATE "C", a) ELSE (place, tie) > (a, a_tie) END
    ORDER BY CASE WHEN by_id THEN id END, place, tie LIMIT p_most)
  SELECT json_agg(json_build_array(
      CASE WHEN by_id THEN json_build_array(p.id, p.place[1]) WHEN has_tie THEN to_json(p.place::text[] || p.tie) ELSE to_json(p.place) END,
      CASE WHEN p.is_live THEN (SELECT ${liveRow(false)} FROM ${liveTables} WHERE j.id = p.id AND j.qid + 0 = p.qid AND (p_group IS NULL OR j.grp = p_group))
        ELSE (SELECT ${endedRow(false)} FROM ${endedTables} WHERE e.id = p.id AND e.qid + 0 = p.qid AND (p_group IS NULL OR e.grp = p_group)) END)
    ORDER BY CASE WHEN by_id THEN p.id END, p.place, p.tie) INTO found FROM page p;
  RETURN coalesce(found, '[]');
END`,
)

/**
 * Selects jobs for a change. Takes a queue or shard, the ids or null for all, whether only those that have failed, the states, and
 * a limit. Of running jobs: those that are not being cancelled; `p_next`: only those with payloads that are due later. `p_again`:
 * no joins of which a member is gone for good.
 *
 * Returns rows as `EndingRow` has them, in the order of the ids if there are some, otherwise of their states, each with its
 * `state` and the number of its `payloads` that are not in hand.
 */
export const selectJobs = sqlFunction(
  'select_1',
  'p_q int, p_ids text[], p_failed boolean, p_states int[], p_next boolean, p_again boolean, p_most int',
  'json',
  `DECLARE t bigint := @.us(); q @.queue; by_ids boolean := p_ids IS NOT NULL; by_line boolean := p_ids IS NULL AND NOT p_failed; found json;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  WITH live AS (
    SELECT j.id FROM @.job j WHERE by_ids AND j.id = ANY (p_ids) AND j.qid + 0 = p_q
    UNION ALL
    SELECT j.id FROM @.job j WHERE by_line AND 5 = ANY (p_states) AND j.qid = p_q AND j.pool = -1
    UNION ALL
    SELECT l.id FROM ${pools} pool, LATERAL @.line_1(p_q, pool, true, false, NULL, '', p_most) l
      WHERE by_line AND 1 = ANY (p_states)
    UNION ALL
    SELECT l.id FROM ${pools} pool, LATERAL @.line_1(p_q, pool, false, false, NULL, '', p_most) l
      WHERE by_line AND 0 = ANY (p_states)
    UNION ALL
    SELECT j.id FROM @.bunch b, LATERAL @.claimed_1(b) j WHERE by_line AND 2 = ANY (p_states) AND b.qid = p_q
    UNION ALL
    (SELECT j.id FROM @.job j WHERE NOT by_ids AND p_failed AND j.qid = p_q AND j.attempt > 1 AND ${stateOf} = ANY (p_states)
      ORDER BY j.qid, j.attempt, j.seq LIMIT p_most)),
  r AS (
    SELECT j.id, j.task, j.fence, j.attempt, j.crashes, j.pool, j.flags, j.error, j.remember_ms, CASE WHEN ${isReady} THEN ARRAY[(j.pool = 1)::int, j.rank] ELSE '{}' END AS a,
      CASE WHEN ${isReady} THEN j.stamp ELSE abs(j.stamp) END AS s,
      CASE WHEN ${isReady} THEN j.seq WHEN j.fence > 0 THEN ${arrival} ELSE abs(j.seq) END AS n, j.head, j.hand,
      j.next_stamp, ${stateOf} AS state
    FROM live l CROSS JOIN LATERAL (SELECT * FROM @.job o WHERE o.id = l.id AND o.qid + 0 = p_q LIMIT 1) j
    UNION ALL
    SELECT e.id, e.task, 0, e.attempt, e.crashes, 0, e.flags, e.error, e.remember_ms, '{}', -e.finished_ms, -e.seq, e.head, NULL, NULL, e.state
    FROM @.ended e WHERE by_ids AND e.id = ANY (p_ids) AND e.qid + 0 = p_q AND e.state + 0 IN (3, 4) AND ${isShown}
    UNION ALL
    SELECT e.id, e.task, 0, e.attempt, e.crashes, 0, e.flags, e.error, e.remember_ms, '{}', -e.finished_ms, e.nth, e.head, NULL, NULL, e.state
    FROM unnest('{3,4}'::int[]) k, LATERAL (SELECT *, row_number() OVER (ORDER BY finished_ms DESC, seq DESC, id DESC) AS nth FROM (
      SELECT * FROM @.ended e WHERE e.qid = p_q AND e.state = k AND ${isShown}
        AND NOT (p_again AND e.flags & 32 > 0 AND @.is_cut_1(p_q, e.id)) AND (NOT p_failed OR e.attempt > 1)
      ORDER BY e.finished_ms DESC, e.seq DESC, e.id DESC LIMIT p_most) z) e
    WHERE NOT by_ids AND k = ANY (p_states))
  SELECT json_agg(x ORDER BY k, a, s, n, id) INTO found FROM (
    SELECT CASE WHEN by_ids THEN array_position(p_ids, id) ELSE array_position(p_states, state) END AS k, a, s, n, id, json_build_object('id', id, 'state', state, 'task', task, 'fence', fence, 'attempt', attempt,
      'crashes', crashes, 'pool', pool, 'flags', flags, 'error', error, 'remember', remember_ms,
      'noted', (SELECT coalesce(c.payload, c.log) FROM @.checkpoint c WHERE c.id = r.id AND c.qid + 0 = p_q) IS NOT NULL,
      'payloads', (SELECT count(*) FROM @.payload p WHERE p.head = r.head AND NOT p.seq = ANY (coalesce(hand, '{}')))) AS x
    FROM r WHERE state = ANY (p_states) AND (NOT p_failed OR attempt > 1)
      AND (state <> 2 OR CASE WHEN p_next THEN coalesce(next_stamp, (SELECT due FROM @.payload p WHERE p.head = r.head AND NOT p.seq = ANY (hand)
        ORDER BY seq LIMIT 1)) > t ELSE flags & 8 = 0 END)
      AND NOT (p_again AND flags & 32 > 0 AND @.is_cut_1(p_q, id))
    ORDER BY k, a, s, n, id LIMIT p_most) y;
  RETURN coalesce(found, '[]');
END`,
)

/** Takes the queue and the id of a dead join. Returns whether a member that it must have is gone for good, so that it cannot be revived. */
const isCut = sqlFunction(
  'is_cut_1',
  'p_q int, p_id text',
  'boolean',
  `BEGIN
  RETURN EXISTS (SELECT FROM @.join_job j JOIN @.join_set s USING (jid) JOIN @.join_end e USING (sid)
    WHERE j.id = p_id COLLATE "C" AND j.qid + 0 = p_q AND s.on_dead <> 'go-on' AND e.fate IN (2, 3));
END`,
)

export const listingFunctions = [jobsInLine, isCut, listJobs, selectJobs]
