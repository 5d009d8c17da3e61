/** The mutations of the functions of the Postgres store, by the kind of sequences that must show them. */

import type { SequenceKind } from 'millrace/store-testing'
import { type Mutation, mutationsIn } from './mutants.js'

const plain = `
@ postgres/work/step-function.js
* a claim takes the last to come first
- ORDER BY qid, pool, rank, stamp, seq LIMIT lim - cardinality(got) FOR NO KEY UPDATE SKIP LOCKED) l) x
+ ORDER BY qid, pool, rank, stamp DESC, seq DESC LIMIT lim - cardinality(got) FOR NO KEY UPDATE SKIP LOCKED) l) x
* a claim takes jobs two ms before they are due
- WHEN 'lifo' THEN 9223372036854775807 ELSE t END;
+ WHEN 'lifo' THEN 9223372036854775807 ELSE t + 2000 END;
* a claim does not count the retries that it takes
- y AS (INSERT INTO @.tally (qid, waiting, retries) SELECT q.qid, -count(*), -count(*) FILTER (WHERE attempt > 1) FROM u)
+ y AS (INSERT INTO @.tally (qid, waiting, retries) SELECT q.qid, -count(*), 0 FROM u)
* a lease lasts a ms longer
- SELECT f, ms + p_leases[i], min(stamp)
+ SELECT f, ms + p_leases[i] + 1, min(stamp)
* the alone mark of a claim is lost
- max(pool), p_alone, p_worker FROM u)
+ max(pool), false, p_worker FROM u)
* a claim does not tell that suspects are left
- suspects := EXISTS (SELECT FROM @.job WHERE qid = q.qid AND pool = 1 AND fence = 0 AND
+ suspects := EXISTS (SELECT FROM @.job WHERE false AND
* a lease is found expired a ms late
- SELECT FROM @.bunch WHERE qid = q.qid AND lease_ms <= ms
+ SELECT FROM @.bunch WHERE qid = q.qid AND lease_ms < ms
* a completion does not look at the fence
- AND qid + 0 = p_q AND fence = p_fence AND p_fence > 0 RETURNING *)
+ AND qid + 0 = p_q AND fence > 0 AND p_fence > 0 RETURNING *)
* the ids of completed jobs are forgotten
- FROM d WHERE remember_ms > 0
+ FROM d WHERE remember_ms > 1000000000000
* the next due instant is looked for a second later
- AND stamp > p_t AND fence = 0
+ AND stamp > p_t + 1000000 AND fence = 0
@ postgres/work/end-functions.js
* a job that fails forgets that its death is to be reported
- flags = o.flags & 372 | CASE e."to" WHEN 'later' THEN 1 ELSE 0 END
+ flags = o.flags & 116 | CASE e."to" WHEN 'later' THEN 1 ELSE 0 END
! deaths
* the death of a job is not kept
- IF e."to" = 'dead' AND o.flags & 256 > 0 THEN
+ IF false THEN
! deaths
* a retry is due a ms later
- ELSE (t + e.delay) * way END
+ ELSE (t + e.delay + 1000) * way END
* the crashes of a job that goes back are forgotten
- attempt = e.attempt, crashes = e.crashes, error = e.error,
+ attempt = e.attempt, crashes = 0, error = e.error,
* dead jobs are not counted
- (e."to" = 'dead')::int, coalesce(e.count = 'processed'
+ 0, coalesce(e.count = 'processed'
* the newest results are trimmed instead of the oldest
- WHERE qid = p_q AND state = 3 ORDER BY qid, state, finished_ms, seq
+ WHERE qid = p_q AND state = 3 ORDER BY qid, state, finished_ms DESC, seq DESC
! retention
* the newest dead jobs are trimmed instead of the oldest
- WHERE qid = p_q AND state = 4 ORDER BY qid, state, finished_ms, seq
+ WHERE qid = p_q AND state = 4 ORDER BY qid, state, finished_ms DESC, seq DESC
! retention
* a job that expires is found a ms late
- expires_ms <= ms AND fence = 0 ORDER BY expires_ms
+ expires_ms < ms AND fence = 0 ORDER BY expires_ms
* a job with a lease of its own never crashes
- SELECT fence, lease_ms, id FROM @.beat WHERE qid = p_q AND lease_ms <= ms
+ SELECT fence, lease_ms, id FROM @.beat WHERE qid = p_q AND lease_ms < 0
! leasing
@ postgres/work/postgres-extend.js
* a beat may shorten the lease
- lease_ms = greatest(lease_ms, ms + p_lease) WHERE
+ lease_ms = ms + p_lease WHERE
* the instant of the start is set by every beat
- started_ms = coalesce(o.started_ms, e.started)
+ started_ms = coalesce(e.started, o.started_ms)
! leasing
* a beat is not told of a wish to cancel
- json_build_array(id, flags & 8 > 0)
+ json_build_array(id, false)
! cancelling what runs
@ postgres/work/enqueue-functions.js
* a delay is a ms longer
- coalesce(u.run, t + coalesce(u.delay, 0)) AS due
+ coalesce(u.run, t + coalesce(u.delay, 0) + 1000) AS due
* a bounded queue takes one job more
- wanted > 0 AND wanted > room THEN
+ wanted > 0 AND wanted > room + 1 THEN
* a job expires a ms later
- t / 1000 + expires,
+ t / 1000 + expires + 1,
@ postgres/records/record-functions.js
* the second death of a job that was revived is not kept
- e.flags & 368 | CASE WHEN has_notes
+ e.flags & 112 | CASE WHEN has_notes
! deaths
* a revived job has its old place
- nextval('@.job_seq') * way, e.seq, t * way,
+ nextval('@.job_seq') * way, e.seq, e.stamp * way,
`

