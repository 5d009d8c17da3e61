/** Enqueueing in the database: an enqueue only inserts, and nobody waits for it except an enqueue of the same id. */

import { readState } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/** The columns of new jobs, an element for each; an array that is null stands for a default in each of them. */
export const newJobs = `p_ids text[], p_tasks text[], p_payloads text[], p_codecs text[], p_metas text[], p_ranks int[],
  p_delays bigint[], p_runs bigint[], p_expires bigint[], p_remember bigint[], p_weights int[], p_places text[],
  p_replaces boolean[], p_grps text[], p_fields text[], p_reports boolean[]`

/**
 * Takes the queue, the columns of the new jobs (delays and due instants in µs, the others in ms), whether all ids are new,
 * and the call ids with the number of jobs of each. Without call ids it is in a transaction of a user, of whom nobody knows when
 * it ends: nothing is locked, so others may fill a bounded queue beyond its bound meanwhile, and no call is remembered.
 *
 * Returns `{t, done, added, again, lead, wake, limited}`: the instant in ms; how it went; the ids that were inserted, null for all of
 * them; those of members that their joins have had before; the lead; whether the queue is limited. `done` is `'ok'`, `'draining'`,
 * `'full'`, or `'apart'`: the queue is bounded, so send each call by itself.
 */
