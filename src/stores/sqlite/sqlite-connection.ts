/** The thread's connection to its file: runs calls in transactions, opens the file when needed, waits its turn for the write lock. */

import { systemRandom } from '../../core/clock.js'
import { MillraceError } from '../../core/errors.js'
import type { ExitGate } from '../exit-gate.js'
import type { SqliteClock } from './sqlite-clock.js'
import type { Database, OpenDatabase } from './sqlite-driver.js'
import { carried, corrupt, isBusy, isMisunderstood, isSuspect, typedError } from './sqlite-errors.js'
import { checkQuickly, lookInto, openFile, rollBack } from './sqlite-file.js'
import type { Answer, Call, Reply } from './sqlite-message.js'
import { type SqliteOperations, sqliteOperations } from './sqlite-operations.js'
import { queuesIn } from './sqlite-records.js'
import { SqliteSession } from './sqlite-session.js'

/** How long a call waits for other processes before it is given up, and how long while the store is being closed. */
const patienceMs = 30_000
const closingPatienceMs = 500
const sleeper = new Int32Array(new SharedArrayBuffer(4))

interface Opened {
  readonly session: SqliteSession
  readonly operations: SqliteOperations
}

export class SqliteConnection {
  readonly #file: string
  readonly #open: OpenDatabase
  readonly #clock: SqliteClock
  readonly #closing: Int32Array
  readonly #gate: ExitGate
  #closingAt: number | undefined
  #opened: Opened | undefined
  #isSuspected = false

  /** `closing`: shared with the other side, which sets its first cell to 1 when it closes the store. */
  constructor(file: string, open: OpenDatabase, clock: SqliteClock, closing: Int32Array, gate: ExitGate) {
    this.#file = file
    this.#open = open
    this.#clock = clock
    this.#closing = closing
    this.#gate = gate
  }

  /**
   * Runs writes in one transaction and returns when it is durable. `gather` is called with the write lock held and gives
   * the calls; `meanwhile` is called while others hold it. Throws, nothing gathered, where there is no connection or no
   * lock; each gathered call has its answer in the reply.
   */
  write(gather: () => readonly Call[], meanwhile: () => void): Reply {
    return this.#gate.inside(() => this.#write(gather, meanwhile))
  }

