/**
 * Pushes of users' own transactions. There a push could wait for another open transaction, or fail because its header has
 * changed since the transaction began. So it leaves its payloads in a table without a unique key, and the next claim of the
 * shard pushes them.
 */

import { sqlFunction } from '../schema/sql-function.js'

/**
 * Takes the name of an ordered queue, the columns of the new payloads as `push_1`, and the CRC-32 of each id; and whether to
 * ring. Returns `'ok'`, `'draining'` or `'full'`. Transactions in flight may pass the bound of the queue together.
 */
export const leavePayloads = sqlFunction(
  'leave_1',
  `p_queue text, p_ids text[], p_tasks text[], p_payloads text[], p_codecs text[], p_metas text[], p_delays bigint[], p_runs bigint[],
   p_weights int[], p_scores float8[], p_digests uuid[], p_grps text[], p_crcs bigint[], p_wakes boolean`,
  'json',
  `DECLARE t bigint := @.us(); q @.queue;
BEGIN
  SELECT * INTO q FROM @.queue WHERE name = p_queue COLLATE "C" ORDER BY shard DESC LIMIT 1;
  IF q.draining THEN RETURN to_json('draining'::text); END IF;
  IF q.max_pending IS NOT NULL AND cardinality(p_ids) > q.max_pending - (SELECT count(*) FROM @.inbox WHERE name = q.name)
      - (SELECT sum(@.pending_1(qid)) FROM @.queue WHERE name = q.name) THEN
    RETURN to_json('full'::text);
  END IF;
  INSERT INTO @.inbox (name, crc, id, task, payload, codec, meta, run, weight, score, digest, grp)
    SELECT q.name, crc, id, task, payload, codec, meta, coalesce(run, t + delay), weight, score, digest, grp
    FROM unnest(p_ids, p_tasks, p_payloads, p_codecs, p_metas, p_delays, p_runs, p_weights, p_scores, p_digests, p_grps, p_crcs)
      WITH ORDINALITY u (id, task, payload, codec, meta, delay, run, weight, score, digest, grp, crc, o) ORDER BY o;
  IF p_wakes THEN PERFORM @.ring_in_1(qid) FROM @.queue WHERE name = q.name AND shard IN (SELECT crc % q.shards FROM unnest(p_crcs) crc); END IF;
  RETURN to_json('ok'::text);
END`,
)

/**
 * Takes a shard as the caller has seen it. Pushes what was left for it, unless somebody else does so at this moment, or a reshard has
 * emptied it meanwhile: then it stays for the shards that come after it. Returns null.
 */
const emptyInbox = sqlFunction(
  'empty_inbox_1',
  'q @.queue',
  'json',
  `DECLARE d record; pushed json;
BEGIN
  -- Payloads of an id must not overtake each other.
  IF NOT pg_try_advisory_xact_lock(@lock + 9, q.qid) THEN RETURN NULL; END IF;
  LOOP
    BEGIN
      WITH d AS (DELETE FROM @.inbox WHERE n = ANY (array(SELECT n FROM @.inbox WHERE name = q.name AND crc % q.shards = q.shard ORDER BY n LIMIT 1000))
        RETURNING *)
      SELECT array_agg(id ORDER BY n) AS ids, array_agg(task ORDER BY n) AS tasks, array_agg(payload ORDER BY n) AS payloads,
        array_agg(codec ORDER BY n) AS codecs, array_agg(meta ORDER BY n) AS metas, array_agg(run ORDER BY n) AS runs,
        array_agg(weight ORDER BY n) AS weights, array_agg(score ORDER BY n) AS scores, array_agg(digest ORDER BY n) AS digests,
        CASE WHEN count(grp) > 0 THEN array_agg(grp ORDER BY n) END AS grps INTO d FROM d;
      EXIT WHEN d.ids IS NULL;
      pushed := @.push_1(q.qid, q.merge, d.ids, d.tasks, d.payloads, d.codecs, d.metas, NULL, d.runs, d.weights, d.scores, d.digests, d.grps, NULL, NULL);
      EXIT WHEN pushed->>'done' = 'ok';
      -- What was taken out is there again.
      RAISE EXCEPTION USING ERRCODE = 'MR001';
    EXCEPTION WHEN SQLSTATE 'MR001' THEN NULL;
    END;
    SELECT * INTO q FROM @.queue WHERE qid = q.qid AND shard >= 0;
    EXIT WHEN NOT FOUND;
  END LOOP;
  RETURN NULL;
END`,
)

export const inboxFunctions = [leavePayloads, emptyInbox]
