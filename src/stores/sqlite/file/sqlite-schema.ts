/** The tables of a SQLite store. */

import { ready } from '../../rows/job-row.js'
import { deadFate } from '../../rows/join-row.js'
import type { ReadyPool } from '../../rules/fair-share.js'
import { historyCounts, historyGauges } from '../../sql/sql-history.js'

/** `PRAGMA application_id`: 'MLRC'. */
export const applicationId = 0x4d4c5243
/**
 * The changes of the tables since the first release, each a text of SQL that brings a file of the version before to the next:
 * the first of them makes version 2. `tables` has them all.
 */
export const tableChanges: readonly string[] = []

/** A row is a queue, or one shard of an ordered one. */
const queueTable = `
CREATE TABLE queue (
  qid INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  shard INTEGER NOT NULL DEFAULT 0,
  shards INTEGER NOT NULL DEFAULT 1,
  resharding INTEGER,
  number INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ord TEXT NOT NULL,
  exclusive TEXT NOT NULL DEFAULT 'id',
  merge TEXT NOT NULL DEFAULT 'all',
  paused INTEGER NOT NULL DEFAULT 0,
  draining INTEGER NOT NULL DEFAULT 0,
  limits TEXT NOT NULL DEFAULT '{}',
  max_pending INTEGER,
  crash_limit INTEGER NOT NULL DEFAULT 3,
  results_limit INTEGER,
  dead_age_ms INTEGER,
  dead_count INTEGER,
  scheduled INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  retries INTEGER NOT NULL DEFAULT 0,
  remembered INTEGER NOT NULL DEFAULT 0,
  pending INTEGER NOT NULL DEFAULT 0,
  processed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  last_stamp INTEGER NOT NULL DEFAULT 0,
  last_fence INTEGER NOT NULL DEFAULT 0,
  last_score INTEGER NOT NULL DEFAULT 0,
  suspects INTEGER NOT NULL DEFAULT 0,
  crashed INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  expiring_at INTEGER,
  lead_worker TEXT,
  lead_wake_at INTEGER,
  suspect_lead_worker TEXT,
  suspect_lead_wake_at INTEGER,
  max_running INTEGER,
  max_per_group INTEGER,
  throttle TEXT,
  throttle_by TEXT,
  held_until INTEGER,
  shut_until INTEGER,
  laned INTEGER NOT NULL DEFAULT 0,
  grouped INTEGER NOT NULL DEFAULT 0,
  grouped_running INTEGER NOT NULL DEFAULT 0,
  open_lanes INTEGER NOT NULL DEFAULT 0,
  last_lane_turn INTEGER NOT NULL DEFAULT 0,
  lost_at INTEGER,
  weighed INTEGER NOT NULL DEFAULT 0,
  membered INTEGER NOT NULL DEFAULT 0,
  UNIQUE (name, shard)
);
`

export const queueColumns: readonly string[] = columnsIn(queueTable)

const payloadTable = `
CREATE TABLE payload (
  seq INTEGER PRIMARY KEY,
  rid INTEGER NOT NULL,
  part INTEGER NOT NULL,
  score REAL NOT NULL,
  digest BLOB NOT NULL,
  codec TEXT,
  meta BLOB,
  payload BLOB NOT NULL
);
CREATE INDEX payload_digest ON payload (rid, digest);
CREATE INDEX payload_order ON payload (rid, part, score);
`

/**
 * The pools of ready jobs, by `job.pool`: jobs without a group, suspects, jobs of groups. A claim of jobs without a
 * group never goes past jobs that have one. Jobs of groups are also in the lanes of their groups.
 */
export const pools = {
  free: 'pool = 0 AND state = 1',
  suspects: 'pool = 1 AND state = 1',
  // In this order: for most jobs the first comparison then shows that they are not in the index of lanes.
  grouped: 'pool = 2 AND state = 1',
} as const

/**
 * The jobs of each pool, or the suspects or the lane of one group, of a queue that is bound. Each names the index in which the
 * jobs are in order: for a lane, SQLite would take the index of the pool, and go past the waiting jobs of all other groups.
 */
export const poolJobs = {
  free: `job INDEXED BY job_ready WHERE qid = ? AND ${pools.free}`,
  suspects: `job INDEXED BY job_ready WHERE qid = ? AND ${pools.suspects}`,
  suspectsOf: `job INDEXED BY job_ready WHERE qid = ? AND ${pools.suspects} AND ifnull(grp, '') = ?`,
  lane: `job INDEXED BY job_lane WHERE qid = ? AND ${pools.grouped} AND grp = ?`,
} as const

