/** The schedules of a Postgres store. A tick is one function: it enqueues and steps, both or neither. */

import { UnsupportedByStoreError } from '../../../core/errors.js'
import type { Schedules, ScheduleTick, TickAnswer } from '../../contract/schedules.js'
import { storedOrNull } from '../../rows/stored-text.js'
import {
  dueSchedules,
  putSchedule,
  removeSchedule,
  resignLead,
  scheduleOf,
  schedulesAfter,
} from '../../sql/sql-schedules.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'
import { newJobs } from '../work/enqueue-functions.js'
import { columnsOf, type EnqueueAnswer, type PostgresEnqueue } from '../work/postgres-enqueue.js'
import { tellAll, topics } from '../work/postgres-ring.js'
import type { PostgresQueues } from '../work/postgres-settings.js'
import type { PostgresWait } from '../work/postgres-wait.js'
import { storedText } from '../work/stored-payload.js'
import type { StepRunner } from './step-runner.js'

/**
 * Takes a schedule with the revision and the next tick that the caller read; the step, as `passTick` of `sql-schedules` does
 * it, with the number of jobs and the id of the last; the job whose being there skips it; then what `enqueue_1` takes.
 *
 * Returns `{outcome}`; if it enqueued, with `enqueued`, the answer of `enqueue_1`.
 */
const tickSchedule = sqlFunction(
  'tick_1',
  `p_name text, p_revision text, p_due bigint, p_next bigint, p_last bigint, p_last_id text, p_jobs int, p_skips int, p_misses int,
   p_unless text, p_q int, ${newJobs}, p_calls text[], p_counts int[]`,
  'json',
  `DECLARE s @.schedule; e json; is_skipped boolean;
BEGIN
  SELECT * INTO s FROM @.schedule WHERE name = p_name COLLATE "C" FOR UPDATE;
  IF s.name IS NULL OR s.revision <> p_revision OR s.next_at IS DISTINCT FROM p_due THEN RETURN json_build_object('outcome', 'lost'); END IF;
  is_skipped := p_jobs > 0 AND EXISTS (SELECT FROM @.job WHERE id = p_unless COLLATE "C" AND qid = p_q);
  IF p_jobs > 0 AND NOT is_skipped THEN
    -- What is remembered of these ids may be out of date.
    DELETE FROM @.ended WHERE id = ANY (p_ids) AND qid = p_q AND state <> 4 AND until_ms <= @.us() / 1000
      AND (state > 4 OR finished_ms + remember_ms <= @.us() / 1000);
    e := @.enqueue_1(p_q, p_ids, p_tasks, p_payloads, p_codecs, p_metas, p_ranks, p_delays, p_runs, p_expires, p_remember, p_weights, p_places,
      false, p_calls, p_counts);
    IF e ->> 'done' <> 'ok' THEN RETURN json_build_object('outcome', e ->> 'done'); END IF;
  END IF;
  UPDATE @.schedule SET next_at = p_next, last_at = coalesce(p_last, last_at),
    last_id = CASE WHEN is_skipped THEN last_id ELSE coalesce(p_last_id, last_id) END,
    ticked = ticked + CASE WHEN is_skipped THEN 0 ELSE p_jobs END,
    skipped = skipped + p_skips + CASE WHEN is_skipped THEN p_jobs ELSE 0 END, missed = missed + p_misses WHERE name = s.name;
  RETURN json_build_object('outcome', CASE WHEN is_skipped THEN 'skipped' ELSE 'ticked' END, 'enqueued', e);
END`,
)

export const scheduleFunctions = [tickSchedule]

interface ScheduleParts {
  readonly connection: PostgresConnection
  readonly runner: StepRunner
  readonly queues: PostgresQueues
  readonly enqueue: PostgresEnqueue
  readonly wait: PostgresWait
}

export function postgresSchedules({ connection, runner, queues, enqueue, wait }: ScheduleParts): Schedules {
  return {
    async put(change, expects) {
      const [queue] = await queues.named([change.definition.queue])
      if (queue!.kind === 'ordered')
        throw new UnsupportedByStoreError(
          'postgres',
          `schedules of ordered queues (queue '${queue!.name}')`,
          'Use the SQLite or the Redis store.',
        )
      const answer = await runner.run('schedules', (now) => putSchedule(change, expects, now))
      if (answer === 'written') connection.call(tellAll, [topics.schedules]).catch(() => {})
      return answer !== 'lost'
    },
    remove: (name, expects) => runner.run('schedules', () => removeSchedule(name, expects)),
    get: (name) => runner.run(undefined, () => scheduleOf(name)),
    list: (after, limit) => runner.run(undefined, () => schedulesAfter(after, limit)),
    async tick(tick) {
      const [queue] = await queues.named([tick.queue])
      const answer = (await connection.call(tickSchedule, [
        ...stepValues(tick),
        queue!.qid,
        ...enqueueValues(tick),
      ])) as {
        outcome: TickAnswer['outcome']
        enqueued: EnqueueAnswer | null
      }
      const { outcome, enqueued } = answer
      if (outcome !== 'ticked') return { outcome }
      if (enqueued === null) return { outcome, enqueued: [] }
      return { outcome, enqueued: (await enqueue.answered(queue!, [tick], enqueued))[0]! }
    },
    due: (worker, leadMs, limit) => runner.run('schedules', (now) => dueSchedules(worker, leadMs, limit, now)),
    resign: (worker) => runner.run('schedules', () => resignLead(worker)),
    async changed(forMs, signal) {
      const ear = await wait.ear([topics.schedules], signal)
      try {
        await ear.attend()
        await ear.heard(forMs)
      } finally {
        ear.stop()
      }
    },
  }
}

function stepValues({ name, revision, dueAt, nextAt, lastAt, jobs, skips, misses, unless }: ScheduleTick): unknown[] {
  const lastId = storedOrNull(jobs.at(-1)?.id)
  return [
    ...[name, revision, dueAt ?? null, nextAt ?? null, lastAt ?? null, lastId === null ? null : storedText(lastId)],
    ...[jobs.length, skips, misses, unless ?? null],
  ]
}

function enqueueValues({ jobs, callId }: ScheduleTick): unknown[] {
  return [...columnsOf(jobs), [callId], [jobs.length]]
}
