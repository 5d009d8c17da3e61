/** The facet `steps` of a Postgres store: what running jobs have reached, and the signals that are sent to jobs. */

import { payloadBytes } from '../../../core/values/codec.js'
import type { JobKey } from '../../contract/job-records.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { EntryKind, NewSignal, NewStep, SignalAnswer, StepList, Steps, StoredStep } from '../../contract/steps.js'
import { present } from '../../rows/stored-job.js'
import { mostSignalBytes, mostSignals, upkeepLimit } from '../../rules/bounds.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { keepFloors } from '../schema/queue-state.js'
import { sqlFunction } from '../schema/sql-function.js'
import { payloadFrom, payloadText, storedText, textFrom } from '../schema/stored-payload.js'
import { ringFor } from '../work/limited-ring.js'
import type { PostgresQueues } from '../work/postgres-settings.js'

/** The values of the column `step.kind`. Stored rows depend on the order. */
const kinds = ['step', 'sleep', 'signal', 'timeout'] as const satisfies readonly StoredStep['kind'][]

/**
 * Stores a step (kind 0) or a sleep (kind 1) of `p_until` ms, unless there is one of its name, and renews the lease. The job
 * does not expire any more. Takes a queue, an id, a fence, the lease in ms, and the step.
 *
 * Returns what `renew_1` does.
 */
const keepStep = sqlFunction(
  'keep_step_1',
  'p_q int, p_id text, p_fence bigint, p_lease bigint, p_name text, p_kind int, p_for bigint, p_bytes int, p_codec text, p_payload text',
  'json',
  `DECLARE ms bigint := @.us() / 1000;
BEGIN
  PERFORM FROM @.job WHERE id = p_id AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 FOR UPDATE;
  IF FOUND THEN
    INSERT INTO @.step (qid, id, is_signal, name, kind, at, until, bytes, codec, payload)
      VALUES (p_q, p_id, 0, p_name, p_kind, ms, ms + p_for, p_bytes, p_codec, p_payload) ON CONFLICT DO NOTHING;
    UPDATE @.job SET flags = flags | 64, expires_ms = NULL WHERE id = p_id AND qid + 0 = p_q AND (flags & 64 = 0 OR expires_ms IS NOT NULL);
  END IF;
  RETURN @.renew_1(p_q, p_fence, ARRAY[p_id], p_lease);
END`,
)

/** Takes a queue and an id. Returns null for a job that is gone, otherwise `[now, entries]`, each as `StepColumns`. */
const readSteps = sqlFunction(
  'steps_1',
  'p_q int, p_id text',
  'json',
  `DECLARE ms bigint := @.us() / 1000; kept int;
BEGIN
  SELECT state INTO kept FROM @.ended e WHERE id = p_id AND qid + 0 = p_q AND (state = 3 AND (until_ms IS NULL OR until_ms > ms)
    OR state = 4 AND coalesce(finished_ms + (SELECT dead_age_ms FROM @.queue WHERE qid = p_q) > ms, true));
  IF kept IS NULL AND NOT EXISTS (SELECT FROM @.job WHERE id = p_id AND qid + 0 = p_q) THEN RETURN NULL; END IF;
  RETURN json_build_array(ms, (SELECT coalesce(json_agg(json_build_array(kind, name, at, until, codec, payload) ORDER BY n), '[]')
    FROM @.step WHERE id = p_id AND qid + 0 = p_q));
END`,
)

/** Takes a queue and an id. Locks the job, or the dead one. Returns whether there is any. */
const lockSteps = sqlFunction(
  'lock_steps_1',
  'p_q int, p_id text',
  'boolean',
  `BEGIN
  -- It may be revived between the two looks.
  FOR i IN 1 .. 2 LOOP
    PERFORM FROM @.job WHERE id = p_id AND qid + 0 = p_q FOR UPDATE;
    IF FOUND THEN RETURN true; END IF;
    PERFORM FROM @.ended WHERE id = p_id AND qid + 0 = p_q AND state + 0 = 4
      AND coalesce(finished_ms + (SELECT dead_age_ms FROM @.queue WHERE qid = p_q) > @.us() / 1000, true) FOR UPDATE;
    IF FOUND THEN RETURN true; END IF;
  END LOOP;
  RETURN false;
END`,
)

