/**
 * Enqueueing on users' connections, in their transactions, with the statements of the store's own thread, before the
 * call returns. Nothing is held from one call to the next, because the user may roll back to any point before it.
 */

import { StoreUnavailableError } from '../../../core/errors.js'
import type { Enqueued } from '../../contract/new-job.js'
import type { Transactions, UserConnection } from '../../contract/transactions.js'
import { machineClock, type SqliteClock } from '../file/sqlite-clock.js'
import { type AdoptedDatabase, type DriverName, type SqliteDriver, sqliteDriver } from '../file/sqlite-driver.js'
import { isBusy, isMisunderstood, moved, typedError } from '../file/sqlite-errors.js'
import { idOf } from '../file/sqlite-identity.js'
import { SqliteRoom } from '../file/sqlite-room.js'
import { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { SqliteEnqueue } from '../work/sqlite-enqueue.js'
import { CommitWatch } from './commit-watch.js'
import { admitted, shadowGuard } from './sqlite-user-connection.js'

type Call = Parameters<Transactions['enqueue']>[1]

interface Guest {
  readonly db: AdoptedDatabase
  /** The identity of the file when the connection was admitted. */
  readonly id: string | undefined
  readonly session: SqliteTransaction
  readonly enqueue: SqliteEnqueue
  /** Takes the write lock before anything is read, and waits for it as long as the user's own statements do. */
  readonly lock: () => void
  readonly refuseShadows: () => void
  readonly watch: CommitWatch
}

interface UserEnqueueParts {
  readonly file: string
  readonly driver: DriverName | undefined
  /** The weight, in bytes, at which a claim is full. */
  readonly mostClaimBytes: number | undefined
  /** Rings queues, in this process and in others. */
  readonly ring: (queues: readonly string[]) => void
}

export class SqliteUserEnqueue implements Transactions {
  readonly #parts: UserEnqueueParts
  readonly #guests = new WeakMap<UserConnection, Guest>()
  #driver: SqliteDriver | undefined
  /** The opening of the store sets its own. */
  clock: SqliteClock = machineClock

  constructor(parts: UserEnqueueParts) {
    this.#parts = parts
  }

  enqueue(connection: UserConnection, call: Call): Enqueued[] {
    try {
      const guest = this.#guestFor(connection)
      const answers = guest.db.isInTransaction ? this.#inTransaction(guest, call) : this.#alone(guest, call)
      this.#ringLater(guest)
      return answers
    } catch (error) {
      throw this.#typed(error)
    }
  }

  #guestFor(connection: UserConnection): Guest {
    const { file, driver, mostClaimBytes } = this.#parts
    let guest = this.#guests.get(connection)
    if (guest === undefined) {
      this.#driver ??= sqliteDriver(driver)
      const db = admitted(file, connection, this.#driver)
      const refuseShadows = shadowGuard(db)
      refuseShadows()
      const session = new SqliteTransaction(db, this.clock, new SqliteRoom(file, db), mostClaimBytes)
      // It changes nothing, but takes the write lock.
      const lock = db.prepare('DELETE FROM meta WHERE 0')
      guest = {
        ...{ db, session, id: idOf(file), enqueue: new SqliteEnqueue(session) },
        ...{ lock: () => lock.run(), refuseShadows },
        watch: new CommitWatch(db, this.#parts.ring),
      }
      this.#guests.set(connection, guest)
    }
    if (idOf(file) !== guest.id) throw moved(file, 'file')
    guest.refuseShadows()
    return guest
  }

  /** In a savepoint, so that a refused call leaves the rest of the transaction as it was. */
  #inTransaction(guest: Guest, call: Call): Enqueued[] {
    const { db } = guest
    db.exec('SAVEPOINT millrace_enqueue')
    try {
      guest.lock()
      const answers = enqueued(guest, call)
      db.exec('RELEASE millrace_enqueue')
      return answers
    } catch (error) {
      guest.session.forget()
      // After some failures SQLite has already ended the whole transaction.
      if (db.isInTransaction) db.exec('ROLLBACK TO millrace_enqueue; RELEASE millrace_enqueue')
      throw error
    }
  }

  #alone(guest: Guest, call: Call): Enqueued[] {
    const { db } = guest
    db.exec('BEGIN IMMEDIATE')
    try {
      const answers = enqueued(guest, call)
      db.exec('COMMIT')
      return answers
    } catch (error) {
      guest.session.forget()
      if (db.isInTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  #ringLater({ session, watch }: Guest): void {
    const { rung } = session.takeRings()
    session.room.reset()
    watch.ring(rung)
  }

  #typed(error: unknown): unknown {
    const { file } = this.#parts
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

function enqueued({ session, enqueue }: Guest, call: Call): Enqueued[] {
  const [answers] = enqueue.enqueue([{ ...call, callId: undefined }])
  session.flushRows()
  return answers!
}
