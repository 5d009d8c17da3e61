/** Ends of claims in the database: what TypeScript has decided is carried out, if the job is still as it was seen. */

import { isFree } from '../schema/free-job.js'
import { keepFloors } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/**
 * Takes a queue and ids. Returns `[now, rows]`: for each job that is there, the row as `EndingRow` has it; for one that has
 * ended and of which more than the id is kept, `{id}` alone.
 */
export const lookAtJobs = sqlFunction(
  'look_1',
  'p_q int, p_ids text[]',
  'json',
  `BEGIN
  RETURN (SELECT json_build_array(@.us() / 1000, coalesce(json_agg(x), '[]')) FROM (
    SELECT json_build_object('id', j.id, 'task', j.task, 'fence', j.fence, 'attempt', j.attempt, 'crashes', j.crashes, 'pool', j.pool,
        'flags', j.flags, 'error', j.error, 'remember', j.remember_ms, 'noted', coalesce(c.payload, c.log) IS NOT NULL, 'reason', c.reason, 'hand', cardinality(j.hand),
        'grp', j.grp, 'crashLimit', (SELECT crash_limit FROM @.queue WHERE qid = p_q),
        'worker', coalesce(o.worker, b.worker), 'alone', b.alone) AS x
      FROM @.job j LEFT JOIN @.bunch b ON b.fence = j.fence LEFT JOIN @.beat o ON o.id = j.id AND o.qid = j.qid LEFT JOIN @.checkpoint c ON c.id = j.id AND c.qid = j.qid WHERE j.id = ANY (p_ids) AND j.qid + 0 = p_q
    UNION ALL SELECT json_build_object('id', id) FROM @.ended WHERE id = ANY (p_ids) AND qid + 0 = p_q AND state + 0 IN (3, 4) AND head IS NULL) r (x));
END`,
)

/**
 * Whether a claim still ends as a crash: its lease is over if `p_lapsed`, otherwise this worker, which died, holds it. Takes the queue,
 * id and fence of its job, and the instant in ms. The caller has locked the job, so that nobody adopts it meanwhile, and, for its lease,
 * the claim, so that nobody renews that.
 */
const isCrashed = sqlFunction(
  'is_crashed_1',
  'p_q int, p_id text, p_fence bigint, p_lapsed boolean, p_worker text, p_ms bigint',
  'boolean',
  `BEGIN
  RETURN (SELECT CASE WHEN p_lapsed THEN coalesce(o.lease_ms, b.lease_ms) <= p_ms ELSE coalesce(o.worker, b.worker) = p_worker END
    FROM @.bunch b LEFT JOIN @.beat o ON o.id = p_id COLLATE "C" AND o.qid + 0 = p_q WHERE b.fence = p_fence) IS TRUE;
END`,
)

/**
 * Takes a queue, and a list of ends `{id, fence, to, …}` as `JobEnd` has them. `fence` 0: the job waits, and has the attempt, crashes
 * and error of its row, whatever the end says.
 * `to`: `back` to its old place · `line`: ready behind all others · `later`: due after `delay` µs · `aside`: it waits for
 * `signal`, at most `withinMs` · `dead`, `kept`: it stays as ended · `known`: only its id stays, for `forMs` · `gone`.
 *
 * A job of a group that waits does so in its lane; `hold`: until when in ms from now its queue, or its `holdGroup`, is held back.
 *
 * Returns `[now, done, told, woke, freed, limited]`: for each end, whether the job was still as it was seen, null if somebody else
 * has it locked, perhaps a transaction of a user, which may stay open for long; the number from which on
 * there are reports for joins, null if there are none; whether a job is ready because its signal came first; whether some end may
 * have made room for jobs; and whether the queue is limited.
 */
