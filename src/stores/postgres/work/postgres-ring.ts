/**
 * Rings: who waits has a row, and a ring wakes one of those who have. Where nobody waits nothing is sent. A ring takes one
 * lock of the whole server, so it has a transaction of its own, after the commit that it tells of.
 */

import { isFree } from '../schema/free-job.js'
import { readState, soonestLease, waiterFloor } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'

/** Whether a backend of the server has not ended: who listens on it hears. */
const lives = (backend: string) => `EXISTS (SELECT FROM pg_stat_get_activity(${backend}))`

/**
 * Rings one waiter of the queue, unless it is paused. `p_later`: for a job that is not due yet; if nobody waits, the next
 * waiter is told. `p_decided`: the caller has looked at the limits of the queue. Returns null, or, with nobody rung, those limits.
 *
 * A process that died without a word has left rows: they go with the first ring that finds that their backend has ended. The
 * backend of a host that died lasts, so the latest waiter is rung, which most probably lives.
 */
export const ringQueue = sqlFunction(
  'ring_2',
  'p_q int, p_later boolean, p_decided boolean',
  'json',
  `DECLARE c text; b int; q @.queue; s @.queue_state;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO q FROM @.queue WHERE qid = p_q;
  IF q.stopped THEN RETURN NULL; END IF;
  IF q.limited AND NOT p_decided THEN RETURN @.look_limits_2(p_q, 1, false, 1, '{}', false, NULL); END IF;
  ${readState('p_q')};
  LOOP
    DELETE FROM @.waiter WHERE ctid = ANY (array(SELECT ctid FROM @.waiter WHERE qid = p_q AND n > ${waiterFloor}
        ORDER BY qid DESC, n DESC LIMIT 1 FOR UPDATE SKIP LOCKED))
      RETURNING channel, backend INTO c, b;
    EXIT WHEN c IS NULL OR ${lives('b')};
  END LOOP;
  IF c IS NOT NULL THEN
    PERFORM pg_notify(c, p_q::text);
  ELSIF p_later THEN
    LOOP
      EXIT WHEN s.unheard;
      s.unheard := true;
      EXIT WHEN @.change_state_1(p_q, s);
      ${readState('p_q')};
    END LOOP;
  END IF;
  RETURN NULL;
END`,
)

/**
 * Takes a queue. Rings a waiter in a transaction of a user: heard after its commit, and sent only if somebody waits, so that a
 * busy system takes no lock for it. It writes nothing, because a row that it removed would be locked until that commit.
 * Returns null.
 */
export const ringInside = sqlFunction(
  'ring_in_1',
  'p_q int',
  'json',
  `DECLARE c text; s @.queue_state;
BEGIN
  ${readState('p_q')};
  SELECT channel INTO c FROM @.waiter WHERE qid = p_q AND n > ${waiterFloor} AND NOT (SELECT paused FROM @.queue WHERE qid = p_q)
    AND ${lives('backend')} ORDER BY qid DESC, n DESC LIMIT 1;
  IF c IS NOT NULL THEN PERFORM pg_notify(c, p_q::text); END IF;
  RETURN NULL;
END`,
)

/** A wait that is this far above the floor of its queue raises the floor. */
const raiseEvery = 20

/**
 * Takes queues, a channel, and the backend that listens to it, null for the one of this call: who listens there waits for them,
 * and says so from now on. `p_before`: for each queue the number that the channel had last; 0: unknown. Returns the numbers that it
 * has now.
 *
 * Nobody may come to wait below a floor: who raises it has a lock that all others who begin to wait share.
 */
export const beginWait = sqlFunction(
  'wait_1',
  'p_qids int[], p_channel text, p_backend int, p_before bigint[]',
  'json',
  `DECLARE s @.queue_state; q int; made bigint[] := '{}'; behind int[] := '{}'; k bigint; lowest bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  FOR i IN 1 .. cardinality(p_qids) LOOP
    PERFORM pg_advisory_xact_lock_shared(@lock + 10, p_qids[i]);
    ${readState('p_qids[i]')};
    DELETE FROM @.waiter WHERE qid = p_qids[i] AND n >= p_before[i] AND n > ${waiterFloor} AND channel = p_channel;
    INSERT INTO @.waiter (qid, channel, backend) VALUES (p_qids[i], p_channel, coalesce(p_backend, pg_backend_pid())) RETURNING n INTO k;
    made := made || k;
    IF k - ${waiterFloor} > ${raiseEvery} THEN behind := behind || p_qids[i]; END IF;
  END LOOP;
  FOREACH q IN ARRAY behind LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(@lock + 10, q);
    -- Lock, and look in the next statement.
    ${readState('q')};
    SELECT min(n) - 1 INTO lowest FROM @.waiter WHERE qid = q AND n > ${waiterFloor};
    LOOP
      EXIT WHEN s.waiter_floor = lowest;
      s.waiter_floor := lowest;
      EXIT WHEN @.change_state_1(q, s);
      ${readState('q')};
    END LOOP;
  END LOOP;
  RETURN to_json(made);
END`,
)

