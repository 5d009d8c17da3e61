/**
 * The mutations of the reports of members in the memory store: for each way in which a member of a join can end, one that
 * drops its report; and some that report what is no end, or count an end twice.
 */

import { mutationsIn } from '../models/mutants.js'

export const memoryJoinMutations = mutationsIn(`
@ memory/work/memory-settle.js
* a completed member is unheard
- queue.end(job, becomes, now, how.result);
+ becomes === 'completed' && (job.spec = { ...job.spec, memberOf: undefined }), queue.end(job, becomes, now, how.result);
! the ends of members
* a member is unheard that its handler cancels, or that is released after its cancellation was asked for
- queue.end(job, becomes, now, how.result);
+ becomes === 'cancelled' && (job.spec = { ...job.spec, memberOf: undefined }), queue.end(job, becomes, now, how.result);
! the ends of members
* the result of a completed member is not handed over
- queue.end(job, becomes, now, how.result);
+ queue.end(job, becomes, now);
! the ends of members
* a completed member with a kept result is unheard
- queue.keep(job, how.result, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.keep(job, how.result, now);
! the ends of members
* a member that its handler buries is unheard
- queue.bury(job, reason, error, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.bury(job, reason, error, now);
! the ends of members
* the last failure of a member is unheard
- queue.exhaust(job, how.reason, error, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.exhaust(job, how.reason, error, now);
! the ends of members
@ memory/work/memory-claim.js
* a member is unheard that crashes after its cancellation was asked for
- queue.end(job, 'cancelled', now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.end(job, 'cancelled', now);
! the ends of members
* a member that crashes too often is unheard
- queue.exhaust(job, 'crashed', undefined, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.exhaust(job, 'crashed', undefined, now);
! the ends of members
* an expired member is unheard
- queue.expire(job, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.expire(job, now);
! the ends of members
@ memory/records/memory-records.js
* a waiting member that is cancelled is unheard
- queue.end(job, 'cancelled', now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.end(job, 'cancelled', now);
! the ends of members
* a member that an operator buries is unheard
- queue.bury(job, 'buried', undefined, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.bury(job, 'buried', undefined, now);
! the ends of members
@ memory/queue/memory-retention.js
* a member that is deleted, cleared or trimmed is unheard
- queue.lostAt = Math.max(queue.lostAt, at);
+ (job.spec = { ...job.spec, memberOf: undefined }), (queue.lostAt = Math.max(queue.lostAt, at));
! the ends of members
* a dead member beyond the age of the morgue is unheard
- lose(queue, job, job.finishedAt, now);
-     }
+ (job.spec = { ...job.spec, memberOf: undefined }), lose(queue, job, job.finishedAt, now);
+     }
! joins that die
* a dead member beyond the bound of the morgue is unheard
- dead.head(Math.min(trimLimit, excessDead)))
+ dead.head(Math.min(trimLimit, excessDead)).map((one) => Object.assign(one, { spec: { ...one.spec, memberOf: undefined } })))
! joins that die
@ memory/records/memory-join-facet.js
* a member that its dead join cancels is unheard by its other joins
- queue.end(job, 'cancelled', store.now());
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.end(job, 'cancelled', store.now());
! the ends of members
@ memory/queue/memory-queue.js
* a dead member that another job replaces is unheard
- this.drop(leftover, now);
+ this.discard(leftover);
! joins that die
* an expired member is reported as cancelled
- this.#joins.report(job, 'expired', {}, now);
+ void 0;
! the ends of members
* the error of a dead member is not handed over
- this.#joins.report(job, 'dead', { error: job.error }, now);
+ this.#joins.report(job, 'dead', {}, now);
! the ends of members
* a failure, a release and a crash are reported
- putBack(job, now, suspect = job.suspect) {
+ putBack(job, now, suspect = job.suspect) { this.#joins.report(job, 'cancelled', {}, now);
! the ends of members
* a retry that is due later is reported
- schedule(job, delayMs, now) {
+ schedule(job, delayMs, now) { this.#joins.report(job, 'dead', {}, now);
! the ends of members
* a cancellation is reported when it is asked for
- job.cancelRequested = true;
+ (job.cancelRequested = true), this.#joins.report(job, 'cancelled', {}, Date.now());
! the ends of members
* a revived member is not outstanding again
- this.#joins.revived(job);
+ void 0;
! joins that die
@ memory/queue/memory-joins.js
* a second report of a member counts
- if (before !== undefined && (before !== 'dead' || fate !== 'cancelled' || set.onDead === 'go-on'))
+ if (false)
! the ends of members
* a dead member that is deleted is reported again, though its set went on
-  || set.onDead === 'go-on'))
+ ))
! joins that die
* only the first join of a member hears of its end
- const { id, memberOf = [] } = job.spec;
-         for (const place of memberOf) {
+ const { id, memberOf = [] } = job.spec;
+         for (const place of memberOf.slice(0, 1)) {
! the ends of members
* the death of a join by its member is unheard by the joins that wait for it
- queue.bury(job, reason, error, now);
+ (job.spec = { ...job.spec, memberOf: undefined }), queue.bury(job, reason, error, now);
! the ends of members
* a revived member changes a join that will run
- if (found === undefined || !isOpenToReports(found.join))
-                 continue;
-             if (found.set
+ if (found === undefined)
+                 continue;
+             if (found.set
! joins
`)

/** Changes by which reports come twice. */
export const memoryRepeats = mutationsIn(`
@ memory/queue/memory-joins.js
* each report comes twice
- for (const report of gathered)
+ for (const report of gathered.flatMap((one) => [one, one]))
! the ends of members
@ memory/queue/memory-queue.js
* each report of a death comes twice
- this.#joins.report(job, 'dead', { error: job.error }, now);
+ for (const _ of [1, 2]) this.#joins.report(job, 'dead', { error: job.error }, now);
! the ends of members
* each report of a death comes twice, to joins that die of it
- this.#joins.report(job, 'dead', { error: job.error }, now);
+ for (const _ of [1, 2]) this.#joins.report(job, 'dead', { error: job.error }, now);
! joins that die
`)
