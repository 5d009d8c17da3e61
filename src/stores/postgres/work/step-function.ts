/** Claiming and completing in the database. */

import { mostLagLooks } from '../../rules/bounds.js'
import { claimedJob } from '../schema/claimed-job.js'
import { isFree } from '../schema/free-job.js'
import { isWaitedFor, leaseFloor, readState, soonestLease } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Of a row of `job`: no claim takes one that has expired, also if it could not be ended because somebody has locked it. */
const isInTime = '(expires_ms IS NULL OR expires_ms > ms)'

/**
 * Takes for each queue or shard asked its number, 0 for a shard that does not exist; the most jobs, the most payloads of each
 * id, null for all of them, and the lease in ms; the instant from which the caller looks for expired leases in it; and whether
 * the caller has done its upkeep already. `p_run`: the run of the server that the caller knows. `p_most`: the weight at which
 * a claim is full; `p_load`: the weight that this one has already.
 *
 * Returns `{run}` if that is another; `{moved}`: one of the shards has left its queue; `{upkeep, now}`: the queue that wants
 * upkeep, before which nothing is taken of it; otherwise `{now, asked}`, an element of `asked` for each queue or shard up to the
 * last that granted: `{jobs, fence, more, suspects, …}` as `StepAnswer` has them, or null for one that does not exist. Of a queue with
 * limits nothing is taken: its element is a look at them, and is the last if jobs may be granted.
 *
 * Places: a claim of a queue that takes the earliest first begins at a floor. One that takes the latest first begins at now,
 * and needs none.
 */
