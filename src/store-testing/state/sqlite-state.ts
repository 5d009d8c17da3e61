/** The canonical state of a SQLite store, read from its tables. */

import type { Payload } from '../../core/values/codec.js'
import { resultDropped } from '../../stores/contract/job-records.js'
import type { JobRow } from '../../stores/rows/job-row.js'
import { stateNames } from '../../stores/rows/job-row.js'
import { type PayloadRow, scoredPayload } from '../../stores/rows/payload-row.js'
import { leadOf, morgueOf, share, suspectLeadOf } from '../../stores/rows/queue-row.js'
import { fromStored, valueFromStored } from '../../stores/rows/stored-text.js'
import type { ThrottleRow } from '../../stores/rows/throttle-row.js'
import { callMemoryCount, callMemoryMs } from '../../stores/rules/bounds.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import type { Database } from '../../stores/sqlite/file/sqlite-driver.js'
import { type PayloadSetKey, setOf, successorSet } from '../../stores/sqlite/rows/sqlite-payloads.js'
import type { QueueRow } from '../../stores/sqlite/rows/sqlite-queue.js'
import { checkRows } from '../../stores/sqlite/sqlite-fsck.js'
import {
  byId,
  type CanonicalEntry,
  type CanonicalJob,
  type CanonicalMemory,
  type CanonicalPayload,
  type CanonicalQueue,
  type CanonicalRemains,
  type CanonicalState,
  canonicalEntry,
  canonicalLead,
  canonicalPayload,
  inMs,
  runningOf,
} from './canonical-state.js'
import { canonicalLanes, canonicalThrottle, type JobColumns } from './sqlite-limits-state.js'

export function sqliteState(db: Database, now: number): CanonicalState {
  db.exec('BEGIN')
  try {
    const breaches = checkRows(db).filter(({ level }) => level !== 'ok')
    if (breaches.length > 0) throw new Error(`the store is not sound: ${JSON.stringify(breaches)}`)
    const queues = (db.prepare('SELECT * FROM queue').all() as QueueRow[]).map((queue) =>
      canonicalQueue(db, queue, now),
    )
    const throttles = (db.prepare('SELECT * FROM throttle').all() as unknown as ThrottleRow[]).map((row) =>
      canonicalThrottle(db, row, now),
    )
    return {
      now,
      queues: queues.sort((a, b) => compareBytes(a.name, b.name) || a.shard! - b.shard!),
      throttles: throttles.sort((a, b) => compareBytes(a.scope, b.scope)),
    }
  } finally {
    db.exec('COMMIT')
  }
}

function canonicalQueue(db: Database, queue: QueueRow, now: number): CanonicalQueue {
  const isOrdered = queue.kind === 'ordered'
  // The live job of an id before the dead one.
  const rows = db
    .prepare('SELECT * FROM job WHERE qid IN (?, ?) ORDER BY qid DESC')
    .all(queue.qid, morgueOf(queue)) as JobColumns[]
  const memories = db
    .prepare('SELECT * FROM remembered WHERE qid = ? AND until > ?')
    .all(queue.qid, now) as JobColumns[]
  const isHidden = (row: JobColumns) =>
    stateOf(row) === 'completed'
      ? row['expires_at'] !== null && Number(row['expires_at']) <= now
      : stateOf(row) === 'dead' && queue.dead_age_ms !== null && Number(row['finished_at']) + queue.dead_age_ms <= now
  const hiddenMemories = rows
    .filter((row) => isHidden(row) && stateOf(row) === 'completed')
    .map(memoryOfResult)
    .filter((memory) => memory.until > now)
  const bound = (whole: number | null) => (whole === null ? null : share(queue, whole))
  return {
    name: queue.name,
    shard: isOrdered ? queue.shard : null,
    kind: queue.kind,
    order: queue.ord,
    exclusive: queue.exclusive,
    merge: queue.merge,
    maxPending: bound(queue.max_pending),
    maxCrashes: queue.crash_limit,
    resultsCount: bound(queue.results_limit),
    deadAgeMs: queue.dead_age_ms,
    deadCount: bound(queue.dead_count),
    maxRunning: runningOf(queue.max_running, queue.max_per_group),
    throttle: queue.throttle,
    heldInMs: inMs(queue.held_until, now),
    shutInMs: inMs(queue.shut_until, now),
    // It is no server, which could restart.
    sparesInMs: null,
    lanes: canonicalLanes(db, queue, now),
    paused: queue.paused === 1,
    draining: queue.draining === 1,
    processed: queue.processed,
    failed: queue.failed,
    crashed: queue.crashed,
    expired: queue.expired,
    lead: canonicalLead(leadOf(queue), now),
    suspectLead: canonicalLead(suspectLeadOf(queue), now),
    lastStamp: queue.last_stamp,
    lastFence: queue.last_fence,
    lastScore: queue.last_score,
    jobs: byId(
      rows
        .filter((row) => !isHidden(row))
        .map((row) => (isOrdered ? orderedJob(db, row, now) : canonicalJob(db, row, now))),
    ),
    remembered: byId([...memories.map(canonicalMemory), ...hiddenMemories]),
    calls: byId(calls(db, queue.qid, now)),
  }
}

