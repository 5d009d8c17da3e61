/** The facet `joins` of a Postgres store: adds graphs, seals and shows sets, and sweeps joins whose time is over. */

import type { JobKey } from '../../contract/job-records.js'
import type { FailedJoin, GraphAnswer, Joins, MemberEnd, Sealed, StoredJoin } from '../../contract/joins.js'
import type { EnqueueCall } from '../../contract/new-job.js'
import { fates, type HeldSet, heldSet, isNeverSealed, type JoinSetRow, storedSet } from '../../rows/join-row.js'
import { present } from '../../rows/stored-job.js'
import { toStored } from '../../rows/stored-text.js'
import { stepLimit, upkeepLimit } from '../../rules/bounds.js'
import {
  byLateness,
  joinDeadReason,
  lateError,
  lateReason,
  neverSealedError,
  neverSealedReason,
  outstandingIn,
  refuseSizes,
} from '../../rules/join-rules.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { askToCancel } from '../records/record-functions.js'
import { sqlFunction } from '../schema/sql-function.js'
import { payloadFrom, textFrom } from '../schema/stored-payload.js'
import { lookAtJobs } from '../work/end-functions.js'
import { type EndingRow, endedBy } from '../work/job-end.js'
import type { PostgresEnqueue } from '../work/postgres-enqueue.js'
import type { PostgresRecovery } from '../work/postgres-recovery.js'
import type { NumberedQueue, PostgresQueues } from '../work/postgres-settings.js'
import type { PostgresUpkeep } from '../work/postgres-upkeep.js'
import type { BecameOfJoin, PostgresReports } from './join-reports.js'
import { addWholeGraph } from './postgres-graph.js'

/** Takes the queue and the id of a join. Returns null if there is none, otherwise `[due in ms, sets]` as `LookedSet`. */
const lookAtJoin = sqlFunction(
  'look_at_join_1',
  'p_q int, p_id text',
  'json',
  `BEGIN
  RETURN (SELECT json_build_array(due_at, (SELECT coalesce(json_agg(x ORDER BY x.sid), '[]') FROM (
    SELECT s.*, (SELECT least(
        (SELECT min(g) FROM (SELECT 0 AS g WHERE s.added > 0 AND NOT EXISTS (SELECT FROM @.join_end WHERE sid = s.sid AND number = 0)
          UNION ALL (SELECT e.number + 1 FROM @.join_end e WHERE e.sid = s.sid AND e.number + 1 < s.added
            AND NOT EXISTS (SELECT FROM @.join_end f WHERE f.sid = e.sid AND f.number = e.number + 1) ORDER BY e.sid, e.number LIMIT 1)) y),
        CASE s.on_dead WHEN 'hold' THEN (SELECT min(number) FROM @.join_end WHERE sid = s.sid AND fate = 1) END)) AS oldest
    FROM @.join_set s WHERE s.jid = j.jid) x)) FROM @.join_job j WHERE id = p_id AND qid + 0 = p_q);
END`,
)

/** Takes the queue and the id of a join, a set, and the numbers from and below which to read. Returns ends as `EndColumns`. */
const readEnds = sqlFunction(
  'join_ends_1',
  'p_q int, p_id text, p_set text, p_from bigint, p_below bigint',
  'json',
  `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(number, fate, codec, error, payload) ORDER BY number), '[]') FROM @.join_end
    WHERE sid = (SELECT sid FROM @.join_set s JOIN @.join_job j USING (jid) WHERE j.id = p_id AND j.qid + 0 = p_q AND s.name = p_set)
      AND number >= p_from AND number < p_below);
END`,
)

/**
 * Seals sets. Takes the queue and the id of a join, and sizes by the names of sets. Returns `{done}`: `'sealed'`, with what has
 * `became` of it; `'dead'` or `'gone'`; or `'unfit'`, which changed nothing: a size is none that the set can have.
 */
