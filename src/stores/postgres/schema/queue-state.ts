/**
 * What changes often of a queue or a topic: its leads, and the bounds below which nobody need look. A change is a row with the next version, in
 * place of the one before: the latest is the first that a look from the end finds. A row that is updated would be a long chain while
 * an old transaction is open.
 */

import { sqlFunction } from './sql-function.js'

/** No claim of a queue has had a shorter lease until one says so, in ms. */
const longestAssumedMs = 3_600_000

/** A claim that is committed later than this after it began is found by the next whole look only. */
const lateClaimMs = 1_000

/**
 * A statement: no floor of the queue rises until the end of this transaction. It comes before the floor is lowered for a job that waits in
 * an old place: the statement that lowers it does not even lock a floor below that place, which would rise past it before the commit.
 */
export const keepFloors = (qid: string) => `PERFORM pg_advisory_xact_lock_shared(@lock + 13, ${qid})`

/** A statement that reads the latest state into `s`; all of it is null if nothing has changed yet. */
export const readState = (qid: string) =>
  `SELECT * INTO s FROM @.queue_state WHERE qid = ${qid} ORDER BY qid DESC, version DESC LIMIT 1`

/** The number above which all who wait have theirs, by the state `s`. */
export const waiterFloor = 'coalesce(s.waiter_floor, 0)'

/** The instant in ms before which no lease ends, by the state `s`. */
export const leaseFloor = 'coalesce(s.lease_floor, 0)'

/** When the first lease of a queue ends, in ms, as far as none ends before `from`; null: none does. */
export const soonestLease = (qid: string, from = leaseFloor) =>
  `least((SELECT min(lease_ms) FROM @.bunch WHERE qid = ${qid} AND lease_ms >= ${from}), (SELECT min(lease_ms) FROM @.beat WHERE qid = ${qid} AND lease_ms >= ${from}))`

/** Whether somebody waits for a queue with the state `s`. */
export const isWaitedFor = (qid: string) =>
  `EXISTS (SELECT FROM @.waiter one WHERE one.qid = ${qid} AND one.n > ${waiterFloor})`

/**
 * Takes a queue, and its state as it was read with the changes. Returns false, and changes nothing, if somebody else was quicker:
 * then it is to be read again.
 */
const changeState = sqlFunction(
  'change_state_1',
  'p_q int, s @.queue_state',
  'boolean',
  `BEGIN
  IF s.version IS NULL THEN
    -- Lock, and look in the next statement.
    PERFORM pg_advisory_xact_lock(@lock + 11, p_q);
    IF EXISTS (SELECT FROM @.queue_state WHERE qid = p_q) THEN RETURN false; END IF;
  ELSE
    DELETE FROM @.queue_state WHERE qid = p_q AND version = s.version;
    IF NOT FOUND THEN RETURN false; END IF;
  END IF;
  INSERT INTO @.queue_state VALUES (p_q, coalesce(s.version, 0) + 1, s.lead_worker, s.lead_wake_at, s.suspect_lead_worker, s.suspect_lead_wake_at,
    coalesce(s.unheard, false), ${waiterFloor}, ${leaseFloor}, coalesce(s.shortest_lease, ${longestAssumedMs}));
  RETURN true;
END`,
)

/** Takes a queue, and the lease of a claim in ms. If none had a shorter one so far, the floor of the leases goes by it from now on. Returns null. */
const noteLease = sqlFunction(
  'note_lease_1',
  'p_q int, p_lease bigint',
  'json',
  `DECLARE s @.queue_state;
BEGIN
  LOOP
    ${readState('p_q')};
    EXIT WHEN s.shortest_lease <= p_lease;
    s.shortest_lease := p_lease;
    s.lease_floor := least(${leaseFloor}, @.us() / 1000 + p_lease - ${lateClaimMs});
    EXIT WHEN @.change_state_1(p_q, s);
  END LOOP;
  RETURN NULL;
END`,
)

/**
 * Takes a queue. Sets the instant before which no lease of its claims ends, nor will one that is not committed yet. It looks no further back
 * than that was. Returns null.
 */
const raiseLeases = sqlFunction(
  'raise_leases_1',
  'p_q int',
  'json',
  `DECLARE s @.queue_state; seen @.queue_state; ms bigint := @.us() / 1000; soonest bigint;
BEGIN
  ${readState('p_q')};
  seen := s;
  soonest := least(${soonestLease('p_q')}, ms + coalesce(s.shortest_lease, ${longestAssumedMs}) - ${lateClaimMs});
  LOOP
    EXIT WHEN s.lease_floor = soonest OR s.lease_floor <> seen.lease_floor OR s.shortest_lease <> seen.shortest_lease;
    s.lease_floor := soonest;
    EXIT WHEN @.change_state_1(p_q, s);
    ${readState('p_q')};
  END LOOP;
  RETURN NULL;
END`,
)

/** Takes a queue. Finds leases that were committed late: its floor of leases goes down to the first of them. Returns null. */
const lowerLeases = sqlFunction(
  'lower_leases_1',
  'p_q int',
  'json',
  `DECLARE s @.queue_state; soonest bigint;
BEGIN
  soonest := ${soonestLease('p_q', '0')};
  LOOP
    ${readState('p_q')};
    EXIT WHEN soonest IS NULL OR soonest >= ${leaseFloor};
    s.lease_floor := soonest;
    EXIT WHEN @.change_state_1(p_q, s);
  END LOOP;
  RETURN NULL;
END`,
)

export const stateFunctions = [changeState, noteLease, raiseLeases, lowerLeases]