/** The jobs that a claim may take at once. */
export type PoolJobs = 'free' | 'suspectsOf' | 'lane'

/** Which of them a pool of a queue is, and what is bound to it. */
export function boundPool(
  qid: number,
  pool: ReadyPool,
): { readonly jobs: PoolJobs; readonly of: readonly (number | string)[] } {
  if (pool === 'free') return { jobs: 'free', of: [qid] }
  if ('group' in pool) return { jobs: 'lane', of: [qid, pool.group] }
  return { jobs: 'suspectsOf', of: [qid, pool.suspectsOf] }
}

/** Together these are all ready jobs. Each says for all of its jobs whether they are suspects. */
export const readyPools = [
  { where: pools.free, index: 'job_ready', suspect: 0 },
  { where: pools.grouped, index: 'job_ready', suspect: 0 },
  { where: pools.suspects, index: 'job_ready', suspect: 1 },
] as const

/** Together these are all ready jobs of any one group, which is to be asked for. */
export const groupPools = [
  { where: pools.grouped, index: 'job_lane', suspect: 0 },
  { where: pools.suspects, index: 'job_ready', suspect: 1 },
] as const

const readyIndexes = `
CREATE INDEX job_ready ON job (qid, pool, rank, position) WHERE state = 1;
CREATE INDEX job_lane ON job (qid, grp, rank, position) WHERE ${pools.grouped};
`

/** Of the last run of a job, in `job` and in `remembered`. */
const runColumns = `
  worker TEXT,
  host TEXT,
  boot TEXT,
  pidns TEXT,
  pid INTEGER,
  ticks INTEGER,
  progress TEXT,
  error TEXT,
`

/**
 * The notes of jobs, by `job.rid`. Only jobs whose `noted` says so have any, so that nobody looks here for others.
 * Ordered jobs have fields only. Each kind has a table of its own, because a row that grows is rewritten as a whole.
 * `step` and `signal_wait`: see `sql/sql-job-steps`.
 */
const noteTables = `
CREATE TABLE checkpoint (rid INTEGER PRIMARY KEY, codec TEXT, payload BLOB NOT NULL);
CREATE TABLE log (rid INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE fields (rid INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE step (
  n INTEGER PRIMARY KEY,
  rid INTEGER NOT NULL,
  is_signal INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER,
  codec TEXT,
  payload BLOB
);
CREATE UNIQUE INDEX step_name ON step (rid, is_signal, name);
CREATE TABLE signal_wait (rid INTEGER PRIMARY KEY, signal TEXT NOT NULL, until INTEGER);
CREATE INDEX signal_wait_until ON signal_wait (until) WHERE until IS NOT NULL;
`

/**
 * `definition` is JSON (`rules/schedule-record`); `next_at` and `last_at` are on the wall clock. The lead of the
 * workers that tick schedules is in `meta`, as `schedule-lead`.
 */
const scheduleTable = `
CREATE TABLE schedule (
  name TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  revision TEXT NOT NULL,
  paused INTEGER NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_id TEXT,
  ticked INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  missed INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX schedule_next ON schedule (next_at, name) WHERE next_at IS NOT NULL;
`

/**
 * `live_watch` has a row for each watcher of a queue; `until` is on the machine's monotonic clock. `live_message` has
 * the last messages for the watchers. While nobody watches, it has at most one row.
 */
const liveTables = `
CREATE TABLE live_watch (queue TEXT NOT NULL, watcher TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (queue, watcher)) WITHOUT ROWID;
CREATE INDEX live_watch_until ON live_watch (until);
CREATE TABLE live_message (seq INTEGER PRIMARY KEY, queue TEXT NOT NULL, message TEXT NOT NULL);
`

/**
 * A row is a minute (`step` 0) or an hour (`step` 1) of a queue, by the queue's name; `at` is its beginning. A gauge is
 * null if nobody measured it.
 */
const historyTable = `
CREATE TABLE history (
  queue TEXT NOT NULL,
  step INTEGER NOT NULL,
  at INTEGER NOT NULL,
${historyCounts.map((name) => `  ${name} INTEGER NOT NULL,`).join('\n')}
${historyGauges.map((name) => `  ${name} INTEGER,`).join('\n')}
  PRIMARY KEY (queue, step, at)
) WITHOUT ROWID;
CREATE INDEX history_at ON history (step, at);
`

