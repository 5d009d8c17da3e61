/** The repair of a SQLite store: mends what can be mended without losing a job or running one twice. */

import type { Mended } from '../../contract/store-health.js'
import { morgueOf, type QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { turnlessLanes } from './sqlite-check.js'
import { counted, countsOf, wrongLanes } from './sqlite-count.js'

/** Repairs all rows of one queue, within the transaction of the call. Throws `UnknownQueueError`. */
export function repairQueue(session: SqliteTransaction, name: string): Mended[] {
  return session.queues.rowsOf(name).flatMap((row) => {
    const what = row.kind === 'ordered' ? `queue ${name}, shard ${row.shard}` : `queue ${name}`
    const done = repairRow(session, row)
    if (done.length > 0) session.ring(row)
    return done.map((text) => ({ what, text }))
  })
}

function repairRow(session: SqliteTransaction, row: QueueRow): string[] {
  const { db, lanes } = session
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

  const open = db.prepare('SELECT count(*) AS n FROM lane WHERE qid = ? AND turn IS NOT NULL').get(qid) as { n: number }
  if (open.n !== row.open_lanes) {
    row.open_lanes = open.n
    if (miscounted.length + turnless.length === 0) done.push('counted the groups that have a turn again')
  }
  return done
}