const ordered = `
@ postgres/ordered/push-functions.js
* every payload of a new id is told as added
- WHEN nth = 1 AND id = ANY (made) THEN 'a'
+ WHEN id = ANY (made) THEN 'a'
* payloads of one call get their scores backwards
- (first_score + o - 1)::float8 / 1000
+ (first_score - o)::float8 / 1000
* a bounded shard takes one payload more
- growth > (q.max_pending + q.shards - 1)
+ growth > 1 + (q.max_pending + q.shards - 1)
@ postgres/ordered/payload-sets.js
* of equal payloads the last in order stays
- p.digest ORDER BY p.score, p.seq) AS nth
+ p.digest ORDER BY p.score DESC, p.seq DESC) AS nth
* where only the latest is kept the first stays
- ORDER BY score DESC, seq DESC) = 1
+ ORDER BY score, seq) = 1
@ postgres/ordered/shard-claim.js
* payloads that a claim leaves count as taken
- array_agg(seq ORDER BY score, seq) FILTER (WHERE taken) AS hand
+ array_agg(seq ORDER BY score, seq) AS hand
* a batch does not have its shard for itself
- IF EXISTS (SELECT FROM @.bunch WHERE qid = q.qid) THEN p_limit := 0; END IF;
+ IF false THEN p_limit := 0; END IF;
@ postgres/ordered/ordered-end-functions.js
* payloads that come behind a job that failed begin with its attempt
- next_created_ms = NULL, attempt = 1, crashes = 0, error = NULL,
+ next_created_ms = NULL, crashes = 0, error = NULL,
! ends of claims in an ordered queue
* of several payloads only the first is buried
- WHERE head = o.head AND seq = ANY (p_seqs);
+ WHERE head = o.head AND seq = p_seqs[1];
* one payload that is done is run again
- IF e.done > 0 THEN
+ IF e.done > 1 THEN
* of two payloads both are dead if the first is
- IF to_place = 'exhausted' AND cardinality(hand) > 1 THEN
+ IF to_place = 'exhausted' AND cardinality(hand) > 2 THEN
* what a claim has left is as old as its oldest payload
- coalesce(j.next_created_ms, w.created_ms, t / 1000)
+ coalesce(w.created_ms, t / 1000)
`

