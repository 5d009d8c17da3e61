/** Enqueueing by SQL: from triggers, and from programs in other languages. */

import { mostFieldBytes, mostFields } from '../../../core/job/job-fields.js'
import { endedStates } from '../schema/postgres-tables.js'
import type { SqlFunction } from '../schema/sql-function.js'
import { newJobs } from '../work/enqueue-functions.js'

const { kept, dead } = endedStates

/** The columns of the new job; those that are not here have their default. */
const given: Readonly<Record<string, string>> = {
  p_ids: 'ARRAY[job_id]',
  p_tasks: 'ARRAY[task]',
  p_payloads: 'ARRAY[input::text]',
  p_metas: `ARRAY[(options -> 'meta')::text]`,
  p_ranks: `ARRAY[-(options ->> 'priority')::int]`,
  p_delays: `ARRAY[delay_us]`,
  p_runs: `ARRAY[(extract(epoch FROM (options ->> 'runAt')::timestamptz) * 1000000)::bigint]`,
  p_expires: 'ARRAY[expires_us / 1000]',
  p_remember: `ARRAY[CASE WHEN options ? 'id' THEN 300000 END]`,
  p_fields: `CASE WHEN options -> 'fields' <> '{}' THEN ARRAY[(options -> 'fields')::text] END`,
  p_weights: `ARRAY[octet_length(input::text) + coalesce(octet_length((options -> 'meta')::text), 0)]`,
}

const columns = [...newJobs.matchAll(/p_\w+/g)].map(([name]) => `${name} => ${given[name] ?? 'NULL'}`)

/** `'5m'` is five minutes for Postgres too; a number is one of ms. */
const inUs = (
  name: string,
) => `CASE jsonb_typeof(options -> '${name}') WHEN 'number' THEN ((options ->> '${name}')::numeric * 1000)::bigint
    ELSE (extract(epoch FROM (options ->> '${name}')::interval) * 1000000)::bigint END`

/**
 * `enqueue(queue, task, input, options)` returns the id of the job. Input is `json`, because `jsonb` would change its text. Options: `id`,
 * `delay`, `runAt`, `expiresIn`, `priority`, `meta`, `fields`, `wake`. An id that waits, runs or is remembered enqueues nothing.
 * What it refuses ends the transaction, because a trigger that ignored an answer would lose the job: so does an id in the morgue.
 */
export const sqlEnqueue: SqlFunction = {
  name: 'enqueue',
  takes: `queue text, task text, input json, options jsonb DEFAULT '{}'`,
  returns: 'text',
  forUsers: { version: 1 },
  body: `#variable_conflict use_variable
DECLARE q @.queue; job_id text; answer json; unknown text; delay_us bigint; expires_us bigint; known @.ended; is_free boolean;
BEGIN
  SELECT * INTO q FROM @.queue WHERE name = enqueue.queue COLLATE "C" AND kind = 'plain' LIMIT 1;
  IF q.qid IS NULL THEN
    RAISE EXCEPTION 'millrace: there is no plain queue ''%''', enqueue.queue
      USING ERRCODE = 'undefined_object', HINT = 'A mill that declares it makes it when it opens the store. Ordered queues take no jobs by SQL.';
  END IF;
  IF enqueue.task IS NULL OR enqueue.task = '' THEN
    RAISE EXCEPTION 'millrace: the task must be the name of a task' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT string_agg(k, ', ') INTO unknown FROM jsonb_object_keys(enqueue.options) k
    WHERE k NOT IN ('id', 'delay', 'runAt', 'expiresIn', 'priority', 'meta', 'fields', 'wake');
  IF unknown IS NOT NULL THEN
    RAISE EXCEPTION 'millrace: unknown option %', unknown
      USING ERRCODE = 'invalid_parameter_value', HINT = 'There are id, delay, runAt, expiresIn, priority, meta, fields and wake.';
  END IF;
  IF (CASE jsonb_typeof(options -> 'fields') WHEN 'object' THEN (
      SELECT count(*) > ${mostFields} OR sum(octet_length(f.key || f.value)) > ${mostFieldBytes} OR bool_or(f.key !~ '^[A-Za-z0-9_.-]{1,64}$'
        OR f.key = '__proto__' OR jsonb_typeof(options -> 'fields' -> f.key) NOT IN ('string', 'number', 'boolean') OR octet_length(f.value) > 256)
      FROM (SELECT e.key, e.value::text AS value FROM jsonb_each(options -> 'fields') e) f) ELSE options ? 'fields' END) THEN
    RAISE EXCEPTION 'millrace: fields must be an object of texts, numbers and booleans' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'A job has at most ${mostFields} fields and ${mostFieldBytes} bytes of them. A name has 1 to 64 of A-Z, a-z, 0-9, _, . and -; a value has at most 256 bytes as JSON.';
  END IF;
  job_id := coalesce(options ->> 'id', gen_random_uuid()::text);
  IF octet_length(job_id) NOT BETWEEN 1 AND 256 OR octet_length(coalesce(input, 'null')::text) > 1048576 THEN
    RAISE EXCEPTION 'millrace: an id has 1 to 256 bytes, and an input at most 1 MiB' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  input := coalesce(input, 'null');
  delay_us := ${inUs('delay')};
  expires_us := ${inUs('expiresIn')};
  LOOP
    answer := @.enqueue_in_1(p_q => q.qid, ${columns.join(', ')},
      p_new => NOT options ? 'id', p_wakes => coalesce((options ->> 'wake')::boolean, true));
    IF answer ->> 'done' <> 'ok' THEN
      RAISE EXCEPTION 'millrace: queue ''%'' is %', enqueue.queue, answer ->> 'done'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Nothing was enqueued. Try again when its workers have caught up.';
    END IF;
    EXIT WHEN answer ->> 'added' IS NULL;
    -- The id is taken: by a job, or by what is kept of one that has ended, which may be out of date.
    SELECT * INTO known FROM @.ended x WHERE x.id = job_id COLLATE "C" AND x.qid + 0 = q.qid;
    EXIT WHEN known.id IS NULL AND EXISTS (SELECT FROM @.job j WHERE j.id = job_id COLLATE "C" AND j.qid + 0 = q.qid);
    CONTINUE WHEN known.id IS NULL;
    is_free := CASE known.state WHEN ${dead} THEN known.finished_ms <= @.us() / 1000 - q.dead_age_ms
      WHEN ${kept} THEN known.finished_ms + known.remember_ms <= @.us() / 1000 ELSE known.until_ms <= @.us() / 1000 END;
    IF is_free THEN
      PERFORM @.drop_1(q.qid, job_id, known.state);
      CONTINUE;
    END IF;
    EXIT WHEN known.state <> ${dead};
    RAISE EXCEPTION 'millrace: a job with the id ''%'' is in the morgue of queue ''%''', job_id, enqueue.queue
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Nothing was enqueued. Revive that job or delete it, or give the new one another id.';
  END LOOP;
  RETURN job_id;
END`,
}
