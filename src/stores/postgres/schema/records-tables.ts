/**
 * The tables of a Postgres store whose calls are written as steps (`stores/sql`), which know their columns. Instants are in ms
 * on the clock of the server. `meta`, beside them, has the version of the schema and the lead of the schedules.
 */

import { historyCounts, historyGauges } from '../../sql/sql-history.js'

export const recordsTables: string = `
CREATE TABLE @.schedule (
  name text COLLATE "C" PRIMARY KEY, definition text NOT NULL, revision text NOT NULL, paused int NOT NULL,
  next_at bigint, last_at bigint, last_id text, ticked bigint NOT NULL DEFAULT 0, skipped bigint NOT NULL DEFAULT 0,
  missed bigint NOT NULL DEFAULT 0, created_at bigint NOT NULL, updated_at bigint NOT NULL
);
CREATE INDEX schedule_next ON @.schedule (next_at, name) WHERE next_at IS NOT NULL;
CREATE TABLE @.worker (
  id text COLLATE "C" PRIMARY KEY, record text NOT NULL, seen_at bigint NOT NULL, until bigint NOT NULL, signal text
) WITH (fillfactor = 50);
CREATE TABLE @.live_watch (queue text COLLATE "C", watcher text, until bigint NOT NULL, PRIMARY KEY (queue, watcher));
CREATE INDEX live_watch_until ON @.live_watch (until);
CREATE TABLE @.live_message (seq bigint PRIMARY KEY, queue text COLLATE "C" NOT NULL, message text NOT NULL);
CREATE TABLE @.history (
  queue text COLLATE "C", step int, at bigint, ${historyCounts.map((name) => `${name} bigint NOT NULL`).join(', ')},
  ${historyGauges.map((name) => `${name} bigint`).join(', ')}, PRIMARY KEY (queue, step, at)
) WITH (fillfactor = 50);
CREATE INDEX history_at ON @.history (step, at);
`