export const endJobs = sqlFunction(
  'ends_1',
  'p_q int, p_ends json',
  'json',
  `DECLARE
  t bigint := @.us(); ms bigint := @.us() / 1000; q @.queue; e record; o @.job; b @.beat; done boolean[] := '{}'; left_n int; held text;
  waits int; way int; told bigint; woke boolean := false; due bigint; grps text[] := '{}'; dues bigint[] := '{}'; left_grps text[] := '{}';
  short_grps text[] := '{}'; held_grps text[] := '{}'; helds bigint[] := '{}'; freed boolean := false;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  FOR e IN SELECT * FROM json_to_recordset(p_ends) AS x (id text, fence bigint, "to" text, attempt int, crashes int, pool int, error text,
      reason text, delay bigint, "forMs" bigint, state int, result text, codec text, count text,
      started bigint, host text, pid bigint, fate int, signal text, "withinMs" bigint, rest boolean, hold bigint, "holdGroup" text,
      lapsed boolean, "heldBy" text) LOOP
    -- A renewal locks the claim before its jobs: it is made by now, or finds what becomes of them here.
    IF e.lapsed THEN PERFORM FROM @.bunch WHERE fence = e.fence FOR NO KEY UPDATE; END IF;
    IF e."to" IN ('back', 'aside') AND e.pool = 0 THEN ${keepFloors('p_q')}; END IF;
    SELECT * INTO o FROM @.job WHERE id = e.id COLLATE "C" AND qid + 0 = p_q FOR UPDATE SKIP LOCKED;
    IF o.id IS NULL AND EXISTS (SELECT FROM @.job WHERE id = e.id COLLATE "C" AND qid + 0 = p_q AND fence = e.fence) THEN
      done := done || NULL::boolean; CONTINUE;
    END IF;
    -- Somebody else may have run it now. All that wait have the same fence: another may have come in place of one that expires.
    IF o.id IS NULL OR o.fence <> e.fence OR (e."to" = 'line' AND o.fence = 0 AND abs(o.stamp) <= t)
        OR (e.count = 'expired' AND coalesce(o.expires_ms > ms, true))
        OR ((e.lapsed OR e."heldBy" IS NOT NULL) AND NOT @.is_crashed_1(p_q, o.id, o.fence, e.lapsed, e."heldBy", ms)) THEN done := done || false; CONTINUE; END IF;
    -- It may have run and failed, and wait again.
    IF o.fence = 0 THEN e.attempt := o.attempt; e.crashes := o.crashes; e.error := o.error; e.pool := o.pool; END IF;
    held := NULL; b := NULL;
    IF o.fence > 0 THEN
      UPDATE @.bunch SET n = n - 1 WHERE fence = o.fence RETURNING n, worker INTO left_n, held;
      freed := freed OR q.bounded;
      IF o.grp IS NOT NULL THEN left_grps := left_grps || o.grp; END IF;
      IF left_n <= 0 THEN DELETE FROM @.bunch WHERE fence = o.fence; END IF;
      IF o.flags & 2 > 0 THEN DELETE FROM @.beat WHERE id = o.id AND qid + 0 = p_q RETURNING * INTO b; END IF;
      held := coalesce(b.worker, held);
    END IF;
    -- To run a job now ends its sleep.
    IF e."to" = 'line' AND o.fence = 0 AND o.flags & 64 > 0 THEN
      UPDATE @.step SET until = ms WHERE id = o.id AND qid + 0 = p_q AND is_signal = 0 AND until > ms;
    END IF;
    IF e."to" = 'aside' THEN
      -- It does not expire any more. A signal that came first is there already.
      UPDATE @.job SET expires_ms = NULL WHERE id = o.id AND qid + 0 = p_q AND expires_ms IS NOT NULL;
      IF EXISTS (SELECT FROM @.step WHERE id = o.id AND qid + 0 = p_q AND is_signal = 1 AND name = e.signal COLLATE "C") THEN
        e."to" := 'back'; woke := true;
      ELSE
        INSERT INTO @.signal_wait VALUES (p_q, o.id, e.signal, ms + e."withinMs");
      END IF;
    END IF;
    waits := CASE WHEN e."to" IN ('back', 'line', 'later', 'aside') THEN 1 ELSE 0 END - CASE WHEN o.fence = 0 THEN 1 ELSE 0 END;
    IF e."to" = 'aside' THEN
      UPDATE @.job SET fence = 0, updated_ms = ms, attempt = e.attempt, crashes = e.crashes, error = e.error, pool = -1,
        flags = o.flags & 372 | 128 WHERE id = o.id AND qid + 0 = p_q;
    ELSIF e."to" IN ('back', 'line', 'later') THEN
      UPDATE @.job SET fence = 0, updated_ms = ms, attempt = e.attempt, crashes = e.crashes, error = e.error,
        pool = CASE WHEN e.pool = 0 AND o.grp IS NOT NULL THEN 2 ELSE e.pool END,
        flags = o.flags & 372 | CASE e."to" WHEN 'later' THEN 1 ELSE 0 END,
        waited_ms = CASE WHEN e.signal IS NULL THEN o.waited_ms ELSE ms END,
        stamp = CASE e."to" WHEN 'back' THEN o.stamp WHEN 'line' THEN t * way ELSE (t + e.delay) * way END,
        seq = CASE e."to" WHEN 'back' THEN o.seq WHEN 'line' THEN nextval('@.job_seq') * way ELSE coalesce(o.arrival, abs(o.seq)) END,
        arrival = CASE e."to" WHEN 'line' THEN coalesce(o.arrival, abs(o.seq)) ELSE o.arrival END
        WHERE id = o.id AND qid + 0 = p_q RETURNING abs(stamp) INTO due;
      IF o.grp IS NOT NULL AND e.pool <> 1 THEN grps := grps || o.grp; dues := dues || due; END IF;
      IF e."to" = 'back' THEN UPDATE @.floor SET stamp = o.stamp WHERE qid = p_q AND rank = o.rank AND stamp > o.stamp; END IF;
    ELSE
      DELETE FROM @.job WHERE id = o.id AND qid + 0 = p_q;
      IF o.pool = 2 AND o.fence = 0 THEN short_grps := short_grps || o.grp; END IF;
      -- The checkpoint of a dead job stays: it may be revived.
      IF e."to" = 'kept' AND o.flags & 4 > 0 THEN
        UPDATE @.checkpoint SET payload = NULL, codec = NULL WHERE id = o.id AND qid + 0 = p_q;
      ELSIF e."to" <> 'dead' AND e.rest IS NOT TRUE AND o.flags & 4 > 0 THEN
        DELETE FROM @.checkpoint WHERE id = o.id AND qid + 0 = p_q;
      END IF;
      IF e."to" IN ('dead', 'kept') THEN
        INSERT INTO @.ended (qid, state, flags, rank, attempt, crashes, seq, stamp, created_ms, finished_ms, until_ms, remember_ms, id, task, grp, worker,
            codec, meta, error, reason, payload, places, result, result_codec, started_ms, host, boot, pidns, pid, ticks, progress)
          VALUES (p_q, CASE e."to" WHEN 'dead' THEN 4 ELSE 3 END, o.flags & CASE e."to" WHEN 'dead' THEN 368 ELSE 48 END, o.rank, e.attempt, e.crashes, coalesce(o.arrival, abs(o.seq)), abs(o.stamp), o.created_ms, ms,
            CASE WHEN e."forMs" IS NOT NULL THEN greatest(ms + e."forMs", (SELECT max(until_ms) FROM @.expected WHERE id = o.id AND qid + 0 = p_q)) END,
            o.remember_ms, o.id, o.task, o.grp, held, o.codec, o.meta, e.error, e.reason, o.payload, o.places, CASE e."to" WHEN 'kept' THEN e.result END, CASE e."to" WHEN 'kept' THEN e.codec END,
            coalesce(b.started_ms, ms - e.started), coalesce(b.host, e.host), b.boot, b.pidns, coalesce(b.pid, e.pid), b.ticks, b.progress)
          ON CONFLICT (id, qid) DO UPDATE SET state = excluded.state, flags = excluded.flags, places = excluded.places, grp = excluded.grp, seq = excluded.seq,
            attempt = excluded.attempt, crashes = excluded.crashes, finished_ms = ms, until_ms = excluded.until_ms, error = excluded.error, reason = excluded.reason, payload = excluded.payload,
            result = excluded.result, result_codec = excluded.result_codec, worker = excluded.worker, started_ms = excluded.started_ms, host = excluded.host,
            boot = excluded.boot, pidns = excluded.pidns, pid = excluded.pid, ticks = excluded.ticks, progress = excluded.progress;
        IF e."to" = 'dead' AND o.flags & 256 > 0 THEN
          INSERT INTO @.death (qid, id, task, attempt, crashes, died_ms, error, reason, codec, payload)
            VALUES (p_q, o.id, o.task, e.attempt, e.crashes, ms, e.error, e.reason, o.codec, o.payload);
        END IF;
      ELSIF e."to" = 'known' THEN
        INSERT INTO @.ended (qid, state, rank, attempt, crashes, stamp, created_ms, finished_ms, until_ms, remember_ms, id, task, reason)
          VALUES (p_q, e.state, o.rank, e.attempt, e.crashes, abs(o.stamp), o.created_ms, ms, ms + e."forMs", e."forMs", o.id, o.task, e.reason)
          ON CONFLICT (id, qid) DO UPDATE SET state = excluded.state, finished_ms = ms, until_ms = excluded.until_ms, reason = excluded.reason;
        -- What remains of a job that had begun.
        UPDATE @.ended SET grp = o.grp, payload = o.payload, codec = o.codec, meta = o.meta, error = e.error, worker = held,
          started_ms = coalesce(b.started_ms, ms - e.started), host = coalesce(b.host, e.host), boot = b.boot, pidns = b.pidns,
          pid = coalesce(b.pid, e.pid), ticks = b.ticks, progress = b.progress WHERE id = o.id AND qid + 0 = p_q AND e.rest;
      END IF;
      IF o.flags & 240 > 0 THEN
        told := coalesce(told, nextval(pg_get_serial_sequence('@.join_report', 'n')));
        PERFORM @.leave_ties_1(p_q, o.id, o.flags, o.places, coalesce(e.fate, CASE e."to" WHEN 'dead' THEN 1 WHEN 'kept' THEN 0 ELSE 2 END), e.result,
          e.codec, CASE e."to" WHEN 'dead' THEN e.error END);
      END IF;
    END IF;
    INSERT INTO @.tally (qid, waiting, retries, dead, processed, failed, crashed, expired) VALUES (p_q, waits,
      CASE WHEN e."to" IN ('back', 'line', 'later') AND e.attempt > 1 THEN 1 ELSE 0 END
        - CASE WHEN o.fence = 0 AND o.pool >= 0 AND o.attempt > 1 THEN 1 ELSE 0 END,
      (e."to" = 'dead')::int, coalesce(e.count = 'processed', false)::int, coalesce(e.count = 'failed', false)::int,
      coalesce(e.count = 'crashed', false)::int, coalesce(e.count = 'expired', false)::int);
    IF e.hold IS NOT NULL THEN
      PERFORM @.hold_1(p_q, e."holdGroup", ms + e.hold);
      IF e."holdGroup" = ANY (grps) THEN held_grps := held_grps || e."holdGroup"; helds := helds || ms + e.hold; END IF;
    END IF;
    done := done || true;
  END LOOP;
  IF cardinality(grps) > 0 THEN PERFORM @.enter_lanes_1(p_q, grps, dues, t); END IF;
  -- A lane into which an earlier job of this call came is shut by the hold of a later one.
  FOR i IN 1 .. cardinality(held_grps) LOOP PERFORM @.hold_1(p_q, held_grps[i], helds[i]); END LOOP;
  IF cardinality(left_grps) > 0 THEN PERFORM @.leave_lanes_1(p_q, left_grps, freed); END IF;
  IF cardinality(short_grps) > 0 THEN PERFORM @.shorten_lanes_1(p_q, short_grps); END IF;
  RETURN json_build_array(ms, array_to_json(done), told, woke, freed, q.limited);
END`,
)

