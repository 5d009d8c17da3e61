/** The mutations of the SQLite store's SQL. */

import { mutationsIn } from './mutants.js'

export const sqliteMutations = mutationsIn(`
@ sqlite/rows/sqlite-transaction.js
* the rows of queues are kept though another process has written
- if (data_version === this.#seenVersion)
+ if (this.#seenVersion !== undefined)
@ sqlite/thread/sqlite-connection.js
* a read trusts the rows of queues that were kept from the last write
- transaction.forgetRows();
-             this.#patience
+ this.#patience
@ sqlite/work/sqlite-claim.js
* a claim takes the lowest priority first
-  ORDER BY rank, position, rid LIMIT ?)
+  ORDER BY rank DESC, position, rid LIMIT ?)
* an expired lease is recovered a millisecond late
- lease_until <= ?
+ lease_until < ?
* a due job is promoted without its instant of change
- UPDATE job SET state = 1, updated_at = ?
+ UPDATE job SET state = 1, updated_at = max(updated_at, 0 * ?)
* the alone mark of a claim is lost
- SET state = 2, fence = ?, worker = ?, alone = ?,
+ SET state = 2, fence = ?, worker = ?, alone = 0 * ?,
* a job that expired is ended and not counted
- queue.expired += ended.length
+ queue.expired += 0
* a job that was taken expires no more
- lease_until = ?, updated_at = ? WHERE rid IN
+ lease_until = ?, updated_at = ?, expires_at = NULL WHERE rid IN
* a job expires a millisecond late
-  <= ? ORDER BY expires_at
+  < ? ORDER BY expires_at
* of more expired jobs than one call ends, one is given
-  || hasExpired(queue, at.now)
! expiring
@ sqlite/work/sqlite-completion.js
* a completion does not look at the fence
- state = 2 AND fence = $
+ state = 2 AND fence >= 0 * $
* of many completions at once those that cannot be are told as done
- if (found !== count)
+ if (found === 0)
! settling
* a job that is completed leaves its notes behind
- noted = 'noted = 0'
+ noted = 'noted >= 0'
! checkpoints and logs
* of results that are kept together those that cannot be are told as kept
- if (found.has(id))
+ if (true)
! retention
* a result that is kept with others comes from nowhere
- coalesce(host, \${part(4)})
+ host
! retention
@ sqlite/work/sqlite-settle.js
* a beat may shorten the lease
- UPDATE job SET lease_until = max(lease_until, ?) WHERE
+ UPDATE job SET lease_until = ? WHERE
* startedAt is set by every beat
- started_at = coalesce(started_at, ?)
+ started_at = coalesce(?, started_at)
* the newest results are trimmed instead of the oldest
- state = 3 ORDER BY finished_at, rid LIMIT ?
+ state = 3 ORDER BY finished_at DESC, rid LIMIT ?
! retention
* a remembered id is forgotten a moment early
- qid = ?1 AND until <= ?2
+ qid = ?1 AND until <= ?2 + 1000
@ sqlite/rows/sqlite-job.js
* no death is kept
- changeOne(this.#keepDeath, this.#nextDeath.get().n, rid)
+ {}
* the number of a death comes again
- DO UPDATE SET value = value + 1
+ DO UPDATE SET value = 1 - value
! deaths
* a checkpoint stays where its job is completed with a kept result
- this.checkpoints.dropCheckpoint(job.rid)
+ {}
! checkpoints and logs
* a job that was buried by hand expires in the morgue
- suspect = 0, expires_at = NULL, attempt
+ suspect = 0, attempt
@ sqlite/rows/sqlite-queue.js
* the row of a queue loses its count of failures
- 'qid', 'name',
+ 'qid', 'name', 'failed',
@ sqlite/records/sqlite-records.js
* a job that has fields is not marked as noted
- this.#markNoted.run(job.rid)
+ {}
* fields that are set replace all that were
- changedFields(job.noted ? checkpoints.fieldsOf(job.rid) : {}, changes)
+ changedFields({}, changes)
@ sqlite/work/sqlite-enqueue.js
* a job that takes the place of another forgets when that came in
- this.#keepCreatedAt.run(before.created_at, queue.qid, job.id)
+ {}
@ rows/job-row.js
* a running job is replaced
- return job.state > ready || isTied ? 'running' : 'waiting'
+ return 'waiting'
* nothing remains of a job that is cancelled while it runs
- const isRunning = state === running
+ const isRunning = false
@ sqlite/records/sqlite-registry.js
* a claim is adopted whoever holds it
- fence = ? AND worker = ?
+ fence = ? AND ? IS NOT NULL
! adoption
* a superseded claim is adopted
- state = 2 AND fence = ? AND worker = ?
+ state = 2 AND fence >= ? AND worker = ?
! adoption
`)
