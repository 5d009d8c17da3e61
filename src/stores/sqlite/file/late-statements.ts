/**
 * Late statements: the store has hundreds of them, and most processes use a few. Each is prepared at its first use, so
 * that a store is opened in a fraction of the time.
 */

import type { SqlValue } from '../../rows/stored-text.js'
import type { Database, Statement } from './sqlite-driver.js'

/** The same connection. An error in the text of a statement is thrown when it is used. */
export function preparingLate(db: Database): Database {
  return {
    exec: (sql) => db.exec(sql),
    prepare: (sql) => new LateStatement(db, sql),
    close: () => db.close(),
  }
}

class LateStatement implements Statement {
  readonly #db: Database
  readonly #sql: string
  #prepared: Statement | undefined

  constructor(db: Database, sql: string) {
    this.#db = db
    this.#sql = sql
  }

  run(...values: SqlValue[]): ReturnType<Statement['run']> {
    return (this.#prepared ?? this.#prepare()).run(...values)
  }

  get(...values: SqlValue[]): unknown {
    return (this.#prepared ?? this.#prepare()).get(...values)
  }

  all(...values: SqlValue[]): unknown[] {
    return (this.#prepared ?? this.#prepare()).all(...values)
  }

  iterate(...values: SqlValue[]): Iterable<unknown> {
    return (this.#prepared ?? this.#prepare()).iterate(...values)
  }

  #prepare(): Statement {
    this.#prepared = this.#db.prepare(this.#sql)
    return this.#prepared
  }
}
