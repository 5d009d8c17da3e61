/** The check of a SQLite store: whether the file is intact and its rows fit together. Reads only. */

import { hasCode } from '../../../core/error-codes.js'
import { UnknownQueueError } from '../../../core/errors.js'
import { messageOf } from '../../../core/values/describe.js'
import type { Finding } from '../../contract/store-health.js'
import type { Database } from '../file/sqlite-driver.js'
import { morgueOf, type QueueRow } from '../rows/sqlite-queue.js'
import { counted, countsOf, wrongLanes } from './sqlite-count.js'

const mostFaults = 10
const shownIds = 3

const error = (what: string, text: string): Finding => ({ level: 'error', what, text })
const warning = (what: string, text: string): Finding => ({ level: 'warning', what, text })

interface Breach {
  readonly level: 'error' | 'warning'
  /** Finds rows with `id`, of the queue `?1` and its morgue `?2`. */
  readonly sql: string
  readonly wrong: string
  readonly harm: string
}

/** `--repair` mends those whose `harm` names it. */
const breaches: readonly Breach[] = [
  {
    level: 'error',
    sql: 'SELECT id FROM job WHERE qid = ?1 AND ?2 <> 0 AND state = 2 AND worker IS NULL AND lease_until > 0',
    wrong: 'run without a worker, and have a lease',
    harm: 'Nobody works on them, and nobody takes them back before it ends. Run fsck --repair.',
  },
  {
    level: 'error',
    sql: 'SELECT id FROM job WHERE qid = ?1 AND ?2 <> 0 AND state = 1 AND pool <> iif(suspect = 1, 1, iif(grp IS NULL, 0, 2))',
    wrong: 'are ready, and stand in a pool where they do not belong',
    harm: 'They may never run. Run fsck --repair.',
  },
  {
    level: 'error',
    sql: `SELECT id FROM job WHERE qid = ?1 AND ?2 <> 0 AND state = 2 AND fence > (SELECT last_fence FROM queue WHERE qid = ?1)`,
    wrong: 'run, and their fences are higher than the last that was given',
    harm: 'It would be given again: a lost lease could settle. Run fsck --repair.',
  },
  {
    level: 'error',
    sql: `SELECT id FROM job WHERE qid IN (?1, ?2) AND state NOT BETWEEN 0 AND 4`,
    wrong: 'have a state that is none',
    harm: 'They never run. Delete them, and enqueue them again.',
  },
  {
    level: 'error',
    sql: `SELECT id FROM job WHERE qid IN (?1, ?2) AND (SELECT kind FROM queue WHERE qid = ?1) = 'ordered' AND state <> 3
      AND NOT EXISTS (SELECT 1 FROM payload WHERE payload.rid = job.rid AND payload.part = job.part)`,
    wrong: 'have no payloads',
    harm: 'What takes them up finds nothing to do. Delete them, and enqueue them again.',
  },
]

/** Throws `UnknownQueueError` for a queue that is not stored. */
export function checkSqlite(db: Database, queue?: string): Finding[] {
  // One state of the file for all queries.
  db.exec('BEGIN')
  try {
    return [...integrity(db), ...rowFindings(db, queue)]
  } finally {
    db.exec('COMMIT')
  }
}

function integrity(db: Database): Finding[] {
  const what = 'file'
  try {
    const rows = db.prepare(`PRAGMA integrity_check(${mostFaults})`).all() as { integrity_check: string }[]
    const faults = rows.map((row) => row.integrity_check)
    if (faults.length === 1 && faults[0] === 'ok') return [{ level: 'ok', what, text: 'whole' }]
    return [damaged(faults.join('; '))]
  } catch (failure) {
    return [damaged(messageOf(failure))]
  }
}

function damaged(how: string): Finding {
  return error(
    'file',
    `it is damaged: ${how}. Stop all processes, keep a copy, and restore a backup, or save what can be read with sqlite3's .recover.`,
  )
}

