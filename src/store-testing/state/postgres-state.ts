/**
 * The canonical state of a Postgres store, read from its tables.
 */

import type { Exclusive, Merge } from '../../core/queue/queue.js'
import { resultDropped } from '../../stores/contract/job-records.js'
import type { QueueKind } from '../../stores/contract/queue-settings.js'
import { type StepColumns, storedStep } from '../../stores/postgres/joins/postgres-job-steps.js'
import { payloadSets } from '../../stores/postgres/ordered/payload-sets.js'
import { endedStates, jobFlags } from '../../stores/postgres/schema/postgres-tables.js'
import { logFrom, payloadFrom, textFrom } from '../../stores/postgres/schema/stored-payload.js'
import { callMemoryCount, callMemoryMs } from '../../stores/rules/bounds.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import { boundsOf, limitsFrom } from '../../stores/rules/limit-rules.js'
import { dueAt } from '../../stores/rules/sequence.js'
import type { Lead } from '../../stores/rules/wake-lead.js'
import {
  byId,
  type CanonicalCall,
  type CanonicalEntry,
  type CanonicalJob,
  type CanonicalMemory,
  type CanonicalPayload,
  type CanonicalQueue,
  type CanonicalState,
  canonicalLead,
  canonicalPayload,
  canonicalStep,
  inMs,
} from './canonical-state.js'
import { type AskPostgres, type PgRow, postgresLanes, postgresThrottles } from './postgres-limits-state.js'

export async function postgresState(ask: AskPostgres): Promise<CanonicalState> {
  const [clock] = await ask('SELECT @.us() / 1000 AS now, @.run() AS run')
  const now = Number(clock!['now'])
  const { throttles, shut } = await postgresThrottles(ask, now)
  const rows = await rowsOf(ask, now)
  const queues = (await ask('SELECT * FROM @.queue LEFT JOIN @.queue_state USING (qid) ORDER BY shard')).map((queue) =>
    canonicalQueue(queue, rows, now, shut),
  )
  return { now, queues: queues.sort((a, b) => compareBytes(a.name, b.name)), throttles }
}

/** What all queues have, so that a look takes as many statements for ten of them as for one. */
interface QueueRows {
  readonly jobs: PgRow[]
  readonly ended: PgRow[]
  readonly counts: PgRow[]
  readonly sets: PgRow[]
  readonly lanes: PgRow[]
  readonly calls: PgRow[]
}

/** The entries of the job in this row. */
function stepsOf(row: string): string {
  return `(SELECT json_agg(json_build_array(s.kind, s.name, s.at, s.until, s.codec, s.payload) ORDER BY s.n)
       FROM @.step s WHERE s.id = ${row}.id AND s.qid = ${row}.qid) AS steps`
}

async function rowsOf(ask: AskPostgres, now: number): Promise<QueueRows> {
  const jobs = await ask(
    `SELECT j.*, coalesce(o.worker, b.worker) AS worker, b.alone, coalesce(o.lease_ms, b.lease_ms) AS until_lease, o.started_ms, o.host, o.boot, o.pidns, o.pid, o.ticks,
       o.progress, c.payload AS checkpoint, c.codec AS checkpoint_codec, c.log, c.fields, CASE WHEN j.flags & 8 > 0 THEN c.reason END AS reason, w.signal, w.until AS waits_until, ${stepsOf('j')}
     FROM @.job j LEFT JOIN @.signal_wait w ON w.id = j.id AND w.qid = j.qid LEFT JOIN @.bunch b ON b.fence = j.fence LEFT JOIN @.beat o ON o.id = j.id AND o.qid = j.qid
     LEFT JOIN @.checkpoint c ON c.id = j.id AND c.qid = j.qid`,
  )
  const ended = await ask(
    `SELECT e.*, c.payload AS checkpoint, c.codec AS checkpoint_codec, c.log, c.fields, NULL AS signal, ${stepsOf('e')} FROM @.ended e
     LEFT JOIN @.checkpoint c ON c.id = e.id AND c.qid = e.qid AND e.head IS NULL`,
  )
  const counts = await ask(
    'SELECT qid, sum(processed) AS processed, sum(failed) AS failed, sum(crashed) AS crashed, sum(expired) AS expired FROM @.tally GROUP BY qid',
  )
  const sets = await ask(
    `SELECT * FROM (${payloadSets('(SELECT p.*, j.hand, coalesce(p.seq = ANY (j.hand), false) AS taken FROM @.payload p LEFT JOIN @.job j USING (head)) p', 'false', 'p.head, p.taken')}) s ORDER BY score, seq`,
  )
  const lanes = await ask('SELECT * FROM @.lane ORDER BY grp')
  // Rows that are too old may still be there: upkeep comes by itself.
  const calls = await ask('SELECT qid, at_ms, ids FROM @.call WHERE at_ms > $1 ORDER BY n', [now - callMemoryMs])
  return { jobs, ended, counts, sets, lanes, calls }
}

