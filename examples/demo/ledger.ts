/**
 * The ledger: the demo's own database, in which runs write what became of each id. A claim's fence guards each write: once
 * a run has begun with an id, what a run of an older claim writes there is refused.
 */

import { DatabaseSync } from '@photostructure/sqlite'
import { blank, type State } from './state.js'
import type { Result } from './verdict.js'

/** How the run of one id ended. */
export interface RunEntry {
  readonly id: string
  readonly attempt: number
  /** How many changes it was given, and how many of them had been applied before. */
  readonly given: number
  readonly again: number
  /** Absent where it failed. */
  readonly state: State | undefined
}

export interface RunFigures {
  /** Runs of an id that were not refused, the failed ones among them. */
  readonly runs: number
  readonly failed: number
  /** Failed runs whose next had more changes in hand. */
  readonly grown: number
  /** Most changes that one run was given. */
  readonly most: number
  /** Changes that were given to a run though they had been applied. */
  readonly again: number
  /** Writes of a claim that was not the latest. */
  readonly refused: number
}

const schema = `
  CREATE TABLE IF NOT EXISTS state (
    id TEXT PRIMARY KEY, fence INTEGER NOT NULL, changes INTEGER NOT NULL, place INTEGER NOT NULL,
    "to" TEXT NOT NULL, digest TEXT NOT NULL
  );
  CREATE TABLE IF NOT EXISTS run (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, attempt INTEGER NOT NULL, given INTEGER NOT NULL, again INTEGER NOT NULL,
    outcome TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS run_of_id ON run (id, n);
  CREATE TABLE IF NOT EXISTS result (id TEXT PRIMARY KEY, queue TEXT NOT NULL, result TEXT NOT NULL);
`

export class Ledger {
  readonly #db: InstanceType<typeof DatabaseSync>

  constructor(file: string) {
    this.#db = new DatabaseSync(file)
    this.#db.exec('PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
    this.#db.exec(schema)
  }

  /** The states of these ids, which from now on are closed to older claims. */
  begin(ids: Iterable<string>, fence: number): Map<string, State> {
    const raise = this.#db.prepare(
      `INSERT INTO state VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET fence = max(fence, excluded.fence)
       RETURNING changes, place, "to", digest`,
    )
    const { changes, place, to, digest } = blank
    return this.#inOneStep(() => {
      const rows = [...ids].map((id) => [id, { ...raise.get(id, fence, changes, place, to, digest) }] as const)
      return new Map(rows) as Map<string, unknown> as Map<string, State>
    })
  }

  /** Writes what became of these ids, each unless a later claim has begun with it: those are the answer. */
  end(entries: readonly RunEntry[], fence: number): Set<string> {
    const write = this.#db.prepare(
      'UPDATE state SET changes = ?, place = ?, "to" = ?, digest = ? WHERE id = ? AND fence = ?',
    )
    const record = this.#db.prepare('INSERT INTO run (id, attempt, given, again, outcome) VALUES (?, ?, ?, ?, ?)')
    return this.#inOneStep(() => {
      const refused = new Set<string>()
      for (const { id, attempt, given, again, state } of entries) {
        let outcome = 'failed'
        if (state !== undefined) {
          const { changes, place, to, digest } = state
          outcome = write.run(changes, place, to, digest, id, fence).changes === 1 ? 'written' : 'refused'
        }
        if (outcome === 'refused') refused.add(id)
        record.run(id, attempt, given, again, outcome)
      }
      return refused
    })
  }

  /** How many changes have been applied. */
  applied(): number {
    return Number(this.#db.prepare('SELECT total(changes) AS n FROM state').get()!['n'])
  }

  states(): Map<string, State> {
    const rows = this.#db.prepare('SELECT id, changes, place, "to", digest FROM state').all()
    return new Map((rows as (State & { readonly id: string })[]).map(({ id, ...state }) => [id, state]))
  }

  /** Keeps the result of a job, the first time. */
  keep(result: Result): void {
    const { id, queue } = result
    this.#db.prepare('INSERT OR IGNORE INTO result VALUES (?, ?, ?)').run(id, queue, JSON.stringify(result))
  }

  /** Those that were kept. */
  results(): Result[] {
    const rows = this.#db.prepare('SELECT result FROM result').all() as { readonly result: string }[]
    return rows.map(({ result }) => JSON.parse(result) as Result)
  }

  /** How many were kept, by queue. */
  kept(): ReadonlyMap<string, number> {
    const rows = this.#db.prepare('SELECT queue, count(*) AS n FROM result GROUP BY queue').all()
    return new Map((rows as { queue: string; n: number }[]).map(({ queue, n }) => [queue, n]))
  }

  figures(): RunFigures {
    const figures = this.#db.prepare(
      `SELECT count(*) FILTER (WHERE outcome <> 'refused') AS runs,
         count(*) FILTER (WHERE outcome = 'failed') AS failed,
         count(*) FILTER (WHERE outcome = 'failed' AND given <
           (SELECT given FROM run AS next WHERE next.id = run.id AND next.n > run.n ORDER BY n LIMIT 1)) AS grown,
         coalesce(max(given), 0) AS most,
         total(again) FILTER (WHERE outcome = 'written') AS again,
         count(*) FILTER (WHERE outcome = 'refused') AS refused
       FROM run`,
    )
    return { ...figures.get() } as unknown as RunFigures
  }

  close(): void {
    this.#db.close()
  }

  #inOneStep<T>(step: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      const answer = step()
      this.#db.exec('COMMIT')
      return answer
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
  }
}
