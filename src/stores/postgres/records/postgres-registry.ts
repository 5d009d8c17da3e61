/** The registry of workers of a Postgres store, and the claims that each of them holds. */

import type { Buried, Crash } from '../../contract/claim.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { HeldClaim, WorkerRegistry } from '../../contract/worker-registry.js'
import { present } from '../../rows/stored-job.js'
import { beatWorker, deleteWorker, liveWorkers, signalWorker } from '../../sql/sql-workers.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { readState } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'
import { textFrom } from '../schema/stored-payload.js'
import { lookAtJobs } from '../work/end-functions.js'
import { ringFor } from '../work/limited-ring.js'
import { placesBy } from '../work/places-by.js'
import type { CrashedRow, PostgresRecovery } from '../work/postgres-recovery.js'
import type { PostgresQueues } from '../work/postgres-settings.js'
import type { StepRunner } from './step-runner.js'

/**
 * Takes a worker and a limit, or null. Returns the claims that it holds, at most that many, with the reports of their beats.
 * It reads all bunches: there are no more than claims under way, and an index by worker would be written with each of them.
 */
const heldClaims = sqlFunction(
  'held_1',
  'p_worker text, p_most int',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(x), '[]') FROM (
    SELECT json_build_object('queue', q.name, 'id', j.id, 'fence', j.fence, 'task', j.task, 'alone', b.alone, 'startedAt', o.started_ms,
      'host', o.host, 'boot', o.boot, 'pidns', o.pidns, 'pid', o.pid, 'ticks', o.ticks, 'progress', o.progress)
    FROM @.bunch b JOIN @.queue q ON q.qid = b.qid, LATERAL @.claimed_1(b) c,
      LATERAL (SELECT * FROM @.job x WHERE x.id = c.id AND x.qid + 0 = b.qid LIMIT 1) j
      LEFT JOIN @.beat o ON o.id = j.id AND o.qid = j.qid
    WHERE coalesce(o.worker, b.worker) = p_worker ORDER BY q.qid, j.fence, CASE q.kind WHEN 'plain' THEN coalesce(j.arrival, abs(j.seq)) END, j.id LIMIT p_most) r (x));
END`,
)

/**
 * Hands a claim of one worker over to another. Takes its queue, id and fence, and both workers. Returns whether it was the
 * first worker's: the row of the job is locked, so only one caller is told so.
 */
const adoptClaim = sqlFunction(
  'adopt_1',
  'p_q int, p_id text, p_fence bigint, p_from text, p_to text',
  'json',
  `DECLARE held text;
BEGIN
  PERFORM FROM @.job WHERE id = p_id COLLATE "C" AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 FOR UPDATE;
  IF NOT FOUND THEN RETURN to_json(false); END IF;
  -- In a statement of its own: somebody else may have adopted it while the lock was waited for.
  SELECT coalesce(o.worker, b.worker) INTO held FROM @.bunch b LEFT JOIN @.beat o ON o.id = p_id COLLATE "C" AND o.qid + 0 = p_q WHERE b.fence = p_fence;
  IF held IS DISTINCT FROM p_from THEN RETURN to_json(false); END IF;
  INSERT INTO @.beat (qid, id, fence, worker) VALUES (p_q, p_id, p_fence, p_to) ON CONFLICT (id, qid) DO UPDATE SET worker = p_to;
  UPDATE @.job SET flags = flags | 2 WHERE id = p_id COLLATE "C" AND qid + 0 = p_q AND flags & 2 = 0;
  RETURN to_json(true);
END`,
)

/** Takes a worker, which leads nothing any more. Returns null. */
const endLeads = sqlFunction(
  'unlead_1',
  'p_worker text',
  'json',
  `DECLARE s @.queue_state; q int;
BEGIN
  FOR q IN SELECT qid FROM @.queue_state WHERE p_worker IN (lead_worker, suspect_lead_worker) ORDER BY qid LOOP
    LOOP
      ${readState('q')};
      EXIT WHEN NOT coalesce(p_worker IN (s.lead_worker, s.suspect_lead_worker), false);
      IF s.lead_worker = p_worker THEN s.lead_worker := NULL; s.lead_wake_at := NULL; END IF;
      IF s.suspect_lead_worker = p_worker THEN s.suspect_lead_worker := NULL; s.suspect_lead_wake_at := NULL; END IF;
      EXIT WHEN @.change_state_1(q, s);
    END LOOP;
  END LOOP;
  RETURN NULL;
END`,
)

export const registryFunctions = [heldClaims, adoptClaim, endLeads]

interface RegistryParts {
  readonly connection: PostgresConnection
  readonly runner: StepRunner
  readonly queues: PostgresQueues
  readonly recovery: PostgresRecovery
  /** A process that sleeps does not beat. */
  readonly idlePollMs: number
}

export function postgresRegistry({ connection, runner, queues, recovery, idlePollMs }: RegistryParts): WorkerRegistry {
  const held = async (worker: string, most: number | null = null): Promise<HeldClaim[]> => {
    const rows = (await connection.call(heldClaims, [worker, most])) as Record<string, unknown>[]
    return rows.map((row) => present({ ...row, progress: progressOf(row['progress']) }) as unknown as HeldClaim)
  }
  const remove = async (id: string) => {
    await runner.run('workers', () => deleteWorker(id))
    await connection.call(endLeads, [id])
  }
  return {
    beat: (worker, ttlMs) => runner.run('workers', (now) => beatWorker(worker, ttlMs + idlePollMs, now)),
    signal: (id, signal) => runner.run('workers', (now) => signalWorker(id, signal, now)),
    remove,
    list: () => runner.run(undefined, (now) => liveWorkers(now)),
    held: (worker) => held(worker),

    async gone(claims, worker, error) {
      const named = await queues.holding(claims)
      const told = { crashed: [] as Crash[], buried: [] as Buried[] }
      for (const places of placesBy(claims, (_, i) => String(named[i]!.qid))) {
        const queue = named[places[0]!]!
        const of = places.map((i) => claims[i]!)
        const [, found] = (await connection.call(lookAtJobs, [queue.qid, of.map(({ id }) => id)])) as [
          number,
          CrashedRow[],
        ]
        const rows = currentOf(of, found, worker)
        if (rows.length === 0) continue
        await recovery.crash(queue, rows, told, { worker, error })
        // A worker must ask to learn of the suspects.
        ringFor(connection, queue.qid, false)
      }
      if ((await held(worker, 1)).length === 0) await remove(worker)
      const placeOf = (one: Crash | Buried) => claims.findIndex(({ queue, id }) => queue === one.queue && id === one.id)
      for (const list of [told.crashed, told.buried]) list.sort((a, b) => placeOf(a) - placeOf(b))
      return told
    },

    async adopt(claim, from, to) {
      const [queue] = await queues.holding([claim])
      return (await connection.call(adoptClaim, [queue!.qid, claim.id, claim.fence, from, to])) as boolean
    },
  }
}

/** The rows of those claims that are current and the worker's, each once, in the order of the claims. */
function currentOf(claims: readonly ClaimKey[], found: readonly CrashedRow[], worker: string): CrashedRow[] {
  const rows = new Map(found.map((row) => [row.id, row]))
  return claims.flatMap(({ id, fence }) => {
    const row = rows.get(id)
    if (row === undefined || fence <= 0 || row.fence !== fence || row.worker !== worker) return []
    rows.delete(id)
    return [row]
  })
}

function progressOf(stored: unknown): unknown {
  return typeof stored === 'string' ? JSON.parse(textFrom(stored)) : null
}