const sealJoin = sqlFunction(
  'seal_2',
  'p_q int, p_id text, p_sizes json',
  'json',
  `DECLARE j bigint;
BEGIN
  IF NOT @.lock_join_1(p_q, p_id) THEN RETURN json_build_object('done', 'gone'); END IF;
  SELECT jid INTO j FROM @.join_job WHERE id = p_id AND qid + 0 = p_q;
  PERFORM FROM @.join_set WHERE jid = j ORDER BY sid FOR UPDATE;
  IF EXISTS (SELECT FROM json_each_text(p_sizes) x LEFT JOIN @.join_set s ON s.jid = j AND s.name = x.key
      WHERE s.sid IS NULL OR coalesce(s.size, x.value::bigint) <> x.value::bigint OR x.value::bigint < s.added) THEN
    RETURN json_build_object('done', 'unfit');
  END IF;
  UPDATE @.join_set s SET size = x.value::bigint FROM json_each_text(p_sizes) x WHERE s.jid = j AND s.name = x.key AND s.size IS NULL;
  UPDATE @.join_job SET due_at = CASE WHEN EXISTS (SELECT FROM @.join_set s WHERE s.jid = j AND s.size IS NULL) THEN least(late_at, seal_by) ELSE late_at END
    WHERE jid = j AND due_at IS NOT NULL;
  IF NOT EXISTS (SELECT FROM @.job WHERE id = p_id AND qid + 0 = p_q) THEN RETURN json_build_object('done', 'dead'); END IF;
  RETURN json_build_object('done', 'sealed', 'became', @.judge_join_1(p_q, p_id, NULL, NULL));
END`,
)

/**
 * What there is to do for a sweep. Takes a limit. Returns null if there is nothing, otherwise `{now, reports, cancelling, overdue,
 * more}`: whether reports were not delivered, whether members are to be cancelled, joins whose time is over as `OverdueJoin`,
 * and whether more are. Deletes a bounded number of the rows that ended joins have left.
 */
const lookForSweep = sqlFunction(
  'sweep_1',
  'p_most int, p_step int',
  'json',
  `DECLARE ms bigint := @.us() / 1000; s bigint; k int; is_left boolean := false;
BEGIN
  IF NOT EXISTS (SELECT FROM @.join_failed) AND NOT EXISTS (SELECT FROM @.join_job WHERE due_at <= ms) AND NOT EXISTS (SELECT FROM @.join_report)
    AND NOT EXISTS (SELECT FROM @.join_job WHERE cancelling = 1) AND NOT EXISTS (SELECT FROM @.join_set WHERE jid IS NULL) THEN RETURN NULL; END IF;
  SELECT sid INTO s FROM @.join_set WHERE jid IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    DELETE FROM @.join_end WHERE ctid = ANY (array(SELECT ctid FROM @.join_end WHERE sid = s LIMIT p_step));
    GET DIAGNOSTICS k = ROW_COUNT;
    IF k < p_step THEN DELETE FROM @.join_set WHERE sid = s; END IF;
    is_left := EXISTS (SELECT FROM @.join_set WHERE jid IS NULL);
  END IF;
  RETURN json_build_object('now', ms, 'reports', EXISTS (SELECT FROM @.join_report),
    'more', is_left OR (SELECT count(*) FROM (SELECT FROM @.join_job WHERE due_at <= ms LIMIT p_most + 1) x) > p_most,
    'overdue', (SELECT coalesce(json_agg(x), '[]') FROM (SELECT j.qid, q.name AS queue, j.id, j.due_at AS until, j.seal_by AS "sealBy",
      (SELECT json_agg(t) FROM @.join_set t WHERE t.jid = j.jid) AS sets FROM @.join_job j JOIN @.queue q USING (qid)
      WHERE j.due_at <= ms ORDER BY j.due_at, q.name, j.id LIMIT p_most) x));
END`,
)

/** A join has waited for too long. Takes its queue and id, the instant at which that was so, the reason and the error. Returns null. */
const failJoin = sqlFunction(
  'fail_join_1',
  'p_q int, p_id text, p_until bigint, p_reason text, p_error text',
  'json',
  `BEGIN
  IF @.lock_join_1(p_q, p_id) AND EXISTS (SELECT FROM @.join_job WHERE id = p_id AND qid + 0 = p_q AND due_at = p_until) THEN
    PERFORM @.judge_join_1(p_q, p_id, p_reason, p_error);
    UPDATE @.join_job SET due_at = NULL WHERE id = p_id AND qid + 0 = p_q;
  END IF;
  RETURN NULL;
END`,
)

/**
 * Looks for members of dead joins that are to be cancelled. Takes how many members to look at in one set, and a `RestPlace`.
 *
 * Returns those of one set that it has found, and where to go on: `[queue, ids, …RestPlace]`; null if it has come to the end. A join
 * is done then if nobody of it had to be left.
 */