export const claimJobs = sqlFunction(
  'claim_2',
  `p_worker text, p_qids int[], p_limits int[], p_payloads int[], p_leases bigint[], p_looks bigint[], p_done boolean[], p_alone boolean,
   p_most bigint, p_load bigint, p_run bigint`,
  'json',
  `DECLARE
  t bigint := @.us(); ms bigint := @.us() / 1000; q @.queue; asked json[] := '{}'; lim int; got tid[]; more_ids tid[];
  load bigint; w bigint; r bigint; known int; start_at bigint; floor_at bigint; unknown int; beyond bigint; probe boolean; more boolean;
  is_expiring boolean; hi_place bigint[]; f bigint; jobs json; taken int; suspects boolean; next_place bigint; next_lease bigint;
  granted text; total int := 0; own json; busy boolean; durable boolean := false; s @.queue_state;
BEGIN
  IF @.run() <> p_run THEN RETURN json_build_object('run', @.run()); END IF;
  load := p_load;
  FOR i IN 1 .. cardinality(p_qids) LOOP
    EXIT WHEN total > 0 AND (p_alone OR total >= p_limits[i] OR load >= p_most);
    IF p_qids[i] = 0 THEN
      EXIT WHEN total > 0;
      asked := asked || 'null'::json;
      CONTINUE;
    END IF;
    SELECT * INTO q FROM @.queue WHERE qid = p_qids[i] AND shard >= 0;
    EXIT WHEN total > 0 AND q.qid IS NULL;
    IF q.qid IS NULL THEN RETURN json_build_object('moved', true); END IF;
    -- Only other shards of an ordered queue add to what it has granted.
    EXIT WHEN total > 0 AND (q.name <> granted OR q.kind = 'plain' OR q.exclusive = 'shard');
    ${readState('q.qid')};
    is_expiring := EXISTS (SELECT FROM @.job WHERE qid = q.qid AND expires_ms <= ms AND fence = 0 AND ${isFree});
    IF NOT p_done[i] AND (is_expiring OR ((ms >= p_looks[i] OR ms < p_looks[i] - 1000)
      AND (EXISTS (SELECT FROM @.bunch WHERE qid = q.qid AND lease_ms <= ms AND lease_ms >= ${leaseFloor})
        OR EXISTS (SELECT FROM @.beat WHERE qid = q.qid AND lease_ms <= ms AND lease_ms >= ${leaseFloor})))) THEN
      EXIT WHEN total > 0;
      RETURN json_build_object('upkeep', i, 'now', ms);
    END IF;
    IF s.shortest_lease > p_leases[i] OR s.version IS NULL THEN
      PERFORM @.note_lease_1(q.qid, p_leases[i]);
      ${readState('q.qid')};
    END IF;
    lim := CASE WHEN p_alone THEN least(p_limits[i], 1) ELSE p_limits[i] END - total;
    -- Groups of users' own transactions have no lanes before a claim comes.
    IF q.limited OR (q.kind = 'ordered' AND EXISTS (SELECT FROM @.inbox WHERE name = q.name AND grp IS NOT NULL)) THEN
      jobs := @.look_limits_2(q.qid, lim, p_alone, p_most, '{}', true, p_payloads[i]);
      asked := asked || jobs;
      EXIT WHEN jobs->>'grants' = 'true';
      CONTINUE;
    END IF;
    got := '{}'; more := false; jobs := NULL; f := NULL; taken := 0; next_place := NULL; busy := false;
    IF q.kind = 'ordered' THEN
      IF NOT q.stopped THEN
        own := @.claim_shard_1(q, lim, t, p_worker, p_leases[i], p_alone, p_payloads[i], p_most, load);
        jobs := own -> 'jobs'; f := own ->> 'fence'; taken := own ->> 'taken'; more := own ->> 'more'; busy := own ->> 'busy'; load := own ->> 'load';
      END IF;
    ELSIF NOT q.stopped AND NOT is_expiring THEN
      IF p_alone AND lim > 0 THEN
        got := array(SELECT ctid FROM @.job WHERE qid = q.qid AND pool = 1 AND fence = 0 AND ${isInTime} ORDER BY qid, pool, rank, stamp, seq LIMIT 1
          FOR NO KEY UPDATE SKIP LOCKED);
      END IF;
      -- Known ranks start at their floors; the gaps between them are looked at for ranks that nobody has seen yet.
      r := -2147483649;
      beyond := CASE q.ord WHEN 'lifo' THEN 9223372036854775807 ELSE t END;
      LOOP
        known := NULL;
        SELECT rank, stamp INTO known, floor_at FROM @.floor WHERE qid = q.qid AND rank > r ORDER BY qid, rank LIMIT 1;
        unknown := NULL;
        SELECT rank INTO unknown FROM @.job WHERE qid = q.qid AND pool = 0 AND rank > r AND rank < coalesce(known, 2147483648)
          ORDER BY qid, pool, rank LIMIT 1;
        EXIT WHEN known IS NULL AND unknown IS NULL;
        r := coalesce(unknown, known);
        start_at := CASE WHEN q.ord = 'lifo' THEN -t WHEN unknown IS NULL THEN floor_at ELSE -9223372036854775807 END;
        probe := cardinality(got) >= lim OR load >= p_most;
        IF NOT probe THEN
          SELECT array_agg(c), coalesce(sum(x.weight), 0), max(ARRAY[x.stamp, x.seq])
            INTO more_ids, w, hi_place
            FROM (SELECT c, l.weight, l.stamp, l.seq, sum(l.weight) OVER (ROWS UNBOUNDED PRECEDING) - l.weight AS before
              FROM (SELECT ctid AS c, j.weight, j.stamp, j.seq FROM @.job j
                WHERE qid = q.qid AND pool = 0 AND rank = r AND stamp >= start_at AND stamp <= beyond AND fence = 0 AND ${isInTime}
                ORDER BY qid, pool, rank, stamp, seq LIMIT lim - cardinality(got) FOR NO KEY UPDATE SKIP LOCKED) l) x
            WHERE before < p_most - load;
          got := got || coalesce(more_ids, '{}');
          load := load + w;
          probe := cardinality(got) >= lim OR load >= p_most;
        ELSE
          hi_place := NULL;
        END IF;
        IF probe THEN
          -- Behind the jobs just taken, which still have no fence.
          more := EXISTS (SELECT FROM @.job WHERE qid = q.qid AND pool = 0 AND rank = r AND stamp <= beyond AND fence = 0 AND ${isInTime}
            AND (stamp, seq) > (coalesce(hi_place[1], start_at), coalesce(hi_place[2], -9223372036854775807)));
          EXIT WHEN more;
        END IF;
      END LOOP;
    END IF;
    IF cardinality(got) > 0 THEN
      taken := cardinality(got);
      f := nextval('@.fence_seq');
      WITH u AS (UPDATE @.job SET fence = f, updated_ms = ms WHERE ctid = ANY (got) RETURNING *),
      b AS (INSERT INTO @.bunch SELECT f, ms + p_leases[i], min(stamp), max(stamp), q.qid, count(*), min(rank), max(rank), max(pool), p_alone, p_worker FROM u),
      y AS (INSERT INTO @.tally (qid, waiting, retries) SELECT q.qid, -count(*), -count(*) FILTER (WHERE attempt > 1) FROM u)
      SELECT json_agg(${claimedJob} ORDER BY rank, stamp, seq) INTO jobs FROM u;
    END IF;
    suspects := EXISTS (SELECT FROM @.job WHERE qid = q.qid AND pool = 1 AND fence = 0 AND NOT ctid = ANY (got) AND ${isInTime} AND ${isFree});
    next_lease := NULL;
    IF NOT more OR busy OR ms >= p_looks[i] THEN
      next_lease := ${soonestLease('q.qid')};
    END IF;
    IF NOT more OR busy THEN next_place := @.next_place_1(q.qid, q.ord, t, 0); END IF;
    asked := asked || json_build_object('jobs', jobs, 'fence', f, 'more', more, 'suspects', suspects, 'place', next_place, 'lease', next_lease,
      'expiring', is_expiring, 'stopped', q.stopped, 'busy', busy, 'load', load, 'spares', q.spares_until, 'lead', s.lead_worker, 'wake', s.lead_wake_at,
      'suspectLead', s.suspect_lead_worker, 'suspectWake', s.suspect_lead_wake_at, 'waits', ${isWaitedFor('q.qid')});
    IF taken > 0 THEN granted := q.name; total := total + taken; durable := q.kind = 'ordered'; END IF;
  END LOOP;
  -- Claims may be forgotten by a crash of the server: their jobs are ready again, and run twice. An id must not.
  IF NOT durable THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  RETURN json_build_object('now', ms, 'asked', array_to_json(asked));
END`,
)

