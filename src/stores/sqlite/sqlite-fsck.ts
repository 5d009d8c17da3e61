/**
 * The fsck of a SQLite store. The check says whether the file is intact and its rows fit together, and only reads. The repair
 * mends what can be mended without losing a job or running one twice.
 */

import { hasCode, UnknownQueueError } from '../../core/errors.js'
import { messageOf } from '../../core/messages/describe.js'
import type { FsckFinding, FsckRepair } from '../contract/store-health.js'
import { noteBits, stateNames, waiting } from '../rows/job-row.js'
import { morgueOf } from '../rows/queue-row.js'
import { turnStep } from '../rules/fair-share.js'
import { error, foundIn, inPlace, listed, ok, warning } from '../rules/findings.js'
import type { Database } from './file/sqlite-driver.js'
import type { QueueRow } from './rows/sqlite-queue.js'
import type { SqliteTransaction } from './rows/sqlite-transaction.js'
import { joinBreaches, joinFaults, joinStrays, repairJoins } from './sqlite-join-fsck.js'

const mostFaults = 10

/**
 * Each: its level; what is wrong, before the ids; the harm, which names `--repair` if that mends it; and the SQL that
 * finds rows with `id`, of the queue `?1` and its morgue `?2`.
 */
const breaches: readonly (readonly ['error' | 'warning', wrong: string, harm: string, sql: string])[] = [
  [
    'error',
    'run without a worker, and have a lease',
    'Nobody works on them, and nobody takes them back before it ends. Run fsck --repair.',
    'SELECT id FROM job WHERE qid = ?1 AND state = 2 AND worker IS NULL AND lease_until > 0',
  ],
  [
    'error',
    'are ready, but in the wrong pool',
    'They may never run. Run fsck --repair.',
    'SELECT id FROM job WHERE qid = ?1 AND state = 1 AND pool <> iif(suspect = 1, 1, iif(grp IS NULL, 0, 2))',
  ],
  [
    'error',
    'run, and their fences are higher than the last that was given',
    'It would be given again: a lost lease could settle. Run fsck --repair.',
    'SELECT id FROM job WHERE qid = ?1 AND state = 2 AND fence > (SELECT last_fence FROM queue WHERE qid = ?1)',
  ],
  [
    'error',
    'have an unknown state',
    'They never run. Delete them, and enqueue them again.',
    'SELECT id FROM job WHERE qid IN (?1, ?2) AND state NOT BETWEEN 0 AND 5',
  ],
  [
    'error',
    'have no payloads',
    'A worker that claims them finds nothing to do. Delete them, and enqueue them again.',
    `SELECT id FROM job WHERE qid IN (?1, ?2) AND (SELECT kind FROM queue WHERE qid = ?1) = 'ordered' AND state <> 3
      AND NOT EXISTS (SELECT 1 FROM payload WHERE payload.rid = job.rid AND payload.part = job.part)`,
  ],
  [
    'error',
    'have payloads for a successor that does not exist',
    'The next one gets them. Delete the jobs, and enqueue them again.',
    `SELECT id FROM job WHERE qid IN (?1, ?2) AND EXISTS (SELECT 1 FROM payload
      WHERE payload.rid = job.rid AND payload.part <> iif(successor_stamp IS NULL, job.part, 1 - job.part) AND payload.part <> job.part)`,
  ],
  [
    'error',
    'have a payload twice in one set',
    'It is handed over twice.',
    'SELECT id FROM job JOIN payload USING (rid) WHERE qid IN (?1, ?2) GROUP BY rid, payload.part, digest HAVING count(*) > 1',
  ],
  [
    'error',
    'groups have lanes, or jobs, in a queue that is marked as having no lanes',
    'Claims do not look for them. Restore a backup.',
    `SELECT grp AS id FROM lane WHERE qid = ?1 AND (SELECT laned FROM queue WHERE qid = ?1) = 0 UNION
      SELECT grp FROM job WHERE qid IN (?1, ?2) AND grp IS NOT NULL AND (SELECT laned FROM queue WHERE qid = ?1) = 0`,
  ],
  [
    'error',
    'groups have a turn that was never given, or are open and shut or paused',
    'Their jobs may start too early, or out of turn.',
    `SELECT grp AS id FROM lane WHERE qid = ?1 AND (turn IS NOT NULL) + (shut_until IS NOT NULL) + paused > 1 UNION
      SELECT grp FROM lane WHERE qid = ?1 AND turn >= (SELECT last_lane_turn + ${turnStep} FROM queue WHERE qid = ?1)`,
  ],
  [
    'warning',
    'lanes of groups are left over',
    'Nothing but room is lost.',
    `SELECT grp AS id FROM lane WHERE qid = ?1 AND ready + running + paused = 0
      AND turn IS NULL AND shut_until IS NULL AND held_until IS NULL`,
  ],
  [
    'error',
    'its throttle is not stored',
    'Claims on it fail. Restore a backup.',
    'SELECT throttle AS id FROM queue WHERE qid = ?1 AND throttle IS NOT NULL AND throttle NOT IN (SELECT scope FROM throttle)',
  ],
  [
    'error',
    'wait for a signal, but the store does not say which',
    'They wait for ever. Delete them, and enqueue them again.',
    `SELECT id FROM job WHERE qid = ?1 AND noted & ${noteBits.awaiting}
      AND (state <> ${waiting} OR rid NOT IN (SELECT rid FROM signal_wait))`,
  ],
  [
    'error',
    'have steps or signals, but are marked as having none',
    'Their handlers do the steps again. Restore a backup.',
    `SELECT DISTINCT id FROM job JOIN step USING (rid) WHERE qid = ?1 AND NOT noted & ${noteBits.steps}`,
  ],
  ...joinBreaches,
]

