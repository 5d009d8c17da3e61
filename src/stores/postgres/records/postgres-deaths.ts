/** The facet `deaths` of a Postgres store: the deaths of jobs that are not reported yet. */

import { type Deaths, tasksInBacklog, type UnreportedDeath } from '../../contract/job-records.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'
import { payloadFrom, textFrom } from '../schema/stored-payload.js'
import type { PostgresQueues } from '../work/postgres-settings.js'

/**
 * Takes queues, names of tasks, a limit, and numbers of deaths that are passed over. Returns the oldest deaths of their jobs, each as `DeathColumns`. It looks for the
 * oldest of each task: to go through all deaths in their order would pass those of tasks that nobody knows any more.
 */
const unreportedDeaths = sqlFunction(
  'unreported_1',
  'p_qs int[], p_tasks text[], p_most int, p_except bigint[]',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(qid, n, id, task, attempt, crashes, died_ms, error, reason, codec, payload) ORDER BY n), '[]')
    FROM @.death WHERE n = ANY (ARRAY(SELECT d.n FROM unnest(p_qs) q, unnest(p_tasks) t,
      LATERAL (SELECT n FROM @.death WHERE qid = q AND task = t AND n <> ALL (p_except) ORDER BY qid, task, n LIMIT p_most) d ORDER BY d.n LIMIT p_most)));
END`,
)

/**
 * Takes queues and how many deaths of a task to count. Returns `[queue, task, count, since]` for each task that has some,
 * each found behind the one before: to read all deaths for that could take long.
 */
const deathBacklog = sqlFunction(
  'death_backlog_1',
  'p_qs int[], p_most int',
  'json',
  `DECLARE rows json[] := '{}'; q int; k text; c int; s bigint;
BEGIN
  FOREACH q IN ARRAY p_qs LOOP
    k := '';
    FOR i IN 1 .. ${tasksInBacklog} LOOP
      SELECT task INTO k FROM @.death WHERE qid = q AND task > k ORDER BY qid, task LIMIT 1;
      EXIT WHEN NOT FOUND;
      SELECT count(*) INTO c FROM (SELECT FROM @.death WHERE qid = q AND task = k LIMIT p_most) d;
      SELECT died_ms INTO s FROM @.death WHERE qid = q AND task = k ORDER BY qid, task, n LIMIT 1;
      rows := array_append(rows, json_build_array(q, k, c, s));
    END LOOP;
  END LOOP;
  RETURN array_to_json(rows);
END`,
)

/** Takes a queue, numbers of deaths, and the ids of their jobs. Returns null. */
const reportedDeaths = sqlFunction(
  'reported_1',
  'p_q int, p_ns bigint[], p_ids text[]',
  'json',
  `BEGIN
  DELETE FROM @.death d USING unnest(p_ns, p_ids) x (n, id) WHERE d.n = x.n AND d.qid = p_q AND d.id = x.id;
  RETURN NULL;
END`,
)

export const deathFunctions = [unreportedDeaths, deathBacklog, reportedDeaths]

type DeathColumns = [
  qid: number,
  number: number,
  id: string,
  task: string,
  attempt: number,
  crashes: number,
  diedAt: number,
  error: string | null,
  reason: string | null,
  codec: string | null,
  payload: string,
]

type BacklogColumns = [qid: number, task: string, count: number, since: number]

export function postgresDeaths(connection: PostgresConnection, queues: PostgresQueues): Deaths {
  return {
    async unreported(names, tasks, limit, except = []) {
      const numbered = await queues.named(names)
      const nameOf = new Map(numbered.map(({ qid }, i) => [qid, names[i]!]))
      const values = [[...nameOf.keys()], tasks, limit, except.map(({ number }) => number)]
      const found = (await connection.call(unreportedDeaths, values)) as DeathColumns[]
      return found.map((columns) => deathIn(nameOf.get(columns[0])!, columns))
    },

    async backlog(names, most) {
      const numbered = await queues.named(names)
      const nameOf = new Map(numbered.map(({ qid }, i) => [qid, names[i]!]))
      const found = (await connection.call(deathBacklog, [[...nameOf.keys()], most])) as BacklogColumns[]
      return found.map(([qid, task, count, since]) => ({ queue: nameOf.get(qid)!, task, count, since }))
    },

    async reported(queue, deaths) {
      const keys = [deaths.map(({ number }) => number), deaths.map(({ id }) => id)]
      const [numbered] = await queues.named([queue])
      await connection.call(reportedDeaths, [numbered!.qid, ...keys])
    },
  }
}

function deathIn(
  queue: string,
  [, number, id, task, attempt, crashes, diedAt, error, reason, codec, payload]: DeathColumns,
): UnreportedDeath {
  return {
    ...{ queue, id, number, task, payload: payloadFrom(payload), attempt, crashes, diedAt },
    ...(error === null ? {} : { error: textFrom(error) }),
    ...(reason === null ? {} : { reason: textFrom(reason) }),
    ...(codec === null ? {} : { codec }),
  }
}
