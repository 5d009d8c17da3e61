/** The joins in the fsck of a SQLite store: whether what is stored of them fits together, and what can be mended. */

import type { Fate } from '../contract/new-join.js'
import { completed, dead, noteBits, waiting } from '../rows/job-row.js'
import { fates } from '../rows/join-row.js'
import { fromStored } from '../rows/stored-text.js'
import { memberId } from '../rules/join-rules.js'
import type { QueueRow } from './rows/sqlite-queue.js'
import type { SqliteTransaction } from './rows/sqlite-transaction.js'

const countOf = (fate: Fate) =>
  `(SELECT count(*) FROM join_end WHERE join_end.sid = join_set.sid AND fate = ${fates.indexOf(fate)})`

const miscounted = `FROM job JOIN join_set USING (rid) WHERE qid = ?1 AND (${fates.map((fate) => `${fate} <> ${countOf(fate)}`).join(' OR ')})`

/** A member that has not reported, and cannot any more: its job is gone, or has ended. */
const lost = `FROM job JOIN join_set USING (rid) JOIN join_member USING (sid)
  LEFT JOIN job AS member ON member.rid = join_member.rid AND member.noted & ${noteBits.member}
  WHERE job.qid = ?1 AND job.state = ${waiting} AND (member.rid IS NULL OR member.state IN (${completed}, ${dead}))`

const stuck = `FROM job JOIN join_job USING (rid) WHERE qid = ?1 AND state = ${waiting} AND NOT EXISTS
  (SELECT 1 FROM join_set WHERE join_set.rid = job.rid AND iif(on_dead = 'go-on', completed + dead + cancelled + expired, completed) IS NOT size)`

/** As the breaches of `sqlite-fsck`. */
export const joinBreaches = [
  [
    'error',
    'are joins, and it is not stored for whom they wait',
    'Those that wait do so for ever. Delete them, and enqueue them again.',
    `SELECT id FROM job WHERE qid = ?1 AND (state = ${waiting} OR (noted & ${noteBits.join} AND state <> ${completed}))
      AND rid NOT IN (SELECT rid FROM join_job)`,
  ],
  [
    'error',
    'are joins that count the ends of their members wrongly',
    'They may run too early, or never. Run fsck --repair.',
    `SELECT DISTINCT id ${miscounted}`,
  ],
  [
    'error',
    'wait for members that are not there, or have ended',
    'They wait for ever, or until their time is over. Run fsck --repair.',
    `SELECT DISTINCT job.id ${lost}`,
  ],
  [
    'error',
    'wait, and all of their members have ended',
    'They wait for ever. Run fsck --repair.',
    `SELECT id ${stuck}`,
  ],
] as const

/** What belongs to no join: its name, and the SQL that counts it. */
export const joinStrays = [
  ['joins', 'SELECT count(*) AS n FROM join_job WHERE rid NOT IN (SELECT rid FROM job)'],
  ['sets of joins', 'SELECT count(*) AS n FROM join_set WHERE rid NOT IN (SELECT rid FROM join_job)'],
  ['members of joins', 'SELECT count(*) AS n FROM join_member WHERE sid NOT IN (SELECT sid FROM join_set)'],
  ['ends of members', 'SELECT count(*) AS n FROM join_end WHERE sid NOT IN (SELECT sid FROM join_set)'],
] as const

interface LostMember {
  readonly join_id: string
  readonly name: string
  readonly ids: string
  readonly is_many: number
  readonly number: number
  readonly state: number | null
  readonly error: string | null
}

/** Mends the joins of a queue: members that cannot report are reported, and joins that wait for nobody are ready. */
export function repairJoins({ db, joins, clock }: SqliteTransaction, { name: queue, qid }: QueueRow): string[] {
  const done: string[] = []
  joins.flush()
  const counts = fates.map((fate) => `${fate} = ${countOf(fate)}`).join(', ')
  const sets = db.prepare(`UPDATE join_set SET ${counts} WHERE sid IN (SELECT sid ${miscounted})`).run(qid)
  if (Number(sets.changes) > 0) done.push(`counted the ends in ${sets.changes} sets of joins again`)

  const members = db
    .prepare(
      `SELECT job.id AS join_id, name, ids, is_many, number, member.state AS state, member.error AS error ${lost}`,
    )
    .all(qid) as LostMember[]
  for (const { join_id, name, ids, is_many, number, state, error } of members)
    joins.report({
      id: memberId({ ids: fromStored(ids), isMany: is_many === 1 }, number),
      places: [[queue, join_id, fromStored(name), number, 'fail', 1]],
      fate: state === completed ? 'completed' : state === dead ? 'dead' : 'cancelled',
      error,
    })
  joins.deliver()
  if (members.length > 0) done.push(`reported the ends of ${members.length} members that are not there, or have ended`)
  joins.flush()

  const ids = (db.prepare(`SELECT id ${stuck}`).all(qid) as { id: string }[]).map(({ id }) => id)
  for (const id of ids) joins.resized(joins.find(queue, id)!, clock.now())
  if (ids.length > 0) done.push(`made ${ids.length} joins ready that waited for nobody`)
  return done
}
