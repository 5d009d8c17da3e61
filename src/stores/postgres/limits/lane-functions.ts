/** Lanes in the database: work comes into them, room is made in them, and they are held back. See `limit-tables`. */

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
