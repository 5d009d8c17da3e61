/** The package `better-sqlite3` as a driver: its connections with the interface of `node:sqlite`, as far as the store uses that. */

import { fileURLToPath } from 'node:url'

interface Ran {
  readonly changes: number | bigint
  readonly lastInsertRowid: number | bigint
}

interface BetterStatement {
  readonly reader: boolean
  safeIntegers(isSafe: boolean): void
  run(...values: unknown[]): Ran
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
  iterate(...values: unknown[]): Iterable<unknown>
}

export interface BetterConnection {
  exec(sql: string): unknown
  prepare(sql: string): BetterStatement
  unsafeMode(isUnsafe: boolean): unknown
  close(): unknown
  readonly inTransaction: boolean
}

export type BetterModule = new (
  file: string,
  options?: { readonly readonly: boolean; readonly timeout: number },
) => BetterConnection

/** It takes no URL. What is to be looked at without a trace is opened for reading. */
export function openBetter(Connection: BetterModule, file: string, readOnly: boolean) {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const connection = new Connection(path, { readonly: readOnly, timeout: 0 })
  // Else nothing may be written while a query is read row by row.
  connection.unsafeMode(true)
  return betterDatabase(connection)
}

export function betterDatabase(connection: BetterConnection) {
  return {
    exec: (sql: string) => void connection.exec(sql),
    prepare: (sql: string) => statementOf(connection, sql),
    close: () => void connection.close(),
    get isInTransaction() {
      return connection.inTransaction
    },
  }
}

function statementOf(connection: BetterConnection, sql: string) {
  const statement = connection.prepare(sql)
  if (statement.reader) statement.safeIntegers(false)
  // To it a numbered parameter is a named one.
  const bound = /\?\d/.test(sql) ? numbered : exact
  return {
    run: (...values: unknown[]) => statement.run(...bound(values)),
    get: (...values: unknown[]) => statement.get(...bound(values)),
    all: (...values: unknown[]) => statement.all(...bound(values)),
    iterate: (...values: unknown[]) => statement.iterate(...bound(values)),
  }
}

/** Else every number is bound as a floating-point one. */
function exact(values: readonly unknown[]): unknown[] {
  return values.map((value) => (Number.isSafeInteger(value) ? BigInt(value as number) : value))
}

function numbered(values: readonly unknown[]): [Record<string, unknown>] {
  return [Object.fromEntries(exact(values).map((value, i) => [String(i + 1), value]))]
}