export const enqueueJobs = sqlFunction(
  'enqueue_1',
  `p_q int, ${newJobs}, p_new boolean, p_calls text[], p_counts int[]`,
  'json',
  `DECLARE
  t bigint := @.us(); q @.queue; wanted int := cardinality(p_ids); room bigint; inserted text[]; grps text[]; dues bigint[]; again text[] := '{}'; way int;
  late text[]; is_ours boolean := cardinality(p_calls) > 0; s @.queue_state;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  IF q.draining THEN
    INSERT INTO @.call (at_ms, qid, ids, counts, answers)
      SELECT t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts, repeat('r', wanted) WHERE is_ours;
    RETURN json_build_object('t', t / 1000, 'done', 'draining');
  END IF;
  IF is_ours AND NOT p_new THEN
    -- What is remembered of these ids may be out of date. A result that is kept longer stands in nobody's way.
    WITH old AS (DELETE FROM @.ended WHERE id = ANY (p_ids) AND qid + 0 = p_q AND (state > 4 AND until_ms <= t / 1000
      OR state = 3 AND finished_ms + remember_ms <= t / 1000 AND (until_ms <= t / 1000 OR flags & 112 = 0)) RETURNING id)
    DELETE FROM @.checkpoint c USING old WHERE c.id = old.id AND c.qid + 0 = p_q;
  END IF;
  IF p_places IS NOT NULL THEN
    -- Lock, and look in the next statement: nobody else adds members of these sets meanwhile.
    PERFORM FROM @.join_set WHERE sid = ANY (array(SELECT sid FROM @.member_sets_1(p_q, p_ids, p_places))) ORDER BY sid FOR NO KEY UPDATE;
    again := array(SELECT DISTINCT m.id FROM @.member_sets_1(p_q, p_ids, p_places) m WHERE m.number < m.added);
  END IF;
  IF q.max_pending IS NOT NULL THEN
    IF cardinality(p_calls) > 1 THEN RETURN json_build_object('t', t / 1000, 'done', 'apart'); END IF;
    -- Lock, and count in the next statement: a snapshot is older than the lock that its statement waits for.
    IF is_ours THEN PERFORM pg_advisory_xact_lock(@lock + 1, p_q); END IF;
    SELECT q.max_pending - coalesce(sum(waiting), 0) INTO room FROM @.tally WHERE qid = p_q;
    -- A job that takes the place of a dead one needs room.
    SELECT count(DISTINCT u.id) INTO wanted FROM unnest(p_ids, p_replaces) u (id, replaces)
      WHERE NOT u.id = ANY (again) AND NOT EXISTS (SELECT FROM @.job j WHERE j.id = u.id AND j.qid + 0 = p_q)
        AND NOT EXISTS (SELECT FROM @.ended e WHERE e.id = u.id AND e.qid + 0 = p_q AND (e.state <> 4 OR u.replaces IS NOT TRUE));
    IF wanted > 0 AND wanted > room THEN
      INSERT INTO @.call (at_ms, qid, ids, counts, answers)
        SELECT t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts, repeat('f', cardinality(p_ids)) WHERE is_ours;
      RETURN json_build_object('t', t / 1000, 'done', 'full');
    END IF;
    wanted := cardinality(p_ids);
  END IF;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  WITH made AS (
    INSERT INTO @.job (seq, stamp, qid, rank, flags, created_ms, updated_ms, expires_ms, remember_ms, weight, id, task, codec, meta, payload, places,
      grp, pool)
    SELECT nextval('@.job_seq') * CASE WHEN due > t THEN 1 ELSE way END, greatest(due, t) * way, p_q, coalesce(rank, 0),
      CASE WHEN due > t THEN 1 ELSE 0 END | CASE WHEN places IS NULL THEN 0 ELSE 16 END | CASE WHEN reports THEN 256 ELSE 0 END, t / 1000, t / 1000, t / 1000 + expires,
      coalesce(remember, 0), coalesce(weight, 0), id, task, codec, meta, payload, places, grp, CASE WHEN grp IS NULL THEN 0 ELSE 2 END
    FROM (SELECT u.*, coalesce(u.run, t + coalesce(u.delay, 0)) AS due
      FROM unnest(p_ids, p_tasks, p_payloads, p_codecs, p_metas, p_ranks, p_delays, p_runs, p_expires, p_remember, p_weights, p_places, p_grps, p_reports)
        WITH ORDINALITY u (id, task, payload, codec, meta, rank, delay, run, expires, remember, weight, places, grp, reports, o)
      WHERE (p_new OR (SELECT e.id FROM @.ended e WHERE e.id = u.id AND e.qid + 0 = p_q) IS NULL) AND NOT u.id = ANY (again)
      ORDER BY o) u
    ON CONFLICT (id, qid) DO NOTHING RETURNING id, grp, abs(stamp) AS due)
  SELECT array_agg(id), array_agg(grp), array_agg(due) INTO inserted, grps, dues FROM made;
  IF NOT p_new AND cardinality(inserted) > 0 THEN
    -- The insert waited for the end of a job of this id. It cannot see the row which that end has left.
    late := array(SELECT id FROM @.ended WHERE id = ANY (inserted) AND qid + 0 = p_q);
    IF cardinality(late) > 0 THEN
      DELETE FROM @.job WHERE id = ANY (late) AND qid + 0 = p_q;
      SELECT array_agg(id), array_agg(grp), array_agg(due) INTO inserted, grps, dues
        FROM unnest(inserted, grps, dues) u (id, grp, due) WHERE NOT id = ANY (late);
    END IF;
    IF cardinality(inserted) > 0 AND current_setting('transaction_isolation') <> 'read committed' THEN
      -- Such a transaction sees nothing newer than itself: what others have left since is in the way of a row, and fails it.
      INSERT INTO @.ended (qid, state, rank, attempt, crashes, stamp, created_ms, finished_ms, remember_ms, id, task)
        SELECT p_q, 7, 0, 0, 0, 0, 0, 0, 0, id, '' FROM unnest(inserted) id ON CONFLICT DO NOTHING;
      DELETE FROM @.ended WHERE id = ANY (inserted) AND qid + 0 = p_q;
    END IF;
  END IF;
  IF cardinality(inserted) > 0 THEN INSERT INTO @.tally (qid, waiting) VALUES (p_q, cardinality(inserted)); END IF;
  IF p_fields IS NOT NULL THEN
    -- Of two jobs of an id the first is added.
    WITH f AS (SELECT id, fields FROM (SELECT DISTINCT ON (u.id) u.id, u.fields FROM unnest(p_ids, p_fields) WITH ORDINALITY u (id, fields, o)
      ORDER BY u.id, u.o) x WHERE fields IS NOT NULL AND id = ANY (inserted)),
    w AS (INSERT INTO @.checkpoint (qid, id, fields) SELECT p_q, id, fields FROM f ON CONFLICT (id, qid) DO UPDATE SET fields = excluded.fields)
    UPDATE @.job j SET flags = flags | 4 FROM f WHERE j.id = f.id AND j.qid + 0 = p_q;
  END IF;
  IF p_grps IS NOT NULL AND cardinality(inserted) > 0 THEN PERFORM @.enter_lanes_1(p_q, grps, dues, t); END IF;
  IF p_places IS NOT NULL THEN PERFORM @.enter_joins_1(p_q, p_ids, p_places, coalesce(inserted, '{}')); END IF;
  IF cardinality(inserted) = wanted THEN
    INSERT INTO @.call (at_ms, qid, ids, counts) SELECT t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts WHERE is_ours;
    inserted := NULL;
  ELSE
    -- A call that is sent again now finds which of its jobs were added, and decides about the others.
    inserted := coalesce(inserted, '{}');
    INSERT INTO @.call (at_ms, qid, ids, counts, answers) SELECT t / 1000, p_q, array_to_string(p_calls, E'\\x1f'), p_counts,
      string_agg(CASE WHEN nth = 1 AND id = ANY (inserted) THEN 'a' ELSE '?' END, '' ORDER BY o)
      FROM (SELECT id, o, row_number() OVER (PARTITION BY id ORDER BY o) AS nth FROM unnest(p_ids) WITH ORDINALITY u (id, o)) x HAVING is_ours;
  END IF;
  -- Only jobs that are due later ask who leads.
  IF p_delays IS NOT NULL OR p_runs IS NOT NULL THEN ${readState('p_q')}; END IF;
  RETURN json_build_object('t', t / 1000, 'done', 'ok', 'added', inserted, 'again', array_to_json(again), 'lead', s.lead_worker, 'wake', s.lead_wake_at,
    'limited', q.limited OR p_grps IS NOT NULL);
END`,
)