/** Takes a queue, an id, and whether the entry is a signal (1 or 0), and its name. Returns whether it was there. */
const forgetStep = sqlFunction(
  'forget_step_2',
  'p_q int, p_id text, p_is_signal int, p_name text',
  'json',
  `BEGIN
  IF NOT @.lock_steps_1(p_q, p_id) THEN RETURN to_json(false); END IF;
  DELETE FROM @.step WHERE id = p_id AND qid + 0 = p_q AND is_signal = p_is_signal AND name = p_name;
  IF NOT FOUND THEN RETURN to_json(false); END IF;
  IF NOT EXISTS (SELECT FROM @.step WHERE id = p_id AND qid + 0 = p_q) THEN
    UPDATE @.job SET flags = flags & ~64 WHERE id = p_id AND qid + 0 = p_q;
    UPDATE @.ended SET flags = flags & ~64 WHERE id = p_id AND qid + 0 = p_q;
  END IF;
  RETURN to_json(true);
END`,
)

/** The wait of a job for a signal is over: it is ready in its old place. Takes its queue and id, in whose row the caller waits for nobody. */
const wakeJob = sqlFunction(
  'wake_1',
  'p_q int, p_id text',
  'void',
  `DECLARE o @.job;
BEGIN
  ${keepFloors('p_q')};
  DELETE FROM @.signal_wait WHERE id = p_id AND qid + 0 = p_q;
  UPDATE @.job SET pool = CASE WHEN grp IS NULL THEN 0 ELSE 2 END, flags = flags & ~128 | 64, updated_ms = @.us() / 1000, waited_ms = @.us() / 1000 WHERE id = p_id AND qid + 0 = p_q RETURNING * INTO o;
  UPDATE @.floor SET stamp = o.stamp WHERE qid = p_q AND rank = o.rank AND stamp > o.stamp;
  IF o.grp IS NOT NULL THEN PERFORM @.enter_lanes_1(p_q, ARRAY[o.grp], ARRAY[abs(o.stamp)], @.us()); END IF;
  IF o.attempt > 1 THEN INSERT INTO @.tally (qid, retries) VALUES (p_q, 1); END IF;
END`,
)

/**
 * Takes a queue, an id, and a signal with the bytes of its data; and how many signals a job keeps, and how many bytes. Returns
 * a `SignalAnswer`.
 */
const sendSignal = sqlFunction(
  'signal_1',
  'p_q int, p_id text, p_name text, p_bytes int, p_codec text, p_payload text, p_most int, p_most_bytes int',
  'json',
  `DECLARE ms bigint := @.us() / 1000; before int; awaited boolean; r record;
BEGIN
  -- Locked first: the job may be about to wait for it, or to die.
  IF NOT @.lock_steps_1(p_q, p_id) THEN RETURN to_json('gone'::text); END IF;
  SELECT kind INTO before FROM @.step WHERE id = p_id AND qid + 0 = p_q AND is_signal = 1 AND name = p_name;
  IF before IS NOT NULL THEN RETURN to_json(CASE before WHEN 2 THEN 'duplicate' ELSE 'gone' END); END IF;
  awaited := EXISTS (SELECT FROM @.signal_wait WHERE id = p_id AND qid + 0 = p_q AND signal = p_name);
  IF NOT awaited THEN
    SELECT count(*) AS n, coalesce(sum(bytes), 0) AS load INTO r FROM @.step WHERE id = p_id AND qid + 0 = p_q AND is_signal = 1 AND kind = 2;
    IF r.n >= p_most OR r.load + p_bytes > p_most_bytes THEN RETURN to_json('full'::text); END IF;
  END IF;
  INSERT INTO @.step (qid, id, is_signal, name, kind, at, bytes, codec, payload)
    VALUES (p_q, p_id, 1, p_name, 2, ms, p_bytes, p_codec, p_payload);
  IF awaited THEN
    PERFORM @.wake_1(p_q, p_id);
    RETURN to_json('delivered'::text);
  END IF;
  UPDATE @.job SET flags = flags | 64 WHERE id = p_id AND qid + 0 = p_q AND flags & 64 = 0;
  UPDATE @.ended SET flags = flags | 64 WHERE id = p_id AND qid + 0 = p_q AND flags & 64 = 0;
  RETURN to_json('kept'::text);
END`,
)

