/**
 * Ids of ordered queues change their shard or queue. A reshard gives the queue its new shards at once, and moves the ids over in
 * bounded steps; until all are there, nothing of it is granted.
 */

import { keepFloors } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/**
 * Takes a queue and its new number of shards. Nothing of it is granted any more. Once no claim runs, and no push or claim is
 * under way, it has its new shards. Returns whether it has them.
 */
export const setOut = sqlFunction(
  'set_out_1',
  'p_queue text, p_shards int',
  'json',
  `DECLARE old int[]; columns text;
BEGIN
  PERFORM pg_advisory_xact_lock(@lock, 1);
  UPDATE @.queue SET resharding = p_shards WHERE name = p_queue COLLATE "C" AND resharding IS NULL;
  IF EXISTS (SELECT FROM @.queue WHERE name = p_queue COLLATE "C" AND shard < 0) THEN RETURN to_json(true); END IF;
  old := array(SELECT qid FROM @.queue WHERE name = p_queue COLLATE "C");
  IF (SELECT bool_or(NOT pg_try_advisory_xact_lock(@lock + 7, qid)) FROM unnest(old) qid) THEN RETURN to_json(false); END IF;
  -- Lock, and look in the next statement.
  IF EXISTS (SELECT FROM @.bunch WHERE qid = ANY (old)) THEN RETURN to_json(false); END IF;
  UPDATE @.queue SET shard = -1 - shard WHERE qid = ANY (old);
  SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute WHERE attrelid = '@.queue'::regclass AND attnum > 0
    AND NOT attisdropped AND attgenerated = '' AND attname NOT IN ('qid', 'shard', 'shards');
  EXECUTE format('INSERT INTO @.queue (shard, shards, %1$s) SELECT s, $1, %1$s FROM @.queue, generate_series(0, $1 - 1) s WHERE qid = $2', columns)
    USING p_shards, (SELECT qid FROM @.queue WHERE name = p_queue COLLATE "C" AND shard = -1);
  INSERT INTO @.queue_state (qid, version, unheard) SELECT qid, 1, true FROM @.queue WHERE name = p_queue COLLATE "C" AND shard >= 0
    AND EXISTS (SELECT FROM @.queue_state o WHERE o.qid = ANY (old) AND o.unheard);
  INSERT INTO @.lane (qid, grp, held_until, paused) SELECT q.qid, l.grp, l.held_until, l.paused FROM @.queue q, @.queue o JOIN @.lane l ON l.qid = o.qid
    WHERE q.name = p_queue COLLATE "C" AND q.shard >= 0 AND o.name = q.name AND o.shard = -1 AND l.grp <> '' AND (l.paused OR l.held_until IS NOT NULL);
  INSERT INTO @.tally (qid, processed, failed, crashed)
    SELECT t.qid, -sum(processed), -sum(failed), -sum(crashed) FROM @.tally t WHERE t.qid = ANY (old) GROUP BY t.qid
    UNION ALL SELECT (SELECT qid FROM @.queue WHERE name = p_queue COLLATE "C" AND shard = 0), sum(processed), sum(failed), sum(crashed)
      FROM @.tally WHERE qid = ANY (old) HAVING count(*) > 0;
  RETURN to_json(true);
END`,
)

/** Takes shards and a limit. Returns `[qid, id]` of at most that many waiting or dead ids of theirs. */
export const movableIds = sqlFunction(
  'movable_1',
  'p_qids int[], p_most int',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(qid, id)), '[]') FROM (
    (SELECT qid, id FROM @.job WHERE qid = ANY (p_qids) AND fence = 0 LIMIT p_most)
    UNION (SELECT qid, id FROM @.ended WHERE qid = ANY (p_qids) LIMIT p_most) LIMIT p_most) x);
END`,
)

/**
 * Moves waiting and dead ids, with their times and counts. If an id is there already, only its payloads join; in the morgue what
 * died last counts. Takes the shard that they leave, ids, and for each the shard where it belongs. Returns how many jobs it moved.
 */
export const adoptIds = sqlFunction(
  'adopt_ids_1',
  'p_from int, p_ids text[], p_to int[]',
  'json',
  `DECLARE ms bigint := @.us() / 1000; old @.queue; q @.queue; x record; o @.job; h @.job; d @.ended; m @.ended; k int := 0; into_head bigint;
