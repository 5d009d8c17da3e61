/** A claim under limits is carried out, if nothing that it was decided from has changed. */

import { claimedJob } from '../schema/claimed-job.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Takes a queue, a group, and its order. Returns the instant in µs from which its first waiting job may begin; null: none waits. */
const nextInLane = sqlFunction(
  'next_in_lane_1',
  'p_q int, p_grp text, p_ord text',
  'bigint',
  `DECLARE r bigint := -2147483649; s bigint; soonest bigint;
BEGIN
  LOOP
    SELECT rank INTO r FROM @.job WHERE qid = p_q AND grp = p_grp COLLATE "C" AND pool = 2 AND rank > r ORDER BY qid, grp, rank LIMIT 1;
    IF r IS NULL THEN RETURN soonest; END IF;
    IF p_ord = 'lifo' THEN
      SELECT -stamp INTO s FROM @.job WHERE qid = p_q AND grp = p_grp COLLATE "C" AND pool = 2 AND rank = r AND fence = 0
        ORDER BY qid DESC, grp DESC, rank DESC, stamp DESC LIMIT 1;
    ELSE
      SELECT stamp INTO s FROM @.job WHERE qid = p_q AND grp = p_grp COLLATE "C" AND pool = 2 AND rank = r AND fence = 0
        ORDER BY qid, grp, rank, stamp LIMIT 1;
    END IF;
    soonest := least(soonest, s);
  END LOOP;
END`,
)

/**
 * Takes lanes out of the turns: groups whose claims found nothing to start, or no room. What came into them meanwhile is seen,
 * because the look comes after the lock; a lane that somebody else has locked stays in the turns. Returns nothing.
 */
const closeLanes = sqlFunction(
  'close_lanes_1',
  'p_q int, p_grps text[]',
  'void',
  `DECLARE t bigint := @.us(); q @.queue; locked text[] := '{}'; x record; l @.lane; next_at bigint;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  DELETE FROM @.lane WHERE qid = p_q AND grp = '' AND '' = ANY (p_grps);
  FOR x IN SELECT grp FROM @.lane WHERE qid = p_q AND grp = ANY (p_grps) ORDER BY grp FOR UPDATE SKIP LOCKED LOOP locked := locked || x.grp; END LOOP;
  FOR i IN 1 .. cardinality(locked) LOOP
    SELECT * INTO l FROM @.lane WHERE qid = p_q AND grp = locked[i];
    next_at := @.next_in_lane_1(p_q, l.grp, q.ord);
    IF next_at IS NULL AND NOT l.paused AND coalesce(l.held_until * 1000, 0) <= t THEN
      DELETE FROM @.lane WHERE qid = p_q AND grp = l.grp;
    ELSIF next_at <= t AND NOT l.paused AND (q.max_per_group IS NULL
        OR q.max_per_group > (SELECT coalesce(sum(n), 0) FROM @.lane_count WHERE qid = p_q AND grp = l.grp)) THEN
      UPDATE @.lane SET turn = nextval('@.lane_turn'), shut_until = NULL, due = NULL, blocked = false WHERE qid = p_q AND grp = l.grp;
    ELSE
      UPDATE @.lane SET turn = NULL, shut_until = NULL, due = CASE WHEN next_at > t THEN next_at END, blocked = next_at <= t IS TRUE
        WHERE qid = p_q AND grp = l.grp;
    END IF;
  END LOOP;
  UPDATE @.lane SET turn = nextval('@.lane_turn'), shut_until = NULL WHERE qid = p_q AND grp <> '' AND grp = ANY (p_grps) AND NOT grp = ANY (locked);
END`,
)

/**
 * Waiting jobs of these groups have ended, in the same transaction. Takes a queue and the groups. Lanes in which none can begin any
 * more leave the turns. Returns nothing.
 */
const shortenLanes = sqlFunction(
  'shorten_lanes_1',
  'p_q int, p_grps text[]',
  'void',
  `DECLARE t bigint := @.us(); o text; bare text[];
BEGIN
  SELECT ord INTO o FROM @.queue WHERE qid = p_q;
  bare := array(SELECT DISTINCT g FROM unnest(p_grps) g WHERE coalesce(@.next_in_lane_1(p_q, g, o) > t, true));
  IF bare <> '{}' THEN PERFORM @.close_lanes_1(p_q, bare); END IF;
END`,
)

/**
 * Writes what a decision has changed of a scope. Takes its key, the instant of the decision, by how much later it is now, and
 * `ScopeChanges`. Instants from that of the decision on move with the delay: starts count from when they are made. Returns
 * nothing. The caller has the lock of the scope.
 */
