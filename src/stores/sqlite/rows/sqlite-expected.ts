/** The jobs of a SQLite store whose results somebody waits for: retention leaves those. */

import type { JobKey } from '../../contract/job-records.js'
import { longestExpectMs } from '../../rules/bounds.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { bounded, type QueueRow, type SqliteQueues } from './sqlite-queue.js'

export class SqliteExpected {
  readonly #clock: SqliteClock
  readonly #queues: SqliteQueues
  readonly #lapse: Statement
  readonly #enter: Statement
  readonly #prolong: Statement
  readonly #leave: Statement
  readonly #until: Statement

  constructor(db: Database, clock: SqliteClock, queues: SqliteQueues) {
    this.#clock = clock
    this.#queues = queues
    const named = 'qid = ?1 AND id IN (SELECT value FROM json_each(?2))'
    this.#lapse = db.prepare('DELETE FROM result_wait WHERE until <= ?')
    this.#enter = db.prepare(
      `INSERT OR REPLACE INTO result_wait (qid, id, waiter, until) SELECT qid, id, ?3, ?4 FROM job
       WHERE ${named} AND (state <> 3 OR expires_at IS NULL OR expires_at > ?5)`,
    )
    this.#prolong = db.prepare(
      `UPDATE job INDEXED BY job_id SET expires_at = ?3 WHERE ${named} AND state = 3 AND expires_at > ?4 AND expires_at < ?3`,
    )
    this.#leave = db.prepare(`DELETE FROM result_wait WHERE ${named} AND waiter = ?3`)
    this.#until = db.prepare('SELECT max(until) AS until FROM result_wait WHERE qid = ? AND id = ?')
  }

  expect(jobs: readonly JobKey[], by: string, forMs: number): void {
    const [now, mono, ms] = [this.#clock.now(), this.#clock.mono(), Math.min(forMs, longestExpectMs)]
    this.#lapse.run(mono)
    for (const name of new Set(jobs.map(({ queue }) => queue))) {
      const { kind, qid } = this.#queues.get(name)
      if (kind === 'ordered') continue
      const ids = JSON.stringify(jobs.filter(({ queue }) => queue === name).map(({ id }) => id))
      if (ms > 0) {
        this.#enter.run(qid, ids, by, bounded(mono + ms), now)
        this.#prolong.run(qid, ids, bounded(now + ms), now)
      } else this.#leave.run(qid, ids, by)
    }
  }

  /** Whether somebody waits for the result of the job. */
  isExpected({ qid }: QueueRow, id: string): boolean {
    const { until } = this.#until.get(qid, id) as { until: number | null }
    return until !== null && until > this.#clock.mono()
  }

  /** For how long a result is kept that somebody may be waiting for. */
  keptMs({ qid }: QueueRow, id: string, keepMs: number | undefined): number | undefined {
    if (keepMs === undefined || keepMs >= longestExpectMs) return keepMs
    const { until } = this.#until.get(qid, id) as { until: number | null }
    return until === null ? keepMs : Math.max(keepMs, until - this.#clock.mono())
  }
}
