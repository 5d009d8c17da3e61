/** The tables of a Postgres store for limits: the lanes of groups, and what throttles have counted. */

import { turnStep } from '../../rules/fair-share.js'

/**
 * `lane`: a group of a queue that has waiting jobs, is held, or is paused; `''` is for the jobs without a group. It has a
 * `turn`, or is shut until an instant in ms, or is `blocked` until a claim of its group ends, or has nothing to start before
 * `due`, in µs. Who makes work for a lane first locks it `FOR KEY SHARE`; who takes it out of the turns locks it
 * `FOR UPDATE SKIP LOCKED`, and then looks for work once more. So no lane is forgotten, and nobody waits.
 *
 * `lane_count`: what claims and their ends have changed in the number of running jobs of a group; a fold adds the rows up.
 */
const lanes = `
CREATE SEQUENCE @.lane_turn INCREMENT ${turnStep} MINVALUE 0;
CREATE TABLE @.lane (
  qid int NOT NULL, grp text COLLATE "C" NOT NULL, turn bigint, shut_until bigint, held_until bigint, due bigint,
  blocked boolean NOT NULL DEFAULT false, paused boolean NOT NULL DEFAULT false, PRIMARY KEY (qid, grp)
) WITH (fillfactor = 50);
CREATE INDEX lane_by_turn ON @.lane (qid, turn) WHERE turn IS NOT NULL;
CREATE INDEX lane_shut ON @.lane (qid, shut_until, grp) WHERE shut_until IS NOT NULL;
CREATE INDEX lane_due ON @.lane (qid, due) WHERE due IS NOT NULL;
CREATE INDEX lane_held ON @.lane (qid, held_until, grp) WHERE held_until IS NOT NULL;
CREATE INDEX lane_paused ON @.lane (qid, grp) WHERE paused OR blocked;
CREATE TABLE @.lane_count (qid int NOT NULL, grp text COLLATE "C" NOT NULL, n int NOT NULL);
CREATE INDEX lane_count_grp ON @.lane_count (qid, grp);
`

/**
 * `pace`: the versions of a scope, of which the latest counts. Each claim under a limit adds one: a row that is updated so
 * often would be a long chain while an old transaction is open. A scope is that of a throttle, or a queue without one. `state` is
 * `PaceState`; its instants from `from_ms` on are `late_ms` later. `counter`, `start` and `rate` are the rows of
 * `rows/throttle-row`; `spans` says limit, counted ms and buffer of each rule.
 */
const throttles = `
CREATE TABLE @.pace (
  scope text COLLATE "C" NOT NULL, version bigint NOT NULL, from_ms bigint NOT NULL DEFAULT 0, late_ms bigint NOT NULL DEFAULT 0,
  state text NOT NULL, PRIMARY KEY (scope, version)
);
CREATE TABLE @.counter (
  tid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, scope text COLLATE "C" NOT NULL, subject text COLLATE "C" NOT NULL,
  base bigint NOT NULL, total bigint NOT NULL, last_at bigint, grids text NOT NULL, epoch int NOT NULL, recoveries int NOT NULL,
  shift_ms bigint NOT NULL, UNIQUE (scope, subject)
) WITH (fillfactor = 50);
CREATE INDEX counter_last ON @.counter (scope, recoveries, last_at);
CREATE TABLE @.start (tid bigint NOT NULL, at bigint NOT NULL, nth bigint NOT NULL, PRIMARY KEY (tid, at));
CREATE INDEX start_nth ON @.start (tid, nth);
CREATE TABLE @.rate (
  scope text COLLATE "C" NOT NULL, grp text COLLATE "C" NOT NULL, rules text NOT NULL, spans json NOT NULL, PRIMARY KEY (scope, grp)
);
`

export const limitTables: string = lanes + throttles