const writeScope = sqlFunction(
  'write_scope_1',
  'p_key text, p_version bigint, p_now bigint, p_late bigint, p_changes json',
  'void',
  `DECLARE p @.pace; of_scope text := substr(p_key, 2);
BEGIN
  SELECT * INTO p FROM @.pace WHERE scope = p_key ORDER BY scope DESC, version DESC LIMIT 1;
  IF p_changes->>'state' IS NULL THEN
    INSERT INTO @.pace VALUES (p_key, p_version + 1, coalesce(p.from_ms, 0), coalesce(p.late_ms, 0), coalesce(p.state, '{}'));
  ELSE
    INSERT INTO @.pace VALUES (p_key, p_version + 1, p_now, p_late, p_changes->>'state');
  END IF;
  IF json_array_length(p_changes->'counters') > 0 THEN
    WITH c AS (SELECT * FROM json_to_recordset(p_changes->'counters') AS x (subject text, base bigint, total bigint, last_at bigint, grids text,
        epoch int, recoveries int, shift_ms bigint, starts json, "dropBefore" bigint)),
    w AS (INSERT INTO @.counter AS o (scope, subject, base, total, last_at, grids, epoch, recoveries, shift_ms)
      SELECT of_scope, subject, base, total, last_at + CASE WHEN last_at >= p_now THEN p_late ELSE 0 END, grids, epoch, recoveries, shift_ms
      FROM c ORDER BY subject COLLATE "C" ON CONFLICT (scope, subject) DO UPDATE SET base = excluded.base, total = excluded.total,
        last_at = excluded.last_at, grids = excluded.grids, epoch = excluded.epoch, recoveries = excluded.recoveries, shift_ms = excluded.shift_ms
      RETURNING tid, subject),
    s AS (INSERT INTO @.start SELECT w.tid, (e->>0)::bigint + CASE WHEN (e->>0)::bigint + c.base >= p_now THEN p_late ELSE 0 END, (e->>1)::bigint
      FROM w JOIN c ON c.subject COLLATE "C" = w.subject, LATERAL json_array_elements(c.starts) e ON CONFLICT DO NOTHING)
    DELETE FROM @.start o USING w JOIN c ON c.subject COLLATE "C" = w.subject WHERE o.tid = w.tid AND o.at < c."dropBefore";
  END IF;
  IF json_array_length(p_changes->'trims') > 0 THEN
    WITH g AS (DELETE FROM @.counter WHERE tid = ANY (array(SELECT c.tid FROM json_to_recordset(p_changes->'trims') AS x (recoveries int, before bigint, most int),
        LATERAL (SELECT tid FROM @.counter o WHERE o.scope = of_scope COLLATE "C" AND o.recoveries = x.recoveries AND o.last_at < x.before
          ORDER BY o.scope, o.recoveries, o.last_at LIMIT x.most) c)) RETURNING tid)
    DELETE FROM @.start o USING g WHERE o.tid = g.tid;
  END IF;
END`,
)

/**
 * Takes what `look_limits_2` does, but for the groups and whether a claim asks; the lease in ms and the worker; the run, key, version and instant of the look; whether fewer
 * jobs than planned will do; and `LimitedPlan`.
 *
 * Returns `{run}` if the server has another; `{stale}`, a look as it is now, if anything has changed, which changes nothing;
 * otherwise `{now, jobs, fence}` like `claim_2`.
 */
