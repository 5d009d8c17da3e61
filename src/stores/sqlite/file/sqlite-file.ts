/** The file of a SQLite store: opened, made if it does not exist, and refused, untouched, if it is not ours. */

import { accessSync, constants, lstatSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreVersionError } from '../../../core/errors.js'
import type { SqliteClock } from './sqlite-clock.js'
import type { Database, OpenDatabase } from './sqlite-driver.js'
import { corrupt, foreign, isBusy, isMalformed, unavailable } from './sqlite-errors.js'
import { applicationId, tableChanges, tableNames, tables } from './sqlite-schema.js'
import { giveRights, isTrusted, makeFolder } from './sqlite-sharing.js'

/** `statfs` types of file systems whose locks do not hold between machines (linux/magic.h). */
const networkFileSystems: Record<number, string> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
}

/**
 * `temp_store`: a statement that changes many rows keeps what it may have to undo. In a file, each claim would write
 * and remove one. `cache_size`: enough for the pages that a busy queue uses again and again, by claims more than by
 * settles.
 */
const pragmas = `
  PRAGMA busy_timeout = 0;
  PRAGMA trusted_schema = OFF;
  PRAGMA cell_size_check = ON;
  PRAGMA mmap_size = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -8192;
  PRAGMA synchronous = FULL;
`

/** `PRAGMA user_version` of a file that has these changes. */
const versionWith = (changes: readonly string[]) => 1 + changes.length

/**
 * Opens the store at `file`, and brings an older one to the present version. `changes`: `tableChanges`, unless a test says
 * otherwise. Throws `StoreCorruptError`, `StoreVersionError` or `StoreUnavailableError` before anything
 * is written to a file that is not an intact store of a known version. Throws SQLite's busy error if another connection
 * is in the way.
 */