/**
 * The tables of the limits. Their instants, `queue.held_until` and `queue.shut_until` are on the machine's monotonic
 * clock, except `throttle.last_wall`.
 *
 * - `lane` has a row for each group of a queue or shard that has ready or running jobs, has a turn, is shut, is held
 *   back, or is paused. Jobs without a group are not counted in the lane `''`: they are what is left of the queue's counts.
 * - `throttle_rate` has the rules of groups that have some of their own; `throttle.own` sums them up.
 * - `throttle_counter` has what a throttle has counted for a queue, or for one of its groups. `recoveries` and
 *   `shift_ms` say on which clock the counter was written, `epoch` under which rules.
 * - `throttle_start` has the starts of a counter. `at` plus the counter's `base` is the instant, on the counter's
 *   clock; `nth` is the number of all starts that ever were before it. So two rows show how many starts a window sees,
 *   and since when, however many there are.
 */
export const limitTables = `
CREATE INDEX queue_throttle ON queue (throttle) WHERE throttle IS NOT NULL;
CREATE TABLE lane (
  qid INTEGER NOT NULL,
  grp TEXT NOT NULL,
  ready INTEGER NOT NULL,
  running INTEGER NOT NULL,
  turn INTEGER,
  shut_until INTEGER,
  held_until INTEGER,
  paused INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (qid, grp)
) WITHOUT ROWID;
CREATE INDEX lane_turn ON lane (qid, turn) WHERE turn IS NOT NULL;
CREATE INDEX lane_shut ON lane (qid, shut_until, grp) WHERE shut_until IS NOT NULL;
CREATE INDEX lane_held ON lane (qid, held_until, grp) WHERE held_until IS NOT NULL;
CREATE INDEX lane_paused ON lane (qid, grp) WHERE paused = 1;
CREATE TABLE throttle (
  scope TEXT PRIMARY KEY,
  counts_by TEXT NOT NULL,
  rules TEXT NOT NULL,
  each_group TEXT,
  own TEXT NOT NULL DEFAULT '',
  epoch INTEGER NOT NULL DEFAULT 0,
  run TEXT,
  recoveries INTEGER NOT NULL DEFAULT 0,
  recovered_at INTEGER NOT NULL DEFAULT 0,
  shift_ms INTEGER NOT NULL DEFAULT 0,
  last_at INTEGER,
  last_wall INTEGER,
  quiet_until INTEGER
) WITHOUT ROWID;
CREATE TABLE throttle_rate (scope TEXT NOT NULL, grp TEXT NOT NULL, rules TEXT NOT NULL, PRIMARY KEY (scope, grp)) WITHOUT ROWID;
CREATE TABLE throttle_counter (
  tid INTEGER PRIMARY KEY,
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  base INTEGER NOT NULL,
  total INTEGER NOT NULL,
  last_at INTEGER,
  grids TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  recoveries INTEGER NOT NULL,
  shift_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX throttle_counter_subject ON throttle_counter (scope, subject);
CREATE INDEX throttle_counter_last ON throttle_counter (scope, recoveries, last_at);
CREATE TABLE throttle_start (tid INTEGER NOT NULL, at INTEGER NOT NULL, nth INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (tid, at)) WITHOUT ROWID;
CREATE INDEX throttle_start_nth ON throttle_start (tid, nth);
`

/**
 * The tables of joins: see `rows/join-row` and `sql/sql-joins`.
 *
 * - `join_job` has a row for each join that has not ended. `late_at`, `seal_by` and `due_at` are on the wall clock;
 *   `due_at` is null unless the join waits.
 * - `join_set` has the sets, with the counts of their ends and the bytes of their results: all that a report changes, so that
 *   it writes one page. `bits` has one bit for each of the first 4,096 members, the lowest first: whether it has ended. So a
 *   report that comes twice changes nothing. Zero bytes at the end are left out. `rid` is null once the join has ended and
 *   its members and ends are still to be deleted.
 * - `join_bits` has those of further members, 4,096 in a row.
 * - `join_end` has how members have ended, and what they left; `join_page` the results of several that completed together,
 *   with their numbers, as JSON: those of 1,000 × `page` and the following 999 members, from the number `first` on. A member
 *   that has completed and left nothing is in neither.
 * - `join_failed` has the joins that died and that no sweep has reported yet.
 */