const restOfDead = sqlFunction(
  'join_rest_2',
  'p_most int, p_jid bigint, p_sid bigint, p_from bigint, p_left boolean',
  'json',
  `DECLARE j @.join_job; s @.join_set; ids text[]; home text; q int; at bigint; is_left boolean; looked bigint := 0;
BEGIN
  FOR j IN SELECT * FROM @.join_job WHERE cancelling = 1 AND jid >= p_jid ORDER BY jid LOOP
    is_left := p_left AND j.jid = p_jid;
    home := (SELECT name FROM @.queue WHERE qid = j.qid);
    FOR s IN SELECT * FROM @.join_set WHERE jid = j.jid AND (j.jid > p_jid OR sid >= p_sid) ORDER BY sid LOOP
      q := (SELECT qid FROM @.queue WHERE name = s.queue);
      at := CASE s.sid WHEN p_sid THEN p_from ELSE 0 END;
      ids := array(SELECT o.id FROM generate_series(at, least(at + p_most, s.added) - 1) g
        JOIN @.job o ON o.qid = q AND o.id = CASE s.is_many WHEN 1 THEN s.ids || '.' || g ELSE s.ids END COLLATE "C"
        WHERE o.flags & 24 = 16 AND NOT EXISTS (SELECT FROM @.join_end e WHERE e.sid = s.sid AND e.number = g)
          AND EXISTS (SELECT FROM json_array_elements(o.places::json) p WHERE p->>0 = home AND p->>1 = j.id AND p->>2 = s.name)
        ORDER BY g);
      looked := looked + least(p_most, greatest(s.added - at, 0));
      IF ids <> '{}' OR looked >= p_most THEN RETURN json_build_array(s.queue, ids, j.jid, s.sid, at + p_most, is_left); END IF;
    END LOOP;
    IF NOT is_left THEN UPDATE @.join_job SET cancelling = 0 WHERE jid = j.jid; END IF;
  END LOOP;
  RETURN NULL;
END`,
)

/** Takes a limit. Returns at most that many joins that have died since this was last asked, each once. */
const takeFailed = sqlFunction(
  'failed_joins_1',
  'p_most int',
  'json',
  `DECLARE found_all json;
BEGIN
  WITH d AS (DELETE FROM @.join_failed WHERE n = ANY (array(SELECT n FROM @.join_failed ORDER BY n LIMIT p_most FOR UPDATE SKIP LOCKED)) RETURNING *)
  SELECT coalesce(json_agg(json_build_object('queue', queue, 'id', id, 'task', task, 'reason', reason) ORDER BY n), '[]') INTO found_all FROM d;
  RETURN found_all;
END`,
)

export const joinFunctions = [lookAtJoin, readEnds, sealJoin, lookForSweep, failJoin, restOfDead, takeFailed]

type LookedSet = JoinSetRow & { readonly oldest: number | null }

type EndColumns = [number: number, fate: number, codec: string | null, error: string | null, payload: string | null]

interface OverdueJoin extends JobKey {
  readonly qid: number
  readonly until: number
  readonly sealBy: number
  readonly sets: JoinSetRow[]
}

interface SweepLook {
  readonly now: number
  readonly reports: boolean
  readonly overdue: OverdueJoin[]
  readonly more: boolean
}

/** How far a look for members of dead joins has come: a join, a set and a number; and whether it had to leave somebody of that join. */
type RestPlace = readonly [jid: number, sid: number, number: number, isLeft: boolean]

type FoundRest = readonly [queue: string, ids: string[], ...RestPlace]

const firstPlace: RestPlace = [0, 0, 0, false]

interface JoinsParts {
  readonly connection: PostgresConnection
  readonly queues: PostgresQueues
  readonly enqueue: PostgresEnqueue
  readonly reports: PostgresReports
  readonly recovery: PostgresRecovery
  readonly upkeep: PostgresUpkeep
}

export class PostgresJoins implements Joins {
  readonly #parts: JoinsParts
  #rest = firstPlace
  /** Since it began at the first place. */
  #hasCancelled = false

  constructor(parts: JoinsParts) {
    this.#parts = parts
  }

