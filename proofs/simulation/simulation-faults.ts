/** The faults of the simulation: mistakes in the memory store, each of which breaks one promise. */

import type { Mutation } from '../models/mutants.js'

export const simulationFaults: readonly Mutation[] = [
  {
    what: 'a settle does not look at the fence',
    file: 'memory/work/memory-settle.js',
    from: "return job.state === 'running' && job.fence === fence;",
    to: "return job.state === 'running';",
  },
  {
    what: 'a lease that has ended is found one step late',
    file: 'memory/work/memory-claim.js',
    from: 'if (first === undefined || first.leaseUntil > now)',
    to: 'if (first === undefined || first.leaseUntil + 500 > now)',
  },
  {
    what: 'a crashed job is not put back',
    file: 'memory/work/memory-claim.js',
    from: 'queue.putBack(job, now, true);',
    to: "queue.end(job, 'completed', now);",
  },
  {
    what: 'a crashed job is not suspect',
    file: 'memory/work/memory-claim.js',
    from: 'queue.putBack(job, now, true);',
    to: 'queue.putBack(job, now, false);',
  },
  {
    what: 'a release counts an attempt',
    file: 'memory/work/memory-settle.js',
    from: 'queue.putBack(job, now);',
    to: 'void (job.attempt += 1, queue.putBack(job, now));',
  },
  {
    what: 'a call that is sent again is carried out again',
    file: 'memory/work/memory-enqueue.js',
    from: 'if (before !== undefined)',
    to: 'if (false)',
  },
  {
    what: 'a job for later is due half a second early',
    file: 'memory/work/memory-claim.js',
    from: 'if (dueAt(job.stamp) > now)',
    to: 'if (dueAt(job.stamp) > now + 500)',
  },
  {
    what: 'a run that failed gives its payloads back without those that arrived meanwhile',
    file: 'memory/queue/memory-ordered-queue.js',
    from: 'job.payloads = job.successor?.payloads ?? this.#set();',
    to: 'job.payloads = this.#set();',
  },
  {
    what: 'payloads are handed over as they arrived, whatever their scores',
    file: 'rules/payloads.js',
    from: 'return a.score - b.score || a.seq - b.seq;',
    to: 'return a.seq - b.seq;',
  },
  {
    what: 'a throttle forgets a start when nothing else waits',
    file: 'memory/queue/memory-throttle.js',
    from: 'this.#write(subject, hasMore ? after : counterAtRest(after, rules));',
    to: 'if (hasMore) this.#write(subject, after);',
  },
  {
    what: 'a window is open at its edge: the start at its very end is not counted',
    file: 'rules/throttle/start-log.js',
    from: 'const seen = log.filter(({ at }) => at >= now - forMs);\n    return {',
    to: 'const seen = log.filter(({ at }) => at > now - forMs);\n    return {',
  },
  {
    what: 'one more than maxRunning may run',
    file: 'memory/queue/memory-limits.js',
    from: 'return total - this',
    to: 'return total + 1 - this',
  },
  {
    what: 'the jobs of a group that run are counted without the last one claimed',
    file: 'memory/queue/memory-limits.js',
    from: 'return perGroup - running',
    to: 'return perGroup + 1 - running',
  },
]