const joinTables = `
CREATE TABLE join_job (
  rid INTEGER PRIMARY KEY,
  within_ms INTEGER,
  seal_within_ms INTEGER NOT NULL,
  run_at INTEGER,
  delay_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  cancels_rest INTEGER NOT NULL,
  late_at INTEGER,
  seal_by INTEGER NOT NULL,
  due_at INTEGER,
  cancelling INTEGER NOT NULL
);
CREATE INDEX join_due ON join_job (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX join_cancelling ON join_job (rid) WHERE cancelling = 1;
CREATE TABLE join_set (
  sid INTEGER PRIMARY KEY,
  rid INTEGER,
  name TEXT NOT NULL,
  queue TEXT NOT NULL,
  ids TEXT NOT NULL,
  is_many INTEGER NOT NULL,
  on_dead TEXT NOT NULL,
  keeps_results INTEGER NOT NULL,
  size INTEGER,
  added INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  bits BLOB NOT NULL DEFAULT x''
);
CREATE INDEX join_set_of ON join_set (rid);
CREATE TABLE join_bits (sid INTEGER NOT NULL, chunk INTEGER NOT NULL, bits BLOB NOT NULL, PRIMARY KEY (sid, chunk)) WITHOUT ROWID;
CREATE TABLE join_end (sid INTEGER NOT NULL, number INTEGER NOT NULL, fate INTEGER NOT NULL, codec TEXT, error TEXT, payload BLOB, PRIMARY KEY (sid, number)) WITHOUT ROWID;
CREATE INDEX join_end_dead ON join_end (sid, number) WHERE fate = ${deadFate};
CREATE TABLE join_page (sid INTEGER NOT NULL, page INTEGER NOT NULL, first INTEGER NOT NULL, ends TEXT NOT NULL, PRIMARY KEY (sid, page, first)) WITHOUT ROWID;
CREATE TABLE join_failed (n INTEGER PRIMARY KEY, queue TEXT NOT NULL, id TEXT NOT NULL, task TEXT NOT NULL, reason TEXT NOT NULL);
`

/**
 * The deaths of jobs that are not reported yet, with what the job was then. `n` counts all that ever were: so two deaths of a
 * job in one instant are two. The last one given is in `meta`, as `deaths`.
 *
 * As long as the job is in the morgue, its row `rid` has the payload, and the death has none: on a full disk there would be
 * no room for a second one. Before the job leaves the morgue, its death gets the payload, and its `rid` is null.
 */
const deathTable = `
CREATE TABLE death (
  qid INTEGER NOT NULL,
  task TEXT NOT NULL,
  n INTEGER NOT NULL,
  id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  died_at INTEGER NOT NULL,
  error TEXT,
  reason TEXT,
  codec TEXT,
  payload BLOB,
  rid INTEGER,
  PRIMARY KEY (qid, task, n)
) WITHOUT ROWID;
CREATE INDEX death_of ON death (rid) WHERE rid IS NOT NULL;
`

/**
 * All tables. Instants that are not named here are on the wall clock.
 *
 * `queue` has counters as well as settings, so that no count requires a look at the jobs.
 *
 * - `ready` includes the suspects; `pending` counts the waiting payloads of an ordered queue.
 * - Bounds are for the whole queue.
 * - `number` numbers the queues in the order in which they came, whatever becomes of their shards.
 * - `resharding` is the number of shards that the queue is on its way to. The shards that it leaves are then numbered
 *   -1, -2, …
 * - A lead is the id of a worker and an instant on the machine's monotonic clock, or null.
 * - `laned` is 1 once the queue has ever had a lane: while it is 0, nobody looks for one.
 * - `membered` is 1 once the queue has had a member of a join: while it is 0, nobody looks for any.
 * - `weighed` is 1 once the queue has had a plain job, or a checkpoint, of more than 2 KiB: while it is 0, no claim
 *   needs to weigh its jobs.
 * - `grouped` counts the ready jobs in lanes of groups, `grouped_running` the running jobs of groups, `open_lanes` the
 *   lanes that have a turn.
 *
 * `job` has the jobs.
 *
 * - Claims take ordinary jobs, and suspects, in ascending order of `rank` and `position`. `rank` is the negated
 *   priority, and `position` the stamp, which is negated in a queue that is last in, first out. In an ordered queue
 *   `rank` is that stamp, and `position` has the bytes of the id.
 * - `lease_until` is on the machine's monotonic clock.
 * - Jobs in the morgue of an ordered queue have the negated `qid`: an id may be live and dead at once.
 * - `expires_at` is the expiry of a waiting job that was never taken, or of a kept result. `queue.expiring_at` is at or
 *   before the first expiry of such a job, null if there is none: until then nobody looks for one.
 * - `waited_until` is when the last wait of the job for others, or for a signal, was over: its lag counts from then.
 * - `noted` has the bits of `noteBits`; `places` has, of a member, its places in the sets of joins.
 * - Each state has its own partial index, so that a job is in three trees at any time, and a change of state writes
 *   two.
 * - Payloads come last in a row: a query that only reads the columns before them does not read their pages.
 *
 * `payload` has the payload sets of ordered jobs. A set has each payload once, by its `digest`; its order is score,
 * then `seq`.
 *
 * - A job has two sets. `job.part` is the set that waits, is in hand while the job runs, or is dead. The other set is
 *   the successor's, if `successor_stamp` is not null. So neither a claim of all payloads nor an end touches those that
 *   stay.
 * - Digests are scattered over their index. The index leaves out the part, or a claim of some payloads would write a
 *   page for each of them.
 *
 * Others:
 *
 * - `remembered` has the ids of ended jobs. The columns after `reason` are what remains of a job that was cancelled after
 *   it had begun, as in `job` and in the tables of notes; for others they are null, `payload` too.
 * - `result_wait` has the jobs whose results somebody waits for; `until` is on the machine's monotonic clock.
 * - `worker.signal` is the signal that the worker's next beat returns: 'stop' or 'recycle'.
 * - `call` has the calls that one transaction made on one queue, as JSON, each with its instant on the machine's
 *   monotonic clock; `cid` counts up within the queue.
 */