/**
 * Takes a queue, a pool, and a rank. Returns the next rank that may have jobs; null: there is none. Ranks with a floor are known: only the
 * gaps between them are looked at, so that nobody walks over the dead rows of a rank, which an old snapshot keeps.
 */
const nextRank = sqlFunction(
  'next_rank_1',
  'p_q int, p_pool int, p_after bigint',
  'bigint',
  `DECLARE known int;
BEGIN
  SELECT rank INTO known FROM @.floor WHERE qid = p_q AND rank > p_after ORDER BY qid, rank LIMIT 1;
  RETURN coalesce((SELECT rank FROM @.job WHERE qid = p_q AND pool = p_pool AND rank > p_after AND rank < coalesce(known, 2147483648)
    ORDER BY qid, pool, rank LIMIT 1), known);
END`,
)

/** Takes a queue, its order, an instant in µs, and a pool. Returns when its next job falls due, in µs; null if none will. */
const nextPlace = sqlFunction(
  'next_place_1',
  'p_q int, p_ord text, p_t bigint, p_pool int',
  'bigint',
  `DECLARE r bigint := -2147483649; s bigint; soonest bigint;
BEGIN
  LOOP
    r := @.next_rank_1(p_q, p_pool, r);
    EXIT WHEN r IS NULL;
    IF p_ord = 'lifo' THEN
      SELECT -stamp INTO s FROM @.job WHERE qid = p_q AND pool = p_pool AND rank = r AND stamp < -p_t AND fence = 0
        ORDER BY qid DESC, pool DESC, rank DESC, stamp DESC LIMIT 1;
    ELSE
      SELECT stamp INTO s FROM @.job WHERE qid = p_q AND pool = p_pool AND rank = r AND stamp > p_t AND fence = 0
        ORDER BY qid, pool, rank, stamp LIMIT 1;
    END IF;
    soonest := least(soonest, s);
  END LOOP;
  RETURN soonest;
END`,
)

