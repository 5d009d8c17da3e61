/** The mutations of what the SQLite store does with ordered queues. */

import type { Mutation } from './mutants.js'

export const sqliteOrderedMutations: readonly Mutation[] = [
  {
    what: 'of equal payloads the maximal score wins',
    file: 'sqlite/sqlite-payloads.js',
    from: 'equal.score > score',
    to: 'equal.score < score',
  },
  {
    what: 'of two sets with equal payloads the later stays',
    file: 'sqlite/sqlite-payloads.js',
    from: '(other.score, other.seq) < (payload.score, payload.seq)',
    to: '(other.score, other.seq) > (payload.score, payload.seq)',
  },
  {
    what: "merge 'latest' keeps the oldest",
    file: 'sqlite/sqlite-payloads.js',
    from: 'ORDER BY score DESC, seq DESC LIMIT 1',
    to: 'ORDER BY score, seq LIMIT 1',
  },
  {
    what: 'payloads of one score are handed over latest first',
    file: 'sqlite/sqlite-payloads.js',
    from: 'part = ? ORDER BY score, seq LIMIT ?',
    to: 'part = ? ORDER BY score, seq DESC LIMIT ?',
  },
  {
    what: 'a claim of some payloads takes all of the same score',
    file: 'sqlite/sqlite-payloads.js',
    from: '(score, seq) <= (?4 / ?5 / ?6, ?7)',
    to: '(score, seq) <= (?4 / ?5 / ?6, 1000000 + ?7)',
  },
  {
    what: 'one payload less than asked for is handed over',
    file: 'sqlite/sqlite-payloads.js',
    from: 'rows.length === limit',
    to: 'rows.length === Math.max(1, limit - 1)',
  },
  {
    what: 'the last failure buries all payloads in hand',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'this.payloads.head(setOf(job), 2)',
    to: 'this.payloads.head(setOf(job), -1).reverse()',
  },
  {
    what: 'what is left after the last failure goes on with the attempts made',
    file: 'sqlite/sqlite-ordered-job.js',
    from: '{ ...job, attempt: 1, crashes: 0, error: null, reason: null }',
    to: '{ ...job, crashes: 0, error: null, reason: null }',
  },
  {
    what: 'what waits beside is lost when the claim fails',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'const beside = besideSet(job);\n            queue.pending += payloads.join(',
    to: 'const beside = besideSet(job);\n            queue.pending -= payloads.drop(beside);\n            queue.pending += payloads.join(',
  },
  {
    what: 'what waits beside is lost when the claim is completed',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'if (stamp === null)',
    to: 'if (stamp !== undefined)',
  },
  {
    what: 'what waits beside a cancelled job comes back',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'super.requestCancel(queue, job);',
    to: 'super.requestCancel(queue, job);\n        return;',
  },
  {
    what: 'what waits beside has the stamp of the job that runs',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'this.#beside.run(at.stamp, now, Number(at.state === ready), job.rid)',
    to: 'this.#beside.run(job.stamp, now, Number(at.state === ready), job.rid)',
  },
  {
    what: 'what waits beside for the end of the run alone waits for a time when the clock is set back',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'isReady === 1 ? ready : stateAt(stamp, now)',
    to: 'stateAt(stamp, now)',
  },
  {
    what: 'what waits beside is ready before its time',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'dueAt(stamp) > now ? scheduled : ready',
    to: 'ready',
  },
  {
    what: 'what maxPayloads left is as old as the claim',
    file: 'sqlite/sqlite-handover.js',
    from: '[takeStamp(queue, taking.now), created_at, 1]',
    to: '[takeStamp(queue, taking.now), taking.now, 1]',
  },
  {
    what: 'a claim has the fence of the one before it',
    file: 'sqlite/sqlite-handover.js',
    from: 'nextFence(queue.last_fence, taking.now)',
    to: 'Math.max(queue.last_fence, taking.now * 1000)',
  },
  {
    what: 'a shard under a running batch grants',
    file: 'sqlite/sqlite-queue.js',
    from: "running > 0 && kind === 'ordered'",
    to: "running > 1 && kind === 'ordered'",
  },
  {
    what: 'maxPending counts jobs',
    file: 'sqlite/sqlite-push.js',
    from: 'share(queue, queue.max_pending) - queue.pending',
    to: 'share(queue, queue.max_pending) - queue.ready - queue.scheduled',
  },
  {
    what: 'bounds are those of each shard',
    file: 'sqlite/sqlite-queue.js',
    from: 'Math.ceil(bound / shards)',
    to: 'bound',
  },
  {
    what: 'jobs of one stamp go by the end of their id',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'Buffer.from(id), stamp, error, part',
    to: 'Buffer.from(id).reverse(), stamp, error, part',
  },
  {
    what: 'a burial forgets what of the id was buried before',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'this.payloads.join(set, setOf(before), queue.merge);',
    to: 'this.payloads.drop(setOf(before));\n            this.payloads.join(set, setOf(before), queue.merge);',
  },
  {
    what: 'a morgue entry keeps the header of the first burial',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'this.#updateDead, task, stamp, attempt,',
    to: 'this.#updateDead, before.task, before.stamp, before.attempt,',
  },
  {
    what: 'what is revived keeps its old place',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'const stamp = takeStamp(queue, now);\n        const live',
    to: 'const { stamp } = job;\n        const live',
  },
  {
    what: 'a reshard or a move loses the morgue',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'isHidden(from, job, now))',
    to: 'job.state === dead)',
  },
  {
    what: 'jobs that come from another shard are ready at once',
    file: 'sqlite/sqlite-ordered-job.js',
    from: 'job.state === ready ? ready : stateAt(stamp, now)',
    to: 'ready',
  },
  {
    what: 'new shards begin with the stamp of the shard that is behind',
    file: 'sqlite/sqlite-reshard.js',
    from: 'Math.max(...old.map((row) => row.last_stamp))',
    to: 'Math.min(...old.map((row) => row.last_stamp))',
  },
  {
    what: 'new shards begin with the fence of the shard that is behind',
    file: 'sqlite/sqlite-reshard.js',
    from: 'Math.max(...old.map((row) => row.last_fence))',
    to: 'Math.min(...old.map((row) => row.last_fence))',
  },
  {
    what: 'a cancelled job that fails for the last time is buried',
    file: 'sqlite/sqlite-settle.js',
    from: "(!how.last || queue.kind === 'ordered')",
    to: '!how.last',
  },
]