/**
 * Completes a job in a transaction of a user. It locks the row of the job, and only inserts beside that: who settles other jobs
 * of the claim, renews it or makes room by it does not wait for this transaction. Takes a queue, a fence and an id. Returns
 * whether the claim was still held.
 */
export const completeInside = sqlFunction(
  'complete_in_1',
  'p_q int, p_fence bigint, p_id text',
  'json',
  `DECLARE ms bigint := @.us() / 1000; o @.job; told bigint;
BEGIN
  DELETE FROM @.job WHERE id = p_id COLLATE "C" AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 RETURNING * INTO o;
  IF o.id IS NULL THEN RETURN to_json(false); END IF;
  IF o.remember_ms > 0 THEN
    INSERT INTO @.ended (qid, state, rank, attempt, crashes, stamp, created_ms, finished_ms, until_ms, remember_ms, id, task)
      VALUES (p_q, 7, o.rank, o.attempt, o.crashes, abs(o.stamp), o.created_ms, ms, ms + o.remember_ms, o.remember_ms, o.id, o.task)
      ON CONFLICT (id, qid) DO UPDATE SET state = 7, finished_ms = ms, until_ms = excluded.until_ms;
  END IF;
  IF o.flags & 4 > 0 THEN DELETE FROM @.checkpoint WHERE id = o.id AND qid + 0 = p_q; END IF;
  INSERT INTO @.tally (qid, processed) VALUES (p_q, 1);
  IF o.grp IS NOT NULL THEN INSERT INTO @.lane_count VALUES (p_q, o.grp, -1); END IF;
  IF o.flags & 112 > 0 THEN
    told := nextval(pg_get_serial_sequence('@.join_report', 'n'));
    PERFORM @.leave_ties_1(p_q, o.id, o.flags, o.places, 0, NULL, NULL, NULL);
  END IF;
  INSERT INTO @.bunch_left VALUES (p_q, p_fence, o.id, o.grp, told);
  RETURN to_json(true);
END`,
)