/**
 * Completes claims of which nothing is kept but perhaps the id. Takes a queue, a fence, ids, and results and codecs for joins
 * or null. Returns null if all of them have ended, none is a member, and no room was made; otherwise `[left, told, freed]`: those that
 * did not end, at each of which the caller looks; the number from which on there are reports for joins, or null; and whether
 * the ends may have made room for jobs.
 */
export const completeJobs = sqlFunction(
  'complete_1',
  'p_q int, p_fence bigint, p_ids text[], p_results text[], p_codecs text[]',
  'json',
  `DECLARE ms bigint := @.us() / 1000; done text[]; k int; left_n int; noted boolean; tied @.job[]; x @.job; told bigint; at int; grps text[];
  freed boolean;
BEGIN
  WITH d AS (DELETE FROM @.job WHERE id = ANY (p_ids) AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 RETURNING *),
  e AS (INSERT INTO @.ended (qid, state, rank, attempt, crashes, stamp, created_ms, finished_ms, until_ms, remember_ms, id, task)
    SELECT qid, 7, rank, attempt, crashes, abs(stamp), created_ms, ms, ms + remember_ms, remember_ms, id, task FROM d WHERE remember_ms > 0
    ON CONFLICT (id, qid) DO UPDATE SET state = 7, finished_ms = ms, until_ms = excluded.until_ms)
  SELECT array_agg(id), count(*), coalesce(bool_or(flags & 6 > 0), false), array_agg(ROW(d.*)::@.job) FILTER (WHERE flags & 112 > 0),
      array_agg(grp) FILTER (WHERE grp IS NOT NULL)
    INTO done, k, noted, tied, grps FROM d;
  IF k > 0 THEN
    IF noted THEN
      DELETE FROM @.beat WHERE id = ANY (done) AND qid + 0 = p_q;
      DELETE FROM @.checkpoint WHERE id = ANY (done) AND qid + 0 = p_q;
    END IF;
    UPDATE @.bunch SET n = n - k WHERE fence = p_fence RETURNING n INTO left_n;
    freed := (SELECT bounded FROM @.queue WHERE qid = p_q);
    IF left_n <= 0 THEN DELETE FROM @.bunch WHERE fence = p_fence; END IF;
    INSERT INTO @.tally (qid, processed) VALUES (p_q, k);
    IF tied IS NOT NULL THEN
      told := nextval(pg_get_serial_sequence('@.join_report', 'n'));
      FOREACH x IN ARRAY tied LOOP
        at := array_position(p_ids, x.id);
        PERFORM @.leave_ties_1(p_q, x.id, x.flags, x.places, 0, p_results[at], p_codecs[at], NULL);
      END LOOP;
    END IF;
    IF grps IS NOT NULL THEN PERFORM @.leave_lanes_1(p_q, grps, freed); END IF;
  END IF;
  IF k = cardinality(p_ids) AND told IS NULL AND freed IS NOT TRUE THEN RETURN NULL; END IF;
  RETURN json_build_array((SELECT coalesce(json_agg(id), '[]') FROM unnest(p_ids) id WHERE NOT id = ANY (coalesce(done, '{}'))), told, freed IS TRUE);
END`,
)

/**
 * Takes a queue with the leads that the caller saw and those that it appoints: workers and instants in ms. Returns null, or
 * the leads that somebody else has appointed meanwhile, `[worker, at, worker of suspects, at]`, and changes nothing.
 */
