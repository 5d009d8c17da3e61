/** Ends of claims of ordered queues in the database, and what becomes of the payloads: see `afterEnd` in `rules/payloads`. */

import { keepFloors } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'
import { heldUs } from './shard-claim.js'

/**
 * The ids end, and their payloads in hand are gone already. What waits behind them becomes a new job; an id of which nothing
 * is left goes, or stays without payloads while a push holds it. Takes the row of the queue, the places of the headers and the
 * instant in µs. Returns when the first of those that wait again is due, in µs; null if none does.
 */
const leaveIds = sqlFunction(
  'leave_ids_1',
  'q @.queue, p_got tid[], t bigint',
  'bigint',
  `DECLARE way int := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END; free tid[]; k int; due bigint; grps text[]; dues bigint[];
BEGIN
  DELETE FROM @.checkpoint c USING @.job j WHERE j.ctid = ANY (p_got) AND j.flags & 4 > 0 AND c.id = j.id AND c.qid + 0 = q.qid;
  -- Lock, and look in the next statement: those that no push holds.
  free := array(SELECT ctid FROM @.job WHERE ctid = ANY (p_got) FOR UPDATE SKIP LOCKED);
  DELETE FROM @.job WHERE ctid = ANY (free) AND NOT EXISTS (SELECT FROM @.payload p WHERE p.head = job.head);
  WITH w AS (SELECT DISTINCT ON (p.head) p.head, p.due, p.created_ms, p.seq FROM @.payload p
      WHERE p.head = ANY (array(SELECT head FROM @.job WHERE ctid = ANY (p_got))) ORDER BY p.head, p.seq),
  h AS (SELECT j.id, coalesce(j.next_stamp, w.due, t + ${heldUs}) AS due, coalesce(j.next_created_ms, w.created_ms, t / 1000) AS created_ms,
      CASE WHEN j.next_stamp IS NULL THEN w.seq END AS seq
    FROM @.job j LEFT JOIN w ON w.head = j.head WHERE j.ctid = ANY (p_got)),
  u AS (UPDATE @.job j SET fence = 0, hand = NULL, next_stamp = NULL, next_created_ms = NULL, attempt = 1, crashes = 0, error = NULL,
      pool = CASE WHEN j.grp IS NULL THEN 0 ELSE 2 END,
      updated_ms = t / 1000, created_ms = h.created_ms, stamp = h.due * way,
      seq = CASE WHEN h.due > t THEN 0 ELSE coalesce(h.seq, nextval('@.job_seq')) * way END, flags = CASE WHEN h.due > t THEN 1 ELSE 0 END
    FROM h WHERE j.id = h.id AND j.qid + 0 = q.qid RETURNING h.due, j.grp)
  SELECT count(*), min(u.due), array_agg(u.grp) FILTER (WHERE u.grp IS NOT NULL), array_agg(u.due) FILTER (WHERE u.grp IS NOT NULL)
    INTO k, due, grps, dues FROM u;
  IF k > 0 THEN
    INSERT INTO @.tally (qid, waiting) VALUES (q.qid, k);
    IF due < t THEN ${keepFloors('q.qid')}; END IF;
    UPDATE @.floor SET stamp = due WHERE qid = q.qid AND stamp > due;
    IF grps IS NOT NULL THEN PERFORM @.enter_lanes_1(q.qid, grps, dues, t); END IF;
  END IF;
  RETURN due;
END`,
)

/**
 * Payloads of an id go to the morgue, where they join those that it has there. Takes the row of the queue, the header, the
 * payloads, the instant in ms, and what `JobEnd` says of the end. Returns null.
 */