/** What jobs have outside their rows: its name, the bit of those that have any, and its tables. */
const noteTables = [
  ['checkpoints, logs and fields', noteBits.notes, ['checkpoint', 'log', 'fields']],
  ['steps and signals', noteBits.steps, ['step']],
  ['waits for signals', noteBits.awaiting, ['signal_wait']],
] as const

/** The rows of each breach, by its place in the list. */
const breachRows = breaches.map(([, , , sql], i) => `SELECT ${i} AS breach, id FROM (${sql})`).join(' UNION ALL ')

/** Throws `UnknownQueueError` for a queue that is not stored. */
export function checkSqlite(db: Database, queue?: string): FsckFinding[] {
  // One state of the file for all queries.
  db.exec('BEGIN')
  try {
    return [...integrity(db), ...checkRows(db, queue)]
  } finally {
    db.exec('COMMIT')
  }
}

function integrity(db: Database): FsckFinding[] {
  try {
    const rows = db.prepare(`PRAGMA integrity_check(${mostFaults})`).all() as { integrity_check: string }[]
    const faults = rows.map((row) => row.integrity_check)
    if (faults.length === 1 && faults[0] === 'ok') return [ok('file', 'whole')]
    return [damaged(faults.join('; '))]
  } catch (failure) {
    return [damaged(messageOf(failure))]
  }
}

function damaged(how: string): FsckFinding {
  return error(
    'file',
    `it is damaged: ${how}. Stop all processes, keep a copy, and restore a backup, or save what can be read with sqlite3's .recover.`,
  )
}

/** Whether the rows fit together, within the transaction of the caller. */
export function checkRows(db: Database, name?: string): FsckFinding[] {
  try {
    const rows = db.prepare('SELECT * FROM queue ORDER BY name, shard').all() as unknown as QueueRow[]
    const names = [...new Set(rows.map((row) => row.name))]
    if (name !== undefined && !names.includes(name)) throw new UnknownQueueError(name, names)
    const findings = names
      .filter((one) => name === undefined || one === name)
      .flatMap((one) =>
        queueFindings(
          db,
          rows.filter((row) => row.name === one),
        ),
      )
    if (name === undefined) findings.push(...strays(db))
    return foundIn(findings)
  } catch (failure) {
    if (hasCode(failure, 'queue-unknown')) throw failure
    return [error('rows', `they cannot be read (${messageOf(failure)}).`)]
  }
}

function queueFindings(db: Database, rows: readonly QueueRow[]): FsckFinding[] {
  const live = rows.filter(({ shard }) => shard >= 0)
  // While it is resharded there are former shards too, which know another number.
  const { name, shards } = live[0] ?? rows[0]!
  const found = rows.flatMap((row) => rowFindingsOf(db, row, shards === 1 ? `queue ${name}` : whereOf(row)))
  if (live.length !== shards)
    found.push(
      error(`queue ${name}`, `it says that it has ${shards} shards, and has ${live.length}. Restore a backup.`),
    )
  if (found.length > 0) return found
  const states = stateNames.map((name) => rows.reduce((sum, row) => sum + row[name], 0))
  const jobs = states.reduce((sum, count) => sum + count, 0)
  return [inPlace(`queue ${name}`, jobs)]
}

function whereOf({ name, shard }: QueueRow): string {
  return `queue ${name}, ${shard < 0 ? 'former shard' : 'shard'} ${shard < 0 ? -1 - shard : shard}`
}

