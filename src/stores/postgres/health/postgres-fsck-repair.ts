/**
 * The repair of a Postgres store: what can be mended without losing a job or running one twice, while work goes on. Each step is
 * one transaction that depends on the present state alone.
 */

import type { FsckRepair, Repair } from '../../contract/store-health.js'
import { listed } from '../../rules/findings.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'
import {
  checkedQueues,
  checkPostgres,
  claimless,
  countDrift,
  countedEnds,
  lostClaims,
  miscounted,
} from './postgres-fsck.js'

/** The lease of a job that has none: a worker that lives renews it, and nobody runs the job a second time meanwhile. */
const leaseMs = 30_000

const ofQueue = (sql: string) => sql.replaceAll('$1', 'p_q')

/**
 * Mends a queue: fences, claims, joins and counters. Takes the queue. Returns `[what, ids]` for each thing that it mended, with the
 * ids that it changed; of counters with the differences.
 *
 * What it locks stays as it was counted. A counter is a log of changes: its difference is one more change.
 */
const mend = sqlFunction(
  'mend_1',
  'p_q int',
  'json',
  `DECLARE ids text[]; mended json[] := '{}'; d record; i text;
BEGIN
  IF EXISTS (SELECT FROM @.job WHERE qid = p_q AND fence > (SELECT last_value FROM @.fence_seq)) THEN
    PERFORM setval('@.fence_seq', (SELECT max(fence) FROM @.job));
    mended := mended || json_build_array('fence', NULL);
  END IF;
  WITH lost AS (${ofQueue(claimless)}),
  made AS (INSERT INTO @.bunch (fence, lease_ms, lo, hi, qid, n, lo_rank, hi_rank, pool, alone, worker)
    SELECT j.fence, @.us() / 1000 + ${leaseMs}, min(j.stamp), max(j.stamp), p_q, count(*), min(j.rank), max(j.rank),
        CASE WHEN min(j.pool) = max(j.pool) THEN min(j.pool) ELSE 3 END, false, ''
    FROM @.job j JOIN lost ON lost.id = j.id WHERE j.qid = p_q GROUP BY j.fence ON CONFLICT DO NOTHING RETURNING fence)
  SELECT array_agg(id ORDER BY id) INTO ids FROM lost;
  IF ids IS NOT NULL THEN mended := mended || json_build_array('lease', ids); END IF;
  PERFORM @.fold_left_1(p_q);
  WITH wrong AS (${ofQueue(lostClaims)} FOR UPDATE OF b),
  u AS (UPDATE @.bunch b SET n = j.n, lo = j.lo, hi = j.hi, lo_rank = j.lo_rank, hi_rank = j.hi_rank
    FROM wrong, LATERAL (SELECT count(*) AS n, min(stamp) AS lo, max(stamp) AS hi, min(rank) AS lo_rank, max(rank) AS hi_rank FROM @.job o
      WHERE o.qid = p_q AND o.fence = wrong.fence) j WHERE b.fence = wrong.fence AND j.n > 0 RETURNING b.fence),
  g AS (DELETE FROM @.bunch b USING wrong WHERE b.fence = wrong.fence AND NOT EXISTS (SELECT FROM @.job o WHERE o.qid = p_q AND o.fence = b.fence))
  SELECT array_agg(fence::text ORDER BY fence) INTO ids FROM wrong;
  IF ids IS NOT NULL THEN mended := mended || json_build_array('claim', ids); END IF;
  ids := NULL;
  FOR i IN ${ofQueue(miscounted)} LOOP
    CONTINUE WHEN NOT @.lock_join_1(p_q, i);
    UPDATE @.join_set s SET completed = c.completed, dead = c.dead, cancelled = c.cancelled, expired = c.expired
      FROM @.join_job j, @.join_set o CROSS JOIN LATERAL (${countedEnds.replaceAll('s.sid', 'o.sid')}) c
      WHERE j.id = i AND j.qid = p_q AND o.jid = j.jid AND s.sid = o.sid;
    PERFORM @.judge_join_1(p_q, i, NULL, NULL);
    ids := ids || i;
  END LOOP;
  IF ids IS NOT NULL THEN mended := mended || json_build_array('join', ids); END IF;
  ${ofQueue(countDrift)} INTO d;
  IF d.waiting <> 0 OR d.retries <> 0 OR d.dead <> 0 THEN
    INSERT INTO @.tally (qid, waiting, retries, dead) VALUES (p_q, d.waiting, d.retries, d.dead);
    mended := mended || json_build_array('count', ARRAY[d.waiting, d.retries, d.dead]);
  END IF;
  RETURN array_to_json(mended);
END`,
)

export const repairFunctions = [mend]

type Mended = [what: 'fence' | 'lease' | 'claim' | 'join' | 'count', ids: (string | number)[] | null]

/** See `StoreHealth.repair`. Throws `UnknownQueueError`. */
export async function repairPostgres(connection: PostgresConnection, only?: string): Promise<Repair> {
  const mended: FsckRepair[] = []
  for (const { qid, what } of await checkedQueues(connection, only))
    for (const [kind, ids] of (await connection.call(mend, [qid])) as Mended[])
      mended.push({ what, text: texts[kind]((ids ?? []).map(String)) })
  return { mended, left: await checkPostgres(connection, only) }
}

const texts: Readonly<Record<Mended[0], (ids: string[]) => string>> = {
  fence: () => 'the next fence is higher than that of any job',
  lease: (ids) => `running jobs without a claim have a lease of ${leaseMs / 1_000} s${listed(ids)}`,
  claim: (ids) => `claims know their jobs again${listed(ids)}`,
  join: (ids) => `the ends of members were counted again${listed(ids)}`,
  count: ([waiting, retries, dead]) => `counted again: waiting by ${waiting}, retries by ${retries}, dead by ${dead}`,
}
