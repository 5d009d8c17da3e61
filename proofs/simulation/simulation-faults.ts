/** The faults of the simulation: mistakes in the memory store, each of which breaks one promise. */

import { mutationsIn } from '../models/mutants.js'

export const simulationFaults = mutationsIn(`
@ memory/work/memory-settle.js
* a settle does not look at the fence
- return job.state === 'running' && job.fence === fence;
+ return job.state === 'running';
* a release counts an attempt
- queue.putBack(job, now);
+ void (job.attempt += 1, queue.putBack(job, now));
@ memory/work/memory-claim.js
* a lease that has ended is found one step late
- if (first === undefined || first.leaseUntil > now)
+ if (first === undefined || first.leaseUntil + 500 > now)
* a crashed job is not put back
- queue.putBack(job, now, true);
+ queue.end(job, 'completed', now);
* a crashed job is not suspect
- queue.putBack(job, now, true);
+ queue.putBack(job, now, false);
* a job for later is due half a second early
- if (dueAt(job.stamp) > now)
+ if (dueAt(job.stamp) > now + 500)
@ memory/work/memory-enqueue.js
* a call that is sent again is carried out again
- if (before !== undefined)
+ if (false)
@ memory/queue/memory-ordered-queue.js
* a run that failed gives its payloads back without those that arrived meanwhile
- job.payloads = job.successor?.payloads ?? this.#set();
+ job.payloads = this.#set();
@ rules/payloads.js
* payloads are handed over as they arrived, whatever their scores
- return a.score - b.score || a.seq - b.seq;
+ return a.seq - b.seq;
@ memory/queue/memory-throttle.js
* a throttle forgets a start when nothing else waits
- this.#write(subject, hasMore ? after : counterAtRest(after, rules));
+ if (hasMore) this.#write(subject, after);
@ rules/throttle/start-log.js
* a window is open at its edge: the start at its very end is not counted
- const seen = log.filter(({ at }) => at >= now - forMs);
-     return {
+ const seen = log.filter(({ at }) => at > now - forMs);
+     return {
@ memory/queue/memory-limits.js
* one more than maxRunning may run
- return total - this
+ return total + 1 - this
* the jobs of a group that run are counted without the last one claimed
- return perGroup - running
+ return perGroup + 1 - running
`)