/**
 * Takes queues, a channel, which waits for them no more, and for each queue the number that it had last. Returns those for which it
 * had been rung already.
 */
export const endWait = sqlFunction(
  'wait_over_1',
  'p_qids int[], p_channel text, p_before bigint[]',
  'json',
  `DECLARE rung int[] := '{}';
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  FOR i IN 1 .. cardinality(p_qids) LOOP
    DELETE FROM @.waiter WHERE qid = p_qids[i] AND n >= p_before[i] AND channel = p_channel;
    IF NOT FOUND THEN rung := rung || p_qids[i]; END IF;
  END LOOP;
  RETURN to_json(rung);
END`,
)

/** What is not rung for one waiter but told to all: the topics, which stand in place of a queue. */
export const topics = {
  schedules: 0,
  live: -2_147_483_648,
  /** Jobs of the queue have ended. */
  endsOf: (qid: number) => 0 - qid,
}

/** Takes a topic. Wakes all who wait for news of it. Returns null. */
export const tellAll = sqlFunction(
  'tell_1',
  'p_topic int',
  'json',
  `DECLARE c text; s @.queue_state;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  ${readState('p_topic')};
  FOR c IN DELETE FROM @.waiter WHERE qid = p_topic AND n > ${waiterFloor} RETURNING channel LOOP PERFORM pg_notify(c, p_topic::text); END LOOP;
  RETURN NULL;
END`,
)

/**
 * Looks for what a waiter would be woken for. Takes queues, and whether the caller has just begun to wait: it then takes the
 * rings that nobody heard. Returns `{now, queues}`, for each queue as `WaitLook` has it.
 */
export const lookForWork = sqlFunction(
  'peek_2',
  'p_qids int[], p_first boolean',
  'json',
  `DECLARE t bigint := @.us(); looks json[] := '{}'; q @.queue; r bigint; f bigint; ready boolean; due boolean; unheard boolean; x record; s @.queue_state;
BEGIN
  FOR i IN 1 .. cardinality(p_qids) LOOP
    SELECT * INTO q FROM @.queue WHERE qid = p_qids[i] AND shard >= 0;
    IF q.qid IS NULL THEN looks := looks || 'null'::json; CONTINUE; END IF;
    ${readState('q.qid')};
    unheard := false;
    WHILE p_first AND s.unheard AND NOT unheard LOOP
      s.unheard := false;
      unheard := @.change_state_1(q.qid, s);
      ${readState('q.qid')};
    END LOOP;
    r := -2147483649; ready := false; due := false;
    IF q.limited THEN
      looks := looks || json_build_object('unheard', unheard, 'limited', @.look_limits_2(q.qid, 1, false, 1, '{}', false, NULL));
      CONTINUE;
    END IF;
    LOOP
      EXIT WHEN q.stopped OR q.exclusive = 'shard' AND EXISTS (SELECT FROM @.bunch WHERE qid = q.qid);
      r := @.next_rank_1(q.qid, 0, r);
      EXIT WHEN r IS NULL OR ready;
      f := CASE q.ord WHEN 'lifo' THEN -t ELSE coalesce((SELECT stamp FROM @.floor WHERE qid = q.qid AND rank = r), -9223372036854775807) END;
      -- Whether the first of them fell due by themselves; beyond those nobody looks for one that did not.
      SELECT coalesce(bool_or(flags & 1 = 0), false) AS ready, count(*) > 0 AS has INTO x FROM (SELECT flags FROM @.job
        WHERE qid = q.qid AND pool = 0 AND rank = r AND stamp >= f AND stamp <= CASE q.ord WHEN 'lifo' THEN 9223372036854775807 ELSE t END
          AND fence = 0 AND ${isFree} ORDER BY qid, pool, rank, stamp, seq LIMIT 100) y;
      ready := ready OR x.ready; due := due OR x.has;
    END LOOP;
    ready := ready OR q.kind = 'ordered' AND EXISTS (SELECT FROM @.inbox WHERE name = q.name AND crc % q.shards = q.shard);
    looks := looks || json_build_object('ready', ready, 'due', due, 'unheard', unheard, 'stopped', q.stopped, 'spares', q.spares_until,
      'lease', ${soonestLease('q.qid')},
      'place', CASE WHEN unheard THEN @.next_place_1(q.qid, q.ord, t, 0) END, 'lead', s.lead_worker, 'wake', s.lead_wake_at);
  END LOOP;
  RETURN json_build_object('now', t / 1000, 'queues', array_to_json(looks));
END`,
)

export const ringFunctions = [ringQueue, ringInside, tellAll, beginWait, endWait, lookForWork]
