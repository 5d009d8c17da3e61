/** The deaths of jobs in a SQLite store that are not reported yet. */

import { type DeathBacklog, type DeathKey, tasksInBacklog, type UnreportedDeath } from '../../contract/job-records.js'
import { present } from '../../rows/stored-job.js'
import { type Row, valueFromStored } from '../../rows/stored-text.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteDeaths {
  readonly #transaction: SqliteTransaction
  readonly #unreported: Statement
  readonly #nextTask: Statement
  readonly #backlog: Statement
  readonly #reported: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    this.#unreported = transaction.db.prepare(
      `SELECT n AS number, id, task, attempt, crashes, died_at AS diedAt, error, reason, codec,
         coalesce(payload, (SELECT job.payload FROM job WHERE job.rid = death.rid)) AS payload
       FROM death WHERE qid = ? AND task = ? AND n NOT IN (SELECT value FROM json_each(?)) ORDER BY n LIMIT ?`,
    )
    this.#nextTask = transaction.db.prepare('SELECT task FROM death WHERE qid = ? AND task > ? ORDER BY task LIMIT 1')
    this.#backlog = transaction.db.prepare(
      `SELECT (SELECT count(*) FROM (SELECT 1 FROM death WHERE qid = ?1 AND task = ?2 LIMIT ?3)) AS count,
         (SELECT died_at FROM death WHERE qid = ?1 AND task = ?2 ORDER BY n LIMIT 1) AS since`,
    )
    this.#reported = transaction.db.prepare('DELETE FROM death WHERE qid = ? AND task = ? AND n = ? AND id = ?')
  }

  unreported(
    names: readonly string[],
    tasks: readonly string[],
    limit: number,
    except: readonly DeathKey[] = [],
  ): UnreportedDeath[] {
    const deaths: UnreportedDeath[] = []
    for (const queue of names) {
      const { qid } = this.#transaction.queues.get(queue)
      for (const task of tasks) {
        const passed = except.flatMap((one) => (one.queue === queue && one.task === task ? [one.number] : []))
        const values = [qid, task, JSON.stringify(passed), limit - deaths.length] as const
        for (const row of this.#unreported.all(...values) as Row[]) deaths.push(deathIn(queue, row))
        if (deaths.length === limit) return deaths
      }
    }
    return deaths
  }

  backlog(names: readonly string[], most: number): DeathBacklog[] {
    return names.flatMap((queue) => {
      const { qid } = this.#transaction.queues.get(queue)
      return this.#tasksIn(qid).map((task) => {
        const counted = this.#backlog.get(qid, task, most) as Pick<DeathBacklog, 'count' | 'since'>
        return { queue, task, ...counted }
      })
    })
  }

  /** The tasks with deaths in a queue, each found behind the one before: to read all deaths for that could take long. */
  #tasksIn(qid: number): string[] {
    const tasks: string[] = []
    while (tasks.length < tasksInBacklog) {
      const next = this.#nextTask.get(qid, tasks.at(-1) ?? '') as { task: string } | undefined
      if (next === undefined) break
      tasks.push(next.task)
    }
    return tasks
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