/**
 * Enqueues several calls, of which some have ids that are not new. Takes what `enqueue_1` does, and returns the same; `done` may
 * be `'locked'` too, which changed nothing: a transaction that is open has one of the ids, and the other calls need not wait for it.
 */
export const enqueueTogether = sqlFunction(
  'enqueue_together_1',
  `p_q int, ${newJobs}, p_new boolean, p_calls text[], p_counts int[]`,
  'json',
  `BEGIN
  RETURN @.enqueue_1(p_q, ${newJobs.match(/p_\w+/g)!.join(', ')}, p_new, p_calls, p_counts);
EXCEPTION WHEN lock_not_available THEN
  RETURN json_build_object('t', @.us() / 1000, 'done', 'locked');
END`,
)

/**
 * Enqueues a call that was sent before, and that nobody remembered a moment ago. Takes what `enqueue_1` does, how long calls are
 * remembered, in ms, and how many of them, and returns what `enqueue_1` does; `done` may be `'known'` too, which changed nothing: the first
 * time was committed meanwhile. It looks once its ids are its own: by then the jobs of the first time may have run, and be gone.
 */
export const enqueueAgain = sqlFunction(
  'enqueue_again_1',
  `p_q int, ${newJobs}, p_new boolean, p_calls text[], p_counts int[], p_for bigint, p_most int`,
  'json',
  `DECLARE answer json;
BEGIN
  answer := @.enqueue_1(p_q, ${newJobs.match(/p_\w+/g)!.join(', ')}, p_new, p_calls, p_counts);
  -- The last row is that of this time.
  IF json_array_length(@.recall_2(p_q, p_calls[1], p_for, p_most)) > 1 THEN RAISE EXCEPTION USING ERRCODE = 'MR001'; END IF;
  RETURN answer;
EXCEPTION WHEN SQLSTATE 'MR001' THEN
  RETURN json_build_object('done', 'known');
END`,
)

/** Enqueues in a transaction of a user. Takes and returns what `enqueue_1` does; `p_wakes`: it may ring. */
export const enqueueInside = sqlFunction(
  'enqueue_in_1',
  `p_q int, ${newJobs}, p_new boolean, p_wakes boolean`,
  'json',
  `DECLARE answer json;
BEGIN
  answer := @.enqueue_1(p_q, ${newJobs.match(/p_\w+/g)!.join(', ')}, p_new, '{}', '{}');
  IF p_wakes AND answer ->> 'done' = 'ok' AND answer ->> 'added' IS DISTINCT FROM '[]' THEN PERFORM @.ring_in_1(p_q); END IF;
  RETURN answer;
END`,
)