export const applyPlan = sqlFunction(
  'apply_2',
  `p_q int, p_limit int, p_alone boolean, p_most bigint, p_payloads int, p_lease bigint, p_worker text, p_run bigint, p_key text, p_version bigint, p_now bigint,
   p_short boolean, p_plan json`,
  'json',
  `DECLARE
  q @.queue; v bigint; ms bigint; t bigint; late bigint; lo bigint; hi bigint; got tid[] := '{}'; grps text[]; counts int[]; wanted int;
  is_stale boolean; f bigint; jobs json; is_ordered boolean;
BEGIN
  IF @.run() <> p_run THEN RETURN json_build_object('run', @.run()); END IF;
  PERFORM pg_advisory_xact_lock(@lock + 3, hashtext(p_key));
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  is_ordered := q.kind = 'ordered';
  -- A claim may be forgotten by a crash of the server: its jobs are ready again, and run twice. An id must not.
  IF NOT is_ordered THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  -- Lock, and look in the next statement.
  IF is_ordered AND q.exclusive = 'shard' THEN PERFORM pg_advisory_xact_lock(@lock + 8, p_q); END IF;
  v := coalesce((SELECT version FROM @.pace WHERE scope = p_key ORDER BY scope DESC, version DESC LIMIT 1), 0);
  t := @.us(); ms := t / 1000; late := ms - p_now;
  SELECT array_agg(g), array_agg(n) INTO grps, counts FROM json_to_recordset(p_plan->'groups') AS x (g text, n int);
  wanted := (p_plan->>'free')::int + (p_plan->>'suspects')::int + coalesce((SELECT sum(n) FROM unnest(counts) n), 0);
  is_stale := v <> p_version OR p_key <> coalesce('t' || q.throttle, 'q' || q.name) OR late < 0 OR late > 1000 OR (wanted > 0 AND
    (q.stopped OR coalesce(q.held_until > ms, false)
      OR EXISTS (SELECT FROM @.lane WHERE qid = p_q AND grp = ANY (grps || (p_plan->>'suspect')) AND (paused OR held_until > ms))
      -- A reshard lets no claim in while it sets out.
      OR (is_ordered AND (NOT pg_try_advisory_xact_lock_shared(@lock + 7, p_q) OR (SELECT stopped OR shard < 0 FROM @.queue WHERE qid = p_q) IS DISTINCT FROM false
        OR (q.exclusive = 'shard' AND EXISTS (SELECT FROM @.bunch WHERE qid = p_q))))));
  IF NOT is_stale AND wanted > 0 THEN
    lo := CASE q.ord WHEN 'lifo' THEN -t ELSE -9223372036854775807 END;
    hi := CASE q.ord WHEN 'lifo' THEN 9223372036854775807 ELSE t END;
    got := array(SELECT x.c FROM unnest(grps, counts) u (g, n), LATERAL (SELECT ctid AS c FROM @.job
      WHERE qid = p_q AND grp = u.g COLLATE "C" AND pool = 2 AND stamp BETWEEN lo AND hi AND fence = 0
      ORDER BY qid, grp, rank, stamp, seq, id LIMIT u.n FOR NO KEY UPDATE SKIP LOCKED) x);
    IF (p_plan->>'free')::int > 0 THEN got := got || @.first_free_1(p_q, lo, hi, (p_plan->>'free')::int, true); END IF;
    IF (p_plan->>'suspects')::int > 0 THEN
      got := got || array(SELECT ctid FROM @.job WHERE qid = p_q AND pool = 1 AND fence = 0 AND coalesce(grp, '') = p_plan->>'suspect' COLLATE "C"
        ORDER BY qid, pool, rank, stamp, seq, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    is_stale := cardinality(got) < CASE WHEN p_short THEN 1 ELSE wanted END
      OR EXISTS (SELECT FROM @.job WHERE ctid = ANY (got) AND expires_ms <= ms);
    IF is_ordered AND NOT is_stale THEN is_stale := @.clear_bare_1(q, got, t) > 0; END IF;
  END IF;
  IF is_stale THEN
    RETURN json_build_object('stale', @.look_limits_2(p_q, p_limit, p_alone, p_most, '{}', true, p_payloads), 'short', v = p_version);
  END IF;
  IF wanted > 0 AND is_ordered THEN
    f := nextval('@.fence_seq');
    -- The plan has weighed them.
    jobs := @.take_ids_1(q, got, t, f, p_worker, p_lease, p_alone, p_payloads, p_most, -4611686018427387904) -> 'jobs';
  ELSIF wanted > 0 THEN
    f := nextval('@.fence_seq');
    WITH u AS (UPDATE @.job SET fence = f, updated_ms = ms WHERE ctid = ANY (got) RETURNING *),
    b AS (INSERT INTO @.bunch (fence, lease_ms, lo, hi, qid, n, lo_rank, hi_rank, pool, alone, worker)
      SELECT f, ms + p_lease, min(stamp), max(stamp), p_q, count(*), min(rank), max(rank), CASE WHEN min(pool) = max(pool) THEN min(pool) ELSE 3 END,
        p_alone, p_worker FROM u),
    y AS (INSERT INTO @.tally (qid, waiting, retries) SELECT p_q, -count(*), -count(*) FILTER (WHERE attempt > 1) FROM u),
    c AS (INSERT INTO @.lane_count SELECT p_q, grp, count(*) FROM u WHERE grp IS NOT NULL GROUP BY grp)
    SELECT json_agg(${claimedJob} ORDER BY rank, stamp, seq) INTO jobs FROM u;
  END IF;
  PERFORM @.write_scope_1(p_key, v, p_now, late, p_plan);
  INSERT INTO @.lane (qid, grp, turn, shut_until)
    SELECT p_q, g, turn, until + CASE WHEN until >= p_now THEN late ELSE 0 END FROM (
      SELECT g, until, CASE WHEN until IS NULL THEN coalesce(kept, nextval('@.lane_turn')) END AS turn
      FROM json_to_recordset(p_plan->'lanes') AS x (g text, until bigint, kept bigint) OFFSET 0) x ORDER BY g COLLATE "C"
    ON CONFLICT (qid, grp) DO UPDATE SET turn = excluded.turn, shut_until = excluded.shut_until, due = NULL, blocked = false;
  IF json_array_length(p_plan->'closed') > 0 THEN PERFORM @.close_lanes_1(p_q, array(SELECT json_array_elements_text(p_plan->'closed'))); END IF;
  RETURN json_build_object('now', ms, 'jobs', jobs, 'fence', f);
END`,
)

export const applyFunctions = [nextInLane, closeLanes, shortenLanes, writeScope, applyPlan]
