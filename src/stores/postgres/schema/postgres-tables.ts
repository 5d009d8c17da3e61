/** The tables of a Postgres store. Texts that are compared are in the order of their bytes. */

import { joinTables } from './join-tables.js'
import { limitTables } from './limit-tables.js'
import { ordered } from './ordered-tables.js'
import { recordsTables } from './records-tables.js'

/**
 * `job`: what waits and what runs. A claim writes only the fence, which no index contains, and pages have room: no index is
 * written then. A place is `stamp`, the instant in µs from which the job may begin, negated in a queue that takes the
 * latest first; and `seq`, which orders equal stamps: the number of its arrival, or another if it has come behind others since, and
 * then `arrival` is that number. `flags`: see `jobFlags`. `pool`: 0, 1 for a suspect, 2 in the lane of its group, -1: it waits for
 * its members or for a signal. `waited_ms`: when its last such wait was over, from which its lag counts. `places`: of a member, in its joins. The columns from `head` on are for ordered queues: see
 * `ordered-tables`.
 *
 * Dead rows must go soon, however few they are, and truncating a table would lock everybody out.
 */
const job = `
CREATE TABLE @.job (
  stamp bigint NOT NULL, seq bigint NOT NULL DEFAULT nextval('@.job_seq'), fence bigint NOT NULL DEFAULT 0,
  created_ms bigint NOT NULL, updated_ms bigint NOT NULL, expires_ms bigint, remember_ms bigint NOT NULL DEFAULT 0,
  waited_ms bigint, qid int NOT NULL, weight int NOT NULL DEFAULT 0,
  pool smallint NOT NULL DEFAULT 0, flags smallint NOT NULL DEFAULT 0, rank int NOT NULL DEFAULT 0,
  attempt int NOT NULL DEFAULT 1, crashes int NOT NULL DEFAULT 0,
  id text COLLATE "C" NOT NULL, task text NOT NULL, grp text COLLATE "C", codec text, meta text, error text, payload text NOT NULL, places text,
  arrival bigint, head bigint, hand bigint[], next_stamp bigint, next_created_ms bigint
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, vacuum_index_cleanup = on, vacuum_truncate = off);
CREATE UNIQUE INDEX job_id ON @.job (id, qid);
CREATE INDEX job_line ON @.job (qid, pool, rank, stamp, seq);
CREATE INDEX job_retry ON @.job (qid, attempt, seq) WHERE attempt > 1;
CREATE INDEX job_lane ON @.job (qid, grp, rank, stamp, seq) WHERE pool = 2;
CREATE INDEX job_expires ON @.job (qid, expires_ms) WHERE expires_ms IS NOT NULL;
`

/**
 * `bunch`: the jobs of one claim, of which `n` still run. Its lease is that of all but those that have a row with a lease of
 * their own in `beat`, and so is its worker: a job may have been adopted. They lie between the
 * places `lo` and `hi`, in the ranks from `lo_rank` to `hi_rank`, in one pool; 3 stands for 0 and 2.
 *
 * `bunch_left`: jobs that have ended in a transaction of a user, of which their bunches do not know yet. `told`: the number from
 * which on there are reports for joins. Such a transaction may stay open for long, so it must lock nothing but the row of its job.
 *
 * `checkpoint`: what a job has beside its row: its checkpoint, its log, its fields, and why it is to be cancelled. `expected`:
 * the jobs whose results somebody waits for.
 */
