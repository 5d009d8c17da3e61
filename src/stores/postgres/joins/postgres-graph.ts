/** Adding graphs to a Postgres store: joins and their members, all or none, in one call of the database. */

import type { GraphAnswer } from '../../contract/joins.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import { takenBy } from '../../rows/job-row.js'
import { joinDueAt, newJoinRow } from '../../rows/join-row.js'
import { toStored } from '../../rows/stored-text.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'
import { answerToTaken } from '../../rules/taken-id.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { sqlFunction } from '../schema/sql-function.js'
import { takenIds } from '../work/enqueue-functions.js'
import { ringFor } from '../work/limited-ring.js'
import { columnsOf, type PostgresEnqueue, type TakenAnswer, takenRow } from '../work/postgres-enqueue.js'
import type { NumberedQueue, PostgresQueues } from '../work/postgres-settings.js'
import type { PostgresUpkeep } from '../work/postgres-upkeep.js'
import type { BecameOfJoin, PostgresReports } from './join-reports.js'

/**
 * The sets in which new jobs have places. Takes the queue, the ids and the places of the jobs. Members of an earlier join of an
 * id have other ids or queues, and no place in it.
 */
const memberSets = sqlFunction(
  'member_sets_1',
  'p_q int, p_ids text[], p_places text[]',
  'TABLE (id text, sid bigint, number bigint, added bigint)',
  `BEGIN
  RETURN QUERY SELECT u.id, x.sid, (p->>3)::bigint, x.added
    FROM unnest(p_ids, p_places) u (id, places) CROSS JOIN json_array_elements(u.places::json) p
      JOIN @.queue jq ON jq.name = p->>0 JOIN @.join_job j ON j.id = p->>1 AND j.qid = jq.qid
      JOIN @.join_set x ON x.jid = j.jid AND x.name = p->>2 AND x.queue = (SELECT name FROM @.queue WHERE qid = p_q)
        AND u.id = CASE x.is_many WHEN 1 THEN x.ids || '.' || (p->>3) ELSE x.ids END;
END`,
)

/** Members were added: all of these, or those with the ids `p_added`. Takes the queue, the ids and the places of the jobs. */
const enterJoins = sqlFunction(
  'enter_joins_1',
  'p_q int, p_ids text[], p_places text[], p_added text[]',
  'void',
  `BEGIN
  UPDATE @.join_set x SET added = greatest(x.added, m.n) FROM (SELECT s.sid, max(s.number) + 1 AS n FROM @.member_sets_1(p_q, p_ids, p_places) s
    WHERE p_added IS NULL OR s.id = ANY (p_added) GROUP BY s.sid) m WHERE x.sid = m.sid;
END`,
)

/**
 * Adds a graph. Takes the calls, each `{qid, call, isNew, isResent, columns}` with the columns of `enqueue_1`; the joins, each
 * `{qid, id, row, due, sets}`; and what goes before, each `{qid, id, state}`.
 *
 * Returns `{became}`, or, with nothing changed, `{call, answer}`: the place of the first call that did not add all of its jobs,
 * from 0, and what `enqueue_1` has answered, or `{done: 'known'}`: the first time that the graph was sent was committed meanwhile; null if
 * what was to go before is another by now.
 */
