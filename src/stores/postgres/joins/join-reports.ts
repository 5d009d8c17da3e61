/**
 * The reports of members to their joins. The transaction that ends a member inserts them, and waits for nobody; another one
 * delivers them, before the call that ended the member resolves. If its process dies in between, a sweep does so.
 */

import { stepLimit } from '../../rules/bounds.js'
import { memberDeadReason, mostJoinBytes, tooLargeError, tooLargeReason } from '../../rules/join-rules.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { keepFloors } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'
import { ringFor } from '../work/limited-ring.js'

/** Results of more bytes than this, or ends of more members than `stepLimit`, are deleted step by step. */
const mostDropped = 1_048_576

/**
 * What a job with ties leaves at its end: reports, its steps, its wait and what it has as a join. Called by every function
 * that ends a job with a flag of 240. Takes its queue, id, flags and places as they were; its fate as in `fates`, null if
 * none is reported; and its result, codec and error. After fate 1 the job is dead and keeps its steps and its sets.
 */
const leaveTies = sqlFunction(
  'leave_ties_1',
  'p_q int, p_id text, p_flags int, p_places text, p_fate int, p_result text, p_codec text, p_error text',
  'void',
  `DECLARE j bigint; members bigint; kept bigint;
BEGIN
  IF p_flags & 16 > 0 AND p_fate IS NOT NULL THEN
    INSERT INTO @.join_report (queue, id, set_name, number, fate, member_qid, member, codec, error, payload)
      SELECT p->>0, p->>1, p->>2, (p->>3)::bigint, p_fate, p_q, p_id, CASE p->>5 WHEN '1' THEN p_codec END, CASE p->>5 WHEN '1' THEN p_error END,
        CASE p->>5 WHEN '1' THEN p_result END FROM json_array_elements(p_places::json) p;
  END IF;
  IF p_flags & 128 > 0 THEN DELETE FROM @.signal_wait WHERE id = p_id AND qid + 0 = p_q; END IF;
  IF p_fate = 1 THEN
    IF p_flags & 32 > 0 THEN UPDATE @.join_job SET due_at = NULL WHERE id = p_id AND qid + 0 = p_q; END IF;
    RETURN;
  END IF;
  IF p_flags & 64 > 0 THEN DELETE FROM @.step WHERE id = p_id AND qid + 0 = p_q; END IF;
  IF p_flags & 32 > 0 THEN
    DELETE FROM @.join_job WHERE id = p_id AND qid + 0 = p_q RETURNING jid, bytes INTO j, kept;
    SELECT sum(added) INTO members FROM @.join_set WHERE jid = j;
    IF members > ${stepLimit} OR kept > ${mostDropped} THEN
      UPDATE @.join_set SET jid = NULL WHERE jid = j;
    ELSE
      DELETE FROM @.join_end WHERE sid IN (SELECT sid FROM @.join_set WHERE jid = j);
      DELETE FROM @.join_set WHERE jid = j;
    END IF;
  END IF;
END`,
)

/** Of a row of `join_set`: somebody in it is outstanding. */
const isIncomplete = `(size IS NULL OR size <> completed + CASE on_dead WHEN 'go-on' THEN dead + cancelled + expired ELSE 0 END)`

/**
 * What becomes of a join that waits for its members: it dies for the reason given, or is ready or scheduled if nobody is
 * outstanding. Takes its queue and id, and the reason and the error or null. The caller has locked the row of its job.
 *
 * Returns null, or `[queue, true]` for a join that is scheduled, `[queue, false]` for one that is ready, and `[queue, null]`
 * for one that died.
 */