function rowFindings(db: Database, name: string | undefined): Finding[] {
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
    return findings.length > 0 ? findings : [{ level: 'ok', what: 'queues', text: 'none is stored' }]
  } catch (failure) {
    if (hasCode(failure, 'queue-unknown')) throw failure
    return [error('rows', `they cannot be read (${messageOf(failure)}).`)]
  }
}

function queueFindings(db: Database, rows: readonly QueueRow[]): Finding[] {
  const live = rows.filter(({ shard }) => shard >= 0)
  // While it is resharded there are former shards too, which know another number.
  const { name, shards } = live[0] ?? rows[0]!
  const found = rows.flatMap((row) => rowFindingsOf(db, row, shards === 1 ? `queue ${name}` : whereOf(row)))
  if (live.length !== shards)
    found.push(
      error(`queue ${name}`, `it says that it has ${shards} shards, and has ${live.length}. Restore a backup.`),
    )
  if (found.length > 0) return found
  const jobs = rows.reduce((sum, row) => sum + row.scheduled + row.ready + row.running + row.completed + row.dead, 0)
  return [
    { level: 'ok', what: `queue ${name}`, text: `${jobs === 1 ? '1 job' : `${jobs} jobs`}, everything in its place` },
  ]
}

function whereOf({ name, shard }: QueueRow): string {
  return `queue ${name}, ${shard < 0 ? 'former shard' : 'shard'} ${shard < 0 ? -1 - shard : shard}`
}

function rowFindingsOf(db: Database, row: QueueRow, what: string): Finding[] {
  const counts = countsOf(db, row)
  const wrong = counted.filter((name) => counts[name] !== row[name])
  const findings: Finding[] = []
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
  for (const { level, sql, wrong, harm } of breaches) {
    const ids = (db.prepare(sql).all(row.qid, morgueOf(row)) as { id: string }[]).map(({ id }) => id)
    if (ids.length > 0) findings.push({ level, what, text: `${wrong}${listed(ids)}. ${harm}` })
  }
  if (row.throttle !== null && db.prepare('SELECT 1 FROM throttle WHERE scope = ?').get(row.throttle) === undefined)
    findings.push(error(what, `its throttle '${row.throttle}' is not stored. Claims on it fail. Restore a backup.`))
  return findings
}

/** Groups that have ready jobs and room, but neither a turn nor a time at which they get one. */
export function turnlessLanes(db: Database, { qid, max_per_group }: QueueRow): string[] {
  const rows = db
    .prepare(
      `SELECT grp FROM lane WHERE qid = ? AND ready > 0 AND running < ? AND turn IS NULL AND shut_until IS NULL AND paused = 0 AND grp <> ''`,
    )
    .all(qid, max_per_group ?? Number.MAX_SAFE_INTEGER) as { grp: string }[]
  return rows.map(({ grp }) => grp)
}

/** Rows that belong to nothing. */
function strays(db: Database): Finding[] {
  const count = (sql: string) => (db.prepare(sql).get() as { n: number }).n
  const findings: Finding[] = []
  const jobs = count('SELECT count(*) AS n FROM job WHERE abs(qid) NOT IN (SELECT qid FROM queue)')
  if (jobs > 0) findings.push(error('jobs', `${jobs} belong to no queue. They never run. Restore a backup.`))
  const payloads = count('SELECT count(*) AS n FROM payload WHERE rid NOT IN (SELECT rid FROM job)')
  if (payloads > 0) findings.push(warning('payloads', `${payloads} belong to no job. Nothing but room is lost.`))
  const notes = ['checkpoint', 'log', 'fields'].reduce(
    (sum, table) =>
      sum + count(`SELECT count(*) AS n FROM ${table} WHERE rid NOT IN (SELECT rid FROM job WHERE noted = 1)`),
    0,
  )
  if (notes > 0)
    findings.push(
      warning('checkpoints, logs and fields', `${notes} belong to no job. Another job could come by one of them.`),
    )
  return findings
}

function listed(ids: readonly string[]): string {
  const more = ids.length > shownIds ? ` and ${ids.length - shownIds} more` : ''
  return `: ${ids.slice(0, shownIds).join(', ')}${more}`
}
