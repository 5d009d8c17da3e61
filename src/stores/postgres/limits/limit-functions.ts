/**
 * The limits of queues in the database (see `limit-tables`): work comes into lanes, room is made in them, and they are held back;
 * then the administration of throttles, holds and pauses.
 */

import { sqlFunction } from '../schema/sql-function.js'

/**
 * Jobs of these groups wait from now on, in the same transaction. Takes a queue, an element for each job: its group, or null, and the
 * instant in µs from which it may begin; and that of now. Returns nothing. Lanes that had no turn, new ones too, get one in the order
 * of the jobs that may begin: a claim that comes while the group is held shuts its lane. Rows are locked in the order of the groups.
 */
const enterLanes = sqlFunction(
  'enter_lanes_1',
  'p_q int, p_grps text[], p_dues bigint[], p_t bigint',
  'void',
  `DECLARE grps text[]; dues bigint[]; turns bigint[]; n int;
BEGIN
  SELECT array_agg(g ORDER BY o), array_agg(d ORDER BY o) INTO grps, dues FROM (
    SELECT g COLLATE "C" AS g, min(d) AS d, min(o) FILTER (WHERE d <= p_t) AS o FROM unnest(p_grps, p_dues) WITH ORDINALITY x (g, d, o) WHERE g IS NOT NULL GROUP BY 1) x;
  IF grps IS NULL THEN RETURN; END IF;
  turns := array(SELECT CASE WHEN d <= p_t THEN nextval('@.lane_turn') END FROM unnest(dues) d);
  UPDATE @.queue SET limited = true WHERE qid = p_q AND NOT limited;
  LOOP
    INSERT INTO @.lane (qid, grp, turn, due) SELECT p_q, g, turn, CASE WHEN turn IS NULL THEN d END FROM unnest(grps, dues, turns) x (g, d, turn)
      WHERE NOT EXISTS (SELECT FROM @.lane l WHERE l.qid = p_q AND l.grp = x.g) ORDER BY g ON CONFLICT DO NOTHING;
    SELECT count(*) INTO n FROM (SELECT FROM @.lane WHERE qid = p_q AND grp = ANY (grps) ORDER BY grp FOR KEY SHARE) x;
    EXIT WHEN n = cardinality(grps);
  END LOOP;
  -- The locks come first: an update alone would take them in any order.
  PERFORM FROM @.lane WHERE qid = p_q AND grp = ANY (grps) AND turn IS NULL AND shut_until IS NULL AND NOT blocked ORDER BY grp FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  FOR i IN 1 .. cardinality(grps) LOOP
    IF dues[i] <= p_t THEN
      UPDATE @.lane SET turn = CASE WHEN NOT paused THEN turns[i] END, blocked = paused, due = NULL
        WHERE qid = p_q AND grp = grps[i] AND turn IS NULL AND shut_until IS NULL AND NOT blocked;
    ELSE
      UPDATE @.lane SET due = dues[i]
        WHERE qid = p_q AND grp = grps[i] AND turn IS NULL AND shut_until IS NULL AND NOT blocked AND (due IS NULL OR due > dues[i]);
    END IF;
  END LOOP;
END`,
)

/**
 * Claims of these groups have ended, in the same transaction. Takes a queue, a group for each job, and whether the queue bounds
 * what runs: then a lane that waited for an end has a turn again. Returns nothing.
 */
const leaveLanes = sqlFunction(
  'leave_lanes_1',
  'p_q int, p_grps text[], p_bounded boolean',
  'void',
  `BEGIN
  INSERT INTO @.lane_count SELECT p_q, g, -count(*) FROM unnest(p_grps) g GROUP BY g;
  IF p_bounded THEN PERFORM @.free_lanes_1(p_q, p_grps); END IF;
END`,
)

/** There is room for these groups of a queue: their lanes have turns again if they waited for an end. Returns nothing. */
const freeLanes = sqlFunction(
  'free_lanes_1',
  'p_q int, p_grps text[]',
  'void',
  `BEGIN
  PERFORM FROM @.lane WHERE qid = p_q AND grp = ANY (p_grps) ORDER BY grp FOR KEY SHARE;
  PERFORM FROM @.lane WHERE qid = p_q AND grp = ANY (p_grps) AND blocked AND NOT paused ORDER BY grp FOR NO KEY UPDATE;
  IF FOUND THEN
    UPDATE @.lane SET turn = nextval('@.lane_turn'), blocked = false WHERE qid = p_q AND grp = ANY (p_grps) AND blocked AND NOT paused;
  END IF;
END`,
)

