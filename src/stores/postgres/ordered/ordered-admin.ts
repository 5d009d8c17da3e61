/** What operators do with ids of ordered queues in the database, and what they see of their payloads. */

import { sqlFunction } from '../schema/sql-function.js'
import { payloadSets } from './payload-sets.js'

/**
 * Takes a head, its payloads in hand or null, and a limit. Returns `{shown, count, pending}`: the first payloads in hand, or of all
 * if none are, as `ScoredColumns`; the number of these; and of those that wait behind payloads in hand, null if none do.
 */
const payloadsOf = sqlFunction(
  'payloads_of_1',
  'p_head bigint, p_hand bigint[], p_most int',
  'json',
  `DECLARE found json; k int;
BEGIN
  WITH s AS (${payloadSets("@.payload p WHERE p.head = p_head AND NOT p.seq = ANY (coalesce(p_hand, '{}'))")}),
  w AS (SELECT seq, score, payload, codec, meta FROM s WHERE stays),
  o AS (SELECT *, row_number() OVER (ORDER BY score, seq) AS place FROM (SELECT * FROM w WHERE p_hand IS NULL
    UNION ALL SELECT seq, score, payload, codec, meta FROM @.payload WHERE head = p_head AND seq = ANY (p_hand)) x)
  SELECT json_agg(json_build_array(score, payload, codec, meta) ORDER BY place) FILTER (WHERE place <= p_most), count(*) INTO found, k FROM o;
  RETURN json_build_object('shown', coalesce(found, '[]'), 'count', k, 'pending', CASE WHEN p_hand IS NOT NULL THEN nullif((
    SELECT count(*) FROM (${payloadSets('@.payload p WHERE p.head = p_head AND NOT p.seq = ANY (p_hand)')}) s WHERE stays), 0) END);
END`,
)

/** What waits behind running ids is due when their claims have ended. Takes a shard, and ids with their fences. Returns how many it changed. */
export const runNextNow = sqlFunction(
  'next_now_1',
  'p_q int, p_ids text[], p_fences bigint[]',
  'json',
  `DECLARE t bigint := @.us(); k int;
BEGIN
  UPDATE @.job SET next_stamp = t FROM unnest(p_ids, p_fences) x (i, f) WHERE id = x.i COLLATE "C" AND qid + 0 = p_q AND fence = x.f
    AND coalesce(next_stamp, (SELECT due FROM @.payload p WHERE p.head = job.head AND NOT p.seq = ANY (hand) ORDER BY seq LIMIT 1)) > t;
  GET DIAGNOSTICS k = ROW_COUNT;
  RETURN to_json(k);
END`,
)

/**
 * Dead ids are ready again, from the first attempt on. If an id waits, its dead payloads join it and it is ready; if it runs, they
 * wait behind it. Takes a shard and ids. Returns how many it revived.
 */
export const reviveIds = sqlFunction(
  'revive_ids_1',
  'p_q int, p_ids text[]',
  'json',
  `DECLARE t bigint := @.us(); q @.queue; way int; i text; n bigint; e @.ended; o @.job; k int := 0; grps text[] := '{}';
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  -- Rows are locked in the order of the ids; those that are ready come in the order in which they are named.
  FOR i, n IN SELECT x, nth FROM (SELECT x, nextval('@.job_seq') AS nth FROM unnest(p_ids) x) y ORDER BY x COLLATE "C" LOOP
    DELETE FROM @.ended WHERE id = i COLLATE "C" AND qid + 0 = p_q AND state + 0 = 4 RETURNING * INTO e;
    CONTINUE WHEN NOT FOUND;
    k := k + 1;
    LOOP
      SELECT * INTO o FROM @.job WHERE id = e.id AND qid + 0 = p_q FOR NO KEY UPDATE;
      EXIT WHEN FOUND;
      -- It may be pushed at this moment: then the dead payloads join.
      INSERT INTO @.job (seq, stamp, head, qid, created_ms, updated_ms, id, task, error, payload, grp, pool)
        VALUES (n * way, t * way, e.head, p_q, e.created_ms, t / 1000, e.id, e.task, e.error, '', e.grp,
          CASE WHEN e.grp IS NULL THEN 0 ELSE 2 END) ON CONFLICT (id, qid) DO NOTHING;
      EXIT WHEN FOUND;
    END LOOP;
    INSERT INTO @.tally (qid, waiting, retries, dead) VALUES (p_q, (o.id IS NULL)::int, -coalesce(o.fence = 0 AND o.attempt > 1, false)::int, -1);
    -- What is handed over in part must not wait for an instant that has passed.
    UPDATE @.payload SET due = t WHERE head = e.head AND due > t;
    IF o.id IS NULL THEN
      PERFORM @.merge_1(e.head, NULL, q.merge = 'latest');
      grps := grps || e.grp;
      CONTINUE;
    END IF;
    IF o.fence = 0 THEN
      UPDATE @.job SET attempt = 1, stamp = t * way, seq = n * way, flags = flags & ~1, updated_ms = t / 1000
        WHERE id = o.id AND qid + 0 = p_q;
      IF o.pool = 2 THEN grps := grps || o.grp; END IF;
    ELSE
      UPDATE @.job SET next_stamp = t, next_created_ms = coalesce(next_created_ms, (SELECT created_ms FROM @.payload p WHERE p.head = o.head
        AND NOT p.seq = ANY (o.hand) ORDER BY seq LIMIT 1), e.created_ms) WHERE id = o.id AND qid + 0 = p_q;
    END IF;
    -- They came before what has come since.
    UPDATE @.payload SET head = o.head WHERE head = e.head;
    PERFORM @.merge_1(o.head, o.hand, q.merge = 'latest');
  END LOOP;
  UPDATE @.floor SET stamp = t WHERE qid = p_q AND stamp > t;
  IF grps <> '{}' THEN PERFORM @.enter_lanes_1(p_q, grps, array(SELECT t FROM unnest(grps)), t); END IF;
  RETURN to_json(k);
END`,
)

export const orderedAdminFunctions = [payloadsOf, runNextNow, reviveIds]
