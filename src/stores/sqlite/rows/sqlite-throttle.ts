/** The throttles of a SQLite store, held during a transaction and written before its commit. */

import { ruleText, type Throttle } from '../../../core/queue/throttle.js'
import { type RateShelf, ScopeThrottle } from '../../rows/scope-throttle.js'
import type { SqlValue } from '../../rows/stored-text.js'
import type { ThrottleRow } from '../../rows/throttle-row.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { QueueRow, SqliteQueues } from './sqlite-queue.js'
import { SqliteThrottleCounters } from './sqlite-throttle-counter.js'

/** The rules that groups have for themselves in throttles, as their stored texts. */
export class SqliteGroupRates implements RateShelf {
  readonly #select: Statement
  readonly #write: Statement
  readonly #delete: Statement
  readonly #all: Statement

  constructor(db: Database) {
    this.#select = db.prepare('SELECT rules FROM throttle_rate WHERE scope = ? AND grp = ?')
    this.#write = db.prepare('INSERT OR REPLACE INTO throttle_rate (scope, grp, rules) VALUES (?, ?, ?)')
    this.#delete = db.prepare('DELETE FROM throttle_rate WHERE scope = ? AND grp = ?')
    this.#all = db.prepare('SELECT grp, rules FROM throttle_rate WHERE scope = ? ORDER BY grp LIMIT ?')
  }

  of(scope: string, group: string): string | undefined {
    return (this.#select.get(scope, group) as { rules: string } | undefined)?.rules
  }

  set(scope: string, group: string, rules: string | undefined): void {
    if (rules === undefined) this.#delete.run(scope, group)
    else this.#write.run(scope, group, rules)
  }

  first(scope: string, most: number): { readonly grp: string; readonly rules: string }[] {
    return this.#all.all(scope, most) as { grp: string; rules: string }[]
  }
}

const changing = [
  'rules',
  'each_group',
  'own',
  'epoch',
  'run',
  'recoveries',
  'recovered_at',
  'shift_ms',
  'last_at',
  'last_wall',
  'quiet_until',
] as const

interface HeldThrottle {
  readonly throttle: ScopeThrottle
  before: readonly SqlValue[]
}

/** The throttles of the file by their scopes. */
export class SqliteThrottles {
  readonly #queues: SqliteQueues
  readonly #counters: SqliteThrottleCounters
  readonly #rates: SqliteGroupRates
  #held = new Map<string, HeldThrottle>()
  /** The queue rows that each throttle limits. */
  #sharing = new Map<string, readonly Pick<QueueRow, 'name' | 'shard'>[]>()
  readonly #select: Statement
  readonly #insert: Statement
  readonly #update: Statement
  readonly #sharers: Statement

  constructor(db: Database, queues: SqliteQueues) {
    this.#queues = queues
    this.#counters = new SqliteThrottleCounters(db)
    this.#rates = new SqliteGroupRates(db)
    this.#select = db.prepare('SELECT * FROM throttle WHERE scope = ?')
    this.#insert = db.prepare('INSERT INTO throttle (scope, counts_by, rules, each_group) VALUES (?, ?, ?, ?)')
    this.#update = db.prepare(
      `UPDATE throttle SET ${changing.map((column) => `${column} = ?`).join(', ')} WHERE scope = ?`,
    )
    this.#sharers = db.prepare('SELECT name, shard FROM queue WHERE throttle = ?')
  }

  find(scope: string): ScopeThrottle | undefined {
    const held = this.#held.get(scope)
    if (held !== undefined) return held.throttle
    const row = this.#select.get(scope) as ThrottleRow | undefined
    if (row === undefined) return undefined
    const throttle = new ScopeThrottle({ ...row }, this.#counters, this.#rates)
    this.#held.set(scope, { throttle, before: changingOf(row) })
    return throttle
  }

  of({ throttle }: QueueRow): ScopeThrottle | undefined {
    return throttle === null ? undefined : this.find(throttle)
  }

  /** The queue rows that the throttle limits. The queues' `throttle` columns must have been written. */
  sharing(scope: string): QueueRow[] {
    let rows = this.#sharing.get(scope)
    if (rows === undefined) {
      rows = this.#sharers.all(scope) as unknown as Pick<QueueRow, 'name' | 'shard'>[]
      this.#sharing.set(scope, rows)
    }
    return rows.map(({ name, shard }) => this.#queues.shard(name, shard)!)
  }

  make({ scope, by, rules, eachGroup }: Throttle): void {
    this.#insert.run(scope, by, rules.map(ruleText).join(' '), eachGroup?.map(ruleText).join(' ') ?? null)
  }

  /** Writes the changed throttles. */
  flush(): void {
    for (const [scope, held] of this.#held) {
      const values = changingOf(held.throttle.row)
      if (values.some((value, i) => value !== held.before[i])) this.#update.run(...values, scope)
      held.before = values
    }
  }

  /** Forgets the held throttles, also unwritten ones. */
  forget(): void {
    this.#held = new Map()
    this.#sharing = new Map()
    this.#counters.forget()
  }
}

function changingOf(row: ThrottleRow): SqlValue[] {
  return changing.map((column) => row[column])
}
