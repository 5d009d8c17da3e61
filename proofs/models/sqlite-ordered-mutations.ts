/** The mutations of the SQLite store's ordered queues. */

import { mutationsIn } from './mutants.js'

export const sqliteOrderedMutations = mutationsIn(`
@ sqlite/rows/sqlite-ordered-job.js
* an entry in the morgue has the fields of the live job
- this.checkpoints.drop(rid)
+ {}
* the last failure buries all payloads in hand
- this.payloads.head(setOf(job), 2)
+ this.payloads.head(setOf(job), -1).reverse()
* what is left after the last failure goes on with the attempts made
- { ...job, attempt: 1, crashes: 0, error: null, reason: null }
+ { ...job, crashes: 0, error: null, reason: null }
* all is done, though it is said of a part
- this.payloads.dropFirst(setOf(job), count)
+ this.payloads.drop(setOf(job))
* what is left behind payloads that are done has failed as often as they had
- { attempt: 1, crashes: 0, error: null }
+ { crashes: 0, error: null }
* what waits beside is lost when the claim fails
- const successor = successorSet(job);
-             queue.pending += payloads.join(
+ const successor = successorSet(job);
+             queue.pending -= payloads.drop(successor);
+             queue.pending += payloads.join(
* what waits beside is lost when the claim is completed
- if (stamp === null)
+ if (stamp !== undefined)
* what waits beside a cancelled job comes back
- super.requestCancel(queue, job);
+ super.requestCancel(queue, job);
+         return;
* what waits beside has the stamp of the job that runs
- this.#setSuccessor.run(at.stamp, now, Number(at.state === ready), job.rid)
+ this.#setSuccessor.run(job.stamp, now, Number(at.state === ready), job.rid)
* what waits beside for the end of the run alone waits for a time when the clock is set back
- isReady === 1 ? ready : stateAt(stamp, now)
+ stateAt(stamp, now)
! order when the clock is set
* what waits beside is ready before its time
- dueAt(stamp) > now ? scheduled : ready
+ ready
* jobs of one stamp go by the end of their id
- Buffer.from(id), stamp, error, part
+ Buffer.from(id).reverse(), stamp, error, part
* a burial forgets what of the id was buried before
- this.payloads.join(set, setOf(before), queue.merge);
+ this.payloads.drop(setOf(before));
+             this.payloads.join(set, setOf(before), queue.merge);
* a morgue entry keeps the header of the first burial
- this.#updateDead, task, stamp, attempt,
+ this.#updateDead, before.task, before.stamp, before.attempt,
* what is revived keeps its old place
- const stamp = takeStamp(queue, now);
-         const live
+ const { stamp } = job;
+         const live
* a reshard or a move loses the morgue
- isHidden(from, job, now))
+ job.state === dead)
* jobs that come from another shard are ready at once
- job.state === ready ? ready : stateAt(stamp, now)
+ ready
@ sqlite/rows/sqlite-payloads.js
* of equal payloads the maximal score wins
- equal.score > score
+ equal.score < score
* of two sets with equal payloads the later stays
- (other.score, other.seq) < (payload.score, payload.seq)
+ (other.score, other.seq) > (payload.score, payload.seq)
* merge 'latest' keeps the oldest
- ORDER BY score DESC, seq DESC LIMIT 1
+ ORDER BY score, seq LIMIT 1
* payloads of one score are handed over latest first
- part = ? ORDER BY score, seq LIMIT ?
+ part = ? ORDER BY score, seq DESC LIMIT ?
* a claim of some payloads takes all of the same score
- (score, seq) <= (?4 / ?5 / ?6, ?7)
+ (score, seq) <= (?4 / ?5 / ?6, 1000000 + ?7)
@ rows/payload-row.js
* payloads of one score are one whatever they say
- hash('sha256', content, 'buffer')
+ hash('sha256', merge === 'distinct' ? content : payloadMark(job, merge, place), 'buffer')
* one payload less than asked for is handed over
- rows.length === limit
+ rows.length === Math.max(1, limit - 1)
* equal payloads are one whatever the rule
- payloadMark(job, merge, place)
+ payloadMark(job, 'distinct', place)
* merge distinct keeps all
- payloadMark(job, merge, place)
+ payloadMark(job, 'all', place)
@ sqlite/work/sqlite-enqueue.js
* equal payloads of one call are one if they have no score
- place: { callId: from, place: i }
+ place: { callId: from, place: 0 }
* equal payloads at the same place of two calls are one if they have no score
- place: { callId: from, place: i }
+ place: { callId: '', place: i }
* maxPending counts jobs
- share(queue, queue.max_pending) - queue.pending
+ share(queue, queue.max_pending) - queue.ready - queue.scheduled
@ sqlite/work/sqlite-settle.js
* what is done goes back with the others
- this.#transaction.orderedJobs.dropDone(job, item.done)
+ {}
@ rules/claim-end.js
* a cancelled job that fails for the last time is buried
- (!last || isOrdered)
+ !last
@ sqlite/work/sqlite-ordered-claim.js
* what maxPayloads left is as old as the claim
- takeStamp(queue, taking.now), job.created_at, job.rid
+ takeStamp(queue, taking.now), taking.now, job.rid
* a claim has the fence of the one before it
- nextFence(queue.last_fence, taking.now)
+ Math.max(queue.last_fence, taking.now * 1000)
@ sqlite/work/sqlite-completion.js
* many completions at once do not look at successors
-  AND successor_stamp IS NULL
! ends of claims in an ordered queue
@ rows/queue-row.js
* a shard under a running batch grants
- running > 0 && kind === 'ordered'
+ running > 1 && kind === 'ordered'
* bounds are those of each shard
- Math.ceil(bound / shards)
+ bound
@ sqlite/records/sqlite-reshard.js
* new shards begin with the stamp of the shard that is behind
- Math.max(...old.map((row) => row.last_stamp))
+ Math.min(...old.map((row) => row.last_stamp))
* new shards begin with the fence of the shard that is behind
- Math.max(...old.map((row) => row.last_fence))
+ Math.min(...old.map((row) => row.last_fence))
`)
