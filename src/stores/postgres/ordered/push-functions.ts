/** Pushes in the database: payloads are inserted beside the headers of their ids. */

import { keepFloors, readState } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/** The columns of new payloads, an element for each; an array that is null stands for a default in each of them. */
export const newPayloads = `p_ids text[], p_tasks text[], p_payloads text[], p_codecs text[], p_metas text[], p_delays bigint[],
  p_runs bigint[], p_weights int[], p_scores float8[], p_digests uuid[], p_grps text[]`

/**
 * Gives `p_n` default scores, in µs: from the clock on, and beyond all that were given. Returns the first.
 *
 * The lock ends with the inner block, which is undone; what a sequence was set to stays.
 */
const giveScores = sqlFunction(
  'scores_1',
  'p_n int',
  'bigint',
  `DECLARE given bigint;
BEGIN
  BEGIN
    PERFORM pg_advisory_xact_lock(@lock, 3);
    given := greatest(@.us(), (SELECT last_value + 1 FROM @.score_seq));
    PERFORM setval('@.score_seq', given + p_n - 1);
    RAISE EXCEPTION USING ERRCODE = 'MR002';
  EXCEPTION WHEN SQLSTATE 'MR002' THEN NULL;
  END;
  RETURN given;
END`,
)

/**
 * Takes a shard and how it merges, the columns of the new payloads (delays and due instants in µs; an array that is null stands
 * for a default in each), and the call ids with the number of payloads of each; null for payloads that were accepted before.
 *
 * Returns `{t, done, answers, busy, lead, wake, limited}`: the instant in ms; how it went; a letter for each payload; whether a batch
 * has the shard for itself; the lead; whether the shard is limited. `done` is `'ok'`, `'draining'`, `'full'`, `'apart'`: the shard is bounded, so send each call
 * by itself; or `'moved'`: the queue has other shards by now, or merges otherwise, and nothing was pushed.
 */