/** Takes a limit. Ends waits that are over in vain, the oldest first. Returns the queues of the jobs that are ready, and whether more are. */
const endVainWaits = sqlFunction(
  'vain_waits_1',
  'p_most int',
  'json',
  `DECLARE ms bigint := @.us() / 1000; w @.signal_wait; woken int[] := '{}';
BEGIN
  FOR w IN SELECT * FROM @.signal_wait WHERE until <= ms ORDER BY until, id, qid LIMIT p_most LOOP
    PERFORM FROM @.job WHERE id = w.id AND qid + 0 = w.qid AND flags & 128 > 0 FOR UPDATE;
    IF NOT FOUND THEN
      DELETE FROM @.signal_wait WHERE id = w.id AND qid + 0 = w.qid;
      CONTINUE;
    END IF;
    -- The signal may have come while this waited for the lock.
    CONTINUE WHEN NOT EXISTS (SELECT FROM @.signal_wait WHERE id = w.id AND qid + 0 = w.qid AND until <= ms);
    INSERT INTO @.step (qid, id, is_signal, name, kind, at, bytes) VALUES (w.qid, w.id, 1, w.signal, 3, ms, 0) ON CONFLICT DO NOTHING;
    PERFORM @.wake_1(w.qid, w.id);
    woken := woken || w.qid;
  END LOOP;
  RETURN json_build_array(array_to_json(woken), EXISTS (SELECT FROM @.signal_wait WHERE until <= ms));
END`,
)

export const jobStepFunctions = [keepStep, readSteps, lockSteps, forgetStep, wakeJob, sendSignal, endVainWaits]

export type StepColumns = [
  kind: number,
  name: string,
  at: number,
  until: number | null,
  codec: string | null,
  payload: string | null,
]

export class PostgresSteps implements Steps {
  readonly #connection: PostgresConnection
  readonly #queues: PostgresQueues

  constructor(connection: PostgresConnection, queues: PostgresQueues) {
    this.#connection = connection
    this.#queues = queues
  }

  async keep(claim: ClaimKey, step: NewStep, leaseMs: number): Promise<'ok' | 'lost' | 'cancel'> {
    const forMs = step.kind === 'sleep' ? Math.ceil(step.forMs) : null
    const [, renewed] = (await this.#connection.call(keepStep, [
      ...[await this.#qid(claim), claim.id, claim.fence, Math.round(leaseMs)],
      ...[storedText(step.name), kinds.indexOf(step.kind), forMs, ...dataColumns(step.kind === 'step' ? step : {})],
    ])) as [now: number, renewed: [id: string, isCancelled: boolean][]]
    const [held] = renewed
    return held === undefined ? 'lost' : held[1] ? 'cancel' : 'ok'
  }

  async read(job: JobKey): Promise<StepList | undefined> {
    const found = await this.#connection.call(readSteps, [await this.#qid(job), job.id])
    if (found === null) return undefined
    const [now, rows] = found as [number, StepColumns[]]
    return { now, steps: rows.map(storedStep) }
  }

  async forget(job: JobKey, name: string, of: EntryKind): Promise<boolean> {
    const values = [await this.#qid(job), job.id, of === 'signal' ? 1 : 0, storedText(name)]
    return (await this.#connection.call(forgetStep, values)) as boolean
  }

  async signal(job: JobKey, { name, ...data }: NewSignal): Promise<SignalAnswer> {
    const qid = await this.#qid(job)
    const bounds = [mostSignals, mostSignalBytes]
    const values = [qid, job.id, storedText(name), ...dataColumns(data), ...bounds]
    const answer = (await this.#connection.call(sendSignal, values)) as SignalAnswer
    if (answer === 'delivered') ringFor(this.#connection, qid, false)
    return answer
  }

  async sweep(_worker: string): Promise<{ readonly woken: number; readonly more: boolean }> {
    const [qids, more] = (await this.#connection.call(endVainWaits, [upkeepLimit])) as [number[], boolean]
    for (const qid of qids) ringFor(this.#connection, qid, false)
    return { woken: qids.length, more }
  }

  async #qid({ queue }: JobKey): Promise<number> {
    return (await this.#queues.named([queue]))[0]!.qid
  }
}

function dataColumns({ payload, codec }: Omit<NewSignal, 'name'>): [number, string | null, string | null] {
  return [
    payload === undefined ? 0 : payloadBytes(payload),
    codec ?? null,
    payload === undefined ? null : payloadText(payload),
  ]
}

export function storedStep([kind, name, at, until, codec, payload]: StepColumns): StoredStep {
  return present({
    ...{ name: textFrom(name), kind: kinds[kind]!, at, until, codec },
    payload: payload === null ? null : payloadFrom(payload),
  }) as unknown as StoredStep
}
