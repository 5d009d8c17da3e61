/** What the limits of a queue are decided from, as the database knows it. */

import { mostSuspects } from '../../rules/fair-share.js'
import { isFree } from '../schema/free-job.js'
import { isWaitedFor, readState, soonestLease } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/**
 * Takes a queue that has lanes or limits, two places, and a number. Returns the first ready jobs without a group that are free, in
 * their order, at most that many; locked if `p_take`.
 */
const firstFree = sqlFunction(
  'first_free_1',
  'p_q int, p_lo bigint, p_hi bigint, p_most int, p_take boolean',
  'tid[]',
  `DECLARE r bigint := -2147483649; got tid[] := '{}'; start_at bigint;
BEGIN
  LOOP
    r := @.next_rank_1(p_q, 0, r);
    IF r IS NULL OR cardinality(got) >= p_most THEN RETURN got; END IF;
    start_at := greatest(p_lo, (SELECT stamp FROM @.floor WHERE qid = p_q AND rank = r));
    IF p_take THEN
      got := got || array(SELECT ctid FROM @.job WHERE qid = p_q AND pool = 0 AND rank = r AND stamp BETWEEN start_at AND p_hi AND fence = 0
        ORDER BY qid, pool, rank, stamp, seq, id LIMIT p_most - cardinality(got) FOR NO KEY UPDATE SKIP LOCKED);
    ELSE
      got := got || array(SELECT ctid FROM @.job WHERE qid = p_q AND pool = 0 AND rank = r AND stamp BETWEEN start_at AND p_hi AND fence = 0 AND ${isFree}
        ORDER BY qid, pool, rank, stamp, seq, id LIMIT p_most - cardinality(got));
    END IF;
  END LOOP;
END`,
)

/**
 * Takes a counter, its starts so far, the instant on its clock, the spans of its rules, the most jobs that one claim takes, and
 * whether all starts are wanted. Returns those that the rules may ask for, `[at, nth]`, the oldest first.
 */
const seenStarts = sqlFunction(
  'starts_1',
  'p_tid bigint, p_total bigint, p_at bigint, p_spans json, p_most int, p_all boolean',
  'json',
  `BEGIN
  IF p_all OR (SELECT max((s->>0)::bigint) FROM json_array_elements(p_spans) s) <= 100 THEN
    RETURN (SELECT json_agg(json_build_array(at, nth) ORDER BY at) FROM @.start WHERE tid = p_tid);
  END IF;
  RETURN (SELECT json_agg(json_build_array(at, nth) ORDER BY at) FROM (
    SELECT f.at, f.nth FROM json_array_elements(p_spans) s,
      LATERAL (SELECT at, nth FROM @.start WHERE tid = p_tid AND at >= p_at - (s->>1)::bigint ORDER BY tid, at LIMIT 1) f
    UNION SELECT f.at, f.nth FROM json_array_elements(p_spans) s,
      LATERAL (SELECT at, nth FROM @.start WHERE tid = p_tid AND nth <= p_total - (s->>0)::bigint + (s->>2)::bigint + p_most
        AND nth >= coalesce((SELECT nth FROM @.start WHERE tid = p_tid AND nth <= p_total - (s->>0)::bigint ORDER BY tid DESC, nth DESC LIMIT 1), 0)) f) x);
END`,
)

/**
 * Takes a queue or shard, the most jobs that a claim takes, whether it is made alone, the weight at which it is full, the groups that
 * the caller asks for besides the open lanes, whether a claim asks, and the most payloads of each id that it takes, null for all. A claim gives turns to lanes that
 * had nothing to start before now, and is told of shut lanes whose time has come; for others, jobs and lanes whose time has come by
 * itself count as if it had not, and of the suspects only the first is told, without its lane. Changes nothing else.
 *
 * Returns `LimitsLook`. Such a turn grants nothing, so it needs no version.
 */