export const appointLeads = sqlFunction(
  'lead_1',
  'p_q int, p_seen text[], p_now text[]',
  'json',
  `DECLARE s @.queue_state;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  LOOP
    ${readState('p_q')};
    IF ARRAY[s.lead_worker, s.lead_wake_at::text, s.suspect_lead_worker, s.suspect_lead_wake_at::text] IS DISTINCT FROM p_seen THEN
      RETURN json_build_array(s.lead_worker, s.lead_wake_at, s.suspect_lead_worker, s.suspect_lead_wake_at);
    END IF;
    s.lead_worker := p_now[1]; s.lead_wake_at := p_now[2]; s.suspect_lead_worker := p_now[3]; s.suspect_lead_wake_at := p_now[4];
    EXIT WHEN @.change_state_1(p_q, s);
  END LOOP;
  RETURN NULL;
END`,
)

/**
 * Takes a queue, its order, a pool and a priority, whose first job has waited for others or for a signal. Returns since when
 * the oldest of its jobs could begin, in µs. None could before its stamp, so those behind the oldest so far are not looked at.
 */
const firstAble = sqlFunction(
  'first_able_1',
  'p_q int, p_ord text, p_pool int, p_rank int',
  'bigint',
  `DECLARE o record; since bigint;
BEGIN
  IF p_ord = 'lifo' THEN
    FOR o IN SELECT -stamp AS place, waited_ms * 1000 AS waited FROM @.job WHERE qid = p_q AND pool = p_pool AND rank = p_rank AND fence = 0
        ORDER BY qid DESC, pool DESC, rank DESC, stamp DESC LIMIT ${mostLagLooks} LOOP
      EXIT WHEN o.place >= since;
      since := least(since, greatest(o.place, o.waited));
    END LOOP;
  ELSE
    FOR o IN SELECT stamp AS place, waited_ms * 1000 AS waited FROM @.job WHERE qid = p_q AND pool = p_pool AND rank = p_rank AND fence = 0
        ORDER BY qid, pool, rank, stamp LIMIT ${mostLagLooks} LOOP
      EXIT WHEN o.place >= since;
      since := least(since, greatest(o.place, o.waited));
    END LOOP;
  END IF;
  RETURN since;
END`,
)

/**
 * Takes queues. Returns for each how long ago its oldest ready job could begin, in ms; null if none is ready. Suspects do not
 * count.
 */
export const headAges = sqlFunction(
  'heads_1',
  'p_qids int[]',
  'json',
  `DECLARE t bigint := @.us(); o text; r bigint; s bigint; w bigint; p int; oldest bigint; ages bigint[] := '{}';
BEGIN
  FOR i IN 1 .. cardinality(p_qids) LOOP
    SELECT ord INTO o FROM @.queue WHERE qid = p_qids[i];
    oldest := NULL;
    FOREACH p IN ARRAY '{0,2}'::int[] LOOP
    r := -2147483649;
    LOOP
      r := @.next_rank_1(p_qids[i], p, r);
      EXIT WHEN r IS NULL;
      IF o = 'lifo' THEN
        SELECT -stamp, waited_ms INTO s, w FROM @.job WHERE qid = p_qids[i] AND pool = p AND rank = r AND stamp >= -t AND fence = 0
          ORDER BY qid DESC, pool DESC, rank DESC, stamp DESC LIMIT 1;
      ELSE
        SELECT stamp, waited_ms INTO s, w FROM @.job WHERE qid = p_qids[i] AND pool = p AND rank = r AND stamp <= t AND fence = 0
          AND (p = 2 OR stamp >= coalesce((SELECT stamp FROM @.floor WHERE qid = p_qids[i] AND rank = r), -9223372036854775807))
          ORDER BY qid, pool, rank, stamp LIMIT 1;
      END IF;
      -- Were the clock set back, a wait might be over later than now.
      IF w IS NOT NULL THEN s := least(@.first_able_1(p_qids[i], o, p, r::int), t); END IF;
      oldest := least(oldest, s);
    END LOOP;
    END LOOP;
    ages := ages || (t / 1000 - oldest / 1000);
  END LOOP;
  RETURN array_to_json(ages);
END`,
)

export const stepFunctions = [nextRank, nextPlace, claimJobs, completeJobs, appointLeads, firstAble, headAges]
