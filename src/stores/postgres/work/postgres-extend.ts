/** Renewing leases in a Postgres store, and recording beats. */

import { mostLogBytes } from '../../../core/job/job-log.js'
import { type Beat, startedAtOf } from '../../contract/job-beat.js'
import type { ExtendAnswer, ExtendItem } from '../../contract/settle.js'
import { weightOf } from '../../rules/claim-weight.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'
import { logText, payloadText, storedText } from '../schema/stored-payload.js'
import { placesBy } from './places-by.js'
import type { PostgresQueues } from './postgres-settings.js'

/**
 * Renews the lease of jobs of one claim, and never shortens it. If these are all jobs that the lease of their claim speaks
 * for, only that is written; otherwise each of them gets a lease of its own. Takes a queue, a fence, ids and the lease in ms.
 *
 * Returns `[now, renewed]`, for each job `[id, whether it is to be cancelled]`; jobs that are left out are lost.
 */
const renewLeases = sqlFunction(
  'renew_1',
  'p_q int, p_fence bigint, p_ids text[], p_lease bigint',
  'json',
  `DECLARE ms bigint := @.us() / 1000; b @.bunch; held text[]; own int; answer json;
BEGIN
  SELECT * INTO b FROM @.bunch WHERE fence = p_fence FOR NO KEY UPDATE;
  SELECT array_agg(id), coalesce(json_agg(json_build_array(id, flags & 8 > 0)), '[]') INTO held, answer
    FROM (SELECT id, flags FROM @.job WHERE id = ANY (p_ids) AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 ORDER BY id) x;
  IF held IS NULL THEN RETURN json_build_array(ms, answer); END IF;
  own := (SELECT count(*) FROM @.beat WHERE qid = p_q AND id = ANY (held) AND fence = p_fence AND lease_ms IS NOT NULL);
  IF cardinality(held) = b.n AND own = 0 THEN
    UPDATE @.bunch SET lease_ms = greatest(lease_ms, ms + p_lease) WHERE fence = p_fence;
  ELSE
    -- A job that a transaction of its user ends is locked for as long as that is open.
    held := array(SELECT id FROM @.job WHERE id = ANY (held) AND qid + 0 = p_q AND fence = p_fence ORDER BY id FOR NO KEY UPDATE SKIP LOCKED);
    INSERT INTO @.beat AS o (qid, id, fence, lease_ms) SELECT p_q, id, p_fence, greatest(b.lease_ms, ms + p_lease) FROM unnest(held) AS x (id)
      ON CONFLICT (id, qid) DO UPDATE SET fence = p_fence,
        lease_ms = greatest(CASE WHEN o.fence = p_fence THEN coalesce(o.lease_ms, b.lease_ms) ELSE b.lease_ms END, ms + p_lease);
    UPDATE @.job SET flags = flags | 2 WHERE id = ANY (held) AND qid + 0 = p_q AND flags & 2 = 0;
  END IF;
  RETURN json_build_array(ms, answer);
END`,
)

/**
 * Records beats of running jobs, whose leases the caller has just renewed. Takes a queue, and a list of
 * `{id, fence, started, host, boot, pidns, pid, ticks, progress, checkpoint, codec, weight, log}`, in the order in which they were made,
 * and how many bytes of a log are kept; what is absent stays. Returns null.
 */