export const tables = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
${queueTable}CREATE TABLE job (
  rid INTEGER PRIMARY KEY,
  qid INTEGER NOT NULL,
  id TEXT NOT NULL,
  task TEXT NOT NULL,
  state INTEGER NOT NULL DEFAULT ${ready},
  rank INTEGER NOT NULL DEFAULT 0,
  position INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 1,
  crashes INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER NOT NULL DEFAULT 0,
  alone INTEGER NOT NULL DEFAULT 0,
  cancelling INTEGER NOT NULL DEFAULT 0,
  suspect INTEGER NOT NULL DEFAULT 0,
  pool INTEGER NOT NULL DEFAULT 0,
  noted INTEGER NOT NULL DEFAULT 0,
  remember_ms INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  waited_until INTEGER,${runColumns}  reason TEXT,
  part INTEGER NOT NULL DEFAULT 0,
  successor_stamp INTEGER,
  successor_created_at INTEGER,
  successor_ready INTEGER NOT NULL DEFAULT 0,
  grp TEXT,
  codec TEXT,
  result_codec TEXT,
  places TEXT,
  meta BLOB,
  result BLOB,
  payload BLOB NOT NULL
);
CREATE UNIQUE INDEX job_id ON job (qid, id);
CREATE INDEX job_scheduled ON job (qid, stamp, position) WHERE state = 0;
${readyIndexes}CREATE INDEX job_running ON job (qid, lease_until) WHERE state = 2;
CREATE INDEX job_completed ON job (qid, finished_at) WHERE state = 3;
CREATE INDEX job_expires ON job (qid, state, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX job_dead ON job (qid, finished_at) WHERE state = 4;
CREATE INDEX job_waiting ON job (qid, stamp) WHERE state = 5;
CREATE INDEX job_retries ON job (qid, attempt) WHERE attempt > 1 AND state <= 2;
${payloadTable}CREATE TABLE remembered (
  qid INTEGER NOT NULL,
  id TEXT NOT NULL,
  until INTEGER NOT NULL,
  task TEXT NOT NULL,
  state TEXT NOT NULL,
  rank INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  reason TEXT,
  grp TEXT,
  started_at INTEGER,${runColumns}  fields TEXT,
  codec TEXT,
  meta BLOB,
  payload BLOB,
  checkpoint_codec TEXT,
  checkpoint BLOB,
  log TEXT,
  PRIMARY KEY (qid, id)
) WITHOUT ROWID;
CREATE INDEX remembered_until ON remembered (qid, until);
CREATE TABLE result_wait (qid INTEGER NOT NULL, id TEXT NOT NULL, waiter TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (qid, id, waiter)) WITHOUT ROWID;
CREATE INDEX result_wait_until ON result_wait (until);
CREATE TABLE call (qid INTEGER NOT NULL, cid INTEGER NOT NULL, calls TEXT NOT NULL, PRIMARY KEY (qid, cid)) WITHOUT ROWID;
${scheduleTable}CREATE TABLE worker (id TEXT PRIMARY KEY, record TEXT NOT NULL, seen_at INTEGER NOT NULL, until INTEGER NOT NULL, signal TEXT) WITHOUT ROWID;
${noteTables}${joinTables}${deathTable}${limitTables}${liveTables}${historyTable}`

export const tableNames: readonly string[] = [...tables.matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name!)

function columnsIn(table: string): string[] {
  return [...table.matchAll(/^ {2}([a-z_]+) /gm)].map(([, name]) => name!)
}