export const lookAtLimits = sqlFunction(
  'look_limits_2',
  'p_q int, p_limit int, p_alone boolean, p_most bigint, p_groups text[], p_claims boolean, p_payloads int',
  'json',
  `DECLARE
  t bigint := @.us(); ms bigint := @.us() / 1000; q @.queue; x record; key text; p @.pace; st json; lo bigint; hi bigint; free_ids tid[]; free json; free_n int;
  names text[]; shut text[] := '{}'; each_most int; lanes json; others int[]; suspects text[]; at_ms bigint; is_all boolean;
  next_place bigint; is_expiring boolean; is_due boolean; n int; is_heavy boolean; is_busy boolean; siblings int[];
  s @.queue_state;
BEGIN
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  ${readState('p_q')};
  key := coalesce('t' || q.throttle, 'q' || q.name);
  is_heavy := q.kind = 'ordered' AND p_claims;
  IF is_heavy AND NOT q.stopped AND EXISTS (SELECT FROM @.inbox WHERE name = q.name) THEN PERFORM @.empty_inbox_1(q); t := @.us(); END IF;
  siblings := CASE WHEN q.max_running IS NULL OR q.kind = 'plain' THEN '{}' ELSE array(SELECT qid FROM @.queue WHERE name = q.name AND shard >= 0 AND qid <> p_q) END;
  is_busy := q.kind = 'ordered' AND q.exclusive = 'shard' AND EXISTS (SELECT FROM @.bunch WHERE qid = p_q);
  SELECT * INTO p FROM @.pace WHERE scope = key ORDER BY scope DESC, version DESC LIMIT 1;
  st := p.state::json;
  is_expiring := EXISTS (SELECT FROM @.job WHERE qid = p_q AND expires_ms <= ms AND fence = 0 AND ${isFree});
  IF p_claims THEN
    -- Lanes of one instant come in the order of their jobs.
    FOR x IN SELECT grp FROM (SELECT grp, due, count(*) OVER (PARTITION BY due) AS ties FROM (
        SELECT grp, due FROM @.lane WHERE qid = p_q AND due <= t ORDER BY qid, due LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED) l) l
      ORDER BY due, CASE WHEN ties > 1 THEN (SELECT seq FROM @.job j WHERE j.qid = p_q AND j.grp = l.grp AND j.pool = 2 AND abs(j.stamp) = l.due
        ORDER BY j.qid, j.grp, j.rank, j.stamp, j.seq LIMIT 1) END LOOP
      UPDATE @.lane SET turn = nextval('@.lane_turn'), due = NULL WHERE qid = p_q AND grp = x.grp AND due <= t;
    END LOOP;
    shut := array(SELECT grp FROM @.lane WHERE qid = p_q AND shut_until <= ms ORDER BY qid, shut_until, grp LIMIT least(greatest(p_limit, 1), 100) + 8);
  END IF;
  lo := CASE q.ord WHEN 'lifo' THEN -t ELSE -9223372036854775807 END;
  hi := CASE q.ord WHEN 'lifo' THEN 9223372036854775807 ELSE t END;
  free_ids := @.first_free_1(p_q, lo, hi, least(greatest(p_limit, CASE WHEN p_claims THEN 1 ELSE 100 END), 10000) + 1, false);
  SELECT count(*), json_build_array(count(*), coalesce(sum(weight), 0),
      CASE WHEN sum(weight) > p_most / 64 THEN json_agg(weight ORDER BY rank, stamp, seq, id) END) INTO free_n, free
    FROM (SELECT rank, stamp, seq, id, CASE WHEN is_heavy THEN @.weigh_id_1(head, p_payloads, p_most) ELSE weight END AS weight
      FROM @.job WHERE ctid = ANY (free_ids) AND (p_claims OR flags & 1 = 0)) x;
  is_due := NOT p_claims AND (cardinality(free_ids) > free_n
    OR q.kind = 'ordered' AND EXISTS (SELECT FROM @.inbox WHERE name = q.name AND crc % q.shards = q.shard));
  suspects := array(SELECT coalesce(grp, '') FROM @.job WHERE qid = p_q AND pool = 1 AND fence = 0 AND ${isFree}
    ORDER BY qid, pool, rank, stamp, seq, id LIMIT CASE WHEN p_claims THEN ${mostSuspects + 1} ELSE 1 END);
  names := array(SELECT grp FROM @.lane WHERE qid = p_q AND turn IS NOT NULL ORDER BY qid, turn LIMIT least(greatest(p_limit, 1), 250) + 8);
  n := greatest(cardinality(names || shut), 1);
  each_most := least(greatest(p_limit, 1), greatest(4, 2 * ((p_limit + n - 1) / n)));
  others := CASE WHEN q.throttle IS NULL THEN '{}' ELSE array(SELECT qid FROM @.queue WHERE throttle = q.throttle AND qid <> p_q AND NOT paused) END;
  is_all := (st->'t'->>'run') IS DISTINCT FROM @.run()::text OR ms < (st->'t'->>'last_at')::bigint;
  at_ms := greatest(ms, (st->'t'->>'last_at')::bigint + p.late_ms);
  SELECT json_agg(json_build_array(a.grp, l.turn, l.shut_until, l.held_until, l.paused, y.n, y.w, CASE WHEN y.w > p_most / 64 THEN y.ws END,
      CASE WHEN q.max_per_group IS NOT NULL THEN (SELECT coalesce(sum(c.n), 0) FROM @.lane_count c WHERE c.qid = p_q AND c.grp = a.grp) END,
      cardinality(others) > 0 AND EXISTS (SELECT FROM @.job j WHERE j.qid = ANY (others) AND j.grp = a.grp AND j.pool = 2 AND j.fence = 0
        AND abs(j.stamp) <= t), r.rules, CASE WHEN c.tid IS NOT NULL THEN row_to_json(c) END,
      CASE WHEN c.tid IS NOT NULL THEN @.starts_1(c.tid, c.total, at_ms - c.base, coalesce(r.spans, st->'each'), p_limit,
        is_all OR c.recoveries <> (st->'t'->>'recoveries')::int) END) ORDER BY a.o)
    INTO lanes FROM (SELECT grp, min(o) AS o FROM unnest(names || shut || p_groups || CASE WHEN p_claims THEN suspects END || ''::text) WITH ORDINALITY u (grp, o) WHERE grp IS NOT NULL GROUP BY grp) a
    LEFT JOIN @.lane l ON l.qid = p_q AND l.grp = a.grp
    LEFT JOIN @.counter c ON q.throttle IS NOT NULL AND q.throttle_by <> 'queue' AND c.scope = q.throttle
      AND c.subject = CASE q.throttle_by WHEN 'both' THEN '=' || a.grp ELSE a.grp END
    LEFT JOIN @.rate r ON q.throttle IS NOT NULL AND r.scope = q.throttle AND r.grp = a.grp
    CROSS JOIN LATERAL (SELECT count(*)::int AS n, coalesce(sum(weight), 0) AS w, json_agg(weight) AS ws FROM (
      SELECT CASE WHEN is_heavy THEN @.weigh_id_1(head, p_payloads, p_most) ELSE weight END AS weight FROM @.job j WHERE a.grp <> '' AND j.qid = p_q AND j.grp = a.grp AND j.pool = 2 AND j.stamp BETWEEN lo AND hi AND j.fence = 0 AND ${isFree}
        ORDER BY j.qid, j.grp, j.rank, j.stamp, j.seq, j.id LIMIT each_most + 1) z) y;
  next_place := least(@.next_place_1(p_q, q.ord, t, 0), @.next_place_1(p_q, q.ord, t, 2));
  RETURN json_build_object('limits', json_build_object(
    'key', key, 'version', coalesce(p.version, 0), 'from', p.from_ms, 'late', p.late_ms, 'state', st, 'run', @.run()::text, 'name', q.throttle, 'by', q.throttle_by,
    'total', q.max_running, 'perGroup', q.max_per_group, 'held', q.held_until, 'most', each_most,
    'open', (SELECT count(*) FROM (SELECT FROM @.lane WHERE qid = p_q AND turn IS NOT NULL LIMIT cardinality(names) + 1) z),
    'of', json_build_object('qid', q.qid, 'name', q.name, 'kind', q.kind, 'shard', q.shard, 'shards', q.shards, 'ord', q.ord, 'exclusive', q.exclusive),
    'siblings', array_to_json(siblings), 'siblingsRunning', (SELECT coalesce(sum(b.n), 0) FROM @.bunch b WHERE b.qid = ANY (siblings)),
    'running', CASE WHEN is_busy OR coalesce(q.max_running, q.max_per_group) IS NOT NULL THEN (SELECT coalesce(sum(b.n), 0) FROM @.bunch b WHERE b.qid = p_q)
      - (SELECT count(*) FROM @.bunch_left l WHERE l.qid = p_q) ELSE 0 END,
    'groupedRunning', CASE WHEN q.max_per_group IS NOT NULL THEN (SELECT coalesce(sum(c.n), 0) FROM @.lane_count c WHERE c.qid = p_q) ELSE 0 END,
    'free', free, 'lanes', lanes, 'others', EXISTS (SELECT FROM (SELECT grp FROM @.lane WHERE qid = p_q AND shut_until IS NOT NULL AND NOT grp = ANY (shut) ORDER BY qid, shut_until, grp LIMIT 10) l, @.job j
      WHERE j.qid = p_q AND j.grp = l.grp AND j.pool = 2 AND j.fence = 0 AND j.stamp BETWEEN lo AND hi)
      OR EXISTS (SELECT FROM (SELECT grp FROM @.lane WHERE qid = p_q AND (paused OR blocked) ORDER BY qid, grp LIMIT 10) l, @.job j
      WHERE j.qid = p_q AND j.grp = l.grp AND j.pool = 2 AND j.fence = 0 AND j.stamp BETWEEN lo AND hi), 'suspects', suspects,
    'due', is_due OR (NOT p_claims AND (EXISTS (SELECT FROM @.lane WHERE qid = p_q AND due <= t))),
    'elsewhere', cardinality(others) > 0 AND EXISTS (SELECT FROM @.job j WHERE j.qid = ANY (others) AND j.pool = 2 AND j.fence = 0 AND abs(j.stamp) <= t),
    'elsewhereFree', cardinality(others) > 0 AND EXISTS (SELECT FROM @.job j WHERE j.qid = ANY (others) AND j.pool = 0 AND j.fence = 0 AND abs(j.stamp) <= t),
    'opening', (SELECT min(shut_until) FROM @.lane WHERE qid = p_q AND grp <> '' AND shut_until IS NOT NULL AND NOT grp = ANY (shut)),
    'whole', (SELECT json_build_array(row_to_json(c), @.starts_1(c.tid, c.total, at_ms - c.base, st->'whole', p_limit,
        is_all OR c.recoveries <> (st->'t'->>'recoveries')::int)) FROM @.counter c
      WHERE c.scope = q.throttle AND c.subject = '' AND q.throttle_by <> 'group'),
    'oldest', CASE WHEN q.throttle_by <> 'queue' THEN (SELECT json_build_object('recoveries', recoveries, 'shift_ms', shift_ms, 'last_at', last_at)
      FROM @.counter WHERE scope = q.throttle ORDER BY scope, recoveries, last_at LIMIT 1) END),
    'now', ms, 'jobs', NULL, 'fence', NULL, 'more', false, 'place', next_place,
    'lease', ${soonestLease('p_q')},
    'expiring', is_expiring, 'stopped', q.stopped, 'spares', q.spares_until, 'lead', s.lead_worker, 'wake', s.lead_wake_at,
    'suspectLead', s.suspect_lead_worker, 'suspectWake', s.suspect_lead_wake_at, 'waits', ${isWaitedFor('p_q')},
    'grants', p_limit > 0 AND NOT q.stopped AND NOT is_expiring AND NOT is_busy AND coalesce(q.held_until, 0) <= ms
      AND coalesce((st->'shut'->>p_q::text)::bigint, 0) <= ms AND (free_n > 0 OR cardinality(names || shut) > 0 OR (p_alone AND suspects <> '{}')));
END`,
)

export const lookFunctions = [firstFree, seenStarts, lookAtLimits]
