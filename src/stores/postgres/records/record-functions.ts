/** Records in the database: what is read of a job, and the changes of its row that no end makes. */

import { payloadsInPage, payloadsInRecord } from '../../contract/job-records.js'
import { keepFloors } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Of an ordered id: see `payloads_of_1`. */
const payloads = (head: string, hand: string, full: boolean) =>
  `'of', CASE WHEN ${head} IS NOT NULL THEN @.payloads_of_1(${head}, ${hand}, ${full ? payloadsInRecord : payloadsInPage}) END`

/** A job of `job` and its notes, as `storedJob` reads it. `p_t`: now, in µs. */
export const liveRow = (full: boolean) => `json_build_object('id', j.id, 'task', j.task,
  'state', CASE WHEN j.pool = -1 THEN 5 WHEN j.fence > 0 THEN 2 WHEN abs(j.stamp) > @.us() THEN 0 ELSE 1 END,
  'payload', j.payload, 'codec', j.codec, 'meta', j.meta, 'rank', j.rank, 'attempt', j.attempt, 'crashes', j.crashes,
  'suspect', (j.pool = 1)::int, 'created_at', j.created_ms, 'updated_at', j.updated_ms, 'stamp', abs(j.stamp), 'waited_until', j.waited_ms, 'expires_at', j.expires_ms,
  'started_at', o.started_ms, 'worker', coalesce(o.worker, b.worker), 'host', o.host, 'boot', o.boot, 'pidns', o.pidns, 'pid', o.pid,
  'ticks', o.ticks, 'progress', o.progress, 'fields', c.fields, 'error', j.error, 'grp', j.grp, 'places', j.places, 'flags', j.flags,
  'reason', CASE WHEN j.flags & 8 > 0 THEN c.reason END, 'awaits', w.signal, 'awaits_until', w.until, ${payloads('j.head', 'j.hand', full)}
  ${full ? ", 'checkpoint', c.payload, 'checkpoint_codec', c.codec, 'log', c.log" : ''})`

/** The same of a job that has ended. */
export const endedRow = (
  full: boolean,
) => `json_build_object('id', e.id, 'task', e.task, 'state', e.state, 'payload', e.payload, 'codec', e.codec,
  'meta', e.meta, 'rank', e.rank, 'attempt', e.attempt, 'crashes', e.crashes, 'created_at', e.created_ms, 'updated_at', e.finished_ms,
  'stamp', e.stamp, 'started_at', e.started_ms, 'finished_at', e.finished_ms, 'until', e.until_ms, 'remember_ms', e.remember_ms,
  'worker', e.worker, 'host', e.host, 'boot', e.boot, 'pidns', e.pidns, 'pid', e.pid, 'ticks', e.ticks, 'progress', e.progress,
  'fields', c.fields, 'result', e.result, 'result_codec', e.result_codec, 'error', e.error, 'reason', e.reason, 'grp', e.grp, 'places', e.places,
  'flags', e.flags, ${payloads('e.head', 'NULL', full)} ${full ? ", 'checkpoint', c.payload, 'checkpoint_codec', c.codec, 'log', c.log" : ''})`

export const liveTables = `@.job j LEFT JOIN @.bunch b ON b.fence = j.fence AND j.fence > 0 LEFT JOIN @.beat o ON o.id = j.id AND o.qid = j.qid
  LEFT JOIN @.checkpoint c ON c.id = j.id AND c.qid = j.qid LEFT JOIN @.signal_wait w ON w.id = j.id AND w.qid = j.qid`
/** The fields of an ordered id are those of its live job. */
export const endedTables = '@.ended e LEFT JOIN @.checkpoint c ON c.id = e.id AND c.qid = e.qid AND e.head IS NULL'

/**
 * Takes a queue and an id. Returns `[now, age of dead jobs, row]`, with the row of the live job, or else of what has ended. `p_ended`:
 * the live job does not count.
 */