/**
 * Holds a queue back until an instant in ms, or, if `p_grp` is not null, this group of it; a longer hold stays. It is held in all
 * shards, because limits are of the whole queue. Takes one of these. Returns nothing.
 */
const holdBack = sqlFunction(
  'hold_1',
  'p_q int, p_grp text, p_until bigint',
  'void',
  `DECLARE s int;
BEGIN
  FOR s IN SELECT qid FROM @.queue WHERE name = (SELECT name FROM @.queue WHERE qid = p_q) ORDER BY qid LOOP
    IF p_grp IS NULL THEN
      UPDATE @.queue SET held_until = greatest(held_until, p_until), limited = true WHERE qid = s;
      CONTINUE;
    END IF;
    UPDATE @.queue SET limited = true WHERE qid = s AND NOT limited;
    INSERT INTO @.lane AS l (qid, grp, held_until) VALUES (s, p_grp, p_until) ON CONFLICT (qid, grp) DO UPDATE SET
      held_until = greatest(l.held_until, p_until), turn = NULL, shut_until = CASE WHEN l.turn IS NOT NULL OR l.shut_until IS NOT NULL
        THEN greatest(l.held_until, p_until, l.shut_until) END;
  END LOOP;
END`,
)

export const laneFunctions = [enterLanes, leaveLanes, freeLanes, holdBack]

/** Takes a scope, and questions of `LookedCounters`. Returns the names of its queues, and how many counters the questions count. */
export const countGroups = sqlFunction(
  'count_groups_1',
  'p_scope text, p_questions json',
  'json',
  `BEGIN
  RETURN json_build_object('queues', (SELECT coalesce(json_agg(DISTINCT name ORDER BY name), '[]') FROM @.queue WHERE throttle = p_scope),
    'groups', (SELECT count(*) FROM json_to_recordset(p_questions) AS x (earlier boolean, recoveries int, "from" bigint, "except" text),
      @.counter c WHERE c.scope = p_scope COLLATE "C" AND c.subject IS DISTINCT FROM x."except" COLLATE "C" AND CASE WHEN x.earlier
        THEN c.recoveries < x.recoveries AND c.last_at - c.shift_ms >= x."from" ELSE c.recoveries = x.recoveries AND c.last_at >= x."from" END));
END`,
)

/** Takes a scope and a limit. Returns the first groups with rates of their own, `[group, rules]`. */
export const listRates = sqlFunction(
  'rates_1',
  'p_scope text, p_limit int',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(grp, rules) ORDER BY grp), '[]')
    FROM (SELECT grp, rules FROM @.rate WHERE scope = p_scope ORDER BY scope, grp LIMIT p_limit) x);
END`,
)

/**
 * Takes a queue, the groups asked for, null for all, and a limit. Returns `{whole, paused, held, total}`: for how many ms the queue is
 * held, the paused groups, the held ones with their ms, and the number of all.
 */
export const listHolds = sqlFunction(
  'holds_1',
  'p_q int, p_groups text[], p_limit int',
  'json',
  `DECLARE ms bigint := @.us() / 1000; whole bigint;
BEGIN
  SELECT held_until - ms INTO whole FROM @.queue WHERE qid = p_q AND held_until > ms;
  RETURN json_build_object('whole', whole,
    'paused', (SELECT coalesce(json_agg(grp ORDER BY grp), '[]') FROM (SELECT grp FROM @.lane WHERE qid = p_q AND paused
      AND (p_groups IS NULL OR grp = ANY (p_groups)) ORDER BY grp LIMIT p_limit) x),
    'held', (SELECT coalesce(json_agg(json_build_array(grp, held_until - ms) ORDER BY held_until, grp), '[]') FROM (SELECT grp, held_until FROM @.lane
      WHERE qid = p_q AND held_until > ms AND (p_groups IS NULL OR grp = ANY (p_groups)) ORDER BY held_until, grp LIMIT p_limit) x),
    'total', (whole IS NOT NULL)::int + (SELECT count(*) FILTER (WHERE paused) + count(*) FILTER (WHERE held_until > ms) FROM @.lane
      WHERE qid = p_q AND (paused OR held_until > ms) AND (p_groups IS NULL OR grp = ANY (p_groups))));
END`,
)

/**
 * Takes a queue and a group, null for the queue and all of its groups. Ends their holds; shut lanes are looked at anew. Returns how many
 * holds it ended.
 */
export const releaseHolds = sqlFunction(
  'release_1',
  'p_q int, p_grp text',
  'json',
  `DECLARE ms bigint := @.us() / 1000; n int; x record;
