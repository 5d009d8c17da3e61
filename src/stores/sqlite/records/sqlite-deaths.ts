/** The deaths of jobs in a SQLite store that nobody was told of. */

import type { UntoldDeath } from '../../contract/job-records.js'
import { present } from '../../rows/stored-job.js'
import { type Row, valueFromStored } from '../../rows/stored-text.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteDeaths {
  readonly #transaction: SqliteTransaction
  readonly #untold: Statement
  readonly #told: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    this.#untold = transaction.db.prepare(
      `SELECT n AS number, id, task, attempt, crashes, died_at AS diedAt, error, reason, codec, payload FROM death
       WHERE qid = ? AND task = ? ORDER BY n LIMIT ?`,
    )
    this.#told = transaction.db.prepare('DELETE FROM death WHERE qid = ? AND task = ? AND n = ? AND id = ?')
  }

  untold(names: readonly string[], tasks: readonly string[], limit: number): UntoldDeath[] {
    const deaths: UntoldDeath[] = []
    for (const queue of names) {
      const { qid } = this.#transaction.queues.get(queue)
      for (const task of tasks) {
        for (const row of this.#untold.all(qid, task, limit - deaths.length) as Row[]) deaths.push(deathIn(queue, row))
        if (deaths.length === limit) return deaths
      }
    }
    return deaths
  }

  told(queue: string, deaths: readonly Pick<UntoldDeath, 'id' | 'task' | 'number'>[]): void {
    const { qid } = this.#transaction.queues.get(queue)
    for (const { id, task, number } of deaths) this.#told.run(qid, task, number, id)
  }
}

function deathIn(queue: string, { error, reason, payload, ...row }: Row): UntoldDeath {
  const texts = { error: valueFromStored(error!), reason: valueFromStored(reason!) }
  return present({ queue, ...row, ...texts, payload: valueFromStored(payload!) }) as unknown as UntoldDeath
}