function rowFindingsOf(db: Database, row: QueueRow, what: string): FsckFinding[] {
  const counts = countsOf(db, row)
  const wrong = counted.filter((name) => counts[name] !== row[name])
  const findings: FsckFinding[] = []
  if (wrong.length > 0) {
    const told = wrong.map((name) => `${name} ${row[name]} instead of ${counts[name]}`).join(', ')
    findings.push(
      error(what, `it counts ${told}. Depths are wrong, and jobs may be left where they are. Run fsck --repair.`),
    )
  }
  const lanes = wrongLanes(db, row)
  if (lanes.length > 0)
    findings.push(
      error(
        what,
        `lanes of groups count wrongly${listed(lanes.map(({ grp }) => grp))}. Their jobs may never run, or too many at once. Run fsck --repair.`,
      ),
    )
  const turnless = turnlessLanes(db, row)
  if (turnless.length > 0)
    findings.push(
      error(what, `groups with ready jobs have no turn${listed(turnless)}. These may never run. Run fsck --repair.`),
    )
  const rows = db.prepare(breachRows).all(row.qid, morgueOf(row)) as { breach: number; id: string }[]
  for (const [i, [level, wrong, harm]] of breaches.entries()) {
    const ids = rows.filter(({ breach }) => breach === i).map(({ id }) => id)
    if (ids.length > 0) findings.push({ level, what, text: `${wrong}${listed(ids)}. ${harm}` })
  }
  for (const { wrong, harm, ids } of joinFaults(db, row))
    if (ids.length > 0) findings.push(error(what, `${wrong}${listed(ids)}. ${harm}`))
  return findings
}

/** Groups that have ready jobs and room, but neither a turn nor a time at which they get one. */
function turnlessLanes(db: Database, { qid, max_per_group }: QueueRow): string[] {
  const rows = db
    .prepare(
      `SELECT grp FROM lane WHERE qid = ? AND ready > 0 AND running < ? AND turn IS NULL AND shut_until IS NULL AND paused = 0 AND grp <> ''`,
    )
    .all(qid, max_per_group ?? Number.MAX_SAFE_INTEGER) as { grp: string }[]
  return rows.map(({ grp }) => grp)
}

/** Rows that belong to nothing. */
function strays(db: Database): FsckFinding[] {
  const count = (sql: string) => (db.prepare(sql).get() as { n: number }).n
  const findings: FsckFinding[] = []
  const jobs = count('SELECT count(*) AS n FROM job WHERE abs(qid) NOT IN (SELECT qid FROM queue)')
  if (jobs > 0) findings.push(error('jobs', `${jobs} belong to no queue. They never run. Restore a backup.`))
  const payloads = count('SELECT count(*) AS n FROM payload WHERE rid NOT IN (SELECT rid FROM job)')
  if (payloads > 0) findings.push(warning('payloads', `${payloads} belong to no job. Nothing but room is lost.`))
  for (const [what, sql] of joinStrays) {
    const stray = count(sql)
    if (stray > 0) findings.push(warning(what, `${stray} belong to nothing. Nothing but room is lost.`))
  }
  for (const [what, bit, tables] of noteTables) {
    const text = (table: string) =>
      `SELECT count(*) AS n FROM ${table} WHERE rid NOT IN (SELECT rid FROM job WHERE noted & ${bit})`
    const notes = tables.reduce((sum, table) => sum + count(text(table)), 0)
    if (notes > 0) findings.push(warning(what, `${notes} belong to no job. A new job could get one of them.`))
  }
  return findings
}

/** The counters that follow from rows. */
const counted = [
  'scheduled',
  'waiting',
  'ready',
  'running',
  'completed',
  'dead',
  'retries',
  'suspects',
  'remembered',
  'pending',
  'grouped',
  'grouped_running',
  'open_lanes',
] as const

/** The values that the counters and lanes of a queue should have, according to its jobs. */
type Counts = Readonly<Record<(typeof counted)[number], number>>

interface LaneCount {
  readonly grp: string
  readonly ready: number
  readonly running: number
}

/** Waiting payloads: those of waiting jobs, and those of the successors of running jobs. */
const pendingOf = `
  SELECT count(*) FROM job JOIN payload USING (rid) WHERE qid = ?1 AND iif(state = 2, successor_stamp IS NOT NULL AND payload.part <> job.part, payload.part = job.part)`

/** Reads every job of the queue once. */
function countsOf(db: Database, queue: QueueRow): Counts {
  const of = (state: number) => `count(*) FILTER (WHERE state = ${state})`
  return db
    .prepare(
      `SELECT ${of(0)} AS scheduled, ${of(5)} AS waiting, ${of(1)} AS ready, ${of(2)} AS running, ${of(3)} AS completed,
         count(*) FILTER (WHERE state <= 1 AND attempt > 1) AS retries, count(*) FILTER (WHERE state = 1 AND suspect = 1) AS suspects,
         count(*) FILTER (WHERE state = 1 AND suspect = 0 AND grp IS NOT NULL) AS grouped,
         count(*) FILTER (WHERE state = 2 AND grp IS NOT NULL) AS grouped_running,
         (SELECT count(*) FROM job WHERE qid = ?2 AND state = 4) AS dead,
         (SELECT count(*) FROM remembered WHERE qid = ?1) AS remembered,
         (SELECT count(*) FROM lane WHERE qid = ?1 AND turn IS NOT NULL) AS open_lanes,
         iif(?3, (${pendingOf}), 0) AS pending
       FROM job WHERE qid = ?1`,
    )
    .get(queue.qid, morgueOf(queue), queue.kind === 'ordered' ? 1 : 0) as Counts
}

