/**
 * The mutations of the reports of members in the SQLite store: for each way in which a member of a join can end, one that
 * drops its report; and some that report what is no end, or count an end twice.
 */

import { mutationsIn } from '../models/mutants.js'

export const sqliteJoinMutations = mutationsIn(`
@ sqlite/work/sqlite-settle.js
* a completed member is unheard
- jobs.end(queue, job, becomes, now, how.result);
+ becomes === 'completed' && (job.noted = 0), jobs.end(queue, job, becomes, now, how.result);
! the ends of members
* a member is unheard that its handler cancels, or that is released after its cancellation was asked for
- jobs.end(queue, job, becomes, now, how.result);
+ becomes === 'cancelled' && (job.noted = 0), jobs.end(queue, job, becomes, now, how.result);
! the ends of members
* a completed member with a kept result is unheard
- jobs.keep(queue, job, how.result,
+ (job.noted = 0), jobs.keep(queue, job, how.result,
! the ends of members
* a member that its handler buries is unheard
- jobs.bury(queue, job, how.reason, undefined, now);
+ (job.noted = 0), jobs.bury(queue, job, how.reason, undefined, now);
! the ends of members
* the last failure of a member is unheard
- jobs.exhaust(queue, job, how.reason, undefined, now);
+ (job.noted = 0), jobs.exhaust(queue, job, how.reason, undefined, now);
! the ends of members
* a dead member beyond the bound or the age of the morgue is unheard
- this.#transaction.jobsOf(queue).drop(queue, job);
+ (job.noted = 0), this.#transaction.jobsOf(queue).drop(queue, job);
! joins that die
@ sqlite/work/sqlite-completion.js
* members that complete together are unheard
- if (looked.members > 0)
+ if (looked.members < 0)
! the ends of members
* a member that completes alone is unheard
- if (places !== null)
+ if (places === undefined)
! the ends of members
* members of one set that complete together are unheard
- this.#report(queue, own, least, results);
+ void 0;
! the ends of members
* members of several sets that complete together are unheard
- this.#report(queue, [own[i]], places, [results?.[i]]);
+ void 0;
! the ends of members
* the results of members that complete are not handed over
- placeRowsIn(places), fate: 'completed', left }
+ placeRowsIn(places), fate: 'completed', left: [] }
! the ends of members
@ sqlite/work/sqlite-crash.js
* a member is unheard that crashes after its cancellation was asked for
- jobs.end(queue, job, 'cancelled', now);
+ (job.noted = 0), jobs.end(queue, job, 'cancelled', now);
! the ends of members
* a member that crashes too often is unheard
- jobs.exhaust(queue, job, 'crashed', undefined, now);
+ ((job.noted = 0), jobs.exhaust(queue, job, 'crashed', undefined, now));
! the ends of members
@ sqlite/work/sqlite-claim.js
* an expired member is unheard
- this.#transaction.jobs.expire(queue, job, now);
+ (job.noted = 0), this.#transaction.jobs.expire(queue, job, now);
! the ends of members
@ sqlite/records/sqlite-records.js
* a waiting member that is cancelled is unheard
- jobs.end(row, job, 'cancelled', now);
+ (job.noted = 0), jobs.end(row, job, 'cancelled', now);
! the ends of members
* a member that an operator buries is unheard
- bury(row, job, 'buried', undefined, now)
+ bury(row, { ...job, noted: 0 }, 'buried', undefined, now)
! the ends of members
* a member that is deleted or cleared is unheard
- dropAll(row, jobs);
+ dropAll(row, jobs.map((job) => ({ ...job, noted: 0 })));
! the ends of members
@ sqlite/records/sqlite-join-calls.js
* a member that its dead join cancels is unheard by its other joins
- jobs.end(queue, job, 'cancelled', now);
+ (job.noted = 0), jobs.end(queue, job, 'cancelled', now);
! the ends of members
@ sqlite/work/sqlite-enqueue.js
* a dead member that another job replaces is unheard
- this.#transaction.jobs.drop(queue, before);
+ (before.noted = 0), this.#transaction.jobs.drop(queue, before);
! joins that die
* a dead member beyond its age whose id comes in anew is unheard
- this.#transaction.jobs.drop(queue, leftover);
+ (leftover.noted = 0), this.#transaction.jobs.drop(queue, leftover);
! joins that die
@ sqlite/rows/sqlite-job.js
* no death of a member is heard
- this.#joins.ended(rid, 'dead', { error });
+ void 0;
! the ends of members
* the error of a dead member is not handed over
- this.#joins.ended(rid, 'dead', { error });
+ this.#joins.ended(rid, 'dead');
! the ends of members
* an expired member is reported as cancelled
- this.#joins.ended(job.rid, 'expired');
+ this.#joins.ended(job.rid, 'cancelled');
! the ends of members
* a retry that is due later is reported
- schedule(queue, job, delayMs, now) {
+ schedule(queue, job, delayMs, now) { if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'dead');
! the ends of members
* a crash is reported
- suspect(queue, job, now) {
+ suspect(queue, job, now) { if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'dead');
! the ends of members
* a release is reported
- requeue(queue, job, now) {
+ requeue(queue, job, now) { if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'cancelled');
! the ends of members
* a cancellation is reported when it is asked for
- requestCancel(_queue, job) {
+ requestCancel(_queue, job) { if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'cancelled');
! the ends of members
* a revived member is not outstanding again
- this.#joins.ended(job.rid, 'revived');
+ void 0;
! joins that die
@ sqlite/rows/sqlite-joins.js
* what a set counts is not written
- this.#host.run(writeSet(set));
+ void set;
! the ends of members
* only the first join of a member hears of its end
- of places) {
+ of places.slice(0, 1)) {
! the ends of members
* the death of a join by its member is unheard by the joins that wait for it
- this.#host.jobs.bury(queue, job, reason, error, now);
+ this.#host.jobs.bury(queue, { ...job, noted: 0 }, reason, error, now);
! the ends of members
* a revived member changes a join that will run
- || !this.isOpen(join))
+ || (report.fate !== 'revived' && !this.isOpen(join)))
! joins
@ sqlite/rows/sqlite-join-ends.js
* an end counts twice
- counts[fate] += 1;
+ counts[fate] += 2;
! the ends of members
* ends that come together count twice
- counts.completed += 1;
+ counts.completed += 2;
! the ends of members
* a dead member that is deleted is reported again, though its set went on
-  || onDead === 'go-on'
+  || false
! joins that die
`)

/** Changes by which reports come twice. */
export const sqliteRepeats = mutationsIn(`
@ sqlite/rows/sqlite-joins.js
* each report comes twice
- this.#reports.push(report);
+ this.#reports.push(report, report);
! the ends of members
* each report comes twice, to joins that die of it
- this.#reports.push(report);
+ this.#reports.push(report, report);
! joins that die
`)
