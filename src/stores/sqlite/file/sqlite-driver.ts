/** The SQLite driver: Node's own `node:sqlite` where its SQLite is sound, else `@photostructure/sqlite`, which has the same interface. */

import { StoreUnavailableError } from '../../../core/errors.js'

export type SqlValue = string | number | bigint | Uint8Array | null
export type Row = Record<string, SqlValue>

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
  /** Row by row. As long as one is left the statement is in use. */
  iterate(...values: SqlValue[]): Iterable<unknown>
}

export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export type OpenDatabase = (file: string, options?: { readonly readOnly?: boolean }) => Database

/** Before 3.51.3 two connections that reset the write-ahead log at the same moment could corrupt the file (sqlite.org/wal.html). */
const oldestSound = '3.51.3'

export async function loadDriver(): Promise<OpenDatabase> {
  const builtIn = process.versions['sqlite']
  const { DatabaseSync } = isSound(builtIn) ? await builtInDriver() : await bundledDriver(builtIn)
  return (file, options) => new DatabaseSync(file, { readOnly: false, ...options })
}

/** Whether a SQLite of this version, or none, may be trusted with a file that several processes write. */
export function isSound(version: string | undefined): boolean {
  if (version === undefined) return false
  const [have, need] = [version, oldestSound].map((text) => text.split('.').map(Number))
  for (const [i, least] of need!.entries()) {
    const part = have![i] ?? 0
    if (part !== least) return part > least
  }
  return true
}

interface DriverModule {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => Database
}

async function builtInDriver(): Promise<DriverModule> {
  const emitWarning = process.emitWarning
  // Importing it warns once that it is experimental, which users of a queue can do nothing about.
  process.emitWarning = () => {}
  try {
    return await importModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

async function bundledDriver(builtIn: string | undefined): Promise<DriverModule> {
  try {
    return await importModule('@photostructure/sqlite')
  } catch (cause) {
    const found = builtIn === undefined ? 'has none built in' : `has ${builtIn} built in`
    throw new StoreUnavailableError(
      `the SQLite store needs SQLite ${oldestSound} or newer; this Node (${process.version}) ${found} and '@photostructure/sqlite' cannot be loaded. ` +
        `Run 'npm install @photostructure/sqlite', or use Node 24.15 or newer, or use another store.`,
      { cause },
    )
  }
}

/** By a variable, so that the compiler needs no types of a module that this Node may not have. */
async function importModule(name: string): Promise<DriverModule> {
  return (await import(name)) as DriverModule
}
