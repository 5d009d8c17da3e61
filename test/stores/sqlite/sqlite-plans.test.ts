/** The query plan of every statement that a SQLite store prepares, on a filled file, whatever `ANALYZE` has told SQLite. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '#src/stores/sqlite/file/sqlite-driver.js'
import { EveryOperation } from './every-operation.js'
import { SqliteScene } from './sqlite-scene.js'

interface Permit {
  readonly of: RegExp
  readonly because: string
}

/** Statements that may look at every row of a table. */
const scans: readonly Permit[] = [
  { of: /FROM queue (CROSS JOIN|ORDER BY)|FROM queue$/, because: 'a store has few queues and shards' },
  { of: /FROM throttle$/, because: 'a store has few throttles' },
  {
    of: /FROM schedule WHERE next_at IS NOT NULL/,
    because: 'it goes in the order of the index, no further than was asked',
  },
  { of: /(FROM worker WHERE until|UPDATE worker SET until)/, because: 'a store has few workers' },
  { of: /FROM join_failed/, because: 'it looks for the first, or for as many as were asked for' },
  {
    of: /FROM join_job WHERE cancelling = 1/,
    because: 'the index has only those that it looks for, and it takes the first',
  },
]

/** Statements that may sort what they find. */
const sorts: readonly Permit[] = [
  { of: /FROM queue ORDER BY number, shard/, because: 'a store has few queues and shards' },
  { of: /state = 2\b.* ORDER BY .*fence/, because: 'no more jobs run than all workers have slots' },
  { of: /state = 2\b.* ORDER BY lease_until, position/, because: 'no more jobs run than all workers have slots' },
  {
    of: /state = 4\b.* ORDER BY finished_at( DESC)?, position/,
    because: 'only those are sorted that died in one step',
  },
  { of: /INDEXED BY job_retries .* ORDER BY attempt, position/, because: 'an operator asks, page by page' },
  { of: /INDEXED BY job_retries .* ORDER BY (stamp|suspect)/, because: 'at most 10,000 jobs have failed' },
  {
    of: /INDEXED BY job_(scheduled|ready|running|completed|dead|waiting) .*TRUE.* ORDER BY id/,
    because: 'at most 10,000 jobs are in this state',
  },
]

/** Statements that may look at every job of a queue, in whatever order. */
const thorough: readonly Permit[] = [
  {
    of: /(AS pending FROM job WHERE qid = \?1|AND suspect = 0\)\) GROUP BY grp|worker IS NULL AND lease_until > 0)$|^SELECT id AS join_id/,
    because: 'a repair counts everything anew, when an operator asks for it',
  },
]

