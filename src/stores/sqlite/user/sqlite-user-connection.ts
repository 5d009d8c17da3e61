/** A user's connection to the file of a SQLite store, admitted if the store's statements may run on it. */

import { InvalidArgumentError } from '../../../core/errors.js'
import { describe } from '../../../core/values/describe.js'
import type { UserConnection } from '../../contract/transactions.js'
import type { AdoptedDatabase, Database, SqliteDriver } from '../file/sqlite-driver.js'
import { moved } from '../file/sqlite-errors.js'
import { refuseByHeader } from '../file/sqlite-file.js'
import { idOf } from '../file/sqlite-identity.js'

interface ListedFile {
  readonly name: string
  readonly file: string | null
}

/**
 * The connection with the store's own interface. Throws `InvalidArgumentError` if it is no connection, is of another
 * copy of SQLite, or has another main file. For a file of another version it throws what the opening of a store throws.
 */
export function admitted(file: string, connection: UserConnection, driver: SqliteDriver): AdoptedDatabase {
  const db = driver.adopt(connection)
  if (db === undefined) throw refusal(connection, driver)
  const listed = db.prepare('PRAGMA database_list').all() as ListedFile[]
  const ours = idOf(file)
  if (ours === undefined) throw moved(file, 'file')
  const isOurs = (one: ListedFile) => one.file !== null && one.file !== '' && idOf(one.file) === ours
  const main = listed.find(({ name }) => name === 'main')
  if (main === undefined || !isOurs(main)) throw elsewhere(file, main, listed.find(isOurs))
  refuseByHeader(file, db)
  return db
}

/**
 * A function that refuses the connection while it has a temporary table with the name of a table in its file: that
 * table would take what is meant for the other. It throws `InvalidArgumentError`.
 */
export function shadowGuard(db: Database): () => void {
  const select = db.prepare(
    "SELECT name FROM temp.sqlite_schema WHERE type IN ('table', 'view') AND name IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')",
  )
  return () => {
    const shadow = select.get() as { name: string } | undefined
    if (shadow === undefined) return
    throw new InvalidArgumentError(
      `enqueueIn(): the connection has a temporary table '${shadow.name}', and so is a table in its file called. Give it another name.`,
    )
  }
}

/**
 * A process must reach a file through one copy of SQLite: locks belong to the process, so two copies do not keep each
 * other out, and both write the log at once (sqlite.org/howtocorrupt.html, 2.2.1).
 */
function refusal(connection: unknown, { name }: SqliteDriver): InvalidArgumentError {
  const given = connection as Partial<Record<string, unknown>> | null
  const isConnection =
    typeof given === 'object' && given !== null && ['prepare', 'exec'].every((key) => typeof given[key] === 'function')
  if (!isConnection)
    return new InvalidArgumentError(
      `enqueueIn() expects an open connection to the store's file, a DatabaseSync of '${name}'; got ${describe(connection)}.`,
    )
  return new InvalidArgumentError(
    `enqueueIn(): the connection was not opened by '${name}', with which this process reaches the store. Two copies of SQLite in one process ` +
      'do not see each other\u2019s locks and damage the file that both write. Open the connection by that package, as this program resolves it, or name yours in the store\u2019s address: ' +
      "'sqlite:path/to/jobs.db?driver=better-sqlite3' (or node:sqlite, @photostructure/sqlite).",
  )
}

function elsewhere(file: string, main: ListedFile | undefined, attached: ListedFile | undefined): InvalidArgumentError {
  if (attached !== undefined)
    return new InvalidArgumentError(
      `enqueueIn(): the store's file '${file}' is attached to the connection as '${attached.name}', and a transaction over several files ` +
        'is not atomic in WAL mode. Keep your tables in the file of the store, and open the connection on that.',
    )
  const where = main?.file ? `is open on '${main.file}'` : 'has no file'
  return new InvalidArgumentError(
    `enqueueIn(): the connection ${where}, and the store lies in '${file}'. One transaction covers one file: open the connection on the store's file, in which your tables may be too.`,
  )
}