const claims = `
CREATE TABLE @.bunch (
  fence bigint PRIMARY KEY, lease_ms bigint NOT NULL, lo bigint NOT NULL, hi bigint NOT NULL, qid int NOT NULL, n int NOT NULL,
  lo_rank int NOT NULL, hi_rank int NOT NULL, pool smallint NOT NULL, alone boolean NOT NULL, worker text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX bunch_lease ON @.bunch (qid, lease_ms);
CREATE TABLE @.bunch_left (qid int NOT NULL, fence bigint NOT NULL, id text COLLATE "C" NOT NULL, grp text COLLATE "C", told bigint);
CREATE INDEX bunch_left_qid ON @.bunch_left (qid);
CREATE TABLE @.beat (
  qid int NOT NULL, id text COLLATE "C" NOT NULL, fence bigint NOT NULL, lease_ms bigint, started_ms bigint,
  host text, boot text, pidns text, pid bigint, ticks bigint, progress text, worker text, PRIMARY KEY (id, qid)
) WITH (fillfactor = 50);
CREATE INDEX beat_lease ON @.beat (qid, lease_ms) WHERE lease_ms IS NOT NULL;
CREATE TABLE @.checkpoint (
  qid int NOT NULL, id text COLLATE "C" NOT NULL, weight int NOT NULL DEFAULT 0, payload text, codec text, log text, fields text,
  reason text, PRIMARY KEY (id, qid)
);
CREATE TABLE @.expected (
  qid int NOT NULL, id text COLLATE "C" NOT NULL, waiter text NOT NULL, until_ms bigint NOT NULL, PRIMARY KEY (id, qid, waiter)
);
`

/** `ended`: dead jobs, kept results, and remembered ids, apart from the table that every call uses. */
const ended = `
CREATE TABLE @.ended (
  qid int NOT NULL, state smallint NOT NULL, flags smallint NOT NULL DEFAULT 0, rank int NOT NULL, attempt int NOT NULL, crashes int NOT NULL,
  seq bigint NOT NULL DEFAULT nextval('@.job_seq'), stamp bigint NOT NULL, created_ms bigint NOT NULL, finished_ms bigint NOT NULL,
  until_ms bigint, remember_ms bigint NOT NULL,
  id text COLLATE "C" NOT NULL, task text NOT NULL, grp text COLLATE "C", worker text, codec text, meta text, error text, reason text, payload text,
  result text, result_codec text, places text,
  started_ms bigint, host text, boot text, pidns text, pid bigint, ticks bigint, progress text, head bigint, PRIMARY KEY (id, qid)
);
CREATE INDEX ended_state ON @.ended (qid, state, finished_ms, seq);
CREATE INDEX ended_until ON @.ended (qid, until_ms) WHERE until_ms IS NOT NULL;
`

/** `death`: what dead jobs were when they died whose deaths are not reported yet. It stays as it is, whatever becomes of them. */
const deaths = `
CREATE TABLE @.death (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, qid int NOT NULL, id text COLLATE "C" NOT NULL, task text NOT NULL, attempt int NOT NULL,
  crashes int NOT NULL, died_ms bigint NOT NULL, error text, reason text, codec text, payload text NOT NULL
);
CREATE INDEX death_task ON @.death (qid, task, n);
`

/**
 * `queue`: a row for each shard; bounds are those of the whole queue. A shard that a reshard empties has a negative number,
 * and `resharding` is the number of shards on the way.
 *
 * `floor`: a place of each queue and priority below which nothing is left to take. `tally`: what calls have changed in the
 * counts of their queues, a row each; a fold adds the rows up. `call`: the enqueues of the last minute. A queue that is `limited` has,
 * or once had, lanes or a limit: its claims look before they take. If it is `bounded`, the end of a claim may make room for other jobs.
 *
 * `waiter`: who waits for which queue; who says so later has a greater number. `queue_state`: what changes often of a queue or topic, whose
 * latest version counts. Nobody waits at `waiter_floor` or below; no lease ends before `lease_floor`, which goes by the
 * shortest lease that a claim has had. `unheard`: it was rung for a job that is not due yet while nobody waited.
 */