const limited = `
@ postgres/limits/limit-functions.js
* a job of a paused group gives its lane a turn
- turn = CASE WHEN NOT paused THEN turns[i] END, blocked = paused
+ turn = turns[i], blocked = paused
! pauses of groups
* a short hold of a group ends a longer one
- held_until = greatest(l.held_until, p_until), turn = NULL
+ held_until = p_until, turn = NULL
* a short hold of a queue ends a longer one
- held_until = greatest(held_until, p_until), limited = true
+ held_until = p_until, limited = true
@ postgres/limits/apply-function.js
* a lane that is empty forgets its hold
- IF next_at IS NULL AND NOT l.paused AND coalesce(l.held_until * 1000, 0) <= t THEN
+ IF next_at IS NULL AND NOT l.paused THEN
! holds
* a lane gives its last job first
- ORDER BY qid, grp, rank, stamp, seq, id LIMIT u.n
+ ORDER BY qid, grp, rank, stamp DESC, seq DESC, id LIMIT u.n
* what runs of a group is counted backwards
- INSERT INTO @.lane_count SELECT p_q, grp, count(*) FROM u
+ INSERT INTO @.lane_count SELECT p_q, grp, -count(*) FROM u
@ postgres/schema/postgres-tables.js
* the end of a claim under a bound per group gives no turn
- (max_running IS NOT NULL OR max_per_group IS NOT NULL)
+ (max_running IS NOT NULL)
@ postgres/limits/look-function.js
* maxRunning bounds each shard
- SELECT coalesce(sum(b.n), 0) FROM @.bunch b WHERE b.qid = ANY (siblings)
+ SELECT 0 FROM @.bunch b WHERE b.qid = ANY (siblings)
* a shut lane opens a ms late
- AND shut_until <= ms ORDER BY qid, shut_until, grp LIMIT least
+ AND shut_until < ms ORDER BY qid, shut_until, grp LIMIT least
* the hold of a queue holds nothing
- 'held', q.held_until,
+ 'held', NULL,
* jobs elsewhere count as jobs without a group
- 'elsewhereFree', cardinality(others) > 0 AND EXISTS (SELECT FROM @.job j WHERE j.qid = ANY (others) AND j.pool = 0
+ 'elsewhereFree', cardinality(others) > 0 AND EXISTS (SELECT FROM @.job j WHERE j.qid = ANY (others)
`

const joined = `
@ postgres/joins/join-reports.js
* of members that complete together one is counted
- SET completed = completed + c.n
+ SET completed = completed + 1
! joins
* a member that is cancelled does not end a join that holds
- IF s.on_dead = 'fail' OR (s.on_dead = 'hold' AND e.fate <> 1) THEN
+ IF s.on_dead = 'fail' THEN
* the delay of a join is forgotten
- due := coalesce(jj.run_at, ms + jj.delay_ms);
+ due := jj.run_at;
* only dead members let a join go on
- dead + cancelled + expired ELSE 0
+ dead ELSE 0
! the ends of members
* a revived join has no new time to wait
- late_at = ms + within_ms, seal_by
+ late_at = late_at, seal_by
! joins that die
* results are kept that nobody has asked for
- CASE p->>5 WHEN '1' THEN p_result END
+ p_result
! joins
`

const stepped = `
@ postgres/joins/postgres-job-steps.js
* a signal that was taken is told as a duplicate
- RETURN to_json(CASE before WHEN 2 THEN 'duplicate' ELSE 'gone' END)
+ RETURN to_json('duplicate'::text)
* a wait ends in vain a ms late
- WHERE until <= ms ORDER BY until, id, qid
+ WHERE until < ms ORDER BY until, id, qid
* a job whose signal came has no steps
- flags = flags & ~128 | 64, updated_ms
+ flags = flags & ~128, updated_ms
@ postgres/work/end-functions.js
* a signal that came first wakes nobody
- e."to" := 'back'; woke := true;
+ woke := true;
* a job that is to run now sleeps on
- UPDATE @.step SET until = ms WHERE id = o.id
+ UPDATE @.step SET until = until WHERE id = o.id
! steps
`

export const postgresMutations: ReadonlyMap<SequenceKind, readonly Mutation[]> = new Map(
  Object.entries({ plain, ordered, limited, joined, stepped }).map(([kind, table]) => [
    kind as SequenceKind,
    mutationsIn(table),
  ]),
)