/** The counts of the groups that have ready jobs other than suspects, or running jobs. */
function lanesOf(db: Database, { qid }: QueueRow): LaneCount[] {
  return db
    .prepare(
      `SELECT grp, count(*) FILTER (WHERE state = 1) AS ready, count(*) FILTER (WHERE state = 2) AS running FROM job
       WHERE qid = ? AND grp IS NOT NULL AND (state = 2 OR (state = 1 AND suspect = 0)) GROUP BY grp`,
    )
    .all(qid) as LaneCount[]
}

/** Lanes that are missing, or whose counts differ from their jobs. */
function wrongLanes(db: Database, queue: QueueRow): LaneCount[] {
  const rows = db.prepare('SELECT grp, ready, running FROM lane WHERE qid = ?').all(queue.qid) as LaneCount[]
  const stored = new Map(rows.map((lane) => [lane.grp, lane]))
  const wrong: LaneCount[] = []
  for (const lane of lanesOf(db, queue)) {
    const before = stored.get(lane.grp)
    stored.delete(lane.grp)
    if (before?.ready !== lane.ready || before.running !== lane.running) wrong.push(lane)
  }
  for (const { grp, ready, running } of stored.values())
    if (ready > 0 || running > 0) wrong.push({ grp, ready: 0, running: 0 })
  return wrong
}

/** Repairs all rows of one queue, within the transaction of the call. Throws `UnknownQueueError`. */
export function repairQueue(transaction: SqliteTransaction, name: string): FsckRepair[] {
  return transaction.queues.rowsOf(name).flatMap((row) => {
    const what = row.kind === 'ordered' ? `queue ${name}, shard ${row.shard}` : `queue ${name}`
    const done = repairRow(transaction, row)
    if (done.length > 0) transaction.ring(row)
    return done.map((text) => ({ what, text }))
  })
}

function repairRow(transaction: SqliteTransaction, row: QueueRow): string[] {
  const { db, lanes } = transaction
  const { qid } = row
  const done: string[] = []
  const changed = (sql: string, ...values: (string | number)[]) => Number(db.prepare(sql).run(...values).changes)

  const leases = changed(
    'UPDATE job SET lease_until = 0 WHERE qid = ? AND state = 2 AND worker IS NULL AND lease_until > 0',
    qid,
  )
  if (leases > 0) done.push(`ended the leases of ${leases} jobs that run without a worker`)

  const pool = 'iif(suspect = 1, 1, iif(grp IS NULL, 0, 2))'
  const moved = changed(`UPDATE job SET pool = ${pool} WHERE qid = ? AND state = 1 AND pool <> ${pool}`, qid)
  if (moved > 0) done.push(`put ${moved} ready jobs into the pool where they belong`)

  const last = db
    .prepare('SELECT coalesce(max(fence), 0) AS fence FROM job WHERE qid IN (?, ?) AND state = 2')
    .get(qid, morgueOf(row)) as { fence: number }
  if (last.fence > row.last_fence) {
    row.last_fence = last.fence
    done.push('raised the last fence to the highest that a claim has')
  }

  done.push(...repairJoins(transaction, row))

  const counts = countsOf(db, row)
  const wrong = counted.filter((name) => counts[name] !== row[name])
  for (const name of wrong) {
    done.push(`counted again: ${name} ${row[name]} -> ${counts[name]}`)
    row[name] = counts[name]
  }

  const miscounted = wrongLanes(db, row)
  for (const { grp, ready, running } of miscounted) {
    changed(
      `INSERT INTO lane (qid, grp, ready, running) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (qid, grp) DO UPDATE SET ready = ?3, running = ?4`,
      qid,
      grp,
      ready,
      running,
    )
    row.laned = 1
  }
  if (miscounted.length > 0) done.push(`counted the lanes of ${miscounted.length} groups again`)
  const turnless = turnlessLanes(db, row)
  lanes.forget()
  for (const group of turnless) lanes.open(row, group)
  for (const { grp } of miscounted) lanes.refresh(row, grp)
  lanes.flush()
  if (turnless.length > 0) done.push(`gave ${turnless.length} groups a turn`)
  return done
}