export const recordOf = sqlFunction(
  'record_1',
  'p_q int, p_id text, p_ended boolean',
  'json',
  `DECLARE row json;
BEGIN
  IF NOT p_ended THEN SELECT ${liveRow(true)} INTO row FROM ${liveTables} WHERE j.id = p_id COLLATE "C" AND j.qid + 0 = p_q; END IF;
  IF row IS NULL THEN SELECT ${endedRow(true)} INTO row FROM ${endedTables} WHERE e.id = p_id COLLATE "C" AND e.qid + 0 = p_q; END IF;
  RETURN json_build_array(@.us() / 1000, (SELECT dead_age_ms FROM @.queue WHERE qid = p_q), row);
END`,
)

/**
 * Running jobs are to be cancelled, and what waits behind them goes. Takes a queue, ids with their fences, and the reason or null.
 * Returns how many it marked. It passes over those that somebody else has locked.
 */
export const askToCancel = sqlFunction(
  'ask_cancel_1',
  'p_q int, p_ids text[], p_fences bigint[], p_reason text',
  'json',
  `DECLARE done text[];
BEGIN
  done := array(SELECT id FROM unnest(p_ids, p_fences) x (i, f) JOIN @.job ON id = x.i COLLATE "C" AND qid + 0 = p_q AND fence = x.f AND flags & 8 = 0
    FOR UPDATE OF job SKIP LOCKED);
  UPDATE @.job SET flags = flags | CASE WHEN p_reason IS NULL THEN 8 ELSE 12 END WHERE id = ANY (done) AND qid + 0 = p_q;
  INSERT INTO @.checkpoint (qid, id, reason) SELECT p_q, x, p_reason FROM unnest(done) x WHERE p_reason IS NOT NULL
    ON CONFLICT (id, qid) DO UPDATE SET reason = p_reason;
  DELETE FROM @.payload p USING @.job j WHERE j.id = ANY (done) AND j.qid + 0 = p_q AND p.head = j.head AND NOT p.seq = ANY (j.hand);
  UPDATE @.job SET next_stamp = NULL, next_created_ms = NULL WHERE id = ANY (done) AND qid + 0 = p_q AND next_stamp IS NOT NULL;
  RETURN to_json(cardinality(done));
END`,
)

/**
 * Dead jobs are ready again, from the first attempt on; joins that miss members wait for them again. Takes a queue and ids in
 * their order. Returns `[how many, told]`, with the number from which on there are reports for joins.
 */
export const reviveJobs = sqlFunction(
  'revive_1',
  'p_q int, p_ids text[]',
  'json',
  `DECLARE t bigint := @.us(); way int; i text; e @.ended; k int := 0; has_notes boolean; misses boolean; told bigint;
BEGIN
  SELECT CASE ord WHEN 'lifo' THEN -1 ELSE 1 END INTO way FROM @.queue WHERE qid = p_q;
  FOREACH i IN ARRAY p_ids LOOP
    DELETE FROM @.ended WHERE id = i COLLATE "C" AND qid + 0 = p_q AND state + 0 = 4 RETURNING * INTO e;
    CONTINUE WHEN NOT FOUND;
    has_notes := EXISTS (SELECT FROM @.checkpoint WHERE id = e.id AND qid + 0 = p_q);
    misses := e.flags & 32 > 0 AND @.wait_again_1(p_q, e.id);
    IF e.grp IS NOT NULL AND NOT misses THEN PERFORM @.enter_lanes_1(p_q, ARRAY[e.grp], ARRAY[t], t); END IF;
    INSERT INTO @.job (seq, arrival, stamp, qid, pool, rank, flags, created_ms, updated_ms, remember_ms, weight, id, task, codec, meta, error, payload, places, grp)
      VALUES (nextval('@.job_seq') * way, e.seq, t * way, p_q, CASE WHEN misses THEN -1 WHEN e.grp IS NULL THEN 0 ELSE 2 END, e.rank,
        e.flags & 368 | CASE WHEN has_notes THEN 4 ELSE 0 END, e.created_ms, t / 1000, e.remember_ms,
        octet_length(e.payload) + coalesce(octet_length(e.meta), 0), e.id, e.task, e.codec, e.meta, e.error, e.payload, e.places, e.grp);
    INSERT INTO @.tally (qid, waiting, dead) VALUES (p_q, 1, -1);
    IF e.flags & 16 > 0 THEN
      told := coalesce(told, nextval(pg_get_serial_sequence('@.join_report', 'n')));
      PERFORM @.leave_ties_1(p_q, e.id, 16, e.places, 4, NULL, NULL, NULL);
    END IF;
    k := k + 1;
  END LOOP;
  RETURN json_build_array(k, told);
END`,
)

