/** The rules that groups have for themselves in the throttles of a SQLite store, as their stored texts. */

import type { Database, Statement } from '../file/sqlite-driver.js'

export class SqliteGroupRates {
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

  /** `undefined`: the group has none. */
  set(scope: string, group: string, rules: string | undefined): void {
    if (rules === undefined) this.#delete.run(scope, group)
    else this.#write.run(scope, group, rules)
  }

  /** The first groups, by name. */
  first(scope: string, most: number): { readonly grp: string; readonly rules: string }[] {
    return this.#all.all(scope, most) as { grp: string; rules: string }[]
  }
}