/**
 * Takes the queue and ids. Returns for each that is taken `[id, state, fence, flags, expires, finished, remember]` in ms, with
 * the states of `rows/job-row` and `endedStates`, and last the instant.
 */
export const takenIds = sqlFunction(
  'taken_1',
  'p_q int, p_ids text[]',
  'json',
  `BEGIN
  RETURN (SELECT json_build_array(@.us() / 1000, (SELECT dead_age_ms FROM @.queue WHERE qid = p_q), coalesce(json_agg(x), '[]')) FROM (
    SELECT json_build_array(id, CASE WHEN fence = 0 AND pool >= 0 THEN 1 ELSE 2 END, fence, flags, expires_ms, NULL, remember_ms, created_ms) AS x
      FROM @.job WHERE id = ANY (p_ids) AND qid + 0 = p_q
    UNION ALL
    SELECT json_build_array(id, state, 0, 0, until_ms, finished_ms, remember_ms, created_ms)
      FROM @.ended WHERE id = ANY (p_ids) AND qid + 0 = p_q) r (x));
END`,
)

/**
 * Removes what has an id, if it is still in the state that `taken_1` has told; a waiting job only if nothing is tied to it.
 * Takes the queue, the id and the state. Returns null, with nothing changed, if the state is another by now; otherwise when
 * the job came in, in ms, if it waited, and 0 if not.
 */
const dropJob = sqlFunction(
  'drop_1',
  'p_q int, p_id text, p_state int',
  'bigint',
  `DECLARE o @.job; x @.ended;
BEGIN
  IF p_state = 1 THEN
    DELETE FROM @.job WHERE id = p_id AND qid + 0 = p_q AND fence = 0 AND flags & 240 = 0 RETURNING * INTO o;
    IF o.id IS NULL THEN RETURN NULL; END IF;
    INSERT INTO @.tally (qid, waiting, retries) VALUES (p_q, -1, -(o.attempt > 1)::int);
  ELSE
    DELETE FROM @.ended WHERE id = p_id AND qid + 0 = p_q AND state + 0 = p_state RETURNING * INTO x;
    IF x.id IS NULL THEN RETURN NULL; END IF;
    DELETE FROM @.payload WHERE head = x.head;
    IF x.flags & 112 > 0 THEN
      PERFORM @.leave_ties_1(p_q, p_id, x.flags, x.places, CASE p_state WHEN 4 THEN 2 END, NULL, NULL, NULL);
    END IF;
    IF p_state = 4 THEN INSERT INTO @.tally (qid, dead) VALUES (p_q, -1); END IF;
  END IF;
  DELETE FROM @.checkpoint WHERE id = p_id AND qid + 0 = p_q;
  RETURN coalesce(o.created_ms, 0);
END`,
)

/**
 * Replaces a job by a new one with the same id, if it is still in the state `p_state`, which `taken_1` has told. Takes the
 * columns of the new job like `enqueue_1`; `p_ours` is false in a transaction of a user.
 *
 * Returns `[t, outcome, told]`: `'ok'`, `'full'`, or `'stale'`, which changed nothing: the state is another by now; and the
 * number from which on there may be reports for joins.
 */