export function openFile(file: string, open: OpenDatabase, clock: SqliteClock, changes = tableChanges): Database {
  makeDirectory(dirname(file))
  const isNew = refuseByPath(file)
  if (!isNew) refuseForeign(file, open, changes)
  let db = open(file)
  try {
    if (isNew) makeOurs(file)
    db.exec(pragmas)
    if (isEmpty(db)) create(db)
    refuseByHeader(file, db, changes)
    bringToPresent(db, changes)
    refuseIncomplete(file, db)
    // Only now: the first commit has then put our mark into the header of the file itself, where it is seen without
    // reading the log.
    if (pragma(db, 'journal_mode = WAL') !== 'wal') throw unavailable(file, 'it cannot be put into WAL mode.')
    if (dropStatistics(db)) {
      // This connection has already read them.
      db.close()
      db = open(file)
      db.exec(pragmas)
    }
    voidLeasesOfOtherBoot(db, clock)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * The result of `look` in the store at `file`; undefined if there is none. Makes and changes nothing. Throws what
 * `openFile` throws.
 */
export function lookInto<T>(file: string, open: OpenDatabase, look: (db: Database) => T): T | undefined {
  if (lstat(file) === undefined || refuseByPath(file)) return undefined
  refuseForeign(file, open)
  const db = open(file)
  try {
    db.exec(pragmas)
    if (isEmpty(db)) return undefined
    refuseByHeader(file, db)
    return look(db)
  } finally {
    db.close()
  }
}

/**
 * Checks that a file that showed signs of damage, or was on a disk that failed, can be trusted again. Throws
 * `StoreCorruptError`.
 */
export function checkQuickly(file: string, db: Database): void {
  const found = pragma(db, 'quick_check(1)')
  if (found !== 'ok') throw corrupt(file, String(found))
}

function pragma(db: Database, name: string): unknown {
  return Object.values((db.prepare(`PRAGMA ${name}`).get() ?? {}) as object)[0]
}

/** Refuses a path at which no store can be. True if there is no file, or an empty one. */
function refuseByPath(file: string): boolean {
  const network = networkFileSystems[statfsSync(dirname(file)).type]
  if (network !== undefined)
    throw unavailable(file, `it lies on a network file system (${network}), whose locks do not hold. Use a local disk.`)
  const link = lstat(file)
  if (link?.isSymbolicLink() && link.uid !== process.getuid?.())
    throw unavailable(file, `it is a symbolic link that belongs to another user (uid ${link.uid}).`)
  if (link === undefined) return true
  const stats = statSync(file)
  if (stats.isDirectory()) throw unavailable(file, 'it is a directory. Name a file in it.')
  if (!stats.isFile()) throw unavailable(file, 'it is not a regular file.')
  accessSync(file, constants.R_OK | constants.W_OK)
  if (stats.size > 0) return false
  // It is no store yet, and its owner may want it for something else.
  if (!isTrusted(stats, dirname(file)))
    throw unavailable(
      file,
      `it is empty and belongs to another user (uid ${stats.uid}). Give the store a file of its own, or make it yours with chown.`,
    )
  return true
}

/** Step by step: Node's own recursion never ends if the system reports an existing directory as missing (/proc). */
function makeDirectory(directory: string): void {
  if (lstat(directory) !== undefined) return
  makeDirectory(dirname(directory))
  try {
    makeFolder(directory)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Another user with whom the folder is shared may have made it at the same time, and gives it its rights then. */
function makeOurs(file: string): void {
  if (statSync(file).uid === process.getuid?.()) giveRights(file, dirname(file))
}

function lstat(file: string): Stats | undefined {
  return lstatSync(file, { throwIfNoEntry: false })
}

/**
 * Checks the header without locking, recovering or writing anything, which an ordinary opening might do. SQLite reads
 * it, not this code: to close any descriptor of the file would drop the locks that this process holds on it.
 */
function refuseForeign(file: string, open: OpenDatabase, changes = tableChanges): void {
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  const db = open(url.href, { readOnly: true })
  try {
    // A page count of 0: another process is just making the file.
    if (pragma(db, 'page_count') !== 0) refuseByHeader(file, db, changes)
  } catch (error) {
    // While the log is copied into the file, or after a process was killed while it did that, the file alone is shorter
    // than its header says. An ordinary opening also reads the log and finds the store whole.
    if (!isMalformed(error)) throw error
  } finally {
    db.close()
  }
}

/** Refuses a file by its header. Throws `StoreCorruptError` or `StoreVersionError`. */
export function refuseByHeader(file: string, db: Database, changes = tableChanges): void {
  const id = Number(pragma(db, 'application_id'))
  if (id !== applicationId) throw foreign(file, `its application_id is 0x${(id >>> 0).toString(16)}.`)
  const version = Number(pragma(db, 'user_version'))
  if (version < 1) throw corrupt(file, `its version is ${version}`)
  if (version > versionWith(changes))
    throw new StoreVersionError(
      `the SQLite store '${file}' has version ${version}; this Millrace knows versions up to ${versionWith(changes)}. Nothing was written to it. Update Millrace.`,
    )
}

/** The statements of a missing table would fail later, when others have written. Throws `StoreCorruptError`. */
function refuseIncomplete(file: string, db: Database): void {
  const found = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]
  const names = new Set(found.map(({ name }) => name))
  const missing = tableNames.filter((name) => !names.has(name))
  if (missing.length > 0) throw corrupt(file, `it has no table ${missing.join(', ')}`)
}

function isEmpty(db: Database): boolean {
  const { n } = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }
  return n === 0 && pragma(db, 'application_id') === 0
}

/** Several processes may do this at once: the one with the write lock makes the tables, the others find them. */
function create(db: Database): void {
  inTransaction(db, () => {
    if (!isEmpty(db)) return
    db.exec(tables)
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${versionWith(tableChanges)}`)
  })
}

/** All changes that the file lacks, or none. Several processes may do this at once, as with the tables. */
function bringToPresent(db: Database, changes: readonly string[]): void {
  const lacking = () => changes.slice(Number(pragma(db, 'user_version')) - 1)
  if (lacking().length === 0) return
  inTransaction(db, () => {
    for (const change of lacking()) db.exec(change)
    db.exec(`PRAGMA user_version = ${versionWith(changes)}`)
  })
}

/**
 * Deletes the statistics of our tables. Statements name their index if it matters. Other choices of SQLite must not
 * depend on an `ANALYZE` that somebody ran when the file was nearly empty: SQLite would look through all jobs for the
 * few of a claim. Statistics of users' own tables in the file stay. Returns whether there were any of ours.
 */
function dropStatistics(db: Database): boolean {
  const select = db.prepare("SELECT name FROM sqlite_schema WHERE name GLOB 'sqlite_stat[0-9]'")
  const ofOurs = `WHERE tbl IN (${tableNames.map((name) => `'${name}'`).join(', ')})`
  const kept = (select.all() as { name: string }[]).filter(
    ({ name }) => db.prepare(`SELECT 1 FROM ${name} ${ofOurs}`).get() !== undefined,
  )
  if (kept.length === 0) return false
  inTransaction(db, () => {
    for (const { name } of kept) db.exec(`DELETE FROM ${name} ${ofOurs}`)
  })
  return true
}

function inTransaction(db: Database, step: () => void): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    step()
    db.exec('COMMIT')
  } catch (error) {
    rollBack(db)
    throw error
  }
}

/** Two readings of one boot time differ by less than this: the wall clock is adjusted now and then. */
const bootToleranceMs = 60_000

/**
 * Ends the leases and leads of another boot. Its monotonic times mean nothing now, and its processes are gone. If the
 * id of the boot differs but not its time, a container of this machine is using the file, and its leases hold.
 */
function voidLeasesOfOtherBoot(db: Database, clock: SqliteClock): void {
  const bootId = clock.bootId()
  const bootedAt = clock.bootedAt?.()
  const select = db.prepare('SELECT value FROM meta WHERE name = ?')
  const stored = (name: string) => (select.get(name) as { value: string } | undefined)?.value
  const isSame = () => {
    if (stored('boot') === bootId) return true
    const at = stored('bootedAt')
    return at !== undefined && bootedAt !== undefined && Math.abs(Number(at) - bootedAt) < bootToleranceMs
  }
  if (isSame()) return
  inTransaction(db, () => {
    if (isSame()) return
    // Not charged: the end of the whole machine says nothing against the one job that ran alone.
    db.exec('UPDATE job SET lease_until = 0, alone = 0 WHERE state = 2')
    // The processes that could send a call again are gone as well.
    db.exec('DELETE FROM call')
    db.exec('DELETE FROM live_watch')
    db.exec('DELETE FROM result_wait')
    const at = Number(stored('bootedAt') ?? Number.NaN)
    carryHolds(db, bootedAt === undefined || Number.isNaN(at) ? undefined : at - bootedAt)
    db.exec(
      'UPDATE queue SET lead_worker = NULL, lead_wake_at = NULL, suspect_lead_worker = NULL, suspect_lead_wake_at = NULL',
    )
    const insert = db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)')
    insert.run('boot', bootId)
    if (bootedAt !== undefined) insert.run('bootedAt', String(bootedAt))
  })
}

/**
 * What a throttle has shut is looked at anew. A hold goes on, on the clock of this boot, which is `byMs` ahead of the
 * former clock. If `byMs` is undefined, nobody knows how long the machine was off, and the holds are over.
 */
function carryHolds(db: Database, byMs: number | undefined): void {
  db.exec('UPDATE lane SET shut_until = 0 WHERE shut_until IS NOT NULL')
  for (const table of ['queue', 'lane'])
    db.prepare(`UPDATE ${table} SET held_until = held_until + ? WHERE held_until IS NOT NULL`).run(byMs ?? null)
  db.exec('UPDATE queue SET shut_until = NULL WHERE shut_until IS NOT NULL')
}

/** Ends a transaction that failed. Harmless if SQLite has already done so. */
export function rollBack(db: Database): void {
  try {
    db.exec('ROLLBACK')
  } catch (error) {
    if (isBusy(error)) throw error
  }
}
