/**
 * Enqueueing on users' connections, in their transactions, with the statements of the store's own thread, before the
 * call returns. Nothing is held from one call to the next, because the user may roll back to any point before it.
 */

import { InvalidArgumentError, StoreUnavailableError } from '../../../core/errors.js'
import { describe } from '../../../core/messages/describe.js'
import type { Enqueued } from '../../contract/new-job.js'
import type { Transactions, UserConnection, UserEnqueueCall } from '../../contract/transactions.js'
import { preparingLate } from '../file/late-statements.js'
import { machineClock, type SqliteClock } from '../file/sqlite-clock.js'
import {
  type AdoptedDatabase,
  type Database,
  type DriverName,
  type SqliteDriver,
  sqliteDriver,
} from '../file/sqlite-driver.js'
import { isBusy, isMisunderstood, moved, typedError } from '../file/sqlite-errors.js'
import { refuseByHeader } from '../file/sqlite-file.js'
import { idOf } from '../file/sqlite-identity.js'
import { SqliteRoom } from '../file/sqlite-room.js'
import { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { SqliteEnqueue } from './sqlite-enqueue.js'

interface Guest {
  readonly db: AdoptedDatabase
  /** The identity of the file when the connection was admitted. */
  readonly id: string | undefined
  readonly transaction: SqliteTransaction
  readonly enqueue: SqliteEnqueue
  /** Takes the write lock before anything is read, and waits for it as long as the user's own statements do. */
  readonly lock: () => void
  readonly refuseShadows: () => void
  readonly watch: CommitWatch
}

export class SqliteUserEnqueue implements Transactions {
  readonly #file: string
  readonly #driverName: DriverName | undefined
  readonly #mostClaimBytes: number | undefined
  readonly #ring: (queues: readonly string[]) => void
  readonly #guests = new WeakMap<UserConnection, Guest>()
  #driver: SqliteDriver | undefined
  /** The opening of the store sets its own. */
  clock: SqliteClock = machineClock

  /**
   * `mostClaimBytes`: the weight at which a claim is full. `ring` rings queues, in this process and in others.
   */
  constructor(
    file: string,
    driver: DriverName | undefined,
    mostClaimBytes: number | undefined,
    ring: (queues: readonly string[]) => void,
  ) {
    this.#file = file
    this.#driverName = driver
    this.#mostClaimBytes = mostClaimBytes
    this.#ring = ring
  }

  enqueue(connection: UserConnection, call: UserEnqueueCall): Enqueued[] {
    try {
      const guest = this.#guestFor(connection)
      const answers = guest.db.isInTransaction ? this.#inTransaction(guest, call) : this.#alone(guest, call)
      this.#ringLater(guest, call.wakes !== false)
      return answers
    } catch (error) {
      throw this.#typed(error)
    }
  }

  #guestFor(connection: UserConnection): Guest {
    const file = this.#file
    let guest = this.#guests.get(connection)
    if (guest === undefined) {
      this.#driver ??= sqliteDriver(this.#driverName)
      const db = admitted(file, connection, this.#driver)
      const refuseShadows = shadowGuard(db)
      refuseShadows()
      const transaction = new SqliteTransaction(
        preparingLate(db),
        this.clock,
        new SqliteRoom(file, db),
        this.#mostClaimBytes,
      )
      // It changes nothing, but takes the write lock.
      const lock = db.prepare('DELETE FROM meta WHERE 0')
      guest = {
        ...{ db, transaction, id: idOf(file), enqueue: new SqliteEnqueue(transaction) },
        ...{ lock: () => lock.run(), refuseShadows },
        watch: new CommitWatch(db, this.#ring),
      }
      this.#guests.set(connection, guest)
    }
    if (idOf(file) !== guest.id) throw moved(file, 'file')
    guest.refuseShadows()
    return guest
  }

  /** In a savepoint, so that a refused call leaves the rest of the transaction as it was. */
  #inTransaction(guest: Guest, call: UserEnqueueCall): Enqueued[] {
    const { db } = guest
    db.exec('SAVEPOINT millrace_enqueue')
    try {
      guest.lock()
      const answers = enqueued(guest, call)
      db.exec('RELEASE millrace_enqueue')
      return answers
    } catch (error) {
      guest.transaction.forget()
      // After some failures SQLite has already ended the whole transaction.
      if (db.isInTransaction) db.exec('ROLLBACK TO millrace_enqueue; RELEASE millrace_enqueue')
      throw error
    }
  }

  #alone(guest: Guest, call: UserEnqueueCall): Enqueued[] {
    const { db } = guest
    db.exec('BEGIN IMMEDIATE')
    try {
      const answers = enqueued(guest, call)
      db.exec('COMMIT')
      return answers
    } catch (error) {
      guest.transaction.forget()
      if (db.isInTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  #ringLater({ transaction, watch }: Guest, wakes: boolean): void {
    const { rung } = transaction.takeRings()
    transaction.room.reset()
    if (wakes) watch.ring(rung)
  }

  #typed(error: unknown): unknown {
    const file = this.#file
    if (isBusy(error))
      return new StoreUnavailableError(
        `the SQLite store '${file}' cannot be written to: another connection holds its write lock, or has written since this transaction first read. ` +
          'Nothing was enqueued. Begin with BEGIN IMMEDIATE, give the connection a busy timeout of some seconds (node:sqlite has none by default), and try the whole transaction again.',
        { cause: error, inDoubt: false },
      )
    if (isMisunderstood(error))
      return new StoreUnavailableError(
        `the SQLite store '${file}' cannot be used on this connection: ${(error as Error).message}. Nothing was enqueued. If the file was replaced, open the connection anew.`,
        { cause: error, inDoubt: false },
      )
    return typedError(file, error)
  }
}

function enqueued({ transaction, enqueue }: Guest, call: UserEnqueueCall): Enqueued[] {
  const [answers] = enqueue.enqueue([{ ...call, callId: undefined }])
  transaction.flushRows()
  return answers!
}

interface ListedFile {
  readonly name: string
  readonly file: string | null
}

/**
 * A user's connection with the store's own interface. Throws `InvalidArgumentError` if it is no connection, is of another copy of
 * SQLite, or has another main file. For a file of another version it throws what the opening of a store throws.
 */
function admitted(file: string, connection: UserConnection, driver: SqliteDriver): AdoptedDatabase {
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
function shadowGuard(db: Database): () => void {
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
      `enqueueIn() expects an open connection to the store's file, a DatabaseSync of '${name}'; got ${describe(connection)}. For a transaction of Postgres the mill's store must be a Postgres, and this one is SQLite.`,
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

/**
 * The pauses between the looks. After the last one it rings in any case. Waiters also look by themselves within a
 * second.
 */
const looksAfterMs = [1, 2, 5, 10, 20, 50, 100, 200, 400] as const

/**
 * The watch for the commit of a user's transaction: SQLite reports it to nobody, and a worker that is rung before it
 * finds nothing. Most transactions are over as soon as the running code is. One that stays open is looked at a few
 * times more. A ring for a transaction that was rolled back wakes a worker in vain; a ring that never comes is made up
 * for by the bell's own look.
 */
class CommitWatch {
  readonly #db: Pick<AdoptedDatabase, 'isInTransaction'>
  readonly #ring: (queues: readonly string[]) => void
  readonly #queues = new Set<string>()

  constructor(db: Pick<AdoptedDatabase, 'isInTransaction'>, ring: (queues: readonly string[]) => void) {
    this.#db = db
    this.#ring = ring
  }

  /** Rings the queues once the transaction that is open now is over. */
  ring(queues: Iterable<string>): void {
    const isWatching = this.#queues.size > 0
    for (const queue of queues) this.#queues.add(queue)
    if (!isWatching && this.#queues.size > 0) queueMicrotask(() => this.#look(0))
  }

  #look(looks: number): void {
    const afterMs = looksAfterMs[looks]
    if (afterMs !== undefined && this.#isOpen()) {
      setTimeout(() => this.#look(looks + 1), afterMs).unref()
      return
    }
    const rung = [...this.#queues]
    this.#queues.clear()
    this.#ring(rung)
  }

  /** A connection that was closed has ended its transaction. */
  #isOpen(): boolean {
    try {
      return this.#db.isInTransaction
    } catch {
      return false
    }
  }
}
