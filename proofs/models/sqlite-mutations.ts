/** The mutations of the SQLite store's SQL. */

import type { Mutation } from './mutants.js'

export const sqliteMutations: readonly Mutation[] = [
  {
    what: 'the rows of queues are kept though another process has written',
    file: 'sqlite/rows/sqlite-transaction.js',
    from: 'if (data_version === this.#seenVersion)',
    to: 'if (this.#seenVersion !== undefined)',
  },
  {
    what: 'a read trusts the rows of queues that were kept from the last write',
    file: 'sqlite/thread/sqlite-connection.js',
    from: 'transaction.forgetRows();\n            this.#patience',
    to: 'this.#patience',
  },
  {
    what: 'a claim takes the lowest priority first',
    file: 'sqlite/work/sqlite-claim.js',
    from: ' ORDER BY rank, position, rid LIMIT ?)',
    to: ' ORDER BY rank DESC, position, rid LIMIT ?)',
  },
  {
    what: 'an expired lease is recovered a millisecond late',
    file: 'sqlite/work/sqlite-claim.js',
    from: 'lease_until <= ?',
    to: 'lease_until < ?',
  },
  {
    what: 'a due job is promoted without its instant of change',
    file: 'sqlite/work/sqlite-claim.js',
    from: 'UPDATE job SET state = 1, updated_at = ?',
    to: 'UPDATE job SET state = 1, updated_at = max(updated_at, 0 * ?)',
  },
  {
    what: 'a completion does not look at the fence',
    file: 'sqlite/work/sqlite-completion.js',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is text of the file
    from: 'state = 2 AND fence = ${fence} AND remember_ms = 0',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is text of the file
    to: 'state = 2 AND fence >= 0 * ${fence} AND remember_ms = 0',
  },
  {
    what: 'of many completions at once those that cannot be are told as done',
    file: 'sqlite/work/sqlite-completion.js',
    from: 'if (found !== count)',
    to: 'if (found === 0)',
    concern: 'settling',
  },
  {
    what: 'a beat may shorten the lease',
    file: 'sqlite/work/sqlite-settle.js',
    from: 'UPDATE job SET lease_until = max(lease_until, ?) WHERE',
    to: 'UPDATE job SET lease_until = ? WHERE',
  },
  {
    what: 'startedAt is set by every beat',
    file: 'sqlite/work/sqlite-settle.js',
    from: 'started_at = coalesce(started_at, ?)',
    to: 'started_at = coalesce(?, started_at)',
  },
  {
    what: 'the newest results are trimmed instead of the oldest',
    file: 'sqlite/work/sqlite-settle.js',
    from: 'state = 3 ORDER BY finished_at, rid LIMIT ?',
    to: 'state = 3 ORDER BY finished_at DESC, rid LIMIT ?',
  },
  {
    what: 'a remembered id is forgotten a moment early',
    file: 'sqlite/work/sqlite-settle.js',
    from: 'qid = ?1 AND until <= ?2',
    to: 'qid = ?1 AND until <= ?2 + 1000',
  },
  {
    what: 'nothing remains of a job that is cancelled while it runs',
    file: 'sqlite/rows/sqlite-job.js',
    from: 'isRunning: state === running',
    to: 'isRunning: false',
  },
  {
    what: 'the row of a queue loses its count of failures',
    file: 'sqlite/rows/sqlite-queue.js',
    from: "'qid', 'name',",
    to: "'qid', 'name', 'failed',",
  },
  {
    what: 'the alone mark of a claim is lost',
    file: 'sqlite/work/sqlite-claim.js',
    from: 'SET state = 2, fence = ?, worker = ?, alone = ?,',
    to: 'SET state = 2, fence = ?, worker = ?, alone = 0 * ?,',
  },
  {
    what: 'a job that is completed leaves its notes behind',
    file: 'sqlite/work/sqlite-completion.js',
    from: ' AND noted = 0',
    to: '',
    concern: 'checkpoints and logs',
  },
  {
    what: 'a checkpoint stays where its job is completed with a kept result',
    file: 'sqlite/rows/sqlite-job.js',
    from: 'this.checkpoints.dropCheckpoint(job.rid)',
    to: '{}',
    concern: 'checkpoints and logs',
  },
  {
    what: 'a job that has fields is not marked as noted',
    file: 'sqlite/records/sqlite-records.js',
    from: 'this.#markNoted.run(job.rid)',
    to: '{}',
  },
  {
    what: 'fields that are set replace all that were',
    file: 'sqlite/records/sqlite-records.js',
    from: 'changedFields(job.noted ? checkpoints.fieldsOf(job.rid) : {}, changes)',
    to: 'changedFields({}, changes)',
  },
  {
    what: 'a job that takes the place of another forgets when that came in',
    file: 'sqlite/work/sqlite-enqueue.js',
    from: 'this.#keepCreatedAt.run(before.created_at, queue.qid, job.id)',
    to: '{}',
  },
  {
    what: 'a running job is replaced',
    file: 'sqlite/work/sqlite-enqueue.js',
    from: "job.state === running ? 'running' : job.state === dead",
    to: 'job.state === dead',
  },
  {
    what: 'a job that expired is ended and not counted',
    file: 'sqlite/work/sqlite-claim.js',
    from: 'queue.expired += ended.length',
    to: 'queue.expired += 0',
  },
  {
    what: 'a job that was taken expires no more',
    file: 'sqlite/work/sqlite-claim.js',
    from: 'lease_until = ?, updated_at = ? WHERE rid IN',
    to: 'lease_until = ?, updated_at = ?, expires_at = NULL WHERE rid IN',
  },
  {
    what: 'a job expires a millisecond late',
    file: 'sqlite/work/sqlite-claim.js',
    from: ' <= ? ORDER BY expires_at',
    to: ' < ? ORDER BY expires_at',
  },
  {
    what: 'a job that was buried by hand expires in the morgue',
    file: 'sqlite/rows/sqlite-job.js',
    from: 'suspect = 0, expires_at = NULL, attempt',
    to: 'suspect = 0, attempt',
  },
  {
    what: 'of more expired jobs than one call ends, one is given',
    file: 'sqlite/work/sqlite-claim.js',
    from: ' || hasExpired(queue, at.now)',
    to: '',
    concern: 'expiring',
  },
  {
    what: 'a claim is adopted whoever holds it',
    file: 'sqlite/records/sqlite-registry.js',
    from: 'fence = ? AND worker = ?',
    to: 'fence = ? AND ? IS NOT NULL',
    concern: 'adoption',
  },
  {
    what: 'a superseded claim is adopted',
    file: 'sqlite/records/sqlite-registry.js',
    from: 'state = 2 AND fence = ? AND worker = ?',
    to: 'state = 2 AND fence >= ? AND worker = ?',
    concern: 'adoption',
  },
]
