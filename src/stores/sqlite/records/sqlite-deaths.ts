/** The deaths of jobs in a SQLite store that are not reported yet. */

import type { UnreportedDeath } from '../../contract/job-records.js'
import { present } from '../../rows/stored-job.js'
import { type Row, valueFromStored } from '../../rows/stored-text.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteDeaths {
  readonly #transaction: SqliteTransaction
  readonly #unreported: Statement
  readonly #reported: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    this.#unreported = transaction.db.prepare(
      `SELECT n AS number, id, task, attempt, crashes, died_at AS diedAt, error, reason, codec, payload FROM death
       WHERE qid = ? AND task = ? ORDER BY n LIMIT ?`,
    )
    this.#reported = transaction.db.prepare('DELETE FROM death WHERE qid = ? AND task = ? AND n = ? AND id = ?')
  }

  unreported(names: readonly string[], tasks: readonly string[], limit: number): UnreportedDeath[] {
    const deaths: UnreportedDeath[] = []
    for (const queue of names) {
      const { qid } = this.#transaction.queues.get(queue)
      for (const task of tasks) {
        for (const row of this.#unreported.all(qid, task, limit - deaths.length) as Row[]) deaths.push(deathIn(queue, row))
        if (deaths.length === limit) return deaths
      }
    }
    return deaths
  }

  reported(queue: string, deaths: readonly Pick<UnreportedDeath, 'id' | 'task' | 'number'>[]): void {
    const { qid } = this.#transaction.queues.get(queue)
    for (const { id, task, number } of deaths) this.#reported.run(qid, task, number, id)
  }
}

function deathIn(queue: string, { error, reason, payload, ...row }: Row): UnreportedDeath {
  const texts = { error: valueFromStored(error!), reason: valueFromStored(reason!) }
  return present({ queue, ...row, ...texts, payload: valueFromStored(payload!) }) as unknown as UnreportedDeath
}
