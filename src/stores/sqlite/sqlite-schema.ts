/** The tables of a SQLite store, version 3, and the way there from older versions. */

/** `PRAGMA application_id`: 'MLRC'. */
export const applicationId = 0x4d4c5243
/** `PRAGMA user_version`: grows with every change of the tables. */
export const schemaVersion = 3

/** `job.state`, and the position of each state's name. The order is part of the file format. */
export const scheduled = 0
export const ready = 1
export const running = 2
export const completed = 3
export const dead = 4
export const stateNames = ['scheduled', 'ready', 'running', 'completed', 'dead'] as const

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
  max_pending INTEGER,
  max_crashes INTEGER NOT NULL,
  results_count INTEGER,
  dead_age_ms INTEGER,
  dead_count INTEGER,
  scheduled INTEGER NOT NULL DEFAULT 0,
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
  suspects INTEGER NOT NULL DEFAULT 0,
  crashed INTEGER NOT NULL DEFAULT 0,
  lead_worker TEXT,
  lead_wake_at INTEGER,
  suspect_lead_worker TEXT,
  suspect_lead_wake_at INTEGER,
  UNIQUE (name, shard)
);
`

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
 * `queue` holds counters beside settings, so that no count is ever taken by looking at jobs; `ready` counts the suspects
 * too, `pending` the waiting payloads of an ordered queue. Bounds are those of the whole queue. `number` counts queues in the
 * order in which they came, whatever becomes of their shards. `resharding` is the number of shards that the queue is on its
 * way to; the shards that it leaves then are numbered -1, -2, … Its leads are a worker's id and an instant on the machine's
 * monotonic clock each, or null.
 * Ascending by `job.rank` and `job.place` is the order of claims, of ordinary jobs and of suspects: `rank` is the negated
 * priority and `place` the stamp, negated in a queue that is last in, first out. In an ordered queue `rank` is that stamp
 * and `place` has the bytes of the id. `job.lease_until` is on the machine's monotonic clock; all other instants are on the
 * wall clock.
 * The morgue of an ordered queue is the jobs of the negated `qid`: an id may be live and dead at once.
 * `payload` holds the sets of ordered jobs, each with equal payloads (`digest`) once, in the order of score and `seq`. A job
 * has two: `job.part` is the one that waits, is in hand while the job runs, or is dead; the other waits beside it where
 * `beside_stamp` is not null. So neither a claim of all nor an end touches what stays. Digests lie anywhere in their index:
 * they are not told apart by part there, or a claim of some would write a page for each payload that it takes.
 * Payloads come last in a row: what only reads the columns before them does not read their pages.
 * Each state has its own partial index, so that a job lies in three trees at any time and a change of state writes two.
 * `call` holds the calls that one transaction made on one queue, as JSON; `cid` counts up within the queue.
 */
export const tables = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
${queueTable}CREATE TABLE job (
  rid INTEGER PRIMARY KEY,
  qid INTEGER NOT NULL,
  id TEXT NOT NULL,
  task TEXT NOT NULL,
  state INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  place INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 1,
  crashes INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER NOT NULL DEFAULT 0,
  alone INTEGER NOT NULL DEFAULT 0,
  cancelling INTEGER NOT NULL DEFAULT 0,
  suspect INTEGER NOT NULL DEFAULT 0,
  remember_ms INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  worker TEXT,
  host TEXT,
  pid INTEGER,
  progress TEXT,
  error TEXT,
  reason TEXT,
  part INTEGER NOT NULL DEFAULT 0,
  beside_stamp INTEGER,
  beside_created_at INTEGER,
  codec TEXT,
  result_codec TEXT,
  meta BLOB,
  result BLOB,
  payload BLOB NOT NULL
);
CREATE UNIQUE INDEX job_id ON job (qid, id);
CREATE INDEX job_scheduled ON job (qid, stamp, place) WHERE state = 0;
CREATE INDEX job_ready ON job (qid, suspect, rank, place) WHERE state = 1;
CREATE INDEX job_running ON job (qid, lease_until) WHERE state = 2;
CREATE INDEX job_completed ON job (qid, finished_at) WHERE state = 3;
CREATE INDEX job_expires ON job (qid, expires_at) WHERE state = 3 AND expires_at IS NOT NULL;
CREATE INDEX job_dead ON job (qid, finished_at) WHERE state = 4;
CREATE INDEX job_retries ON job (qid, attempt) WHERE attempt > 1 AND state <= 2;
${payloadTable}CREATE TABLE remembered (
  qid INTEGER NOT NULL,
  id TEXT NOT NULL,
  until INTEGER NOT NULL,
  task TEXT NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  reason TEXT,
  PRIMARY KEY (qid, id)
) WITHOUT ROWID;
CREATE INDEX remembered_until ON remembered (qid, until);
CREATE TABLE call (qid INTEGER NOT NULL, cid INTEGER NOT NULL, calls TEXT NOT NULL, PRIMARY KEY (qid, cid)) WITHOUT ROWID;
CREATE TABLE worker (id TEXT PRIMARY KEY, record TEXT NOT NULL, seen_at INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
`

/**
 * What brings the tables of version `n` to version `n + 1`, at place `n`. A column that is added comes after the payload,
 * which costs a look at its pages where a row does not fit into one. Each renames a column that every write of the version
 * before needs: a process of that version which is still at work on the file is refused then, and not let miscount.
 */
export const migrations: Readonly<Record<number, string>> = {
  1: `
ALTER TABLE queue RENAME COLUMN fence TO last_fence;
ALTER TABLE queue ADD COLUMN suspects INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN crashed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN lead_worker TEXT;
ALTER TABLE queue ADD COLUMN lead_wake_at INTEGER;
ALTER TABLE queue ADD COLUMN suspect_lead_worker TEXT;
ALTER TABLE queue ADD COLUMN suspect_lead_wake_at INTEGER;
ALTER TABLE job ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
DROP INDEX job_ready;
CREATE INDEX job_ready ON job (qid, suspect, rank, place) WHERE state = 1;
DELETE FROM worker;
`,
  2: `
ALTER TABLE queue RENAME TO former;
${queueTable}
INSERT INTO queue (qid, name, number, kind, ord, paused, draining, max_pending, max_crashes, results_count, dead_age_ms, dead_count,
    scheduled, ready, running, completed, dead, retries, remembered, processed, failed, last_stamp, last_fence, suspects, crashed,
    lead_worker, lead_wake_at, suspect_lead_worker, suspect_lead_wake_at)
  SELECT qid, name, qid, kind, ord, paused, draining, max_pending, max_crashes, results_count, dead_age_ms, dead_count,
    scheduled, ready, running, completed, dead, retries, remembered, processed, failed, stamp, last_fence, suspects, crashed,
    lead_worker, lead_wake_at, suspect_lead_worker, suspect_lead_wake_at FROM former;
DROP TABLE former;
ALTER TABLE job ADD COLUMN part INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN beside_stamp INTEGER;
ALTER TABLE job ADD COLUMN beside_created_at INTEGER;
DROP INDEX job_scheduled;
CREATE INDEX job_scheduled ON job (qid, stamp, place) WHERE state = 0;
${payloadTable}
`,
}
