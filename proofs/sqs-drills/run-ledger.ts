/** The run ledger: a database beside SQS in which handlers write down when they begin and end. What a killed one began stands in it. */

import { type Database, loadDriver, type Statement } from '#src/stores/sqlite/file/sqlite-driver.js'

/** One call of a handler. Instants are those of this machine. */
export interface Run {
  readonly worker: string
  /** The id of an ordered task; of others the job itself. */
  readonly lane: string
  /** Numbers of the jobs in it, in the order in which they were handed over. */
  readonly jobs: readonly number[]
  readonly claimedAt: number
  readonly startedAt: number
  /** Absent where it was killed. */
  readonly endedAt?: number
}

/** All processes of a run write into it. */
const lockWithinMs = 30_000

export class RunLedger {
  readonly #db: Database
  readonly #begin: Statement
  readonly #end: Statement
  readonly #inHand: Statement
  readonly #ended: Statement

  private constructor(db: Database) {
    this.#db = db
    this.#begin = db.prepare(
      'INSERT INTO run (worker, lane, jobs, claimed_at, started_at) VALUES (?, ?, ?, ?, ?) RETURNING number',
    )
    this.#end = db.prepare('UPDATE run SET ended_at = ? WHERE number = ?')
    this.#inHand = db.prepare('SELECT 1 FROM run WHERE worker = ? AND ended_at IS NULL LIMIT 1')
    this.#ended = db.prepare(
      'SELECT count(DISTINCT job.value) AS jobs FROM run, json_each(run.jobs) AS job WHERE ended_at > 0',
    )
  }

  static async open(file: string): Promise<RunLedger> {
    const db = (await loadDriver())(file)
    db.exec(`PRAGMA busy_timeout = ${lockWithinMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS run (number INTEGER PRIMARY KEY, worker TEXT NOT NULL, lane TEXT NOT NULL,
        jobs TEXT NOT NULL, claimed_at INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER);
      CREATE INDEX IF NOT EXISTS in_hand ON run (worker) WHERE ended_at IS NULL;`)
    return new RunLedger(db)
  }

  /** Writes down that a run begins. The number by which it ends. */
  begin({ worker, lane, jobs, claimedAt }: Pick<Run, 'worker' | 'lane' | 'jobs' | 'claimedAt'>): number {
    const row = this.#begin.get(worker, lane, JSON.stringify(jobs), claimedAt, Date.now()) as { number: number }
    return row.number
  }

  end(number: number): void {
    this.#end.run(Date.now(), number)
  }

  /** Whether the worker has begun what it has not ended. */
  isAtWork(worker: string): boolean {
    return this.#inHand.get(worker) !== undefined
  }

  /** Jobs that have been done, each counted once. */
  get done(): number {
    return (this.#ended.get() as { jobs: number }).jobs
  }

  /** In the order in which they began. */
  runs(): Run[] {
    const rows = this.#db.prepare('SELECT * FROM run ORDER BY started_at, number').all() as {
      worker: string
      lane: string
      jobs: string
      claimed_at: number
      started_at: number
      ended_at: number | null
    }[]
    return rows.map(({ worker, lane, jobs, claimed_at, started_at, ended_at }) => ({
      ...{ worker, lane, jobs: JSON.parse(jobs) as number[], claimedAt: claimed_at, startedAt: started_at },
      ...(ended_at === null ? {} : { endedAt: ended_at }),
    }))
  }

  close(): void {
    this.#db.close()
  }
}
