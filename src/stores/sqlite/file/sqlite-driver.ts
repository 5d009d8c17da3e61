/**
 * The SQLite driver: Node's own `node:sqlite` if its SQLite is sound, otherwise `@photostructure/sqlite`, which has the
 * same interface; or the driver that the descriptor names.
 */

import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { StoreUnavailableError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import type { SqlValue } from '../../rows/stored-text.js'

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
  /** Row by row. The statement is in use until its last row is read. */
  iterate(...values: SqlValue[]): Iterable<unknown>
}

export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export type OpenDatabase = (file: string, options?: { readonly readOnly?: boolean }) => Database

export const driverNames = ['node:sqlite', '@photostructure/sqlite', 'better-sqlite3'] as const

export type DriverName = (typeof driverNames)[number]

/** A connection that somebody else opened, with the same copy of SQLite. */
export interface AdoptedDatabase extends Database {
  readonly isInTransaction: boolean
}

export interface SqliteDriver {
  readonly name: DriverName
  readonly open: OpenDatabase
  /**
   * The connection with our interface, whatever its user has set for other statements; undefined if another driver made
   * it.
   */
  adopt(connection: object): AdoptedDatabase | undefined
}

/**
 * Before 3.51.3, two connections that reset the write-ahead log at the same moment could corrupt the file
 * (sqlite.org/wal.html).
 */
const oldestSound = '3.51.3'

const require = createRequire(import.meta.url)

export async function loadDriver(name?: DriverName): Promise<OpenDatabase> {
  return sqliteDriver(name).open
}

/** Throws `StoreUnavailableError` if the driver cannot be loaded, or has a SQLite that must not be trusted. */
export function sqliteDriver(name: DriverName = defaultDriver()): SqliteDriver {
  return name === 'better-sqlite3' ? betterDriver() : nodeDriver(name)
}

function defaultDriver(): DriverName {
  return isSound(process.versions['sqlite']) ? 'node:sqlite' : '@photostructure/sqlite'
}

/**
 * Whether a SQLite of this version may be trusted with a file that several processes write; undefined: there is none.
 */
export function isSound(version: string | undefined): boolean {
  if (version === undefined) return false
  const [have, need] = [version, oldestSound].map((text) => text.split('.').map(Number))
  for (const [i, least] of need!.entries()) {
    const part = have![i] ?? 0
    if (part !== least) return part > least
  }
  return true
}

interface NodeStatement extends Statement {
  setReadBigInts(reads: boolean): void
  setReturnArrays?(returns: boolean): void
}

interface NodeConnection extends Database {
  prepare(sql: string): NodeStatement
  readonly isTransaction: boolean
}

interface NodeModule {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => NodeConnection
}

function nodeDriver(name: 'node:sqlite' | '@photostructure/sqlite'): SqliteDriver {
  const { DatabaseSync } = name === 'node:sqlite' ? builtIn() : packaged()
  return {
    name,
    open: (file, options) => new DatabaseSync(file, { readOnly: false, ...options }),
    adopt: (connection) => (connection instanceof DatabaseSync ? adopted(connection) : undefined),
  }
}

function adopted(connection: NodeConnection): AdoptedDatabase {
  return {
    exec: (sql) => connection.exec(sql),
    prepare(sql) {
      const statement = connection.prepare(sql)
      statement.setReadBigInts(false)
      statement.setReturnArrays?.(false)
      return statement
    },
    close: () => connection.close(),
    get isInTransaction() {
      return connection.isTransaction
    },
  }
}

function builtIn(): NodeModule {
  const version = process.versions['sqlite']
  if (!isSound(version)) throw unsound('node:sqlite', version)
  const emitWarning = process.emitWarning
  // Loading it warns once that it is experimental. Users of a queue can do nothing about that.
  process.emitWarning = () => {}
  try {
    return require('node:sqlite') as NodeModule
  } finally {
    process.emitWarning = emitWarning
  }
}

function packaged(): NodeModule {
  return loaded('@photostructure/sqlite') as NodeModule
}

function betterDriver(): SqliteDriver {
  const name = 'better-sqlite3'
  const Connection = loaded(name) as BetterModule
  const memory = new Connection(':memory:')
  const { version } = memory.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  memory.close()
  if (!isSound(version)) throw unsound(name, version)
  return {
    name,
    open: (file, options) => openBetter(Connection, file, options?.readOnly ?? false),
    adopt: (connection) =>
      connection instanceof Connection ? betterDatabase(connection as BetterConnection) : undefined,
  }
}

/** By a name that a bundler does not see: it would look for a package that is optional, and fail the build without it. */
function loaded(name: DriverName): unknown {
  try {
    return require(name)
  } catch (cause) {
    throw cannotLoad(name, cause)
  }
}

function cannotLoad(name: DriverName, cause: unknown): StoreUnavailableError {
  if (name === 'better-sqlite3')
    return new StoreUnavailableError(
      `the SQLite store is to use '${name}', which cannot be loaded: ${messageOf(cause)}. Run 'npm install ${name}', or leave \`?driver=\` out of the store's address.`,
      { cause },
    )
  const version = process.versions['sqlite']
  const found = version === undefined ? 'has none built in' : `has ${version} built in`
  return new StoreUnavailableError(
    `the SQLite store needs SQLite ${oldestSound} or newer; this Node (${process.version}) ${found} and '@photostructure/sqlite' cannot be loaded. ` +
      `Run 'npm install @photostructure/sqlite', or use Node 24.15 or newer, or use another store.`,
    { cause },
  )
}

function unsound(name: DriverName, version: string | undefined): StoreUnavailableError {
  return new StoreUnavailableError(
    `the SQLite store needs SQLite ${oldestSound} or newer; '${name}' ${version === undefined ? 'is not there' : `brings ${version}`}. Update it, or leave \`?driver=\` out of the store's address.`,
  )
}

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

/**
 * The package `better-sqlite3` as a driver: its connections, with the part of the interface of `node:sqlite` that the
 * store uses.
 */
interface BetterConnection {
  exec(sql: string): unknown
  prepare(sql: string): BetterStatement
  unsafeMode(isUnsafe: boolean): unknown
  close(): unknown
  readonly inTransaction: boolean
}

type BetterModule = new (
  file: string,
  options?: { readonly readonly: boolean; readonly timeout: number },
) => BetterConnection

/** The package takes no URL. A file that is only to be looked at is opened for reading, which leaves no trace. */
function openBetter(Connection: BetterModule, file: string, readOnly: boolean) {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const connection = new Connection(path, { readonly: readOnly, timeout: 0 })
  // Otherwise nothing may be written while a query is read row by row.
  connection.unsafeMode(true)
  return betterDatabase(connection)
}

function betterDatabase(connection: BetterConnection) {
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