const buryPayloads = sqlFunction(
  'bury_payloads_1',
  'q @.queue, o @.job, p_seqs bigint[], ms bigint, p_attempt int, p_crashes int, p_error text, p_reason text',
  'json',
  `DECLARE m @.ended; h bigint; is_shown boolean;
BEGIN
  SELECT * INTO m FROM @.ended WHERE id = o.id AND qid + 0 = q.qid FOR UPDATE;
  is_shown := m.id IS NOT NULL AND (q.dead_age_ms IS NULL OR m.finished_ms + q.dead_age_ms > ms);
  IF m.id IS NOT NULL AND NOT is_shown THEN DELETE FROM @.payload WHERE head = m.head; END IF;
  h := CASE WHEN is_shown THEN m.head ELSE nextval('@.job_seq') END;
  INSERT INTO @.ended (qid, state, rank, attempt, crashes, seq, stamp, created_ms, finished_ms, remember_ms, id, task, error, reason, grp, head)
    VALUES (q.qid, 4, 0, p_attempt, p_crashes, 0, abs(o.stamp), CASE WHEN is_shown THEN m.created_ms ELSE o.created_ms END, ms, 0, o.id, o.task,
      p_error, p_reason, o.grp, h)
    ON CONFLICT (id, qid) DO UPDATE SET attempt = excluded.attempt, crashes = excluded.crashes, stamp = excluded.stamp,
      created_ms = excluded.created_ms, finished_ms = ms, task = excluded.task, error = excluded.error, reason = excluded.reason, grp = excluded.grp, head = h;
  UPDATE @.payload SET head = h, latest = false WHERE head = o.head AND seq = ANY (p_seqs);
  PERFORM @.merge_1(h, NULL, q.merge = 'latest');
  IF m.id IS NULL THEN INSERT INTO @.tally (qid, dead) VALUES (q.qid, 1); END IF;
  RETURN NULL;
END`,
)

/**
 * The instant in ms from which a claimer is needed for a shard in which ends have let `p_due` (in µs, or null) wait; null: none
 * is. A shard that a batch had for itself may have had others wait for it.
 */
const wakeAt = sqlFunction(
  'wake_at_1',
  'q @.queue, p_due bigint, t bigint',
  'bigint',
  `BEGIN
  IF q.exclusive = 'shard' THEN
    IF EXISTS (SELECT FROM @.bunch WHERE qid = q.qid) THEN RETURN NULL; END IF;
    IF EXISTS (SELECT FROM @.job WHERE qid = q.qid AND pool IN (0, 1, 2) AND rank = 0 AND fence = 0 AND abs(stamp) <= t) THEN RETURN t / 1000; END IF;
  END IF;
  RETURN p_due / 1000;
END`,
)

/**
 * Completes claims of ids. Takes a shard, a fence and ids. Returns `[missing, now, wake, freed]`: the ids that did not end; see
 * `wake_at_1`; and whether the ends may have made room for ids.
 */
export const completeIds = sqlFunction(
  'complete_ids_1',
  'p_q int, p_fence bigint, p_ids text[]',
  'json',
  `DECLARE t bigint := @.us(); q @.queue; got tid[]; done text[]; grps text[]; noted boolean; k int; left_n int; due bigint;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  got := array(SELECT ctid FROM @.job WHERE id = ANY (p_ids) AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 ORDER BY id FOR NO KEY UPDATE);
  k := cardinality(got);
  IF k > 0 THEN
    SELECT array_agg(id), bool_or(flags & 2 > 0), array_agg(grp) FILTER (WHERE grp IS NOT NULL) INTO done, noted, grps FROM @.job WHERE ctid = ANY (got);
    DELETE FROM @.payload p USING @.job j WHERE j.ctid = ANY (got) AND p.head = j.head AND p.seq = ANY (j.hand);
    due := @.leave_ids_1(q, got, t);
    IF noted THEN DELETE FROM @.beat WHERE id = ANY (done) AND qid + 0 = p_q; END IF;
    UPDATE @.bunch SET n = n - k WHERE fence = p_fence RETURNING n INTO left_n;
    IF left_n <= 0 THEN DELETE FROM @.bunch WHERE fence = p_fence; END IF;
    INSERT INTO @.tally (qid, processed) VALUES (p_q, k);
    IF grps IS NOT NULL THEN PERFORM @.leave_lanes_1(p_q, grps, q.bounded); END IF;
  END IF;
  RETURN json_build_array((SELECT coalesce(json_agg(id), '[]') FROM unnest(p_ids) id WHERE NOT id = ANY (coalesce(done, '{}'))), t / 1000,
    @.wake_at_1(q, due, t), k > 0 AND q.bounded);
END`,
)