const addGraph = sqlFunction(
  'graph_1',
  'p_calls json, p_joins json, p_before json',
  'json',
  `DECLARE e record; c json; answer json; at int := 0; j bigint; one json; became json[] := '{}';
BEGIN
  BEGIN
    FOR e IN SELECT * FROM json_to_recordset(p_before) AS x (qid int, id text, state int) LOOP
      IF @.drop_1(e.qid, e.id, e.state) IS NULL THEN RAISE EXCEPTION USING ERRCODE = 'MR001'; END IF;
    END LOOP;
    FOR e IN SELECT * FROM json_to_recordset(p_joins) AS x (qid int, id text, "row" json, due bigint, sets json) LOOP
      INSERT INTO @.join_job (qid, id, within_ms, seal_within_ms, run_at, delay_ms, expires_ms, cancels_rest, late_at, seal_by, due_at)
        SELECT e.qid, e.id, within_ms, seal_within_ms, run_at, delay_ms, expires_ms, cancels_rest, @.us() / 1000 + within_ms,
          @.us() / 1000 + seal_within_ms, @.us() / 1000 + e.due
        FROM json_populate_record(NULL::@.join_job, e."row") ON CONFLICT DO NOTHING RETURNING jid INTO j;
      -- A join of this id is there, whose job is found below.
      CONTINUE WHEN NOT FOUND;
      INSERT INTO @.join_set (jid, name, queue, ids, is_many, on_dead, keeps_results, size)
        SELECT j, name, queue, ids, "isMany"::int, "onDead", "keepsResults"::int, size FROM json_to_recordset(e.sets)
          AS x (name text, queue text, ids text, "isMany" boolean, "onDead" text, "keepsResults" boolean, size bigint);
    END LOOP;
    FOR e IN SELECT * FROM json_to_recordset(p_calls) AS x (qid int, call text, "isNew" boolean, "isResent" boolean, columns json) LOOP
      c := e.columns;
      answer := @.enqueue_1(e.qid, @.texts_1(c->0), @.texts_1(c->1), @.texts_1(c->2), @.texts_1(c->3), @.texts_1(c->4), @.texts_1(c->5)::int[],
        @.texts_1(c->6)::bigint[], @.texts_1(c->7)::bigint[], @.texts_1(c->8)::bigint[], @.texts_1(c->9)::bigint[], @.texts_1(c->10)::int[],
        @.texts_1(c->11), @.texts_1(c->12)::boolean[], @.texts_1(c->13), @.texts_1(c->14), @.texts_1(c->15)::boolean[], e."isNew", ARRAY[e.call], ARRAY[json_array_length(c->0)]);
      -- The last row is that of this time.
      IF e."isResent" AND json_array_length(@.recall_2(e.qid, e.call, ${callMemoryMs}, ${callMemoryCount})) > 1 THEN
        answer := json_build_object('done', 'known');
      END IF;
      IF answer->>'done' <> 'ok' OR answer->>'added' IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'MR001'; END IF;
      at := at + 1;
    END LOOP;
    FOR e IN SELECT * FROM json_to_recordset(p_joins) AS x (qid int, id text) LOOP
      UPDATE @.job SET pool = -1, flags = flags | 32 WHERE id = e.id COLLATE "C" AND qid = e.qid;
      -- Its members are stored: those of an earlier join that had their ids have ended, and numbered their reports, before.
      UPDATE @.join_job SET told_from = nextval(pg_get_serial_sequence('@.join_report', 'n')) WHERE id = e.id COLLATE "C" AND qid + 0 = e.qid;
    END LOOP;
    -- A member may have come before its join.
    FOR e IN SELECT * FROM json_to_recordset(p_joins) AS x (qid int, id text) LOOP
      one := @.judge_join_1(e.qid, e.id, NULL, NULL);
      IF one IS NOT NULL THEN became := became || one; END IF;
    END LOOP;
  EXCEPTION WHEN SQLSTATE 'MR001' THEN
    RETURN json_build_object('call', at, 'answer', answer);
  END;
  RETURN json_build_object('became', array_to_json(became));
END`,
)

/** Takes a list of texts or numbers, or null. Returns it as an array. */
const texts = sqlFunction(
  'texts_1',
  'p_list json',
  'text[]',
  `BEGIN
  IF json_typeof(p_list) = 'array' THEN RETURN array(SELECT json_array_elements_text(p_list)); END IF;
  RETURN NULL;
END`,
)

export const graphFunctions = [memberSets, enterJoins, texts, addGraph]

type AddedGraph =
  | { readonly became: BecameOfJoin[] }
  | { readonly call: number; readonly answer: FirstRefusal | { readonly done: 'known' } | null }

interface FirstRefusal {
  readonly done: 'ok' | 'draining' | 'full'
  readonly added: string[] | null
  readonly again: string[]
}

/** The jobs that are removed before a graph can be added. */
interface GoingBefore {
  readonly qid: number
  readonly id: string
  readonly state: number
}

interface GraphRoom {
  readonly connection: PostgresConnection
  readonly queues: PostgresQueues
  readonly enqueue: PostgresEnqueue
  readonly reports: PostgresReports
  readonly upkeep: PostgresUpkeep
}