/**
 * Jobs that ended in committed transactions of users leave their claims, and the lanes of their groups have room. Takes a queue.
 * Returns null if there are none, otherwise `[told, freed]`: the number from which on there are reports for joins, or null; and
 * whether that may have made room for jobs.
 */
export const foldLeft = sqlFunction(
  'fold_left_1',
  'p_q int',
  'json',
  `DECLARE x record; told bigint; grps text[] := '{}'; is_any boolean := false; is_bounded boolean;
BEGIN
  FOR x IN WITH d AS (DELETE FROM @.bunch_left WHERE ctid = ANY (array(SELECT ctid FROM @.bunch_left WHERE qid = p_q FOR UPDATE SKIP LOCKED)) RETURNING *)
      SELECT fence AS f, count(*) AS k, array_agg(id) AS ids, array_agg(grp) FILTER (WHERE grp IS NOT NULL) AS of, min(d.told) AS first_told
      FROM d GROUP BY fence ORDER BY fence LOOP
    is_any := true; told := least(told, x.first_told); grps := grps || coalesce(x.of, '{}');
    DELETE FROM @.beat WHERE id = ANY (x.ids) AND qid + 0 = p_q AND fence = x.f;
    UPDATE @.bunch SET n = n - x.k WHERE fence = x.f;
    DELETE FROM @.bunch WHERE fence = x.f AND n <= 0;
  END LOOP;
  IF NOT is_any THEN RETURN NULL; END IF;
  SELECT bounded INTO is_bounded FROM @.queue WHERE qid = p_q;
  IF is_bounded AND cardinality(grps) > 0 THEN PERFORM @.free_lanes_1(p_q, grps); END IF;
  RETURN json_build_array(told, is_bounded);
END`,
)