const queues = `
CREATE TABLE @.queue (
  qid int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL, shard int NOT NULL DEFAULT 0,
  shards int NOT NULL DEFAULT 1, resharding int, kind text NOT NULL DEFAULT 'plain', ord text NOT NULL,
  exclusive text NOT NULL DEFAULT 'id', merge text NOT NULL DEFAULT 'all',
  stopped boolean GENERATED ALWAYS AS (paused OR resharding IS NOT NULL) STORED,
  paused boolean NOT NULL DEFAULT false, draining boolean NOT NULL DEFAULT false,
  limits text NOT NULL DEFAULT '{}', max_pending bigint, crash_limit int NOT NULL DEFAULT 3, results_limit bigint,
  dead_age_ms bigint, dead_count bigint, lost_at bigint,
  run bigint NOT NULL, spares_until bigint NOT NULL DEFAULT 0,
  limited boolean NOT NULL DEFAULT false, max_running bigint, max_per_group bigint,
  bounded boolean GENERATED ALWAYS AS (max_running IS NOT NULL OR max_per_group IS NOT NULL) STORED, held_until bigint,
  throttle text COLLATE "C", throttle_by text, UNIQUE (name, shard)
) WITH (fillfactor = 20);
CREATE INDEX queue_throttle ON @.queue (throttle) WHERE throttle IS NOT NULL;
CREATE TABLE @.floor (qid int, rank int, stamp bigint NOT NULL, PRIMARY KEY (qid, rank)) WITH (fillfactor = 20);
CREATE TABLE @.tally (
  qid int NOT NULL, waiting bigint NOT NULL DEFAULT 0, retries bigint NOT NULL DEFAULT 0, dead bigint NOT NULL DEFAULT 0,
  processed bigint NOT NULL DEFAULT 0, failed bigint NOT NULL DEFAULT 0, crashed bigint NOT NULL DEFAULT 0, expired bigint NOT NULL DEFAULT 0
);
CREATE INDEX tally_qid ON @.tally (qid);
CREATE TABLE @.call (n bigint GENERATED ALWAYS AS IDENTITY, at_ms bigint NOT NULL, qid int NOT NULL, ids text NOT NULL, counts int[], answers text);
CREATE INDEX call_at ON @.call (qid, at_ms);
CREATE SEQUENCE @.waiter_seq;
CREATE TABLE @.waiter (
  qid int NOT NULL, n bigint NOT NULL DEFAULT nextval('@.waiter_seq'), channel text NOT NULL, backend int NOT NULL, PRIMARY KEY (qid, n)
);
CREATE TABLE @.queue_state (
  qid int NOT NULL, version bigint NOT NULL, lead_worker text, lead_wake_at bigint, suspect_lead_worker text, suspect_lead_wake_at bigint,
  unheard boolean NOT NULL DEFAULT false, waiter_floor bigint NOT NULL DEFAULT 0, lease_floor bigint NOT NULL DEFAULT 0,
  shortest_lease bigint NOT NULL DEFAULT 3600000, PRIMARY KEY (qid, version)
);
`

/**
 * The changes of the tables since the first release, each a text of SQL that brings a schema of the version before to the next:
 * the first of them makes version 2. `tables` has them all. Functions are none of them: their names say their versions.
 */
export const tableChanges: readonly string[] = []

/** In this order they are made. */
export const tables: string = `
CREATE SEQUENCE @.job_seq CACHE 1;
CREATE SEQUENCE @.fence_seq;
CREATE TABLE @.meta (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);
${queues}${job}${claims}${ended}${deaths}${joinTables}${ordered}${recordsTables}${limitTables}`

/** The bits of `job.flags`. Nothing is looked up for a job that has none. */
export const jobFlags = {
  /** It fell due, or will, by itself. */
  later: 1,
  /** It has a row in `beat`. */
  beat: 2,
  /** It has a row in `checkpoint`. */
  checkpoint: 4,
  /** It is to be cancelled. */
  cancelling: 8,
  /** It is a member of joins: its end is reported. */
  member: 16,
  /** It is a join. */
  join: 32,
  /** It has rows in `step`. */
  steps: 64,
  /** It waits for a signal, with a row in `signal_wait`. */
  awaiting: 128,
  /** Its deaths are to be reported. */
  reports: 256,
} as const

/** The values of `ended.state`; the first two are those of `rows/job-row`. */
export const endedStates = { kept: 3, dead: 4, rememberedCompleted: 7, rememberedCancelled: 8 } as const