/**
 * Jobs that wait for a claim get another place. Takes a plain queue, ids, their rank or null, and when they are due: an instant
 * in µs, or µs from now, or null for both. Returns `[how many, ids, later]`: those that somebody else has locked, and whether
 * the instant is still to come.
 */
export const placeJobs = sqlFunction(
  'place_1',
  'p_q int, p_ids text[], p_rank int, p_at bigint, p_delay bigint',
  'json',
  `DECLARE t bigint := @.us(); way int; i text; o @.job; at bigint := coalesce(p_at, @.us() + p_delay); later boolean; behind boolean; place bigint;
  k int := 0; locked text[] := '{}'; grps text[] := '{}'; dues bigint[] := '{}'; short_grps text[] := '{}';
BEGIN
  SELECT CASE ord WHEN 'lifo' THEN -1 ELSE 1 END INTO way FROM @.queue WHERE qid = p_q;
  later := coalesce(at > t, false);
  ${keepFloors('p_q')};
  FOR i IN SELECT x FROM unnest(p_ids) WITH ORDINALITY u (x, n) GROUP BY x ORDER BY min(n) LOOP
    SELECT * INTO o FROM @.job WHERE id = i COLLATE "C" AND qid + 0 = p_q AND fence = 0 AND pool IN (0, 2) FOR UPDATE SKIP LOCKED;
    IF o.id IS NULL THEN
      IF EXISTS (SELECT FROM @.job WHERE id = i COLLATE "C" AND qid + 0 = p_q AND fence = 0 AND pool IN (0, 2)) THEN locked := locked || i; END IF;
      CONTINUE;
    END IF;
    behind := at <= t IS TRUE AND abs(o.stamp) > t;
    UPDATE @.job SET rank = coalesce(p_rank, rank), updated_ms = t / 1000,
      stamp = CASE WHEN later THEN at * way WHEN behind THEN t * way ELSE stamp END,
      seq = CASE WHEN later THEN coalesce(arrival, abs(seq)) WHEN behind THEN nextval('@.job_seq') * way ELSE seq END,
      arrival = CASE WHEN behind THEN coalesce(arrival, abs(seq)) ELSE arrival END,
      flags = CASE WHEN later THEN flags | 1 WHEN behind THEN flags & ~1 ELSE flags END
      WHERE id = o.id AND qid + 0 = p_q RETURNING stamp INTO place;
    UPDATE @.floor SET stamp = place WHERE qid = p_q AND rank = coalesce(p_rank, o.rank) AND stamp > place;
    IF o.pool = 2 THEN
      grps := grps || o.grp; dues := dues || abs(place);
      IF later THEN short_grps := short_grps || o.grp; END IF;
    END IF;
    k := k + 1;
  END LOOP;
  IF cardinality(grps) > 0 THEN PERFORM @.enter_lanes_1(p_q, grps, dues, t); END IF;
  IF cardinality(short_grps) > 0 THEN PERFORM @.shorten_lanes_1(p_q, short_grps); END IF;
  RETURN json_build_array(k, to_json(locked), later);
END`,
)

/**
 * Removes ended jobs by hand. Takes a queue, ids and their states. Returns `[how many, told]`, with the number from which on there
 * are reports for joins.
 */
export const removeEnded = sqlFunction(
  'remove_ended_1',
  'p_q int, p_ids text[], p_states int[]',
  'json',
  `DECLARE k int := 0; told bigint;
BEGIN
  IF EXISTS (SELECT FROM @.ended WHERE id = ANY (p_ids) AND qid + 0 = p_q AND flags & 16 > 0) THEN
    told := nextval(pg_get_serial_sequence('@.join_report', 'n'));
  END IF;
  FOR i IN 1 .. cardinality(p_ids) LOOP
    IF @.drop_1(p_q, p_ids[i], p_states[i]) IS NOT NULL THEN k := k + 1; END IF;
  END LOOP;
  RETURN json_build_array(k, told);
END`,
)