const recordBeats = sqlFunction(
  'beats_1',
  'p_q int, p_beats json, p_log int',
  'json',
  `DECLARE e record; before int; bytes bytea; first int;
BEGIN
  -- Of two beats of a job the later one counts.
  FOR e IN SELECT * FROM ROWS FROM (json_to_recordset(p_beats) AS (id text, fence bigint, started bigint, host text, boot text, pidns text,
      pid bigint, ticks bigint, progress text, checkpoint text, codec text, weight int, log text)) WITH ORDINALITY x ORDER BY id, ordinality LOOP
    PERFORM FROM @.job WHERE id = e.id COLLATE "C" AND qid + 0 = p_q AND fence = e.fence FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      BEGIN
        PERFORM FROM @.job WHERE id = e.id COLLATE "C" AND qid + 0 = p_q AND fence = e.fence FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
      EXCEPTION WHEN lock_not_available THEN
        -- A transaction of its user ends the job. Who stores a checkpoint must hear that it was not stored.
        IF e.checkpoint IS NOT NULL THEN RAISE; END IF;
        CONTINUE;
      END;
    END IF;
    INSERT INTO @.beat AS o (qid, id, fence, started_ms, host, boot, pidns, pid, ticks, progress)
      VALUES (p_q, e.id, e.fence, e.started, e.host, e.boot, e.pidns, e.pid, e.ticks, e.progress)
      ON CONFLICT (id, qid) DO UPDATE SET started_ms = coalesce(o.started_ms, e.started), host = coalesce(e.host, o.host),
        boot = coalesce(e.boot, o.boot), pidns = coalesce(e.pidns, o.pidns), pid = coalesce(e.pid, o.pid),
        ticks = coalesce(e.ticks, o.ticks), progress = coalesce(e.progress, o.progress);
    before := NULL;
    IF e.checkpoint IS NOT NULL THEN
      before := (SELECT weight FROM @.checkpoint c WHERE c.id = e.id COLLATE "C" AND c.qid + 0 = p_q);
      INSERT INTO @.checkpoint (qid, id, weight, payload, codec) VALUES (p_q, e.id, e.weight, e.checkpoint, e.codec)
        ON CONFLICT (id, qid) DO UPDATE SET weight = e.weight, payload = e.checkpoint, codec = e.codec;
    END IF;
    IF e.log IS NOT NULL THEN
      bytes := convert_to(coalesce((SELECT c.log FROM @.checkpoint c WHERE c.id = e.id COLLATE "C" AND c.qid + 0 = p_q), '') || e.log, 'UTF8');
      first := greatest(octet_length(bytes) - p_log, 0);
      -- Not in the midst of a character.
      WHILE first > 0 AND first < octet_length(bytes) AND get_byte(bytes, first) & 192 = 128 LOOP first := first + 1; END LOOP;
      INSERT INTO @.checkpoint AS c (qid, id, log) VALUES (p_q, e.id, convert_from(substr(bytes, first + 1), 'UTF8'))
        ON CONFLICT (id, qid) DO UPDATE SET log = excluded.log;
    END IF;
    UPDATE @.job SET updated_ms = @.us() / 1000, flags = flags | CASE WHEN e.checkpoint IS NULL AND e.log IS NULL THEN 2 ELSE 6 END,
      weight = weight + CASE WHEN e.checkpoint IS NULL THEN 0 ELSE e.weight - coalesce(before, 0) END WHERE id = e.id COLLATE "C" AND qid + 0 = p_q;
  END LOOP;
  RETURN NULL;
END`,
)

export const extendFunctions = [renewLeases, recordBeats]

/** See `Store.extend`. Jobs of one claim are renewed together; beats are recorded in their order. All statements travel in two trips. */
export async function extendItems(
  connection: PostgresConnection,
  queues: PostgresQueues,
  items: readonly ExtendItem[],
): Promise<ExtendAnswer[]> {
  const named = await queues.holding(items)
  const answers = new Array<ExtendAnswer>(items.length).fill('lost')
  const groups = placesBy(items, ({ fence, leaseMs }, i) => `${named[i]!.qid} ${fence} ${leaseMs}`)
  /** By item: what became of the leases of its group. */
  const renewed = new Map<number, { readonly now: number; readonly jobs: ReadonlyMap<string, boolean> }>()
  await Promise.all(
    groups.map(async (places) => {
      const { fence, leaseMs } = items[places[0]!]!
      const { qid } = named[places[0]!]!
      const ids = places.map((i) => items[i]!.id)
      const [now, jobs] = (await connection.call(renewLeases, [qid, fence, ids, Math.round(leaseMs)])) as RenewedJobs
      const answer = { now, jobs: new Map(jobs) }
      for (const i of places) renewed.set(i, answer)
    }),
  )
  const beats: { readonly qid: number; readonly beat: object }[] = []
  for (const [i, { id, fence, beat }] of items.entries()) {
    const { now, jobs } = renewed.get(i)!
    const { qid, kind } = named[i]!
    const isCancelled = jobs.get(id)
    if (isCancelled === undefined) continue
    answers[i] = isCancelled ? 'cancel' : 'ok'
    if (beat !== undefined) beats.push({ qid, beat: storedBeat(id, fence, beat, kind === 'plain', now) })
  }
  await Promise.all(
    placesBy(beats, ({ qid }) => String(qid)).map((places) => {
      const { qid } = beats[places[0]!]!
      const of = JSON.stringify(places.map((i) => beats[i]!.beat))
      return connection.call(recordBeats, [qid, of, mostLogBytes])
    }),
  )
  const moved = await queues.movedSince(named, items, (i) => answers[i] === 'lost')
  const again =
    moved.length === 0
      ? []
      : await extendItems(
          connection,
          queues,
          moved.map((i) => items[i]!),
        )
  for (const [n, i] of moved.entries()) answers[i] = again[n]!
  return answers
}

type RenewedJobs = [now: number, renewed: [id: string, isCancelled: boolean][]]

/** A job of an ordered queue has no checkpoint. */
function storedBeat(id: string, fence: number, beat: Beat, isPlain: boolean, now: number): object {
  const { startedMs, host, boot, pidns, pid, ticks, progress } = beat
  const { checkpoint, log } = isPlain ? beat : {}
  return {
    ...{ id, fence, host, boot, pidns, pid, ticks },
    ...(startedMs === undefined ? {} : { started: startedAtOf(startedMs, now) }),
    ...(progress === undefined ? {} : { progress: storedText(JSON.stringify(progress)) }),
    ...(log === undefined || log === '' ? {} : { log: logText(log) }),
    ...(checkpoint === undefined
      ? {}
      : { checkpoint: payloadText(checkpoint.payload), codec: checkpoint.codec, weight: weightOf(checkpoint) }),
  }
}
