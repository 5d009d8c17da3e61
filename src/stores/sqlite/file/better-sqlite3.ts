/**
 * The package `better-sqlite3` as a driver: its connections, with the part of the interface of `node:sqlite` that the
 * store uses.
 */

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

/** The package takes no URL. A file that is only to be looked at is opened for reading, which leaves no trace. */
export function openBetter(Connection: BetterModule, file: string, readOnly: boolean) {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const connection = new Connection(path, { readonly: readOnly, timeout: 0 })
  // Otherwise nothing may be written while a query is read row by row.
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
  const { text, count } = numbered(sql)
  const statement = connection.prepare(text)
  if (statement.reader) statement.safeIntegers(false)
  const bound = (values: readonly unknown[]) => (count === 0 ? [] : [boundTo(count, values)])
  return {
    run: (...values: unknown[]) => statement.run(...bound(values)),
    get: (...values: unknown[]) => statement.get(...bound(values)),
    all: (...values: unknown[]) => statement.all(...bound(values)),
    iterate: (...values: unknown[]) => statement.iterate(...bound(values)),
  }
}

/** A text literal of SQL, or a parameter with or without a number. */
const parameters = /'(?:[^']|'')*'|\?(\d*)/g

/**
 * Gives each parameter its number: the package treats a numbered parameter as a named one, and the parameters of one
 * statement must all be bound in the same way.
 */
function numbered(sql: string): { readonly text: string; readonly count: number } {
  let count = 0
  const text = sql.replace(parameters, (found: string, given: string | undefined) => {
    if (given === undefined) return found
    const number = given === '' ? count + 1 : Number(given)
    count = Math.max(count, number)
    return `?${number}`
  })
  return { text, count }
}

/** Missing values are null. Integers become BigInts, because the package would bind them as floating-point numbers. */
function boundTo(count: number, values: readonly unknown[]): Record<number, unknown> {
  const bound: Record<number, unknown> = {}
  for (let number = 1; number <= count; number += 1) {
    const value = values[number - 1] ?? null
    bound[number] = Number.isSafeInteger(value) ? BigInt(value as number) : value
  }
  return bound
}