/**
 * Expired claims of jobs that somebody has locked are looked at again in a second: a transaction of a user that ends a job is a
 * sign of its life. Takes a queue, and the ids and fences of the jobs. Returns null.
 */
export const postponeLeases = sqlFunction(
  'postpone_1',
  'p_q int, p_ids text[], p_fences bigint[]',
  'json',
  `DECLARE ms bigint := @.us() / 1000;
BEGIN
  UPDATE @.bunch SET lease_ms = ms + 1000 WHERE fence = ANY (p_fences) AND lease_ms <= ms;
  UPDATE @.beat SET lease_ms = ms + 1000 WHERE id = ANY (p_ids) AND qid + 0 = p_q AND fence = ANY (p_fences) AND lease_ms <= ms;
  RETURN NULL;
END`,
)

/**
 * Removes what is kept of ended jobs beyond its time and number: at most `p_most` of each kind, and nothing that somebody else has
 * locked, perhaps a transaction of a user that has enqueued its id again. Takes a queue. Returns `[told, more]`: the number from
 * which on there are reports for joins, or null; and whether more may be left.
 */
export const trimEnded = sqlFunction(
  'trim_1',
  'p_q int, p_most int',
  'json',
  `DECLARE ms bigint := @.us() / 1000; q @.queue; over bigint; k int; last_ms bigint; told bigint; more boolean; tied @.ended[]; x @.ended;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  WITH gone AS (DELETE FROM @.ended WHERE ctid = ANY (array(SELECT ctid FROM @.ended WHERE qid = p_q AND until_ms <= ms AND state > 4
      ORDER BY until_ms LIMIT p_most FOR UPDATE SKIP LOCKED)) RETURNING id),
  notes AS (DELETE FROM @.checkpoint WHERE qid = p_q AND id IN (SELECT id FROM gone))
  SELECT count(*) = p_most INTO more FROM gone;
  DELETE FROM @.expected WHERE qid = p_q AND until_ms <= ms;
  -- Of a dropped result the memory of its id may stay.
  over := CASE WHEN q.results_limit IS NULL THEN 0 ELSE least(p_most, (SELECT count(*) FROM @.ended WHERE qid = p_q AND state = 3) - q.results_limit) END;
  WITH old AS (
    SELECT c FROM (SELECT ctid AS c FROM @.ended WHERE qid = p_q AND until_ms <= ms AND state = 3 ORDER BY until_ms LIMIT p_most
      FOR UPDATE SKIP LOCKED) late
    UNION SELECT c FROM (SELECT ctid AS c FROM @.ended WHERE ctid = ANY (array(SELECT c FROM (
        SELECT ctid AS c, id FROM @.ended WHERE qid = p_q AND state = 3 ORDER BY qid, state, finished_ms, seq LIMIT greatest(over, 0)) o
        WHERE NOT EXISTS (SELECT FROM @.expected w WHERE w.id = o.id AND w.qid + 0 = p_q))) FOR UPDATE SKIP LOCKED) many),
  notes AS (DELETE FROM @.checkpoint WHERE qid = p_q AND id IN (SELECT id FROM @.ended WHERE ctid IN (SELECT c FROM old))),
  known AS (UPDATE @.ended SET state = 7, until_ms = finished_ms + remember_ms, reason = CASE WHEN result IS NOT NULL THEN 'result-dropped' END, result = NULL, payload = NULL, meta = NULL
    WHERE ctid IN (SELECT c FROM old) AND finished_ms + remember_ms > ms),
  gone AS (DELETE FROM @.ended WHERE ctid IN (SELECT c FROM old) AND finished_ms + remember_ms <= ms)
  SELECT more OR count(*) >= p_most INTO more FROM old;
  over := CASE WHEN q.dead_count IS NULL THEN 0
    ELSE least(p_most, (SELECT coalesce(sum(dead), 0) FROM @.tally WHERE qid = p_q) - (q.dead_count + q.shards - 1) / q.shards) END;
  WITH old AS (
    SELECT c FROM (SELECT ctid AS c FROM @.ended WHERE qid = p_q AND state = 4 AND finished_ms <= ms - q.dead_age_ms
      ORDER BY qid, state, finished_ms LIMIT p_most FOR UPDATE SKIP LOCKED) late
    UNION SELECT c FROM (SELECT ctid AS c FROM @.ended WHERE ctid = ANY (array(
        SELECT ctid FROM @.ended WHERE qid = p_q AND state = 4 ORDER BY qid, state, finished_ms, seq, id LIMIT greatest(over, 0)))
      FOR UPDATE SKIP LOCKED) many),
  gone AS (DELETE FROM @.ended WHERE ctid IN (SELECT c FROM old) RETURNING *),
  payloads AS (DELETE FROM @.payload p USING gone g WHERE p.head = g.head),
  notes AS (DELETE FROM @.checkpoint c USING gone g WHERE c.id = g.id AND c.qid = g.qid)
  SELECT count(*), max(finished_ms), array_agg(ROW(gone.*)::@.ended ORDER BY finished_ms, seq) FILTER (WHERE flags & 112 > 0) INTO k, last_ms, tied FROM gone;
  IF tied IS NOT NULL THEN
    told := nextval(pg_get_serial_sequence('@.join_report', 'n'));
    FOREACH x IN ARRAY tied LOOP PERFORM @.leave_ties_1(p_q, x.id, x.flags, x.places, 2, NULL, NULL, NULL); END LOOP;
  END IF;
  IF k > 0 THEN
    INSERT INTO @.tally (qid, dead) VALUES (p_q, -k);
    UPDATE @.queue SET lost_at = greatest(lost_at, last_ms) WHERE qid = p_q;
  END IF;
  RETURN json_build_array(told, more OR k >= p_most);
END`,
)

