/** The joins in the fsck of a SQLite store: whether what is stored of them fits together, and what can be mended. */

import { slicesOf } from '../../core/values/pages.js'
import type { Fate } from '../contract/new-join.js'
import { completed, dead, noteBits, waiting } from '../rows/job-row.js'
import { fates, type HeldSet, heldSet, type JoinSetRow } from '../rows/join-row.js'
import { stepLimit } from '../rules/bounds.js'
import { memberId } from '../rules/join-rules.js'
import type { Database } from './file/sqlite-driver.js'
import { SqliteJoinEnds } from './rows/sqlite-join-ends.js'
import type { QueueRow } from './rows/sqlite-queue.js'
import type { SqliteTransaction } from './rows/sqlite-transaction.js'

/** A join that waits for its members. */
const isWaiting = `state = ${waiting} AND NOT noted & ${noteBits.awaiting}`

const stuck = `FROM job JOIN join_job USING (rid) WHERE qid = ?1 AND ${isWaiting} AND NOT EXISTS
  (SELECT 1 FROM join_set WHERE join_set.rid = job.rid AND iif(on_dead = 'go-on', completed + dead + cancelled + expired, completed) IS NOT size)`

/** As the breaches of `sqlite-fsck`. */
export const joinBreaches = [
  [
    'error',
    'are joins, but the store does not say for which jobs they wait',
    'Waiting ones wait for ever. Delete them, and enqueue them again.',
    `SELECT id FROM job WHERE qid = ?1 AND ((${isWaiting}) OR (noted & ${noteBits.join} AND state <> ${completed}))
      AND rid NOT IN (SELECT rid FROM join_job)`,
  ],
  [
    'error',
    'wait, and all of their members have ended',
    'They wait for ever. Run fsck --repair.',
    `SELECT id ${stuck}`,
  ],
] as const

/** What is wrong with the joins of a queue that SQL cannot see, with the ids of the joins. */
export function joinFaults(db: Database, { qid }: QueueRow): { wrong: string; harm: string; ids: string[] }[] {
  const sets = setsOf(db, qid)
  if (sets.length === 0) return []
  const ends = new SqliteJoinEnds(db)
  const idsOf = (some: readonly StoredSetRow[]) => [...new Set(some.map(({ join_id }) => join_id))]
  return [
    {
      wrong: 'are joins that count the ends of their members wrongly',
      harm: 'They may run too early, or never. Run fsck --repair.',
      ids: idsOf(sets.filter((set) => isMiscounted(ends, set))),
    },
    {
      wrong: 'wait for members that are not there, or have ended',
      harm: 'They wait for ever, or until their time is over. Run fsck --repair.',
      ids: idsOf(sets.filter((set) => !lostIn(db, ends, set).next().done)),
    },
  ]
}

/** A set with its join. */
interface StoredSetRow extends JoinSetRow {
  readonly join_id: string
  readonly state: number
}

function setsOf(db: Database, qid: number): StoredSetRow[] {
  const text = `SELECT id AS join_id, state, join_set.* FROM job JOIN join_set USING (rid) WHERE qid = ? AND noted & ${noteBits.join}`
  return db.prepare(text).all(qid) as StoredSetRow[]
}

function isMiscounted(ends: SqliteJoinEnds, row: StoredSetRow): boolean {
  const counts = ends.countsOf(heldSet(row))
  return fates.some((fate) => counts[fate] !== row[fate])
}

interface LostMember {
  readonly set: HeldSet
  readonly number: number
  readonly fate: Fate
  readonly error: string | null
}

/** The members for which a waiting join waits and that cannot report any more: their jobs are gone, or have ended. */
function* lostIn(db: Database, ends: SqliteJoinEnds, row: StoredSetRow): Generator<LostMember, void, undefined> {
  if (row.state !== waiting) return
  const set = heldSet(row)
  const queue = db.prepare('SELECT qid FROM queue WHERE name = ? AND shard = 0').get(set.queue) as { qid: number }
  const members = db.prepare(
    `SELECT id, state, error FROM job WHERE qid = ?1 AND id IN (SELECT value FROM json_each(?2)) AND noted & ${noteBits.member}`,
  )
  for (const some of slicesOf([...ends.outstanding(set)], stepLimit)) {
    const ids = some.map((number) => memberId(set, number))
    const rows = members.all(queue.qid, JSON.stringify(ids)) as { id: string; state: number; error: string | null }[]
    const found = new Map(rows.map((row) => [row.id, row]))
    for (const [i, number] of some.entries()) {
      const { state, error = null } = found.get(ids[i]!) ?? {}
      if (state === undefined) yield { set, number, fate: 'cancelled', error }
      else if (state === completed || state === dead)
        yield { set, number, fate: state === dead ? 'dead' : 'completed', error }
    }
  }
}

/** What belongs to no join: its name, and the SQL that counts it. */
export const joinStrays = [
  ['joins', 'SELECT count(*) AS n FROM join_job WHERE rid NOT IN (SELECT rid FROM job)'],
  ['sets of joins', 'SELECT count(*) AS n FROM join_set WHERE rid NOT IN (SELECT rid FROM join_job)'],
  ...(['join_bits', 'join_end', 'join_page'] as const).map(
    (table) =>
      [
        table === 'join_bits'
          ? 'marks of members that have ended'
          : table === 'join_end'
            ? 'ends of members'
            : 'results of members',
        `SELECT count(*) AS n FROM ${table} WHERE sid NOT IN (SELECT sid FROM join_set)`,
      ] as const,
  ),
] as const

/** Mends the joins of a queue: members that cannot report are reported, and joins that wait for nobody are ready. */
export function repairJoins({ db, joins, clock }: SqliteTransaction, { name: queue, qid }: QueueRow): string[] {
  const done: string[] = []
  joins.flush()
  const wrong = setsOf(db, qid).filter((set) => isMiscounted(joins.ends, set))
  const count = db.prepare(`UPDATE join_set SET ${fates.map((fate) => `${fate} = ?`).join(', ')} WHERE sid = ?`)
  for (const row of wrong) {
    const counts = joins.ends.countsOf(heldSet(row))
    count.run(...fates.map((fate) => counts[fate]), row.sid)
  }
  if (wrong.length > 0) done.push(`counted the ends in ${wrong.length} sets of joins again`)
  joins.forgetHeld()

  const members = setsOf(db, qid).flatMap((row) => [...lostIn(db, joins.ends, row)].map((lost) => ({ row, lost })))
  for (const { row, lost } of members) {
    const { set, number, fate, error } = lost
    const places = [[queue, row.join_id, set.name, number] as const]
    joins.report({ queue: set.queue, ids: [memberId(set, number)], places, fate, left: [{ error }] })
  }
  joins.deliver()
  if (members.length > 0) done.push(`reported the ends of ${members.length} members that are not there, or have ended`)
  joins.flush()

  const ids = (db.prepare(`SELECT id ${stuck}`).all(qid) as { id: string }[]).map(({ id }) => id)
  for (const id of ids) joins.resized(joins.find(queue, id)!, clock.now())
  if (ids.length > 0) done.push(`made ${ids.length} joins ready that waited for nobody`)
  return done
}
