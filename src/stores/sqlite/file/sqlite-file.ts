/** The file of a SQLite store: opened, made where there is none, and refused, untouched, where it is not ours. */

import { accessSync, chmodSync, constants, lstatSync, mkdirSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreVersionError } from '../../../core/errors.js'
import type { SqliteClock } from './sqlite-clock.js'
import type { Database, OpenDatabase } from './sqlite-driver.js'
import { corrupt, foreign, isBusy, isMalformed, unavailable } from './sqlite-errors.js'
import { applicationId, schemaVersion, tableNames, tables } from './sqlite-schema.js'

/** `statfs` types of file systems whose locks do not hold between machines (linux/magic.h). */
const networkFileSystems: Record<number, string> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
}

/**
 * A statement that changes many rows keeps what it may have to take back: in a file, it would write and remove one for each claim.
 * The cache is large enough for what a busy queue goes over again and again, claims before settles.
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

/**
 * Opens the store at `file`. Throws `StoreCorruptError`, `StoreVersionError` or `StoreUnavailableError` before anything is
 * written to a file that is not a sound store of a version we know. Throws SQLite's busy error where others are in the way.
 */
export function openFile(file: string, open: OpenDatabase, clock: SqliteClock): Database {
  makeDirectory(dirname(file))
  const isNew = refuseByPath(file)
  if (!isNew) refuseForeign(file, open)
  let db = open(file)
  try {
    if (isNew) chmodSync(file, 0o600)
    db.exec(pragmas)
    if (isEmpty(db)) create(db)
    refuseByHeader(file, db)
    // Only now: in the file's header from the first commit on, our mark is seen without reading the log.
    if (pragma(db, 'journal_mode = WAL') !== 'wal') throw unavailable(file, 'it cannot be put into WAL mode.')
    if (dropStatistics(db)) {
      // This connection has read them already.
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
 * What `look` finds in the store at `file`; undefined if there is none. Makes and changes nothing. Throws what `openFile`
 * throws.
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

/** Makes sure that a file which showed signs of damage, or a disk that failed, can be trusted again. */
export function checkQuickly(file: string, db: Database): void {
  const found = pragma(db, 'quick_check(1)')
  if (found !== 'ok') throw corrupt(file, String(found))
}

function pragma(db: Database, name: string): unknown {
  return Object.values((db.prepare(`PRAGMA ${name}`).get() ?? {}) as object)[0]
}

/** What its path tells against it. True where there is no file, or an empty one. */
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
  // No store yet, and what its owner means to put there is not known.
  if (stats.uid !== process.getuid?.())
    throw unavailable(
      file,
      `it is empty and belongs to another user (uid ${stats.uid}). Give the store a file of its own, or make it yours with chown.`,
    )
  return true
}

/** Step by step: Node's own recursion never ends where the system says of an existing directory that it is not there (/proc). */
function makeDirectory(directory: string): void {
  if (lstat(directory) !== undefined) return
  makeDirectory(dirname(directory))
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function lstat(file: string): Stats | undefined {
  return lstatSync(file, { throwIfNoEntry: false })
}

/**
 * Looks at the header without locking, recovering or writing anything, as an ordinary opening might. By SQLite and not
 * by reading the file: closing any descriptor of it would drop the locks this process holds on it.
 */
function refuseForeign(file: string, open: OpenDatabase): void {
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  const db = open(url.href, { readOnly: true })
  try {
    // An empty page count: another process is making the file just now.
    if (pragma(db, 'page_count') !== 0) refuseByHeader(file, db)
  } catch (error) {
    // While the log is being copied into the file, or where whoever did that was killed in the midst of it, the file alone
    // is less than its header says. Whoever reads the log as well, as an ordinary opening does, finds it whole.
    if (!isMalformed(error)) throw error
  } finally {
    db.close()
  }
}

/** What the header tells against it. Throws `StoreCorruptError` or `StoreVersionError`. */
export function refuseByHeader(file: string, db: Database): void {
  const id = Number(pragma(db, 'application_id'))
  if (id !== applicationId) throw foreign(file, `its application_id is 0x${(id >>> 0).toString(16)}.`)
  const version = Number(pragma(db, 'user_version'))
  if (version < 1) throw corrupt(file, `its version is ${version}`)
  if (version > schemaVersion)
    throw new StoreVersionError(
      `the SQLite store '${file}' has version ${version}; this Millrace knows versions up to ${schemaVersion}. Nothing was written to it. Update Millrace.`,
    )
}

function isEmpty(db: Database): boolean {
  const { n } = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }
  return n === 0 && pragma(db, 'application_id') === 0
}

/** Several processes may be at it: the one with the write lock makes the tables, the others find them. */
function create(db: Database): void {
  inTransaction(db, () => {
    if (!isEmpty(db)) return
    db.exec(tables)
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`)
  })
}

/**
 * Statements name their index where it matters. What is left to SQLite must not follow what somebody's `ANALYZE` has told it
 * of our tables when the file was nearly empty: it would look through all jobs for the few of a claim. Those of tables that
 * users have in the file stay. Whether there were statistics of ours.
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

/** Two readings of one boot time differ by less: the wall clock is adjusted now and then. */
const bootToleranceMs = 60_000

/**
 * Monotonic times of another boot mean nothing now: whoever held those leases, or led, is gone. Where only the id differs and not
 * the time of the boot, a container of this very machine is at work on the file, and its leases hold.
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
    // Whoever could send a call again is gone as well.
    db.exec('DELETE FROM call')
    db.exec('DELETE FROM live_watch')
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
 * What a throttle has shut is looked at anew. A hold goes on, on the clock of this boot, which is `byMs` ahead of the former
 * one's; undefined: nobody can tell, and the holds are over.
 */
function carryHolds(db: Database, byMs: number | undefined): void {
  db.exec('UPDATE lane SET shut_until = 0 WHERE shut_until IS NOT NULL')
  for (const table of ['queue', 'lane'])
    db.prepare(`UPDATE ${table} SET held_until = held_until + ? WHERE held_until IS NOT NULL`).run(byMs ?? null)
  db.exec('UPDATE queue SET shut_until = NULL WHERE shut_until IS NOT NULL')
}

/** Ends a transaction that failed; harmless where SQLite has done so itself. */
export function rollBack(db: Database): void {
  try {
    db.exec('ROLLBACK')
  } catch (error) {
    if (isBusy(error)) throw error
  }
}