/**
 * Takes a claim. Returns the ids of its jobs that run, each with the number of its arrival. It reads each priority from place to
 * place: one range over several of them would be all that waits in between.
 */
const claimedJobs = sqlFunction(
  'claimed_1',
  'p_b @.bunch',
  'TABLE (id text, n bigint)',
  `#variable_conflict use_column
DECLARE p int; r bigint;
BEGIN
  FOREACH p IN ARRAY CASE p_b.pool WHEN 3 THEN '{0,2}'::int[] ELSE ARRAY[p_b.pool::int] END LOOP
    r := p_b.lo_rank::bigint - 1;
    LOOP
      SELECT j.rank INTO r FROM @.job j WHERE j.qid = p_b.qid AND j.pool = p AND j.rank > r AND j.rank <= p_b.hi_rank ORDER BY qid, pool, j.rank LIMIT 1;
      EXIT WHEN r IS NULL;
      RETURN QUERY SELECT j.id, coalesce(j.arrival, abs(j.seq)) FROM @.job j
        WHERE j.qid = p_b.qid AND j.pool = p AND j.rank = r AND j.stamp BETWEEN p_b.lo AND p_b.hi AND j.fence = p_b.fence ORDER BY qid, pool, j.rank, j.stamp, j.seq;
    END LOOP;
  END LOOP;
END`,
)

