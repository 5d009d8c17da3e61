/**
 * The tables of ordered queues. An id has one row in `job`, its header, and its payloads beside it, by the number `head` of
 * the header. A push only inserts: it holds its headers by FOR KEY SHARE, which neither a claim nor an end waits for.
 *
 * While an id runs, `job.hand` names the payloads in hand; the others of its head wait behind it. They are due when the first
 * of them is, unless `job.next_stamp` and `next_created_ms` say otherwise, and their place is that of its arrival: headers and payloads
 * are numbered by one sequence. Dead payloads have a head of their own, which a
 * row of `ended` names.
 *
 * Payloads that are one (`digest`), and those before a payload that came while only the latest was to be kept, are merged when
 * they are read: see `payload-sets`.
 *
 * `inbox`: what users' transactions have pushed, until a claim comes: see `inbox-functions`.
 */
export const ordered = `
CREATE SEQUENCE @.score_seq;
CREATE TABLE @.payload (
  seq bigint NOT NULL, head bigint NOT NULL, due bigint NOT NULL, created_ms bigint NOT NULL,
  score float8 NOT NULL, weight int NOT NULL, latest boolean NOT NULL, digest uuid NOT NULL,
  codec text, meta text, payload text NOT NULL, PRIMARY KEY (head, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
  vacuum_index_cleanup = on, vacuum_truncate = off);
CREATE TABLE @.inbox (
  n bigint GENERATED ALWAYS AS IDENTITY, crc bigint NOT NULL, run bigint, score float8, weight int NOT NULL, digest uuid NOT NULL,
  name text COLLATE "C" NOT NULL, id text NOT NULL, task text NOT NULL, grp text, codec text, meta text, payload text NOT NULL
);
CREATE INDEX inbox_name ON @.inbox (name, n);
`