/** Adds the graph at once, and looks at what has its ids only if that fails. Begins anew if that changes meanwhile. */
export async function addWholeGraph(parts: GraphRoom, sent: readonly EnqueueCall[]): Promise<GraphAnswer> {
  // A set that is empty may leave its queue without a job.
  const calls = sent.filter(({ jobs }) => jobs.length > 0)
  const { connection, reports, enqueue } = parts
  const queues = await parts.queues.named(calls.map(({ queue }) => queue))
  const [first] = calls
  if (first!.isResent && (await enqueue.recalled(queues[0]!, first!))) return { outcome: 'added' }
  const asked = calls.map((call, i) => askedOf(queues[i]!, call))
  const joins = calls.flatMap(({ jobs }, i) => jobs.flatMap((job) => joinOf(queues[i]!, job)))
  const before = new Map<string, GoingBefore>()
  for (;;) {
    const values = [asked, joins, [...before.values()]].map((value) => JSON.stringify(value))
    const added = (await connection.call(addGraph, values)) as AddedGraph
    if ('became' in added) {
      // It is committed: a sweep makes up for reports that are not delivered.
      if (before.size > 0) await reports.deliver().catch(() => {})
      reports.ringFor(added.became)
      for (const [i, { jobs }] of calls.entries()) {
        ringForNew(connection, queues[i]!, jobs)
        parts.upkeep.enqueued(queues[i]!.qid)
      }
      return { outcome: 'added' }
    }
    if (added.answer === null) {
      before.clear()
      continue
    }
    if (added.answer.done === 'known') return { outcome: 'added' }
    const head = await look(connection, queues[0]!, [first!.jobs[0]!])
    if (head.takenAs(first!.jobs[0]!) !== undefined)
      return { outcome: (await enqueue.recalled(queues[0]!, first!)) ? 'added' : 'duplicate' }
    const refused = await refusalOf(connection, queues[added.call]!, calls[added.call]!, added.answer, before)
    if (refused !== undefined) return refused
  }
}

/** Joins are rung for once they are ready. */
function ringForNew(connection: PostgresConnection, { qid }: NumberedQueue, jobs: readonly NewJob[]): void {
  const coming = jobs.filter(({ join }) => join === undefined)
  if (coming.length === 0) return
  const isLater = coming.every(({ runAt, delayMs = 0 }) => runAt !== undefined || delayMs > 0)
  ringFor(connection, qid, isLater)
}

/** The first job of the call that cannot be added; undefined: all can, once what it adds to `before` has gone. */
async function refusalOf(
  connection: PostgresConnection,
  queue: NumberedQueue,
  { jobs }: EnqueueCall,
  { done, added, again }: FirstRefusal,
  before: Map<string, GoingBefore>,
): Promise<GraphAnswer | undefined> {
  const refusal = ({ id }: NewJob, as: Exclude<Enqueued, 'added' | 'merged' | 'replaced'>): GraphAnswer => ({
    ...{ outcome: 'refused', refused: { queue: queue.name, id }, as },
  })
  if (done !== 'ok') return refusal(jobs[0]!, done)
  const coming = new Set(added)
  const left = jobs.filter(({ id }) => !coming.delete(id))
  const found = await look(connection, queue, left)
  const ids = new Set(added)
  for (const job of left) {
    if (again.includes(job.id) || ids.has(job.id)) return refusal(job, 'duplicate')
    const as = found.takenAs(job)
    const answer = as === undefined ? 'added' : answerToTaken(as, job)
    if (answer !== 'added' && answer !== 'replaced') return refusal(job, answer as 'duplicate')
    ids.add(job.id)
    const state = found.stateOf(job)
    if (state !== undefined) before.set(`${queue.qid} ${job.id}`, { qid: queue.qid, id: job.id, state })
  }
  return undefined
}

/** Looks at what has the ids of these jobs. */
async function look(connection: PostgresConnection, { qid }: NumberedQueue, jobs: readonly NewJob[]) {
  const values = [qid, jobs.map(({ id }) => id)]
  const [now, deadAge, rows] = (await connection.call(takenIds, values)) as TakenAnswer
  const found = new Map(rows.map((row) => [row[0], row]))
  return {
    takenAs({ id }: NewJob) {
      const row = found.get(id)
      return row && takenBy({ dead_age_ms: deadAge }, takenRow(row), now)
    },
    stateOf: ({ id }: NewJob) => found.get(id)?.[1],
  }
}

/** The times of a join count from the end of its last member: its job is added without them. */
function askedOf({ qid }: NumberedQueue, { callId, hasNewIds, isResent, jobs }: EnqueueCall): object {
  const bare = jobs.map(({ delayMs, runAt, expiresMs, ...job }) =>
    job.join === undefined
      ? {
          ...job,
          ...(delayMs === undefined ? {} : { delayMs }),
          ...(runAt === undefined ? {} : { runAt }),
          ...(expiresMs === undefined ? {} : { expiresMs }),
        }
      : job,
  )
  return { qid, call: callId, isNew: hasNewIds === true, isResent: isResent === true, columns: columnsOf(bare) }
}

function joinOf({ qid }: NumberedQueue, job: NewJob): object[] {
  if (job.join === undefined) return []
  const row = newJoinRow(job, 0)
  const sets = job.join.sets.map((set) => ({ ...set, name: toStored(set.name) }))
  const whole = Object.entries(row).map(([name, value]) => [name, value === null ? null : Math.ceil(value)])
  return [
    {
      qid,
      id: job.id,
      row: Object.fromEntries(whole),
      due: joinDueAt(
        row,
        job.join.sets.map(({ size }) => ({ size })),
      ),
      sets,
    },
  ]
}