export const replaceJob = sqlFunction(
  'replace_1',
  `p_q int, ${newJobs}, p_state int, p_ours boolean`,
  'json',
  `DECLARE
  t bigint := @.us(); q @.queue; way int; due bigint; room bigint; before bigint; told bigint;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  IF q.draining THEN RETURN json_build_array(t / 1000, 'draining'); END IF;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  due := coalesce(p_runs[1], t + coalesce(p_delays[1], 0));
  IF p_state <> 1 AND q.max_pending IS NOT NULL THEN
    IF p_ours THEN PERFORM pg_advisory_xact_lock(@lock + 1, p_q); END IF;
    SELECT q.max_pending - coalesce(sum(waiting), 0) INTO room FROM @.tally WHERE qid = p_q;
    IF room < 1 THEN RETURN json_build_array(t / 1000, 'full'); END IF;
  END IF;
  told := CASE p_state WHEN 4 THEN nextval(pg_get_serial_sequence('@.join_report', 'n')) END;
  before := @.drop_1(p_q, p_ids[1], p_state);
  IF before IS NULL THEN RETURN json_build_array(t / 1000, 'stale'); END IF;
  IF p_grps[1] IS NOT NULL THEN PERFORM @.enter_lanes_1(p_q, p_grps, ARRAY[due], t); END IF;
  INSERT INTO @.job (seq, stamp, qid, rank, flags, created_ms, updated_ms, expires_ms, remember_ms, weight, id, task, codec, meta, payload, places,
    grp, pool)
  VALUES (nextval('@.job_seq') * CASE WHEN due > t THEN 1 ELSE way END, greatest(due, t) * way, p_q, coalesce(p_ranks[1], 0),
    CASE WHEN due > t THEN 1 ELSE 0 END | CASE WHEN p_places IS NULL THEN 0 ELSE 16 END | CASE WHEN p_fields IS NULL THEN 0 ELSE 4 END | CASE WHEN p_reports IS NULL THEN 0 ELSE 256 END,
    coalesce(nullif(before, 0), t / 1000), t / 1000,
    t / 1000 + p_expires[1], coalesce(p_remember[1], 0), coalesce(p_weights[1], 0), p_ids[1], p_tasks[1], p_codecs[1], p_metas[1],
    p_payloads[1], p_places[1], p_grps[1], CASE WHEN p_grps[1] IS NULL THEN 0 ELSE 2 END);
  IF p_places IS NOT NULL THEN PERFORM @.enter_joins_1(p_q, p_ids, p_places, NULL); END IF;
  IF p_fields IS NOT NULL THEN INSERT INTO @.checkpoint (qid, id, fields) VALUES (p_q, p_ids[1], p_fields[1]); END IF;
  INSERT INTO @.tally (qid, waiting) VALUES (p_q, 1);
  RETURN json_build_array(t / 1000, 'ok', told);
END`,
)

/** Takes a queue, a call id, and the first letters of its answers in the order of its jobs. Returns null. */
export const rememberCall = sqlFunction(
  'remember_1',
  'p_q int, p_call text, p_answers text',
  'json',
  `BEGIN
  INSERT INTO @.call (at_ms, qid, ids, answers) VALUES (@.us() / 1000, p_q, p_call, p_answers);
  RETURN NULL;
END`,
)

/**
 * Takes a queue, a call id, and how long calls are remembered, in ms, and how many of them. Returns null for an unknown call, otherwise
 * `[ids, counts, answers]` of each row that names it, the first of them first; answers that are null mean: all were added.
 *
 * In an ordered queue it waits for the pushes of the shard that are under way: one may be the first of this call, and nothing there would
 * keep a second from pushing the same payloads again.
 */
export const recallCall = sqlFunction(
  'recall_2',
  'p_q int, p_call text, p_for bigint, p_most int',
  'json',
  `BEGIN
  -- Lock, and look in the next statement.
  IF (SELECT kind FROM @.queue WHERE qid = p_q) = 'ordered' THEN PERFORM pg_advisory_xact_lock(@lock + 14, p_q); END IF;
  RETURN (SELECT json_agg(json_build_array(string_to_array(ids, E'\\x1f'), counts, answers) ORDER BY n) FROM @.call c
    WHERE (SELECT coalesce(sum(coalesce(cardinality(l.counts), 1)), 0) FROM @.call l WHERE l.qid = p_q AND l.n > c.n) < p_most AND qid = p_q AND at_ms > @.us() / 1000 - p_for AND position(E'\\x1f' || p_call || E'\\x1f' IN E'\\x1f' || ids || E'\\x1f') > 0);
END`,
)

export const enqueueFunctions = [
  ...[
    enqueueJobs,
    enqueueTogether,
    enqueueAgain,
    enqueueInside,
    takenIds,
    dropJob,
    replaceJob,
    rememberCall,
    recallCall,
  ],
]
