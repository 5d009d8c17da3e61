/** The depth of queues of a Postgres store: counts are a log of changes, which is added up. */

import type { QueueDepth } from '../../contract/queue-depth.js'
import { depthOfShards } from '../../rules/queue-counts.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { readFunction } from '../schema/sql-function.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'

/**
 * Takes queues. Returns `{now, rows}`, a row for each queue as `DepthRow` has it. Jobs that are not due yet are counted in
 * their index: a store with many of them answers later.
 */
const countJobs = readFunction(
  'depth_1',
  'p_qids int[]',
  'json',
  `DECLARE t bigint := @.us(); rows json[] := '{}'; q @.queue; c record; p int; r bigint; s bigint; w bigint; oldest bigint; later bigint; n bigint;
BEGIN
  FOR i IN 1 .. cardinality(p_qids) LOOP
    SELECT * INTO q FROM @.queue WHERE qid = p_qids[i];
    SELECT coalesce(sum(waiting), 0) AS waiting, coalesce(sum(retries), 0) AS retries, coalesce(sum(dead), 0) AS dead,
      coalesce(sum(processed), 0) AS processed, coalesce(sum(failed), 0) AS failed, coalesce(sum(crashed), 0) AS crashed,
      coalesce(sum(expired), 0) AS expired INTO c FROM @.tally WHERE qid = q.qid;
    oldest := NULL; later := 0;
    FOREACH p IN ARRAY '{0,2}'::int[] LOOP
    r := -2147483649;
    LOOP
      SELECT rank INTO r FROM @.job WHERE qid = q.qid AND pool = p AND rank > r ORDER BY qid, pool, rank LIMIT 1;
      EXIT WHEN r IS NULL;
      IF q.ord = 'lifo' THEN
        SELECT -stamp, waited_ms INTO s, w FROM @.job WHERE qid = q.qid AND pool = p AND rank = r AND fence = 0
          ORDER BY qid DESC, pool DESC, rank DESC, stamp DESC LIMIT 1;
        SELECT count(*) INTO n FROM @.job WHERE qid = q.qid AND pool = p AND rank = r AND stamp < -t AND fence = 0;
      ELSE
        SELECT stamp, waited_ms INTO s, w FROM @.job WHERE qid = q.qid AND pool = p AND rank = r AND fence = 0 ORDER BY qid, pool, rank, stamp LIMIT 1;
        SELECT count(*) INTO n FROM @.job WHERE qid = q.qid AND pool = p AND rank = r AND stamp > t AND fence = 0;
      END IF;
      IF w IS NOT NULL THEN s := @.first_able_1(q.qid, q.ord, p, r::int); END IF;
      oldest := least(oldest, s); later := later + n;
    END LOOP;
    END LOOP;
    oldest := least(oldest, (SELECT min(greatest(abs(stamp), waited_ms * 1000)) FROM @.job WHERE qid = q.qid AND pool = 1 AND fence = 0));
    rows := rows || json_build_object('waiting', c.waiting, 'later', later, 'retries', c.retries, 'dead', c.dead,
      'processed', c.processed, 'failed', c.failed, 'crashed', c.crashed, 'expired', c.expired,
      'aside', (SELECT count(*) FROM @.job WHERE qid = q.qid AND pool = -1),
      'payloads', CASE q.kind WHEN 'ordered' THEN @.pending_1(q.qid) ELSE c.waiting END,
      'suspects', (SELECT count(*) FROM @.job WHERE qid = q.qid AND pool = 1 AND fence = 0),
      'running', (SELECT coalesce(sum(b.n), 0) FROM @.bunch b WHERE b.qid = q.qid) - (SELECT count(*) FROM @.bunch_left l WHERE l.qid = q.qid),
      'oldest', oldest / 1000, 'lostAt', q.lost_at, 'paused', q.paused, 'draining', q.draining);
  END LOOP;
  RETURN json_build_object('now', t / 1000, 'rows', array_to_json(rows));
END`,
)

export const depthFunctions = [countJobs]

interface DepthRow extends Pick<QueueDepth, 'retries' | 'dead' | 'processed' | 'failed' | 'crashed' | 'expired'> {
  /** The jobs that wait, due or not. */
  readonly waiting: number
  /** Those of them that are not due yet. */
  readonly later: number
  /** Those of them that wait for their members or for a signal. */
  readonly aside: number
  readonly payloads: number
  readonly suspects: number
  readonly running: number
  readonly oldest: number | null
  readonly lostAt: number | null
  readonly paused: boolean
  readonly draining: boolean
}

export async function depthsOf(
  connection: PostgresConnection,
  queues: PostgresQueues,
  names: readonly string[],
): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
  if ((await queues.named(names)).some(({ kind }) => kind === 'ordered')) await queues.refresh(names)
  const of = await queues.sharded(names)
  const all = of.flatMap(({ shards, leaving }) => [...shards, ...leaving])
  const answer = await connection.call(countJobs, [all.map(({ qid }) => qid)])
  const { now, rows } = answer as { now: number; rows: DepthRow[] }
  const depths = new Map(all.map((queue, i) => [queue, depthOf(queue, rows[i]!, now)]))
  return {
    now,
    depths: of.map(({ shards, leaving }) =>
      depthOfShards(
        shards.map((shard) => depths.get(shard)!),
        leaving.map((shard) => depths.get(shard)!),
        shards[0]!.kind === 'ordered',
      ),
    ),
  }
}

function depthOf(
  { name: queue, kind }: NumberedQueue,
  { waiting, later, aside, payloads, oldest, lostAt, ...row }: DepthRow,
  now: number,
): QueueDepth {
  const { suspects, running, dead, retries, processed, failed, crashed, expired, paused, draining } = row
  return {
    ...{ queue, ready: waiting - later - aside, payloads, suspects, scheduled: later, waiting: aside, running, dead },
    ...{ fresh: waiting - aside - retries, retries, lagMs: oldest === null ? 0 : Math.max(0, now - oldest) },
    ...{ processed, failed, crashed, expired },
    ...(lostAt === null || kind === 'ordered' ? {} : { lostAt }),
    ...{ paused, draining },
  }
}