const judgeJoin = sqlFunction(
  'judge_join_1',
  'p_q int, p_id text, p_reason text, p_error text',
  'json',
  `DECLARE t bigint := @.us(); ms bigint := @.us() / 1000; o @.job; jj @.join_job; q @.queue; due bigint; way int;
BEGIN
  SELECT * INTO o FROM @.job WHERE id = p_id AND qid + 0 = p_q AND pool = -1 AND fence = 0 AND flags & 160 = 32;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT * INTO jj FROM @.join_job WHERE id = p_id AND qid + 0 = p_q;
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  IF p_reason IS NOT NULL THEN
    INSERT INTO @.join_failed (queue, id, task, reason) VALUES (q.name, p_id, o.task, p_reason);
    UPDATE @.job SET error = p_error WHERE id = p_id AND qid + 0 = p_q;
    PERFORM @.ends_1(p_q, json_build_array(json_build_object('id', p_id, 'fence', 0, 'to', 'dead', 'reason', p_reason)));
    UPDATE @.join_job SET cancelling = CASE p_reason WHEN '${memberDeadReason}' THEN cancels_rest ELSE 0 END WHERE jid = jj.jid;
    RETURN json_build_array(p_q, NULL);
  END IF;
  IF EXISTS (SELECT FROM @.join_set WHERE jid = jj.jid AND ${isIncomplete}) THEN RETURN NULL; END IF;
  way := CASE q.ord WHEN 'lifo' THEN -1 ELSE 1 END;
  due := coalesce(jj.run_at, ms + jj.delay_ms);
  ${keepFloors('p_q')};
  UPDATE @.job SET pool = CASE WHEN grp IS NULL THEN 0 ELSE 2 END, updated_ms = ms, waited_ms = ms, expires_ms = ms + jj.expires_ms, flags = CASE WHEN due > ms THEN flags | 1 ELSE flags END,
    stamp = CASE WHEN due > ms THEN due * 1000 * way ELSE stamp END, seq = CASE WHEN due > ms THEN coalesce(arrival, abs(seq)) ELSE seq END
    WHERE id = p_id AND qid + 0 = p_q;
  UPDATE @.floor SET stamp = o.stamp WHERE qid = p_q AND rank = o.rank AND stamp > o.stamp AND due <= ms;
  IF o.grp IS NOT NULL THEN PERFORM @.enter_lanes_1(p_q, ARRAY[o.grp], ARRAY[CASE WHEN due > ms THEN due * 1000 ELSE abs(o.stamp) END], t); END IF;
  UPDATE @.join_job SET due_at = NULL WHERE jid = jj.jid;
  RETURN json_build_array(p_q, due > ms);
END`,
)

/** Takes the queue and id of a dead join that is revived. If it misses members it waits for them as long as a new one. Returns whether. */
const waitAgain = sqlFunction(
  'wait_again_1',
  'p_q int, p_id text',
  'boolean',
  `DECLARE ms bigint := @.us() / 1000; j bigint;
BEGIN
  SELECT jid INTO j FROM @.join_job WHERE id = p_id COLLATE "C" AND qid + 0 = p_q;
  IF NOT EXISTS (SELECT FROM @.join_set WHERE jid = j AND ${isIncomplete}) THEN RETURN false; END IF;
  UPDATE @.join_job SET cancelling = 0, late_at = ms + within_ms, seal_by = ms + seal_within_ms,
    due_at = least(ms + within_ms, CASE WHEN EXISTS (SELECT FROM @.join_set WHERE jid = j AND size IS NULL) THEN ms + seal_within_ms END) WHERE jid = j;
  RETURN true;
END`,
)

/** Takes the queue and id of a join. Waits for its lock. Returns whether it hears reports: it waits for members, or is dead. */
const lockJoin = sqlFunction(
  'lock_join_1',
  'p_q int, p_id text',
  'boolean',
  `DECLARE is_open boolean;
BEGIN
  -- One that runs hears none, and may be locked by a transaction of its user.
  IF EXISTS (SELECT FROM @.job WHERE id = p_id AND qid + 0 = p_q AND fence > 0) THEN RETURN false; END IF;
  -- The join may be revived between the two looks.
  FOR i IN 1 .. 2 LOOP
    SELECT pool = -1 AND fence = 0 AND flags & 160 = 32 INTO is_open FROM @.job WHERE id = p_id AND qid + 0 = p_q FOR UPDATE;
    IF FOUND THEN RETURN is_open; END IF;
    SELECT state = 4 AND flags & 32 > 0 INTO is_open FROM @.ended WHERE id = p_id AND qid + 0 = p_q FOR UPDATE;
    IF FOUND THEN RETURN is_open; END IF;
  END LOOP;
  RETURN false;
END`,
)