function canonicalJob(db: Database, row: JobColumns, now: number): CanonicalJob {
  return {
    id: String(row['id']),
    task: String(row['task']),
    state: stateOf(row),
    ...canonicalFacts(row),
    payloads: null,
    successor: null,
    priority: 0 - Number(row['rank']),
    stamp: Number(row['stamp']),
    attempt: Number(row['attempt']),
    crashes: Number(row['crashes']),
    suspect: row['suspect'] === 1,
    rememberMs: Number(row['remember_ms']),
    createdAt: Number(row['created_at']),
    updatedAt: Number(row['updated_at']),
    finishedAt: row['finished_at'] as number | null,
    expiresAt: row['expires_at'] as number | null,
    ...canonicalNotes(db, row),
    result:
      stateOf(row) === 'completed'
        ? { payload: payloadIn(row, 'result'), codec: row['result_codec'] as string | null }
        : null,
    reason: valueFromStored(row['reason'] as string | null),
    ...canonicalSteps(db, row),
    claim:
      stateOf(row) === 'running'
        ? {
            fence: Number(row['fence']),
            leaseMs: Number(row['lease_until']) - now,
            alone: row['alone'] === 1,
            cancelRequested: row['cancelling'] === 1,
          }
        : null,
  }
}

function payloadIn(row: JobColumns, column: string): CanonicalPayload | null {
  return row[column] === null ? null : canonicalPayload(valueFromStored(row[column] as Payload))
}

/** The part of a job's row that may remain. */
function canonicalFacts(row: JobColumns) {
  const text = (column: string) => valueFromStored(row[column] as string | null)
  const number = (column: string) => row[column] as number | null
  return {
    payload: payloadIn(row, 'payload')!,
    codec: text('codec'),
    meta: payloadIn(row, 'meta'),
    group: text('grp'),
    startedAt: number('started_at'),
    worker: text('worker'),
    host: text('host'),
    boot: text('boot'),
    pidns: text('pidns'),
    pid: number('pid'),
    ticks: number('ticks'),
    progress: row['progress'] === null ? null : JSON.parse(String(row['progress'])),
    error: text('error'),
  }
}

function canonicalRemains(row: JobColumns): CanonicalRemains {
  const checkpoint = payloadIn(row, 'checkpoint')
  return {
    ...canonicalFacts(row),
    checkpoint: checkpoint === null ? null : { payload: checkpoint, codec: row['checkpoint_codec'] as string | null },
    log: valueFromStored((row['log'] ?? '') as string),
    fields: row['fields'] === null ? null : JSON.parse(String(row['fields'])),
  }
}

function canonicalNotes(db: Database, { rid }: JobColumns): Pick<CanonicalJob, 'checkpoint' | 'log' | 'fields'> {
  const checkpoint = db.prepare('SELECT codec, payload FROM checkpoint WHERE rid = ?').get(rid!) as
    | { codec: string | null; payload: Payload }
    | undefined
  const log = db.prepare('SELECT text FROM log WHERE rid = ?').get(rid!) as { text: string } | undefined
  const fields = db.prepare('SELECT json FROM fields WHERE rid = ?').get(rid!) as { json: string } | undefined
  return {
    checkpoint:
      checkpoint === undefined
        ? null
        : { payload: canonicalPayload(valueFromStored(checkpoint.payload)), codec: checkpoint.codec },
    log: log === undefined ? '' : valueFromStored(log.text),
    fields: fields === undefined ? null : JSON.parse(fields.json),
  }
}