/**
 * Takes a shard, and a list of ends `{id, fence, to, …}` as `JobEnd` has them. `to`: `back`, `line` and `later` as for
 * `ends_1`, with all payloads that wait; `exhausted`: the oldest payload in hand is dead, and the others begin anew; `dead`: all
 * in hand are; `gone`. Of an id that waits, all payloads count as in hand.
 *
 * Returns `[now, done, buried, wake, freed]`: for each end, whether the id was still as it was seen, and the first payload that it
 * has buried, or null; see `wake_at_1`; and whether some end may have made room for ids.
 */
export const endIds = sqlFunction(
  'end_ids_1',
  'p_q int, p_ends json',
  'json',
  `DECLARE
  t bigint := @.us(); ms bigint := @.us() / 1000; q @.queue; e record; o @.job; hand bigint[]; left_n int; way int; to_place text;
  done boolean[] := '{}'; buried json[] := '{}'; dead json; due bigint; soonest bigint; waits int; again int; place tid;
  grps text[] := '{}'; dues bigint[] := '{}'; left_grps text[] := '{}'; short_grps text[] := '{}'; held_grps text[] := '{}'; helds bigint[] := '{}'; freed boolean := false;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  FOR e IN SELECT * FROM json_to_recordset(p_ends) AS x (id text, fence bigint, "to" text, attempt int, crashes int, pool int, error text,
      reason text, delay bigint, done int, count text, hold bigint, "holdGroup" text, lapsed boolean, "heldBy" text) LOOP
    IF e.lapsed THEN
      -- A renewal locks the claim before its ids: it is made by now, or finds what becomes of them here. Others lock the claim last,
      -- so an id that is locked is not waited for.
      PERFORM FROM @.bunch WHERE fence = e.fence FOR NO KEY UPDATE;
      PERFORM FROM @.job WHERE id = e.id COLLATE "C" AND qid + 0 = p_q FOR NO KEY UPDATE SKIP LOCKED;
      IF NOT FOUND THEN done := done || false; buried := buried || 'null'::json; CONTINUE; END IF;
    END IF;
    IF e."to" = 'back' AND e.pool = 0 THEN ${keepFloors('p_q')}; END IF;
    SELECT * INTO o FROM @.job WHERE id = e.id COLLATE "C" AND qid + 0 = p_q FOR NO KEY UPDATE;
    -- Somebody else may have run it now.
    IF o.id IS NULL OR o.fence <> e.fence OR (e."to" = 'line' AND o.fence = 0 AND abs(o.stamp) <= t)
        OR ((e.lapsed OR e."heldBy" IS NOT NULL) AND NOT @.is_crashed_1(p_q, o.id, o.fence, e.lapsed, e."heldBy", ms)) THEN
      done := done || false; buried := buried || 'null'::json; CONTINUE;
    END IF;
    -- It may have run and failed, and wait again.
    IF o.fence = 0 THEN e.attempt := o.attempt; e.crashes := o.crashes; e.error := o.error; e.pool := o.pool; END IF;
    place := (SELECT ctid FROM @.job WHERE id = o.id AND qid + 0 = p_q);
    hand := o.hand; dead := 'null'; to_place := e."to"; due := NULL;
    IF o.fence > 0 THEN
      UPDATE @.bunch SET n = n - 1 WHERE fence = o.fence RETURNING n INTO left_n;
      freed := freed OR q.bounded;
      IF o.grp IS NOT NULL THEN left_grps := left_grps || o.grp; END IF;
      IF left_n <= 0 THEN DELETE FROM @.bunch WHERE fence = o.fence; END IF;
      IF o.flags & 2 > 0 THEN DELETE FROM @.beat WHERE id = o.id AND qid + 0 = p_q; END IF;
    ELSE
      hand := array(SELECT seq FROM @.payload WHERE head = o.head ORDER BY score, seq);
    END IF;
    IF e.done > 0 THEN
      DELETE FROM @.payload WHERE head = o.head AND seq = ANY (hand[:e.done]);
      hand := hand[e.done + 1:];
    END IF;
    IF to_place IN ('exhausted', 'dead') THEN
      dead := (SELECT json_build_array(score, payload, codec, meta) FROM @.payload WHERE head = o.head AND seq = hand[1]);
      PERFORM @.bury_payloads_1(q, o, CASE to_place WHEN 'dead' THEN hand ELSE hand[:1] END, ms, e.attempt, e.crashes, e.error, e.reason);
      IF to_place = 'exhausted' AND cardinality(hand) > 1 THEN
        to_place := 'line'; e.attempt := 1; e.crashes := 0; e.error := NULL; e.pool := 0;
      END IF;
    ELSIF to_place = 'gone' THEN
      DELETE FROM @.payload WHERE head = o.head AND seq = ANY (hand);
    END IF;
    IF to_place IN ('back', 'line', 'later') THEN
      due := CASE to_place WHEN 'back' THEN abs(o.stamp) WHEN 'line' THEN t ELSE t + e.delay END;
      UPDATE @.job SET fence = 0, hand = NULL, next_stamp = NULL, next_created_ms = NULL, updated_ms = ms, attempt = e.attempt, crashes = e.crashes,
        error = e.error, pool = CASE WHEN e.pool = 0 AND o.grp IS NOT NULL THEN 2 ELSE e.pool END,
        flags = o.flags & 4 | CASE WHEN due > t THEN 1 ELSE 0 END, stamp = due * way,
        seq = CASE to_place WHEN 'back' THEN o.seq WHEN 'line' THEN nextval('@.job_seq') * way ELSE 0 END WHERE id = o.id AND qid + 0 = p_q;
      IF q.merge <> 'latest' AND EXISTS (SELECT FROM @.payload WHERE head = o.head AND latest) THEN
        -- What waits follows the rule under which it came. What comes back to it meets the rule of now.
        PERFORM @.merge_1(o.head, hand, false);
        UPDATE @.payload SET latest = false WHERE head = o.head AND latest;
      END IF;
      PERFORM @.merge_1(o.head, NULL, q.merge = 'latest');
      UPDATE @.floor SET stamp = due WHERE qid = p_q AND stamp > due;
      IF o.grp IS NOT NULL AND e.pool <> 1 THEN grps := grps || o.grp; dues := dues || due; END IF;
      waits := 1; again := (e.attempt > 1)::int;
    ELSE
      due := @.leave_ids_1(q, ARRAY[place], t);
      IF o.pool = 2 AND o.fence = 0 THEN short_grps := short_grps || o.grp; END IF;
      waits := 0; again := 0;
    END IF;
    INSERT INTO @.tally (qid, waiting, retries, processed, failed, crashed) VALUES (p_q, waits - (o.fence = 0)::int,
      again - (o.fence = 0 AND o.attempt > 1)::int, coalesce(e.count = 'processed', false)::int, coalesce(e.count = 'failed', false)::int,
      coalesce(e.count = 'crashed', false)::int);
    IF e.hold IS NOT NULL THEN
      PERFORM @.hold_1(p_q, e."holdGroup", ms + e.hold);
      IF e."holdGroup" = ANY (grps) THEN held_grps := held_grps || e."holdGroup"; helds := helds || ms + e.hold; END IF;
    END IF;
    soonest := least(soonest, due); done := done || true; buried := buried || dead;
  END LOOP;
  IF cardinality(grps) > 0 THEN PERFORM @.enter_lanes_1(p_q, grps, dues, t); END IF;
  -- A lane into which an earlier job of this call came is shut by the hold of a later one.
  FOR i IN 1 .. cardinality(held_grps) LOOP PERFORM @.hold_1(p_q, held_grps[i], helds[i]); END LOOP;
  IF cardinality(left_grps) > 0 THEN PERFORM @.leave_lanes_1(p_q, left_grps, freed); END IF;
  IF cardinality(short_grps) > 0 THEN PERFORM @.shorten_lanes_1(p_q, short_grps); END IF;
  RETURN json_build_array(ms, array_to_json(done), array_to_json(buried), @.wake_at_1(q, soonest, t), freed);
END`,
)

export const orderedEndFunctions = [leaveIds, buryPayloads, wakeAt, completeIds, endIds]