/** Jobs were removed by hand. Takes a queue. Returns null. */
export const noteLoss = sqlFunction(
  'lost_1',
  'p_q int',
  'json',
  `BEGIN
  UPDATE @.queue SET lost_at = greatest(lost_at, @.us() / 1000) WHERE qid = p_q;
  RETURN NULL;
END`,
)

/** Takes a queue's shards, and what becomes of its two switches; null: it stays. Returns null. */
export const switchQueue = sqlFunction(
  'switch_1',
  'p_qids int[], p_paused boolean, p_draining boolean',
  'json',
  `BEGIN
  UPDATE @.queue SET paused = coalesce(p_paused, paused), draining = coalesce(p_draining, draining) WHERE qid = ANY (p_qids);
  RETURN NULL;
END`,
)

/**
 * Writes the fields of a job. Takes a queue, an id, the fields that the caller saw, and the new ones; null: it has none.
 * Returns false, with nothing changed, if they are others by now.
 */
export const writeFields = sqlFunction(
  'fields_1',
  'p_q int, p_id text, p_seen text, p_fields text',
  'json',
  `DECLARE before text;
BEGIN
  PERFORM FROM @.job WHERE id = p_id COLLATE "C" AND qid + 0 = p_q FOR UPDATE;
  IF NOT FOUND THEN PERFORM FROM @.ended WHERE id = p_id COLLATE "C" AND qid + 0 = p_q AND state + 0 IN (3, 4) AND head IS NULL FOR UPDATE; END IF;
  IF NOT FOUND THEN RETURN to_json(false); END IF;
  SELECT fields INTO before FROM @.checkpoint WHERE id = p_id COLLATE "C" AND qid + 0 = p_q;
  IF before IS DISTINCT FROM p_seen THEN RETURN to_json(false); END IF;
  INSERT INTO @.checkpoint (qid, id, fields) VALUES (p_q, p_id, p_fields) ON CONFLICT (id, qid) DO UPDATE SET fields = p_fields;
  UPDATE @.job SET flags = flags | 4 WHERE id = p_id COLLATE "C" AND qid + 0 = p_q;
  RETURN to_json(true);
END`,
)

/** Takes a queue, ids, who waits for their ends, and for how long in ms; 0: no longer. Returns null. */
export const expectEnds = sqlFunction(
  'expect_1',
  'p_q int, p_ids text[], p_by text, p_for bigint',
  'json',
  `DECLARE ms bigint := @.us() / 1000;
BEGIN
  DELETE FROM @.expected WHERE qid = p_q AND (until_ms <= ms OR (waiter = p_by AND id = ANY (p_ids)));
  IF p_for <= 0 THEN RETURN NULL; END IF;
  INSERT INTO @.expected SELECT p_q, i, p_by, ms + p_for FROM (SELECT DISTINCT i FROM unnest(p_ids) i ORDER BY i) x
    WHERE EXISTS (SELECT FROM @.job WHERE id = i AND qid + 0 = p_q)
      OR EXISTS (SELECT FROM @.ended WHERE id = i AND qid + 0 = p_q AND state + 0 IN (3, 4) AND coalesce(until_ms > ms, true));
  UPDATE @.ended SET until_ms = greatest(until_ms, ms + p_for) WHERE id = ANY (p_ids) AND qid + 0 = p_q AND state = 3 AND until_ms > ms;
  RETURN NULL;
END`,
)

/** Takes a queue and ids. Returns those that have ended or do not exist. */
export const endedOf = sqlFunction(
  'ended_1',
  'p_q int, p_ids text[]',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(i), '[]') FROM unnest(p_ids) i WHERE NOT EXISTS (SELECT FROM @.job WHERE id = i AND qid + 0 = p_q));
END`,
)

export const recordFunctions = [
  ...[recordOf, askToCancel, reviveJobs, placeJobs, removeEnded, noteLoss, switchQueue, writeFields, expectEnds],
  endedOf,
]
