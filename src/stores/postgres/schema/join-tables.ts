/** The tables of a Postgres store for joins, and for the steps and signals of jobs. Jobs without any have no row in them. */

/**
 * `join_report`: the ends of members that their joins have not heard of yet, a row for each place. An end inserts them in its
 * own transaction, and so waits for nobody; a delivery takes them. `depth`: how many joins have died on the way to it. Its second index
 * has what must be heard in its order, which a join of members that complete has none of. Those with numbers below
 * `join_job.told_from` are of an earlier join of its id.
 *
 * `join_end`: who has ended in a set. `join_set.jid` is null once its join has ended and its ends are still to be deleted.
 * The row of its job is the lock of a join.
 */
const joins = `
CREATE TABLE @.join_job (
  jid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, qid int NOT NULL, id text COLLATE "C" NOT NULL,
  within_ms bigint, seal_within_ms bigint NOT NULL, run_at bigint, delay_ms bigint NOT NULL, expires_ms bigint, cancels_rest int NOT NULL,
  late_at bigint, seal_by bigint NOT NULL, due_at bigint, bytes bigint NOT NULL DEFAULT 0, cancelling int NOT NULL DEFAULT 0,
  told_from bigint NOT NULL DEFAULT 0, UNIQUE (id, qid)
) WITH (fillfactor = 70);
CREATE INDEX join_due ON @.join_job (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX join_cancelling ON @.join_job (jid) WHERE cancelling = 1;
CREATE TABLE @.join_set (
  sid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, jid bigint, name text COLLATE "C" NOT NULL, queue text COLLATE "C" NOT NULL,
  ids text COLLATE "C" NOT NULL, is_many int NOT NULL, on_dead text NOT NULL, keeps_results int NOT NULL, size bigint,
  added bigint NOT NULL DEFAULT 0, completed bigint NOT NULL DEFAULT 0, dead bigint NOT NULL DEFAULT 0, cancelled bigint NOT NULL DEFAULT 0,
  expired bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX join_set_jid ON @.join_set (jid);
CREATE TABLE @.join_end (
  sid bigint NOT NULL, number bigint NOT NULL, fate smallint NOT NULL, codec text, error text, payload text, PRIMARY KEY (sid, number)
);
CREATE TABLE @.join_report (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, depth int NOT NULL DEFAULT 0, queue text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
  set_name text COLLATE "C" NOT NULL, number bigint NOT NULL, fate smallint NOT NULL, member_qid int NOT NULL, member text COLLATE "C" NOT NULL,
  codec text, error text, payload text
);
CREATE INDEX join_report_first ON @.join_report (queue, id, n) WHERE fate <> 0;
CREATE TABLE @.join_failed (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL, id text NOT NULL, task text NOT NULL, reason text NOT NULL);
`

/** `step`: the entries of jobs. `signal_wait`: the jobs that wait for a signal. */
const steps = `
CREATE TABLE @.step (
  qid int NOT NULL, id text COLLATE "C" NOT NULL, is_signal int NOT NULL, name text COLLATE "C" NOT NULL, n bigint GENERATED ALWAYS AS IDENTITY,
  kind smallint NOT NULL, at bigint NOT NULL, until bigint, bytes int NOT NULL, codec text, payload text, PRIMARY KEY (id, qid, is_signal, name)
);
CREATE TABLE @.signal_wait (qid int NOT NULL, id text COLLATE "C" NOT NULL, signal text COLLATE "C" NOT NULL, until bigint, PRIMARY KEY (id, qid));
CREATE INDEX signal_wait_until ON @.signal_wait (until) WHERE until IS NOT NULL;
`

export const joinTables = `${joins}${steps}`