function canonicalQueue(queue: PgRow, rows: QueueRows, now: number, shut: ReadonlyMap<string, number>): CanonicalQueue {
  const own = (all: readonly PgRow[]) => all.filter(({ qid }) => qid === queue['qid'])
  const [jobs, ended, [counts]] = [own(rows.jobs), own(rows.ended), own(rows.counts)]
  const { sets } = rows
  const isOrdered = queue['kind'] === 'ordered'
  const share = (bound: unknown) => (bound === null ? null : Math.ceil(Number(bound) / Number(queue['shards'])))
  const deadAge = numberOr(queue['dead_age_ms'])
  const isKept = (row: PgRow) =>
    row['state'] === endedStates.kept
      ? row['until_ms'] === null || Number(row['until_ms']) > now
      : row['state'] === endedStates.dead && (deadAge === null || Number(row['finished_ms']) + deadAge > now)
  return {
    name: String(queue['name']),
    shard: isOrdered ? Number(queue['shard']) : null,
    kind: queue['kind'] as QueueKind,
    order: queue['ord'] as 'fifo' | 'lifo',
    exclusive: queue['exclusive'] as Exclusive,
    merge: queue['merge'] as Merge,
    maxPending: share(queue['max_pending']),
    maxCrashes: Number(queue['crash_limit']),
    resultsCount: share(queue['results_limit']),
    deadAgeMs: deadAge,
    deadCount: share(queue['dead_count']),
    maxRunning: boundsOf(limitsFrom(String(queue['limits']))).maxRunning ?? null,
    throttle: textOr(queue['throttle']),
    heldInMs: inMs(numberOr(queue['held_until']), now),
    shutInMs: inMs(shut.get(String(queue['qid'])) ?? null, now),
    sparesInMs: inMs(Number(queue['spares_until']), now),
    lanes: postgresLanes(own(rows.lanes), now),
    paused: queue['paused'] === true,
    draining: queue['draining'] === true,
    processed: Number(counts?.['processed'] ?? 0),
    failed: Number(counts?.['failed'] ?? 0),
    crashed: Number(counts?.['crashed'] ?? 0),
    expired: Number(counts?.['expired'] ?? 0),
    lead: canonicalLead(leadOf(queue['lead_worker'], queue['lead_wake_at']), now),
    suspectLead: canonicalLead(leadOf(queue['suspect_lead_worker'], queue['suspect_lead_wake_at']), now),
    lastStamp: null,
    lastFence: null,
    lastScore: null,
    jobs: byId([
      ...jobs.map((row) => (isOrdered ? orderedJob(row, sets, now) : liveJob(row, now))),
      ...ended
        .filter(isKept)
        .map((row) => (isOrdered ? { ...endedJob(row), payloads: setOf(sets, row) } : endedJob(row))),
    ]),
    remembered: byId(
      ended
        .filter((row) => !isKept(row))
        .map(memoryOf)
        .filter(({ until }) => until > now),
    ),
    calls: calls(own(rows.calls)),
  }
}

function leadOf(worker: unknown, at: unknown): Lead | undefined {
  return worker === null ? undefined : { worker: String(worker), wakeAt: Number(at) }
}

function liveJob(row: PgRow, now: number): CanonicalJob {
  const isRunning = Number(row['fence']) > 0
  const isReady = Math.abs(Number(row['stamp'])) <= now * 1_000
  return {
    ...facts(row),
    state: isRunning ? 'running' : row['pool'] === -1 ? 'waiting' : isReady ? 'ready' : 'scheduled',
    suspect: row['pool'] === 1,
    updatedAt: Number(row['updated_ms']),
    finishedAt: null,
    expiresAt: numberOr(row['expires_ms']),
    ...reported(row),
    result: null,
    reason: textOr(row['reason']),
    claim: isRunning
      ? {
          fence: Number(row['fence']),
          leaseMs: Number(row['until_lease']) - now,
          alone: row['alone'] === true,
          cancelRequested: (Number(row['flags']) & jobFlags.cancelling) !== 0,
        }
      : null,
  }
}

function orderedJob(row: PgRow, sets: readonly PgRow[], now: number): CanonicalJob {
  const job = liveJob(row, now)
  if (job.claim === null) return { ...job, payloads: setOf(sets, row) }
  const waiting = sets.filter(({ head, taken }) => head === row['head'] && taken === false)
  // Also one that another has replaced: it is due when that was.
  const [first] = [...waiting].sort((a, b) => Number(a['seq']) - Number(b['seq']))
  const stamp = Number(row['next_stamp'] ?? first?.['due'])
  const createdAt = Number(row['next_created_ms'] ?? first?.['created_ms'])
  const isReady = stamp <= now * 1_000
  const successor = { stamp, createdAt, isReady, payloads: waiting.filter(stays).map(entryOf) }
  return { ...job, payloads: setOf(sets, row, true), successor: first === undefined ? null : successor }
}