BEGIN
  SELECT * INTO old FROM @.queue WHERE qid = p_from;
  FOR x IN SELECT id, qid FROM unnest(p_ids, p_to) u (id, qid) ORDER BY id COLLATE "C" LOOP
    SELECT * INTO q FROM @.queue WHERE qid = x.qid;
    LOOP
      BEGIN
        SELECT * INTO o FROM @.job WHERE id = x.id COLLATE "C" AND qid + 0 = p_from AND fence = 0 FOR UPDATE;
        EXIT WHEN o.id IS NULL;
        SELECT * INTO h FROM @.job WHERE id = x.id COLLATE "C" AND qid + 0 = q.qid FOR NO KEY UPDATE;
        IF h.id IS NULL THEN
          ${keepFloors('q.qid')};
          UPDATE @.job SET qid = q.qid WHERE id = o.id AND qid + 0 = p_from;
          IF o.flags & 4 > 0 THEN UPDATE @.checkpoint SET qid = q.qid WHERE id = o.id AND qid + 0 = p_from; END IF;
          PERFORM @.merge_1(o.head, NULL, q.merge = 'latest');
          IF o.pool = 2 THEN PERFORM @.enter_lanes_1(q.qid, ARRAY[o.grp], ARRAY[abs(o.stamp)], ms * 1000); END IF;
          INSERT INTO @.tally (qid, waiting, retries) VALUES (q.qid, 1, (o.attempt > 1)::int);
          UPDATE @.floor SET stamp = o.stamp WHERE qid = q.qid AND stamp > o.stamp;
        ELSE
          IF h.fence > 0 THEN
            UPDATE @.job SET next_stamp = coalesce(next_stamp, first.due, abs(o.stamp)), next_created_ms = coalesce(next_created_ms, first.created_ms, o.created_ms)
              FROM (SELECT min(due) FILTER (WHERE is_first) AS due, min(created_ms) FILTER (WHERE is_first) AS created_ms
                FROM (SELECT due, created_ms, seq = min(seq) OVER () AS is_first FROM @.payload WHERE head = h.head AND NOT seq = ANY (h.hand)) y) first
              WHERE id = h.id AND qid + 0 = q.qid;
          END IF;
          PERFORM @.join_payloads_1(o.head, h.head, h.hand, q.merge = 'latest');
          DELETE FROM @.job WHERE id = o.id AND qid + 0 = p_from;
          DELETE FROM @.checkpoint WHERE id = o.id AND qid + 0 = p_from;
        END IF;
        INSERT INTO @.tally (qid, waiting, retries) VALUES (p_from, -1, -(o.attempt > 1)::int);
        k := k + 1;
        EXIT;
      -- It was pushed there at this moment.
      EXCEPTION WHEN unique_violation THEN NULL;
      END;
    END LOOP;
    SELECT * INTO d FROM @.ended WHERE id = x.id COLLATE "C" AND qid + 0 = p_from FOR UPDATE;
    CONTINUE WHEN d.id IS NULL;
    INSERT INTO @.tally (qid, dead) VALUES (p_from, -1);
    IF d.finished_ms + old.dead_age_ms <= ms THEN
      DELETE FROM @.payload WHERE head = d.head;
      DELETE FROM @.ended WHERE id = d.id AND qid + 0 = p_from;
      CONTINUE;
    END IF;
    k := k + 1;
    SELECT * INTO m FROM @.ended WHERE id = x.id COLLATE "C" AND qid + 0 = q.qid FOR UPDATE;
    IF m.finished_ms + q.dead_age_ms <= ms THEN
      DELETE FROM @.payload WHERE head = m.head;
      DELETE FROM @.ended WHERE id = m.id AND qid + 0 = q.qid;
      INSERT INTO @.tally (qid, dead) VALUES (q.qid, -1);
      m := NULL;
    END IF;
    IF m.id IS NULL THEN
      UPDATE @.ended SET qid = q.qid WHERE id = d.id AND qid + 0 = p_from;
      PERFORM @.merge_1(d.head, NULL, q.merge = 'latest');
      INSERT INTO @.tally (qid, dead) VALUES (q.qid, 1);
      CONTINUE;
    END IF;
    PERFORM @.join_payloads_1(d.head, m.head, NULL, q.merge = 'latest');
    DELETE FROM @.ended WHERE id = d.id AND qid + 0 = p_from;
    IF m.finished_ms <= d.finished_ms THEN
      UPDATE @.ended SET attempt = d.attempt, crashes = d.crashes, error = d.error, reason = d.reason, stamp = d.stamp, task = d.task,
        finished_ms = d.finished_ms WHERE id = d.id AND qid + 0 = q.qid;
    END IF;
  END LOOP;
  RETURN to_json(k);
END`,
)

/** Takes a queue. It is done with its old shards if these are empty. Returns their numbers, or null if something is left. */
export const arrive = sqlFunction(
  'arrive_1',
  'p_queue text',
  'json',
  `DECLARE old int[];
BEGIN
  PERFORM pg_advisory_xact_lock(@lock, 1);
  old := array(SELECT qid FROM @.queue WHERE name = p_queue COLLATE "C" AND shard < 0);
  IF EXISTS (SELECT FROM @.job WHERE qid = ANY (old)) OR EXISTS (SELECT FROM @.ended WHERE qid = ANY (old)) THEN RETURN NULL; END IF;
  DELETE FROM @.queue WHERE qid = ANY (old);
  DELETE FROM @.tally WHERE qid = ANY (old);
  DELETE FROM @.call WHERE qid = ANY (old);
  DELETE FROM @.floor WHERE qid = ANY (old);
  DELETE FROM @.queue_state WHERE qid = ANY (old);
  DELETE FROM @.lane WHERE qid = ANY (old);
  DELETE FROM @.lane_count WHERE qid = ANY (old);
  UPDATE @.queue SET resharding = NULL WHERE name = p_queue COLLATE "C";
  RETURN to_json(old);
END`,
)

/**
 * Payloads of one head join those of another, as if they had arrived only now, in their order. Before that they are merged as their
 * own rule says, which holds no longer where they come. See `merge_1`. Returns null.
 */
const joinPayloads = sqlFunction(
  'join_payloads_1',
  'p_head bigint, p_into bigint, p_hand bigint[], p_latest boolean',
  'json',
  `BEGIN
  PERFORM @.merge_1(p_head, NULL, false);
  UPDATE @.payload p SET head = p_into, seq = x.n, latest = p_latest FROM (SELECT seq, nextval('@.job_seq') AS n
    FROM (SELECT seq FROM @.payload WHERE head = p_head ORDER BY score, seq) y) x WHERE p.head = p_head AND p.seq = x.seq;
  PERFORM @.merge_1(p_into, p_hand, p_latest);
  RETURN NULL;
END`,
)

export const reshardFunctions = [setOut, movableIds, adoptIds, arrive, joinPayloads]