  enqueue(calls: readonly EnqueueCall[]): Promise<GraphAnswer> {
    return addWholeGraph(this.#parts, calls)
  }

  async seal(join: JobKey, sizes: Readonly<Record<string, number>>): Promise<Sealed> {
    const qid = await this.#qid(join)
    const named = Object.fromEntries(Object.entries(sizes).map(([name, size]) => [toStored(name), size]))
    for (;;) {
      const answer = await this.#parts.connection.call(sealJoin, [qid, join.id, JSON.stringify(named)])
      const { done, became } = answer as { done: Sealed | 'unfit'; became?: BecameOfJoin | null }
      if (done !== 'unfit') {
        if (became) this.#parts.reports.ringFor([became])
        return done
      }
      refuseSizes(join.id, (await this.#setsOf(join))?.sets ?? [], sizes)
    }
  }

  async look(join: JobKey): Promise<StoredJoin | undefined> {
    const found = await this.#setsOf(join)
    if (found === undefined) return undefined
    const { dueAt, sets } = found
    return {
      sets: sets.map((set, i) => storedSet(set, found.oldest[i] ?? undefined)),
      ...(dueAt === null ? {} : { waitsUntil: dueAt }),
    }
  }

  async ends(join: JobKey, set: string, from: number, limit: number): Promise<MemberEnd[]> {
    const values = [await this.#qid(join), join.id, toStored(set), from, from + limit]
    return ((await this.#parts.connection.call(readEnds, values)) as EndColumns[]).map(memberEnd)
  }

  async sweep(_worker: string): Promise<{ readonly failed: readonly FailedJoin[]; readonly more: boolean }> {
    const { connection, reports } = this.#parts
    const found = (await connection.call(lookForSweep, [upkeepLimit, stepLimit])) as SweepLook | null
    if (found === null) return { failed: [], more: false }
    if (found.reports) await reports.deliver()
    for (const join of found.overdue.sort(byLateness)) {
      const sets = join.sets.map(heldSet)
      const isNever = isNeverSealed(sets) && join.sealBy <= found.now
      const why = isNever ? [neverSealedReason, neverSealedError] : [lateReason, lateError(outstandingIn(sets))]
      await connection.call(failJoin, [join.qid, join.id, join.until, ...why])
      await reports.deliver()
    }
    const isMoreLeft = await this.#cancelRest()
    const failed = (await connection.call(takeFailed, [stepLimit])) as FailedJoin[]
    return { failed, more: found.more || isMoreLeft || failed.length === stepLimit }
  }

  /**
   * Cancels members of dead joins that ask for it, a bounded number. Returns whether more may be left. Those that somebody else has
   * locked are left to a later sweep.
   */
  async #cancelRest(): Promise<boolean> {
    const { connection, queues } = this.#parts
    for (let most = stepLimit; most > 0; ) {
      const rest = (await connection.call(restOfDead, [most, ...this.#rest])) as FoundRest | null
      if (rest === null) {
        // The end of a member may have been that of a join that comes before.
        const isAgain = this.#hasCancelled
        this.#rest = firstPlace
        this.#hasCancelled = false
        if (isAgain) continue
        return false
      }
      const [name, ids, jid, sid, number, isLeft] = rest
      const left = ids.length === 0 ? 0 : await this.#cancel((await queues.named([name]))[0]!, ids)
      if (left < ids.length) this.#hasCancelled = true
      this.#rest = [jid, sid, number, isLeft || left > 0]
      most -= ids.length === 0 ? most : ids.length
    }
    return true
  }

  /** Cancels members that wait, and asks those that run to end. Returns how many of them it has left. */
  async #cancel(queue: NumberedQueue, ids: readonly string[]): Promise<number> {
    const { connection, recovery } = this.#parts
    const [, rows] = (await connection.call(lookAtJobs, [queue.qid, ids])) as [now: number, rows: EndingRow[]]
    const running = rows.filter(({ fence }) => fence > 0)
    const values = [queue.qid, running.map(({ id }) => id), running.map(({ fence }) => fence), joinDeadReason]
    const asked = (await connection.call(askToCancel, values)) as number
    const resting = new Map(rows.filter(({ fence }) => fence === 0).map((row) => [row.id, row]))
    const ends = ids.flatMap((id) => resting.get(id) ?? []).map((row) => endedBy(row, 'cancelled', joinDeadReason))
    const { done } = await recovery.end(queue, ends)
    return running.length - asked + done.filter((is) => !is).length
  }

  async #setsOf(
    join: JobKey,
  ): Promise<
    { readonly dueAt: number | null; readonly sets: HeldSet[]; readonly oldest: (number | null)[] } | undefined
  > {
    const found = await this.#parts.connection.call(lookAtJoin, [await this.#qid(join), join.id])
    if (found === null) return undefined
    const [dueAt, sets] = found as [number | null, LookedSet[]]
    return { dueAt, sets: sets.map(heldSet), oldest: sets.map(({ oldest }) => oldest) }
  }

  async #qid({ queue }: JobKey): Promise<number> {
    return (await this.#parts.queues.named([queue]))[0]!.qid
  }
}

function memberEnd([number, fate, codec, error, payload]: EndColumns): MemberEnd {
  return present({
    ...{ number, fate: fates[fate]!, codec, error: error === null ? null : textFrom(error) },
    payload: payload === null ? null : payloadFrom(payload),
  }) as unknown as MemberEnd
}