  #write(gather: () => readonly Call[], meanwhile: () => void): Reply {
    let calls: readonly Call[] = []
    try {
      this.#begin(meanwhile)
      calls = gather()
      return this.#commit(calls)
    } catch (error) {
      this.#giveUp(error)
      if (calls.length === 0) throw error
      if (calls.length === 1 || isSuspect(error)) return replyOf(calls.map((call) => this.#refusal(call, error)))
    }
    // One of them is the culprit, and it may have changed something before it failed: each by itself.
    const replies = calls.map((call) => this.#writeAlone(call, meanwhile))
    return {
      answers: replies.flatMap((reply) => reply.answers),
      rung: [...new Set(replies.flatMap((reply) => reply.rung))],
      hasEnds: replies.some((reply) => reply.hasEnds),
    }
  }

  #writeAlone(call: Call, meanwhile: () => void): Reply {
    try {
      return this.#write(() => [call], meanwhile)
    } catch (error) {
      return replyOf([this.#refusal(call, error)])
    }
  }

  #begin(meanwhile: () => void): void {
    const { session } = this.#connected()
    this.#patiently(() => session.db.exec('BEGIN IMMEDIATE'), meanwhile)
  }

  /** Throws what is not the answer to one call alone; nothing is committed then. */
  #commit(calls: readonly Call[]): Reply {
    const { session, operations } = this.#opened!
    const answers = calls.map((call) => this.#answer(operations.writes, call))
    session.flush()
    // Nothing meanwhile: the transaction is open, and a read would find itself in it.
    this.#patiently(() => session.db.exec('COMMIT'))
    const reply: Reply = { answers, rung: [...session.rung], hasEnds: session.hasEnds }
    session.rung = new Set()
    session.hasEnds = false
    return reply
  }

  /** Runs calls that change nothing, all on one state of the file. */
  read(calls: readonly Call[]): Answer[] {
    return this.#gate.inside(() => this.#read(calls))
  }

  #read(calls: readonly Call[]): Answer[] {
    try {
      if (this.#opened === undefined && calls.every(isLook)) return this.#look(calls)
      const { session, operations } = this.#connected()
      this.#patiently(() => session.db.exec('BEGIN'))
      const answers = calls.map((call) => this.#patiently(() => this.#answer(operations.reads, call)))
      session.db.exec('COMMIT')
      session.forgetRows()
      return answers
    } catch (error) {
      this.#giveUp(error)
      return calls.map((call) => this.#refusal(call, error))
    }
  }

  /** Who only asks which queues there are makes no file, and leaves one of an older version as it is. */
  #look(calls: readonly Call[]): Answer[] {
    const found = this.#patiently(() => lookInto(this.#file, this.#open, queuesIn))
    return calls.map(([number]) => [number, found ?? []])
  }

  isWrite(call: Call): boolean {
    return !isLook(call) && call[1] in this.#connected().operations.writes
  }

  /** Our own errors come before anything is written: they are the answer to their call and leave the others alone. */
  #answer(operations: object, [number, name, args]: Call): Answer {
    try {
      return [number, (operations as Record<string, (...args: readonly unknown[]) => unknown>)[name]!(...args)]
    } catch (error) {
      if (error instanceof MillraceError) return [number, undefined, carried(error)]
      throw error
    }
  }

  #refusal([number]: Call, error: unknown): Answer {
    return [number, undefined, carried(typedError(this.#file, error))]
  }

  /** Ends the transaction that failed; never throws. A connection that cannot even do that is given up with it. */
  #giveUp(error: unknown): void {
    const opened = this.#opened
    if (opened === undefined) return
    opened.session.forget()
    try {
      rollBack(opened.session.db)
    } catch {
      this.#isSuspected = true
    }
    if (isSuspect(error)) this.#isSuspected = true
    if (this.#isSuspected) this.close()
  }

  #connected(): Opened {
    this.#opened ??= this.#gate.inside(() => this.#patiently(() => this.#connect()))
    return this.#opened
  }

  #connect(): Opened {
    let db: Database | undefined
    try {
      db = openFile(this.#file, this.#open, this.#clock)
      if (this.#isSuspected) checkQuickly(this.#file, db)
      this.#isSuspected = false
      const session = new SqliteSession(db, this.#clock)
      return { session, operations: sqliteOperations(session) }
    } catch (error) {
      db?.close()
      throw isMisunderstood(error) ? corrupt(this.#file, String(error), error) : error
    }
  }

  /** SQLite's own way to wait is unfair: it pauses ever longer while others come and go. Short random pauses are fair. */
  #patiently<T>(step: () => T, meanwhile?: () => void): T {
    for (const startedAt = performance.now(); ; ) {
      try {
        return step()
      } catch (error) {
        if (!isBusy(error) || this.#isOutOfPatience(startedAt)) throw error
      }
      this.#gate.outside(() => {
        Atomics.wait(sleeper, 0, 0, systemRandom() * 8)
        meanwhile?.()
      })
    }
  }

  /** Read from shared memory, for a message would not be seen while a call waits. */
  #isOutOfPatience(startedAt: number): boolean {
    const now = performance.now()
    if (now - startedAt > patienceMs) return true
    if (Atomics.load(this.#closing, 0) === 0) return false
    this.#closingAt ??= now
    return now - Math.max(startedAt, this.#closingAt) > closingPatienceMs
  }

  /** Never throws: what cannot be closed ends with the thread. */
  close(): void {
    const opened = this.#opened
    this.#opened = undefined
    try {
      this.#gate.inside(() => opened?.session.db.close())
    } catch {
      this.#isSuspected = true
    }
  }
}

/** Whether it can be answered without the session of an opened store. */
function isLook([, name]: Call): boolean {
  return name === 'queues'
}

export function replyOf(answers: readonly Answer[]): Reply {
  return { answers, rung: [], hasEnds: false }
}