/**
 * Takes a queue and a limit. Returns `{now, run, ownRun, spares, rows}`: the run of the server, the run that the queue knows,
 * the instant until which its leases are spared, and at most that many running jobs whose leases have ended (`CrashedRow`).
 */
export const crashedJobs = sqlFunction(
  'crashed_1',
  'p_q int, p_most int',
  'json',
  `DECLARE ms bigint := @.us() / 1000;
BEGIN
  RETURN (SELECT json_build_object('now', ms, 'run', @.run(), 'ownRun', q.run, 'spares', q.spares_until, 'rows', (
    SELECT coalesce(json_agg(x), '[]') FROM (
      SELECT json_build_object('id', j.id, 'task', j.task, 'fence', j.fence, 'attempt', j.attempt, 'crashes', j.crashes, 'flags', j.flags,
        'error', j.error, 'remember', j.remember_ms, 'alone', b.alone, 'crashLimit', q.crash_limit, 'reason', (SELECT c.reason FROM @.checkpoint c WHERE c.id = j.id AND c.qid + 0 = p_q),
        'worker', coalesce((SELECT o.worker FROM @.beat o WHERE o.id = j.id AND o.qid + 0 = p_q), b.worker)) AS x
      FROM (SELECT fence, lease_ms, id FROM @.beat WHERE qid = p_q AND lease_ms <= ms
        UNION ALL SELECT b.fence, b.lease_ms, j.id FROM (SELECT * FROM @.bunch b WHERE b.qid = p_q AND b.lease_ms <= ms) b, LATERAL @.claimed_1(b) j
          WHERE (SELECT o.lease_ms FROM @.beat o WHERE o.id = j.id AND o.qid + 0 = p_q) IS NULL) l
      CROSS JOIN LATERAL (SELECT * FROM @.job o WHERE o.id = l.id AND o.qid + 0 = p_q AND o.fence = l.fence LIMIT 1) j
      CROSS JOIN LATERAL (SELECT * FROM @.bunch o WHERE o.fence = l.fence LIMIT 1) b
      ORDER BY l.lease_ms, CASE q.kind WHEN 'plain' THEN coalesce(j.arrival, abs(j.seq)) END, j.id LIMIT p_most) r (x)))
    FROM @.queue q WHERE qid = p_q);
END`,
)