/** The index by which jobs must be found: of the first that matches the statement, or the part of it that looks for them. */
const indexes: readonly (readonly [of: RegExp, plan: RegExp])[] = [
  [/\bid (= (\?|json_each\.value)|IN \(SELECT value)/, /INDEX job_id \(qid=\? AND id=\?\)/],
  [/grp = \?/, /INDEX job_lane \(qid=\? AND grp=\?\)/],
  [/ORDER BY grp/, /INDEX job_lane \(qid=\?\)/],
  [
    /INDEXED BY job_(scheduled|ready|running|completed|dead|waiting) .*TRUE.* ORDER BY id/,
    /INDEX job_[a-z]+ \(qid=\?\)/,
  ],
  [/\bid\)? >=? .* ORDER BY id/, /INDEX job_id \(qid=\? AND id>\?\)/],
  [/ORDER BY id/, /INDEX job_id \(qid=\?\)/],
  [/ORDER BY attempt/, /INDEX job_retries \(qid=\? AND (attempt>\?|\(attempt,\w+\)>\(\?,\?\))\)/],
  [/INDEXED BY job_retries/, /INDEX job_retries \(qid=\? AND attempt>\?\)/],
  [/ORDER BY expires_at/, /INDEX job_expires \(qid=\? AND state=\? AND expires_at[<>]\?\)/],
  [/state = 0\b.*stamp < /, /INDEX job_scheduled \(qid=\? AND stamp<\?\)/],
  [/rank = \?/, /INDEX job_ready \(qid=\? AND pool=\? AND rank=\?\)/],
  [/pool = \d.*\(?rank\b.*\)? > .* ORDER BY/, /INDEX job_ready \(qid=\? AND pool=\? AND (rank>\?|\(rank,.*\)>.*)\)/],
  [/pool = \d AND/, /INDEX job_ready \(qid=\? AND pool=\?\)/],
  [/state = 1\b/, /INDEX job_ready \(qid=\?\)/],
  [/state = 0\b.*\(stamp, .* > /, /INDEX job_scheduled \(qid=\? AND \(stamp,position(,rowid)?\)>/],
  [/state = 0\b/, /INDEX job_scheduled \(qid=\?\)/],
  [/state = 2\b.*lease_until <= /, /INDEX job_running \(qid=\? AND lease_until<\?\)/],
  [/state = 2\b/, /INDEX job_running \(qid=\?\)/],
  [
    /state = [34]\b.*(finished_at <= |\(finished_at, rid\) < )/,
    /INDEX job_(completed|dead) \(qid=\? AND (finished_at<\?|\(finished_at,rowid\)<.*)\)/,
  ],
  [/state = 3\b/, /INDEX job_completed \(qid=\?\)/],
  [/state = 4\b/, /INDEX job_dead \(qid=\?\)/],
  [/state = 5\b/, /INDEX job_waiting \(qid=\?( AND \(stamp,rowid\)>.*)?\)/],
  // Of a queue that leaves its shards all jobs come over, in any order.
  [/qid = \?1 UNION ALL/, /INDEX job_\w+ \(qid=\?\)/],
]

/** What is wrong with the plan of a statement. */
function faultsOf(sql: string, plan: readonly string[]): string[] {
  const text = sql.replace(/\s+/g, ' ')
  const isIn = (permits: readonly Permit[]) => permits.some(({ of }) => of.test(text))
  // Rows of a subquery have been found by then, and a list that is given is looked through once.
  const isScan = (step: string) => /^SCAN (?!\(|opened$|CONSTANT|json_each VIRTUAL TABLE)/.test(step)
  const isSort = (step: string) => step.startsWith('USE TEMP B-TREE')
  if (isIn(thorough)) return []
  return plan.filter((step) => {
    if (isScan(step)) return !isIn(scans)
    if (isSort(step)) return !isIn(sorts)
    if (!/^SEARCH job\b/.test(step) || step.includes('INTEGER PRIMARY KEY')) return false
    const wanted = indexes.find(([of]) => of.test(text))
    return wanted === undefined || !wanted[1].test(step)
  })
}

const scene = new SqliteScene()
let filled: EveryOperation
beforeAll(async () => {
  filled = await EveryOperation.on(scene.file, 600)
}, 60_000)
afterAll(async () => {
  filled.db.close()
  await scene.close()
})

/** What is wrong with the plans of all statements as this connection sees them. */
function faults(db: Database): string[] {
  return [...filled.prepared].flatMap((sql) => {
    const plan = (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail)
    return faultsOf(sql, plan).map((fault) => `${fault} ← ${sql.replace(/\s+/g, ' ').slice(-260)}`)
  })
}

it('every operation of the store has its statements prepared', () => {
  expect(filled.missed).toEqual([])
})

it('every statement uses its index, and sorts and scans nothing large', () => {
  expect(faults(filled.db)).toEqual([])
})

it('statements still use their indexes after somebody analyzes the file while the store works', () => {
  filled.db.exec('ANALYZE')

  expect(faults(filled.db)).toEqual([])
})

it('statements still use their indexes in a file that was analyzed when it was nearly empty', () => {
  filled.db.exec("ANALYZE; UPDATE sqlite_stat1 SET stat = '1 1 1 1 1 1'")

  const reopened = filled.open()

  expect(faults(reopened)).toEqual([])
  reopened.close()
})
