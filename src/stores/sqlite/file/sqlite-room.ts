/**
 * The room that a SQLite store has on its volume. Enqueues are refused while there is still enough room for claims,
 * settles and deletes, which make room. If other programs fill the volume, the store removes its ballast, a file that
 * only reserves space.
 */

import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { StoreFullError } from '../../../core/errors.js'
import type { Database, Statement } from './sqlite-driver.js'
import { type SqliteIdentity, sizeOf } from './sqlite-identity.js'
import {
  logBytes,
  restingLogBytes,
  spareBytes,
  takesJobs,
  type Volume,
  wantsBallast,
  wantsLongLog,
} from './sqlite-volume.js'

/** How long a look is valid while there is much room: nobody fills `muchBytes` in this time. */
const lookMs = 250

const muchBytes = 268_435_456

const ballastEveryMs = 1_000

/** A program that commits less often than this does not gain what a long log costs, about 15 ms. */
const commitsPerLook = 32

const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

export function ballastOf(file: string): string {
  return `${file}-ballast`
}

/** Removes the ballast; true if there was one. */
export function freeBallast(file: string): boolean {
  if (sizeOf(ballastOf(file)) === 0) return false
  rmSync(ballastOf(file), { force: true })
  return true
}

/** Undefined if the file system does not report its size. */
export function volumeOf(file: string, db: Database): Volume | undefined {
  const number = (name: string) => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0])
  return measured(file, number('page_size'), number('page_count'), number('freelist_count'))
}

function measured(file: string, pageSize: number, pages: number, unused: number): Volume | undefined {
  try {
    const { blocks, bavail, bsize } = statfsSync(file)
    if (blocks === 0) return undefined
    return {
      total: blocks * bsize,
      free: bavail * bsize,
      file: sizeOf(file),
      grown: pages * pageSize,
      unused: unused * pageSize,
      log: sizeOf(`${file}-wal`),
      ballast: sizeOf(ballastOf(file)),
    }
  } catch {
    return undefined
  }
}

/** Bounds the log of a connection by the size of its volume. Returns that bound in bytes. */
export function boundLog(file: string, db: Database): number {
  let total = Number.POSITIVE_INFINITY
  try {
    const { blocks, bsize } = statfsSync(file)
    if (blocks > 0) total = blocks * bsize
  } catch {
    // As on a large volume.
  }
  const bytes = logBytes(total)
  db.exec(
    `PRAGMA journal_size_limit = ${Math.floor(restingLogBytes(total))}; PRAGMA wal_autocheckpoint = ${bytes / 4_096}`,
  )
  return bytes
}

const chunkBytes = 1_048_576

const logFlags = constants.O_WRONLY | constants.O_NOFOLLOW

/**
 * Gives the log its full length. If a commit makes the log longer, the file system must make the new length durable too. On
 * ext4 such a commit takes 0.6 ms, one within the length 0.25 ms.
 *
 * The zeros that it appends are no frame for SQLite: a frame names its page and has the log's salt. Call it with the write lock
 * held: another writer would append where the zeros go. The next commit makes them durable. Never throws; a log that cannot be
 * made longer grows by its commits.
 */
function lengthenLog(log: string, bytes: number): void {
  try {
    const descriptor = openSync(log, logFlags)
    try {
      const zeros = Buffer.alloc(chunkBytes)
      for (let at = fstatSync(descriptor).size; at < bytes; )
        at += writeSync(descriptor, zeros, 0, Math.min(chunkBytes, bytes - at), at)
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // There is no room for it after all, or this user may not.
  }
}

export class SqliteRoom {
  readonly #file: string
  readonly #pageSize: number
  readonly #pages: Statement
  readonly #unused: Statement
  #volume: Volume | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  #madeAt = Number.NEGATIVE_INFINITY
  #commits = 0
  /** Bytes of new jobs in this transaction. */
  #entering = 0

  constructor(file: string, db: Database) {
    this.#file = file
    this.#pageSize = (db.prepare('PRAGMA page_size').get() as { page_size: number }).page_size
    this.#pages = db.prepare('PRAGMA page_count')
    this.#unused = db.prepare('PRAGMA freelist_count')
  }

  /** Whether `bytes` of new jobs fit, in addition to those that this transaction has let in. */
  takes(bytes: number): boolean {
    this.#entering += bytes
    const volume = this.#look()
    return volume === undefined || takesJobs(volume, this.#entering)
  }

  refusal(): StoreFullError {
    const volume = this.#volume!
    return new StoreFullError(
      `the SQLite store '${this.#file}' takes no more jobs: ${megabytes(volume.free)} of ${megabytes(volume.total)} are free on its disk, and what is left is ` +
        'kept to claim, finish and delete the jobs that are there, which goes on. Nothing was changed. Let workers catch up, delete jobs or free some space.',
    )
  }

  /** Called after each transaction. */
  reset(): void {
    this.#entering = 0
    if (this.#volume === undefined || spareBytes(this.#volume, 0) < muchBytes) this.#lookedAt = Number.NEGATIVE_INFINITY
  }

  /** Called before a commit. Gives the log its full length if there is much room. */
  keepLog(identity: SqliteIdentity): void {
    this.#commits += 1
    if (this.#commits % commitsPerLook !== 0) return
    const volume = this.#look()
    if (volume !== undefined && wantsLongLog(volume) && identity.hasLog)
      lengthenLog(`${this.#file}-wal`, logBytes(volume.total))
  }

  /** Called after a commit. Makes the ballast if it is missing and there is room for it. Throws if the file cannot be read. */
  keepBallast(): void {
    const now = performance.now()
    if (now - this.#madeAt < ballastEveryMs) return
    this.#madeAt = now
    const volume = this.#look()
    if (volume !== undefined && wantsBallast(volume)) makeBallast(this.#file, logBytes(volume.total))
  }

  #look(): Volume | undefined {
    const now = performance.now()
    if (now - this.#lookedAt < lookMs) return this.#volume
    this.#lookedAt = now
    const [pages, unused] = [this.#pages, this.#unused].map((statement) =>
      Number(Object.values(statement.get() as object)[0]),
    )
    this.#volume = measured(this.#file, this.#pageSize, pages!, unused!)
    return this.#volume
  }
}

/**
 * An incomplete ballast is made anew: the process that made it was killed. If several processes try at once, one of
 * them makes it.
 */
function makeBallast(file: string, bytes: number): void {
  const path = ballastOf(file)
  try {
    freeBallast(file)
    const descriptor = openSync(path, openFlags, 0o600)
    try {
      // Random, so that it cannot be compressed: a file of zeros reserves nothing on a file system that compresses.
      const chunk = randomBytes(Math.min(bytes, 1_048_576))
      for (let written = 0; written < bytes; )
        written += writeSync(descriptor, chunk, 0, Math.min(chunk.length, bytes - written))
    } catch (error) {
      rmSync(path, { force: true })
      throw error
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // There is no room for it after all, or this user may not make it.
  }
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MB`
}