/**
 * Takes a queue. Bunches whose jobs all have leases of their own end with these: their own lease ends no more. Returns null.
 */
export const retireBunches = sqlFunction(
  'retire_1',
  'p_q int',
  'json',
  `DECLARE ms bigint := @.us() / 1000;
BEGIN
  UPDATE @.bunch b SET lease_ms = 9223372036854775807 WHERE qid = p_q AND lease_ms <= ms
    AND n <= (SELECT count(*) FROM @.beat o WHERE o.qid = p_q AND o.fence = b.fence AND o.lease_ms IS NOT NULL);
  RETURN NULL;
END`,
)

/** Takes a queue, the present run of the server, and until when leases are spared, in ms. Returns null. */
export const spareLeases = sqlFunction(
  'spare_1',
  'p_q int, p_run bigint, p_until bigint',
  'json',
  `BEGIN
  UPDATE @.queue SET run = p_run, spares_until = p_until WHERE qid = p_q AND run <> p_run;
  RETURN NULL;
END`,
)

/** Takes a queue and a limit. Returns at most that many waiting jobs whose time to begin is over and that nobody has locked (`EndingRow`). */
export const expiredJobs = sqlFunction(
  'expired_1',
  'p_q int, p_most int',
  'json',
  `DECLARE ms bigint := @.us() / 1000;
BEGIN
  RETURN (SELECT coalesce(json_agg(x), '[]') FROM (
    SELECT json_build_object('id', j.id, 'task', j.task, 'fence', 0, 'attempt', j.attempt, 'crashes', j.crashes, 'pool', j.pool,
      'flags', j.flags, 'error', j.error, 'remember', j.remember_ms, 'noted', j.flags & 4 > 0 AND (SELECT coalesce(c.payload, c.log) FROM @.checkpoint c WHERE c.id = j.id AND c.qid + 0 = p_q) IS NOT NULL) AS x
    FROM @.job j WHERE qid = p_q AND ${isFree} AND expires_ms <= ms AND fence = 0 ORDER BY expires_ms, coalesce(arrival, abs(seq)) LIMIT p_most) r (x));
END`,
)

export const endFunctions = [
  ...[lookAtJobs, isCrashed, endJobs, completeInside, foldLeft, postponeLeases, trimEnded, claimedJobs],
  ...[crashedJobs, retireBunches, spareLeases, expiredJobs],
]
