/** A connection to a store's file, with the real driver, each of whose statements is seen before it runs. */

import { machineClock } from '#src/stores/sqlite/file/sqlite-clock.js'
import { loadDriver, type OpenDatabase, type Statement } from '#src/stores/sqlite/file/sqlite-driver.js'
import { exitGate } from '#src/stores/sqlite/thread/exit-gate.js'
import { SqliteConnection } from '#src/stores/sqlite/thread/sqlite-connection.js'

type Before = (sql: string, values: readonly unknown[]) => void

/** `before` may throw: that is what the statement throws. */
export async function watchedConnection(file: string, before: Before): Promise<SqliteConnection> {
  return new SqliteConnection({
    ...{ file, open: watching(await loadDriver(), before), clock: machineClock, gate: exitGate() },
    ...{ closing: new Int32Array(new SharedArrayBuffer(4)), onLost: () => {} },
  })
}

function watching(open: OpenDatabase, before: Before): OpenDatabase {
  return (file, options) => {
    const db = open(file, options)
    return {
      exec: (sql) => db.exec(sql),
      close: () => db.close(),
      prepare(sql) {
        const statement = db.prepare(sql)
        const watched =
          <Name extends keyof Statement>(name: Name) =>
          (...values: Parameters<Statement[Name]>) => {
            before(sql, values)
            return statement[name](...values) as ReturnType<Statement[Name]>
          }
        return { run: watched('run'), get: watched('get'), all: watched('all'), iterate: watched('iterate') }
      },
    }
  }
}