/** The values of the column `step.kind`. */
const stepKinds = ['step', 'sleep', 'signal', 'timeout'] as const

function canonicalSteps(db: Database, { rid }: JobColumns): Pick<CanonicalJob, 'steps' | 'awaits'> {
  const text = 'SELECT kind, name, at, until, codec, payload FROM step WHERE rid = ? ORDER BY n'
  const wait = db.prepare('SELECT signal, until FROM signal_wait WHERE rid = ?').get(rid!) as JobColumns | undefined
  return {
    steps: (db.prepare(text).all(rid!) as JobColumns[]).map((step) => ({
      name: fromStored(String(step['name'])),
      kind: stepKinds[Number(step['kind'])]!,
      at: Number(step['at']),
      until: step['until'] as number | null,
      payload: payloadIn(step, 'payload'),
      codec: step['codec'] as string | null,
    })),
    awaits:
      wait === undefined ? null : { signal: fromStored(String(wait['signal'])), until: wait['until'] as number | null },
  }
}

function orderedJob(db: Database, row: JobColumns, now: number): CanonicalJob {
  const job = row as unknown as JobRow
  const { successor_stamp: stamp, successor_created_at: createdAt, successor_ready: isReady } = job
  return {
    ...canonicalJob(db, row, now),
    priority: 0,
    payloads: entriesOf(db, setOf(job)),
    successor:
      stamp === null
        ? null
        : { stamp, createdAt: createdAt!, isReady: isReady === 1, payloads: entriesOf(db, successorSet(job)) },
  }
}

function entriesOf(db: Database, { rid, part }: PayloadSetKey): CanonicalEntry[] {
  const rows = db.prepare('SELECT * FROM payload WHERE rid = ? AND part = ? ORDER BY score, seq').all(rid, part)
  return (rows as PayloadRow[]).map((row) => canonicalEntry(scoredPayload(row)))
}

function stateOf(row: JobColumns): (typeof stateNames)[number] {
  return stateNames[Number(row['state'])]!
}

function canonicalMemory(row: JobColumns): CanonicalMemory {
  return {
    id: String(row['id']),
    task: String(row['task']),
    state: row['state'] as CanonicalMemory['state'],
    priority: 0 - Number(row['rank']),
    attempt: Number(row['attempt']),
    crashes: Number(row['crashes']),
    createdAt: Number(row['created_at']),
    runAt: Math.floor(Number(row['stamp']) / 1_000),
    finishedAt: Number(row['finished_at']),
    until: Number(row['until']),
    reason: valueFromStored(row['reason'] as string | null),
    remains: row['payload'] === null ? null : canonicalRemains(row),
  }
}

/** For a completed job whose result has expired: the part that will be remembered once it is trimmed. */
function memoryOfResult(row: JobColumns): CanonicalMemory {
  const finishedAt = Number(row['finished_at'])
  return canonicalMemory({
    ...row,
    state: 'completed',
    until: finishedAt + Number(row['remember_ms']),
    reason: row['result'] === null ? null : resultDropped,
    payload: null,
  })
}

/** One row holds the calls of one transaction; a later call of the same id replaces the earlier one. */
function calls(db: Database, qid: number, now: number): { id: string; at: number }[] {
  const found = new Map<string, number>()
  for (const row of db.prepare('SELECT calls FROM call WHERE qid = ? ORDER BY cid').all(qid) as { calls: string }[]) {
    for (const [id, at] of JSON.parse(row.calls) as [string, number, string][]) {
      found.delete(id)
      found.set(id, at)
    }
  }
  const remembered = [...found].slice(-callMemoryCount)
  return remembered.map(([id, at]) => ({ id, at })).filter(({ at }) => at + callMemoryMs > now)
}