export const pushPayloads = sqlFunction(
  'push_1',
  `p_q int, p_merge text, ${newPayloads}, p_calls text[], p_counts int[]`,
  'json',
  `DECLARE
  t bigint; q @.queue; n int := cardinality(p_ids); way int; growth bigint; wanted text[]; seqs bigint[]; dues bigint[]; made text[];
  heads bigint[]; held text[]; first_score bigint; told text; past bigint; s @.queue_state;
BEGIN
  -- Who asks about a call waits for the pushes under way. Those of an inbox are no call.
  IF p_calls IS NOT NULL THEN PERFORM pg_advisory_xact_lock_shared(@lock + 14, p_q); END IF;
  -- A reshard lets no push in while it sets out.
  PERFORM pg_advisory_xact_lock_shared(@lock + 7, p_q);
  t := @.us();
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  IF q.qid IS NULL OR q.shard < 0 OR q.merge <> p_merge THEN RETURN json_build_object('done', 'moved'); END IF;
  IF q.draining AND p_calls IS NOT NULL THEN
    INSERT INTO @.call (at_ms, qid, ids, counts, answers) VALUES (t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts, repeat('r', n));
    RETURN json_build_object('t', t / 1000, 'done', 'draining');
  END IF;
  IF q.max_pending IS NOT NULL AND p_calls IS NOT NULL THEN
    IF cardinality(p_calls) > 1 THEN RETURN json_build_object('t', t / 1000, 'done', 'apart'); END IF;
    -- Lock, and count in the next statement: a snapshot is older than the lock that its statement waits for.
    PERFORM pg_advisory_xact_lock(@lock + 1, p_q);
    SELECT count(*) INTO growth FROM (SELECT DISTINCT u.id, CASE WHEN q.merge <> 'latest' THEN u.digest END FROM unnest(p_ids, p_digests) u (id, digest)
      WHERE NOT EXISTS (SELECT FROM @.job j JOIN @.payload p ON p.head = j.head WHERE j.id = u.id AND j.qid + 0 = p_q
        AND NOT p.seq = ANY (coalesce(j.hand, '{}')) AND (q.merge = 'latest' OR p.digest = u.digest))) x;
    IF growth > 0 AND growth > (q.max_pending + q.shards - 1) / q.shards - @.pending_1(p_q) THEN
      INSERT INTO @.call (at_ms, qid, ids, counts, answers) VALUES (t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts, repeat('f', n));
      RETURN json_build_object('t', t / 1000, 'done', 'full');
    END IF;
  END IF;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  wanted := array(SELECT DISTINCT x COLLATE "C" FROM unnest(p_ids) x ORDER BY 1);
  seqs := array(SELECT nextval('@.job_seq') FROM generate_series(1, n));
  dues := array(SELECT coalesce(p_runs[o], t + p_delays[o]) FROM generate_series(1, n) o);
  past := (SELECT min(due) FROM unnest(dues) due WHERE due < t);
  IF past IS NOT NULL THEN ${keepFloors('p_q')}; END IF;
  -- A header that was there a moment ago may be gone before it is locked. Then all begin anew, in order: to wait for a missing
  -- one while others are held could deadlock.
  LOOP
    BEGIN
      WITH first AS (SELECT DISTINCT ON (id) id, o FROM unnest(p_ids) WITH ORDINALITY u (id, o) ORDER BY id, o),
      h AS (INSERT INTO @.job (stamp, seq, head, qid, flags, created_ms, updated_ms, id, task, payload, grp, pool)
        -- Ids that are due at the same instant are taken in their order, others in that of their arrival.
        SELECT coalesce(dues[o], t) * way, CASE WHEN dues[o] IS NULL THEN seqs[o] * way ELSE 0 END, seqs[o], p_q,
          CASE WHEN dues[o] > t THEN 1 ELSE 0 END, t / 1000, t / 1000, id, p_tasks[o], '', p_grps[o],
          CASE WHEN p_grps[o] IS NULL THEN 0 ELSE 2 END FROM first ORDER BY id COLLATE "C"
        ON CONFLICT (id, qid) DO NOTHING RETURNING id)
      SELECT coalesce(array_agg(id), '{}') INTO made FROM h;
      SELECT array_agg(head), array_agg(id) INTO heads, held FROM (SELECT head, id FROM @.job WHERE id = ANY (wanted) AND qid + 0 = p_q
        ORDER BY id FOR KEY SHARE) h;
      IF cardinality(wanted) > coalesce(cardinality(held), 0) THEN RAISE EXCEPTION USING ERRCODE = 'MR001'; END IF;
      EXIT;
    EXCEPTION WHEN SQLSTATE 'MR001' THEN NULL;
    END;
  END LOOP;
  IF p_scores IS NULL OR array_position(p_scores, NULL) IS NOT NULL THEN first_score := @.scores_1(n); END IF;
  INSERT INTO @.payload (seq, head, due, created_ms, score, weight, latest, digest, codec, meta, payload)
    SELECT seqs[o], h.head, coalesce(dues[o], t), t / 1000, coalesce(u.score, (first_score + o - 1)::float8 / 1000), coalesce(u.weight, 0), q.merge = 'latest',
      u.digest, u.codec, u.meta, u.payload
    FROM unnest(p_ids, p_payloads, p_codecs, p_metas, p_weights, p_scores, p_digests) WITH ORDINALITY
        u (id, payload, codec, meta, weight, score, digest, o)
      JOIN unnest(heads, held) h (head, id) ON h.id = u.id COLLATE "C" ORDER BY o;
  IF cardinality(made) > 0 THEN
    INSERT INTO @.tally (qid, waiting) VALUES (p_q, cardinality(made));
    IF p_grps IS NOT NULL THEN
      PERFORM @.enter_lanes_1(p_q, array_agg(p_grps[o] ORDER BY o), array_agg(coalesce(dues[o], t) ORDER BY o), t)
        FROM (SELECT id, min(o) AS o FROM unnest(p_ids) WITH ORDINALITY u (id, o) WHERE id = ANY (made) GROUP BY id) x;
    END IF;
    IF past IS NOT NULL THEN UPDATE @.floor SET stamp = past WHERE qid = p_q AND stamp > past; END IF;
  END IF;
  IF q.merge <> 'all' THEN
    -- What others replace must not pile up for an id that nobody claims.
    PERFORM @.merge_1(head, NULL, false) FROM (SELECT head FROM @.job WHERE id = ANY (array(SELECT DISTINCT p_ids[o] FROM generate_series(1, n) o
      WHERE seqs[o] % 32 = 0)) AND qid + 0 = p_q AND fence = 0 ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) h;
  END IF;
  SELECT string_agg(CASE WHEN nth = 1 AND id = ANY (made) THEN 'a' ELSE 'm' END, '' ORDER BY o) INTO told
    FROM (SELECT id, o, row_number() OVER (PARTITION BY id ORDER BY o) AS nth FROM unnest(p_ids) WITH ORDINALITY u (id, o)) x;
  INSERT INTO @.call (at_ms, qid, ids, counts, answers) SELECT t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts, told WHERE p_calls IS NOT NULL;
  ${readState('p_q')};
  RETURN json_build_object('t', t / 1000, 'done', 'ok', 'answers', told, 'lead', s.lead_worker, 'wake', s.lead_wake_at,
    'busy', q.exclusive = 'shard' AND EXISTS (SELECT FROM @.bunch WHERE qid = p_q), 'limited', q.limited OR p_grps IS NOT NULL);
END`,
)

export const pushFunctions = [giveScores, pushPayloads]