/**
 * Delivers reports from the number `p_from` on, at most about `p_most`: those of a join that died on the way before all
 * others. Before each it delivers earlier deaths and revivals of which the same join has not heard, also those that others left: who revived a
 * member may be slower than who completed it since. Members that have completed between two of these are taken together, as
 * nothing depends on their order. It may be forgotten by a crash of the server: then so are no reports.
 *
 * Returns `{more, became}`: whether there may be others, and what `judge_join_1` has said of joins.
 */
const deliverReports = sqlFunction(
  'deliver_1',
  'p_from bigint, p_most int',
  'json',
  `DECLARE
  e @.join_report; before @.join_report; s @.join_set; q int; j bigint; since bigint; k int := 0; n_taken int; last_n bigint; is_open boolean; is_new boolean;
  reason text; error text; became json[] := '{}'; one json;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  LOOP
    SELECT * INTO e FROM @.join_report WHERE n >= p_from ORDER BY depth DESC, n LIMIT 1;
    EXIT WHEN NOT FOUND OR k >= p_most;
    SELECT qid INTO q FROM @.queue WHERE name = e.queue;
    -- Lock, and look in the next statement: somebody else may have delivered meanwhile.
    is_open := q IS NOT NULL AND @.lock_join_1(q, e.id);
    IF NOT is_open THEN
      DELETE FROM @.join_report WHERE queue = e.queue AND id = e.id AND fate <> 0;
      GET DIAGNOSTICS n_taken = ROW_COUNT; k := k + n_taken;
      DELETE FROM @.join_report WHERE n >= p_from AND queue = e.queue AND id = e.id;
      GET DIAGNOSTICS n_taken = ROW_COUNT; k := k + greatest(n_taken, 1);
      CONTINUE;
    END IF;
    SELECT * INTO before FROM @.join_report r WHERE r.queue = e.queue AND r.id = e.id AND r.fate <> 0 AND r.n < e.n
      AND (r.depth >= e.depth OR (r.member = e.member AND r.member_qid = e.member_qid)) ORDER BY r.n LIMIT 1;
    IF FOUND THEN e := before; END IF;
    SELECT jid, told_from INTO j, since FROM @.join_job WHERE id = e.id AND qid = q;
    IF e.n < since THEN
      DELETE FROM @.join_report WHERE n = e.n;
      k := k + 1;
      CONTINUE;
    END IF;
    reason := NULL; error := NULL;
    IF e.fate = 0 THEN
      WITH t AS (DELETE FROM @.join_report WHERE n >= p_from AND queue = e.queue AND id = e.id AND fate = 0
        AND n < coalesce((SELECT r.n FROM @.join_report r WHERE r.queue = e.queue AND r.id = e.id AND r.fate <> 0 ORDER BY r.n LIMIT 1), 9223372036854775807)
        RETURNING *),
      kept AS (
        INSERT INTO @.join_end (sid, number, fate, codec, payload)
        SELECT x.sid, t.number, 0, t.codec, t.payload
        FROM t JOIN @.queue m ON m.qid = t.member_qid AND t.n >= since
          JOIN @.join_set x ON x.jid = j AND x.name = t.set_name AND x.queue = m.name AND t.number < x.added
            AND t.member = CASE x.is_many WHEN 1 THEN x.ids || '.' || t.number ELSE x.ids END
        ON CONFLICT DO NOTHING RETURNING sid, payload),
      counted AS (UPDATE @.join_set x SET completed = completed + c.n
        FROM (SELECT sid, count(*) AS n FROM kept GROUP BY sid) c WHERE x.sid = c.sid),
      heavier AS (UPDATE @.join_job SET bytes = bytes + b.n FROM (SELECT sum(octet_length(payload)) AS n FROM kept) b WHERE jid = j AND b.n > 0)
      SELECT count(*) INTO n_taken FROM t;
      k := k + greatest(n_taken, 1);
    ELSE
      DELETE FROM @.join_report WHERE n = e.n;
      k := k + 1;
      CONTINUE WHEN NOT FOUND;
      SELECT x.* INTO s FROM @.join_set x JOIN @.queue m ON m.name = x.queue WHERE x.jid = j AND x.name = e.set_name AND m.qid = e.member_qid
        AND e.number < x.added AND e.member = CASE x.is_many WHEN 1 THEN x.ids || '.' || e.number ELSE x.ids END;
      CONTINUE WHEN NOT FOUND;
      IF e.fate = 4 THEN
        -- It was revived.
        DELETE FROM @.join_end WHERE sid = s.sid AND number = e.number AND fate = 1;
        IF FOUND THEN UPDATE @.join_set SET dead = dead - 1 WHERE sid = s.sid; END IF;
        CONTINUE;
      END IF;
      INSERT INTO @.join_end (sid, number, fate, error) VALUES (s.sid, e.number, e.fate, e.error)
        ON CONFLICT DO NOTHING;
      is_new := FOUND;
      IF NOT is_new AND e.fate = 2 AND s.on_dead <> 'go-on' THEN
        -- Of ends that were reported only one changes: a dead member may go for good.
        UPDATE @.join_end SET fate = 2, error = NULL WHERE sid = s.sid AND number = e.number AND fate = 1;
        is_new := FOUND;
        IF is_new THEN UPDATE @.join_set SET dead = dead - 1 WHERE sid = s.sid; END IF;
      END IF;
      CONTINUE WHEN NOT is_new;
      UPDATE @.join_set SET dead = dead + (e.fate = 1)::int, cancelled = cancelled + (e.fate = 2)::int, expired = expired + (e.fate = 3)::int
        WHERE sid = s.sid;
      IF s.on_dead = 'fail' OR (s.on_dead = 'hold' AND e.fate <> 1) THEN
        reason := '${memberDeadReason}';
        error := 'member ''' || e.member || ''' of set ''' || s.name || ''' in queue ''' || s.queue || ''' '
          || CASE e.fate WHEN 1 THEN 'is dead' WHEN 3 THEN 'has expired' ELSE 'was cancelled' END;
      END IF;
    END IF;
    IF (SELECT bytes FROM @.join_job WHERE jid = j) > ${mostJoinBytes} THEN
      reason := '${tooLargeReason}'; error := '${tooLargeError}';
    END IF;
    last_n := nextval(pg_get_serial_sequence('@.join_report', 'n'));
    one := @.judge_join_1(q, e.id, reason, error);
    IF one IS NOT NULL THEN
      became := became || one;
      -- What follows from its death comes before what was reported later.
      IF reason IS NOT NULL THEN UPDATE @.join_report SET depth = e.depth + 1 WHERE n > last_n AND member = e.id AND member_qid = q; END IF;
    END IF;
  END LOOP;
  RETURN json_build_object('more', k >= p_most, 'became', array_to_json(became));
END`,
)

export const reportFunctions = [leaveTies, judgeJoin, waitAgain, lockJoin, deliverReports]

/** A join that was decided: the number of its queue, and whether it is due later; null: it is dead. */
export type BecameOfJoin = readonly [qid: number, isLater: boolean | null]

export class PostgresReports {
  readonly #connection: PostgresConnection

  constructor(connection: PostgresConnection) {
    this.#connection = connection
  }

  /** Resolves when the reports with numbers from `from` on that were committed have been delivered, and has joins rung for. */
  async deliver(from = 0): Promise<void> {
    for (;;) {
      const answer = await this.#connection.call(deliverReports, [from, stepLimit])
      const { more, became } = answer as { readonly more: boolean; readonly became: BecameOfJoin[] }
      this.ringFor(became)
      if (!more) return
    }
  }

  /** Rings for joins that are ready or scheduled, after the commit. Nobody waits for the rings. */
  ringFor(became: readonly BecameOfJoin[]): void {
    for (const [qid, isLater] of became) if (isLater !== null) ringFor(this.#connection, qid, isLater)
  }
}
