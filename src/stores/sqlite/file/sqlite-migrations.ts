/** The way to the tables of today from those of older versions. */

import { limitTables, noteTables, payloadTable, readyIndexes } from './sqlite-schema.js'

/** As version 3 had it. */
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
  3: `
ALTER TABLE queue RENAME COLUMN max_crashes TO crash_limit;
ALTER TABLE queue ADD COLUMN max_running INTEGER;
ALTER TABLE queue ADD COLUMN max_per_group INTEGER;
ALTER TABLE queue ADD COLUMN throttle TEXT;
ALTER TABLE queue ADD COLUMN throttle_by TEXT;
ALTER TABLE queue ADD COLUMN held_until INTEGER;
ALTER TABLE queue ADD COLUMN shut_until INTEGER;
ALTER TABLE queue ADD COLUMN laned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN grouped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN grouped_running INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN open_lanes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN last_turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN grp TEXT;
ALTER TABLE job ADD COLUMN line INTEGER NOT NULL DEFAULT 0;
DROP INDEX job_ready;
UPDATE job SET line = 1 WHERE state = 1 AND suspect = 1;
${readyIndexes}${limitTables}`,
  4: `
ALTER TABLE queue RENAME COLUMN results_count TO results_limit;
ALTER TABLE job ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN boot TEXT;
ALTER TABLE job ADD COLUMN pidns TEXT;
ALTER TABLE job ADD COLUMN ticks INTEGER;
${noteTables}`,
  5: `
ALTER TABLE queue RENAME COLUMN last_turn TO last_lane_turn;
ALTER TABLE queue ADD COLUMN last_score INTEGER NOT NULL DEFAULT 0;
UPDATE queue SET last_score = last_stamp;
ALTER TABLE queue ADD COLUMN lost_at INTEGER;
ALTER TABLE job ADD COLUMN beside_ready INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN weighed INTEGER NOT NULL DEFAULT 0;
UPDATE queue SET weighed = 1;
DELETE FROM call;
`,
}
