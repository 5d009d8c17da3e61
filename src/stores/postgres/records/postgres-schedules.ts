/** The schedules of a Postgres store. A tick is one function: it enqueues and steps, both or neither. */

import type { Schedules, ScheduleTick } from '../../contract/schedules.js'
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
import { newPayloads } from '../ordered/push-functions.js'
import { sqlFunction } from '../schema/sql-function.js'
import { storedText } from '../schema/stored-payload.js'
import { newJobs } from '../work/enqueue-functions.js'
import { columnsOf, type EnqueueAnswer, type PostgresEnqueue, type TickedAnswer } from '../work/postgres-enqueue.js'
import { tellAll, topics } from '../work/postgres-ring.js'
import type { PostgresQueues } from '../work/postgres-settings.js'
import type { PostgresWait } from '../work/postgres-wait.js'
import type { StepRunner } from './step-runner.js'

/**
 * Takes a schedule with the revision and the next tick that the caller read, the number of jobs, the job whose being there skips
 * them, and where that is. Locks the schedule.
 *
 * Returns `'lost'`: it is another one by now; `'skipped'`; or `'ticked'`: go on.
 */
const beginTick = sqlFunction(
  'tick_begun_1',
  'p_name text, p_revision text, p_due bigint, p_jobs int, p_unless text, p_q int',
  'text',
  `DECLARE s @.schedule;
BEGIN
  SELECT * INTO s FROM @.schedule WHERE name = p_name COLLATE "C" FOR UPDATE;
  IF s.name IS NULL OR s.revision <> p_revision OR s.next_at IS DISTINCT FROM p_due THEN RETURN 'lost'; END IF;
  IF p_jobs > 0 AND EXISTS (SELECT FROM @.job WHERE id = p_unless COLLATE "C" AND qid + 0 = p_q) THEN RETURN 'skipped'; END IF;
  RETURN 'ticked';
END`,
)

/** Takes a schedule, how its tick went, and the step, as `passTick` of `sql-schedules` does it. Returns nothing. */
const passTick = sqlFunction(
  'tick_passed_1',
  'p_name text, p_outcome text, p_next bigint, p_last bigint, p_last_id text, p_jobs int, p_skips int, p_misses int',
  'void',
  `DECLARE is_skipped boolean := p_outcome = 'skipped';
BEGIN
  UPDATE @.schedule SET next_at = p_next, last_at = coalesce(p_last, last_at),
    last_id = CASE WHEN is_skipped THEN last_id ELSE coalesce(p_last_id, last_id) END,
    ticked = ticked + CASE WHEN is_skipped THEN 0 ELSE p_jobs END,
    skipped = skipped + p_skips + CASE WHEN is_skipped THEN p_jobs ELSE 0 END, missed = missed + p_misses
  WHERE name = p_name COLLATE "C";
END`,
)

/** The step of a tick, and the queue or the shard that its jobs go to. */
const step = `p_name text, p_revision text, p_due bigint, p_next bigint, p_last bigint, p_last_id text, p_jobs int, p_skips int, p_misses int,
   p_unless text, p_q int`

/**
 * Takes the step of a tick, and what `enqueue_1` takes.
 *
 * Returns `{outcome}`; if it enqueued, with `enqueued`, the answer of `enqueue_1`.
 */
const tickSchedule = sqlFunction(
  'tick_1',
  `${step}, ${newJobs}, p_calls text[], p_counts int[]`,
  'json',
  `DECLARE outcome text := @.tick_begun_1(p_name, p_revision, p_due, p_jobs, p_unless, p_q); e json;
BEGIN
  IF outcome = 'lost' THEN RETURN json_build_object('outcome', outcome); END IF;
  IF p_jobs > 0 AND outcome = 'ticked' THEN
    e := @.enqueue_1(p_q, p_ids, p_tasks, p_payloads, p_codecs, p_metas, p_ranks, p_delays, p_runs, p_expires, p_remember, p_weights, p_places,
      p_replaces, p_grps, p_fields, p_reports, false, p_calls, p_counts);
    IF e ->> 'done' <> 'ok' THEN RETURN json_build_object('outcome', e ->> 'done'); END IF;
  END IF;
  PERFORM @.tick_passed_1(p_name, outcome, p_next, p_last, p_last_id, p_jobs, p_skips, p_misses);
  RETURN json_build_object('outcome', outcome, 'enqueued', e);
END`,
)

/**
 * Takes the step of a tick, and what `push_1` takes: the payloads of one ordered job.
 *
 * Returns `{outcome}`; if it enqueued, with `enqueued`, the answer of `push_1`. `'moved'`: the queue has other shards by now.
 */
const tickOrdered = sqlFunction(
  'tick_pushed_1',
  `${step}, p_merge text, ${newPayloads}, p_calls text[], p_counts int[]`,
  'json',
  `DECLARE outcome text := @.tick_begun_1(p_name, p_revision, p_due, p_jobs, p_unless, p_q); e json;
BEGIN
  IF outcome = 'lost' THEN RETURN json_build_object('outcome', outcome); END IF;
  IF p_jobs > 0 AND outcome = 'ticked' THEN
    e := @.push_1(p_q, p_merge, p_ids, p_tasks, p_payloads, p_codecs, p_metas, p_delays, p_runs, p_weights, p_scores, p_digests, p_grps, p_calls, p_counts);
    IF e ->> 'done' <> 'ok' THEN RETURN json_build_object('outcome', e ->> 'done'); END IF;
  END IF;
  PERFORM @.tick_passed_1(p_name, outcome, p_next, p_last, p_last_id, p_jobs, p_skips, p_misses);
  RETURN json_build_object('outcome', outcome, 'enqueued', e);
END`,
)

export const scheduleFunctions = [beginTick, passTick, tickSchedule, tickOrdered]

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
      await queues.named([change.definition.queue])
      const answer = await runner.run('schedules', (now) => putSchedule(change, expects, now))
      if (answer === 'written') connection.call(tellAll, [topics.schedules]).catch(() => {})
      return answer !== 'lost'
    },
    remove: (name, expects) => runner.run('schedules', () => removeSchedule(name, expects)),
    get: (name) => runner.run(undefined, () => scheduleOf(name)),
    list: (after, limit) => runner.run(undefined, () => schedulesAfter(after, limit)),
    async tick(tick) {
      const [queue] = await queues.named([tick.queue])
      if (queue!.kind === 'ordered')
        return enqueue.tickOrdered(tick, (pushed) => connection.call(tickOrdered, [...stepValues(tick), ...pushed]))
      const values = [...stepValues(tick), queue!.qid, ...columnsOf(tick.jobs), [tick.callId], [tick.jobs.length]]
      const { outcome, enqueued } = (await connection.call(tickSchedule, values)) as TickedAnswer<EnqueueAnswer>
      if (outcome !== 'ticked') return { outcome: outcome as Exclude<typeof outcome, 'ticked' | 'moved'> }
      if (enqueued === null) return { outcome, enqueued: [] }
      return { outcome, enqueued: (await enqueue.answered(queue!, [tick], enqueued))[0]! }
    },
    due: (worker, leadMs, limit) => runner.run('schedules', (now) => dueSchedules(worker, leadMs, limit, now)),
    resign: (worker) => runner.run('schedules', () => resignLead(worker)),
    async changed(forMs, signal) {
      const ear = await wait.ear([topics.schedules], signal)
      try {
        await ear.attend()
        await ear.rested(forMs)
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
