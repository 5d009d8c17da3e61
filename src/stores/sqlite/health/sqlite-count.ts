/** The count of a SQLite queue: the values that its counters and lanes should have, according to its jobs. */

import type { Database } from '../file/sqlite-driver.js'
import { morgueOf, type QueueRow } from '../rows/sqlite-queue.js'

/** The counters that follow from rows. */
export const counted = [
  'scheduled',
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
] as const

export type Counts = Readonly<Record<(typeof counted)[number], number>>

interface LaneCount {
  readonly grp: string
  readonly ready: number
  readonly running: number
}

/** Waiting payloads: those of waiting jobs, and those of the successors of running jobs. */
const pendingOf = `
  SELECT count(*) FROM job JOIN payload USING (rid) WHERE qid = ?1 AND iif(state = 2, successor_stamp IS NOT NULL AND payload.part <> job.part, payload.part = job.part)`

/** Reads every job of the queue once. */
export function countsOf(db: Database, queue: QueueRow): Counts {
  const of = (state: number) => `count(*) FILTER (WHERE state = ${state})`
  return db
    .prepare(
      `SELECT ${of(0)} AS scheduled, ${of(1)} AS ready, ${of(2)} AS running, ${of(3)} AS completed,
         count(*) FILTER (WHERE state <= 1 AND attempt > 1) AS retries, count(*) FILTER (WHERE state = 1 AND suspect = 1) AS suspects,
         count(*) FILTER (WHERE state = 1 AND suspect = 0 AND grp IS NOT NULL) AS grouped,
         count(*) FILTER (WHERE state = 2 AND grp IS NOT NULL) AS grouped_running,
         (SELECT count(*) FROM job WHERE qid = ?2 AND state = 4) AS dead,
         (SELECT count(*) FROM remembered WHERE qid = ?1) AS remembered,
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
export function wrongLanes(db: Database, queue: QueueRow): LaneCount[] {
  const rows = db.prepare('SELECT grp, ready, running FROM lane WHERE qid = ?').all(queue.qid) as LaneCount[]
  const stored = new Map(rows.map((lane) => [lane.grp, lane]))
  const wrong: LaneCount[] = []
  for (const lane of lanesOf(db, queue)) {
    const before = stored.get(lane.grp)
    stored.delete(lane.grp)
    if (before?.ready !== lane.ready || before.running !== lane.running) wrong.push(lane)
  }
  for (const { grp, ready, running } of stored.values())
    if (grp !== '' && (ready > 0 || running > 0)) wrong.push({ grp, ready: 0, running: 0 })
  return wrong
}