function setOf(sets: readonly PgRow[], { head }: PgRow, isTaken = false): CanonicalEntry[] {
  return sets.filter((row) => row['head'] === head && row['taken'] === isTaken && stays(row)).map(entryOf)
}

/** Whether no other payload replaces it. */
function stays(row: PgRow): boolean {
  return row['stays'] === true
}

function entryOf(row: PgRow): CanonicalEntry {
  const { score, payload, codec, meta } = row
  return {
    score: Number(score),
    payload: payloadOr(payload)!,
    codec: codec as string | null,
    meta: payloadOr(meta),
  }
}

function endedJob(row: PgRow): CanonicalJob {
  const isDead = row['state'] === endedStates.dead
  return {
    ...facts(row),
    ...reported(row),
    state: isDead ? 'dead' : 'completed',
    suspect: false,
    updatedAt: Number(row['finished_ms']),
    finishedAt: Number(row['finished_ms']),
    expiresAt: isDead ? null : numberOr(row['until_ms']),
    result: isDead ? null : { payload: payloadOr(row['result']), codec: textOr(row['result_codec']) },
    reason: textOr(row['reason']),
    claim: null,
  }
}

function reported(row: PgRow) {
  return {
    startedAt: numberOr(row['started_ms']),
    worker: textOr(row['worker']),
    host: textOr(row['host']),
    boot: textOr(row['boot']),
    pidns: textOr(row['pidns']),
    pid: numberOr(row['pid']),
    ticks: numberOr(row['ticks']),
    progress: typeof row['progress'] === 'string' ? JSON.parse(textFrom(row['progress'])) : null,
  }
}

/** The remains of a job that was cancelled after it had begun. */
function remainsOf(row: PgRow): CanonicalMemory['remains'] {
  const { payload, codec, meta, group, checkpoint, log, fields, error } = facts(row)
  return { ...reported(row), payload, codec, meta, group, checkpoint, log, fields, error }
}

function facts(row: PgRow) {
  return {
    id: String(row['id']),
    task: String(row['task']),
    // A dead id of an ordered queue has payloads of its own, like a live one.
    payload: payloadOr(row['payload']) ?? 'text:',
    codec: textOr(row['codec']),
    meta: payloadOr(row['meta']),
    payloads: null,
    successor: null,
    priority: 0 - Number(row['rank']),
    group: textOr(row['grp']),
    stamp: Math.abs(Number(row['stamp'])),
    attempt: Number(row['attempt']),
    crashes: Number(row['crashes']),
    rememberMs: Number(row['remember_ms']),
    createdAt: Number(row['created_ms']),
    checkpoint:
      typeof row['checkpoint'] !== 'string'
        ? null
        : { payload: payloadOr(row['checkpoint']), codec: textOr(row['checkpoint_codec']) },
    log: typeof row['log'] === 'string' ? logFrom(row['log']) : '',
    fields: typeof row['fields'] === 'string' ? JSON.parse(textFrom(row['fields'])) : null,
    error: textOr(row['error']),
    steps: ((row['steps'] ?? []) as StepColumns[]).map((columns) => canonicalStep(storedStep(columns))),
    awaits: row['signal'] === null ? null : { signal: textOr(row['signal'])!, until: numberOr(row['waits_until']) },
  }
}

/** Of a memory, or of a kept result whose time is over. */
function memoryOf(row: PgRow): CanonicalMemory {
  const isResult = Number(row['state']) <= endedStates.dead
  return {
    id: String(row['id']),
    task: String(row['task']),
    state: row['state'] === endedStates.rememberedCancelled ? 'cancelled' : 'completed',
    priority: 0 - Number(row['rank']),
    attempt: Number(row['attempt']),
    crashes: Number(row['crashes']),
    createdAt: Number(row['created_ms']),
    runAt: dueAt(Math.abs(Number(row['stamp']))),
    finishedAt: Number(row['finished_ms']),
    until:
      row['state'] === endedStates.dead
        ? 0
        : isResult
          ? Number(row['finished_ms']) + Number(row['remember_ms'])
          : Number(row['until_ms']),
    reason: isResult && row['result'] !== null ? resultDropped : textOr(row['reason']),
    remains: row['payload'] === null || isResult ? null : remainsOf(row),
  }
}

function calls(rows: readonly PgRow[]): CanonicalCall[] {
  const found = new Map<string, number>()
  for (const row of rows)
    for (const id of String(row['ids']).split('\x1f')) if (!found.has(id)) found.set(id, Number(row['at_ms']))
  return byId([...found].slice(-callMemoryCount).map(([id, at]) => ({ id, at })))
}

function numberOr(value: unknown): number | null {
  return value === null ? null : Number(value)
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' ? textFrom(value) : null
}

function payloadOr(value: unknown): CanonicalPayload | null {
  return typeof value === 'string' ? canonicalPayload(payloadFrom(value)) : null
}