BEGIN
  n := (SELECT count(*) FROM @.lane WHERE qid = p_q AND held_until > ms AND (p_grp IS NULL OR grp = p_grp));
  IF p_grp IS NULL THEN
    n := n + (SELECT count(*) FROM @.queue WHERE qid = p_q AND held_until > ms);
    UPDATE @.queue SET held_until = NULL WHERE qid = p_q AND held_until IS NOT NULL;
  END IF;
  PERFORM FROM @.lane WHERE qid = p_q AND (held_until IS NOT NULL OR shut_until IS NOT NULL) AND (p_grp IS NULL OR grp = p_grp)
    ORDER BY grp FOR NO KEY UPDATE;
  FOR x IN SELECT grp FROM @.lane WHERE qid = p_q AND (held_until IS NOT NULL OR shut_until IS NOT NULL) AND (p_grp IS NULL OR grp = p_grp)
      ORDER BY shut_until, grp LOOP
    UPDATE @.lane SET held_until = NULL, turn = CASE WHEN shut_until IS NULL THEN turn ELSE nextval('@.lane_turn') END, shut_until = NULL
      WHERE qid = p_q AND grp = x.grp;
  END LOOP;
  RETURN to_json(n);
END`,
)

/** Takes a queue, a group, and whether it is paused from now on. A lane without jobs is found empty by the next claim. Returns null. */
export const pauseGroup = sqlFunction(
  'pause_group_1',
  'p_q int, p_grp text, p_paused boolean',
  'json',
  `BEGIN
  IF p_paused THEN
    UPDATE @.queue SET limited = true WHERE qid = p_q AND NOT limited;
    INSERT INTO @.lane AS l (qid, grp, paused) VALUES (p_q, p_grp, true) ON CONFLICT (qid, grp) DO UPDATE SET paused = true,
      blocked = l.turn IS NOT NULL OR l.shut_until IS NOT NULL OR l.blocked, turn = NULL, shut_until = NULL;
  ELSE
    UPDATE @.lane SET paused = false, turn = nextval('@.lane_turn'), blocked = false, due = NULL WHERE qid = p_q AND grp = p_grp AND paused;
  END IF;
  RETURN NULL;
END`,
)

/**
 * Takes a key and version of a scope, `ScopeChanges`, and null or the rate of a group, `{group, rules, spans}`. Opens the lanes that are
 * shut, or that of the group. Returns null if the scope has changed, and changes nothing; otherwise the numbers of its queues.
 */
export const tuneScope = sqlFunction(
  'tune_1',
  'p_key text, p_version bigint, p_changes json, p_rate json',
  'json',
  `DECLARE of_scope text := substr(p_key, 2); x record;
BEGIN
  PERFORM pg_advisory_xact_lock(@lock + 3, hashtext(p_key));
  IF p_version <> (SELECT version FROM @.pace WHERE scope = p_key ORDER BY scope DESC, version DESC LIMIT 1) THEN RETURN NULL; END IF;
  PERFORM @.write_scope_1(p_key, p_version, 0, 0, p_changes);
  IF p_rate IS NOT NULL THEN
    DELETE FROM @.rate WHERE scope = of_scope AND grp = p_rate->>'group';
    IF p_rate->>'rules' IS NOT NULL THEN INSERT INTO @.rate VALUES (of_scope, p_rate->>'group', p_rate->>'rules', p_rate->'spans'); END IF;
  END IF;
  PERFORM FROM @.queue q JOIN @.lane l USING (qid) WHERE q.throttle = of_scope AND l.shut_until IS NOT NULL
    AND (p_rate IS NULL OR l.grp = p_rate->>'group') ORDER BY l.qid, l.grp FOR NO KEY UPDATE OF l;
  FOR x IN SELECT l.qid, l.grp FROM @.queue q JOIN @.lane l USING (qid) WHERE q.throttle = of_scope AND l.shut_until IS NOT NULL
      AND (p_rate IS NULL OR l.grp = p_rate->>'group') ORDER BY l.shut_until, l.grp LOOP
    UPDATE @.lane SET shut_until = NULL, turn = nextval('@.lane_turn') WHERE qid = x.qid AND grp = x.grp;
  END LOOP;
  RETURN (SELECT json_agg(q.qid) FROM @.queue q WHERE q.throttle = of_scope COLLATE "C");
END`,
)

export const throttleFunctions = [countGroups, listRates, listHolds, releaseHolds, pauseGroup, tuneScope]
