/** The thread's connection to its file: runs calls in transactions, opens the file when needed, waits its turn for the write lock. */

import { isMillraceError } from '../../../core/errors.js'
import { systemRandom } from '../../../core/platform/clock.js'
import type { QueueSettings } from '../../contract/queue-settings.js'
import { stepLimit } from '../../rules/bounds.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, OpenDatabase } from '../file/sqlite-driver.js'
import {
  carried,
  corrupt,
  isBusy,
  isMisunderstood,
  isOutOfRoom,
  isSuspect,
  moved,
  typedError,
} from '../file/sqlite-errors.js'
import { checkQuickly, lookInto, openFile, rollBack } from '../file/sqlite-file.js'
import { type FilePart, idOf, SqliteIdentity } from '../file/sqlite-identity.js'
import { boundLog, freeBallast, SqliteRoom } from '../file/sqlite-room.js'
import { queuesIn } from '../records/sqlite-records.js'
import { SqliteTransaction } from '../rows/sqlite-transaction.js'
import type { ExitGate } from './exit-gate.js'
import { healthLook, isHealth, isLook, smaller } from './sqlite-call.js'
import { type SqliteOperations, sqliteOperations } from './sqlite-thread-api.js'
import type { Answer, Reply, ThreadCall } from './sqlite-thread-messages.js'

/** How long a call waits for other processes before it is given up, and how long while the store is being closed. */
const patienceMs = 30_000
const closingPatienceMs = 500
/** How old the last look at the log and its index may be, and before a read that at the file. */
const lookMs = 250
/** How many jobs a call takes or changes at most while there is hardly any room, and how long the last step that fit is kept to. */
const tightSteps = [25, 1]
const tightMs = 1_000
const sleeper = new Int32Array(new SharedArrayBuffer(4))

interface OpenedFile {
  readonly session: SqliteTransaction
  readonly operations: SqliteOperations
  readonly identity: SqliteIdentity
  readonly logBytes: number
}

interface ConnectionSettings {
  readonly file: string
  readonly open: OpenDatabase
  readonly clock: SqliteClock
  /** At this weight, in bytes, a claim is full. */
  readonly mostClaimBytes?: number | undefined
  /** Shared with the other side, which sets its first cell to 1 when it closes the store. */
  readonly closing: Int32Array
  readonly gate: ExitGate
  /** Called when the file turned out to be another one, or none: what else was opened next to it is of the former one. */
  readonly onLost: () => void
}

export class SqliteConnection {
  readonly #file: string
  readonly #open: OpenDatabase
  readonly #clock: SqliteClock
  readonly #mostClaimBytes: number | undefined
  readonly #closing: Int32Array
  readonly #gate: ExitGate
  readonly #onLost: () => void
  #closingAt: number | undefined
  #opened: OpenedFile | undefined
  #isSuspected = false
  /** What of the files was found to be gone or another one's. */
  #lost: FilePart | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  /** The queues that were opened: a file that takes the place of ours knows nothing of them. */
  readonly #queues = new Map<string, QueueSettings>()
  #isReplaced = false
  /** While there is hardly any room. */
  #tight: { readonly step: number; readonly until: number } | undefined

  constructor({ file, open, clock, mostClaimBytes, closing, gate, onLost }: ConnectionSettings) {
    this.#file = file
    this.#open = open
    this.#clock = clock
    this.#mostClaimBytes = mostClaimBytes
    this.#closing = closing
    this.#gate = gate
    this.#onLost = onLost
  }

  /** What one transaction may add to the log: on a small volume the log is short. */
  get logBytes(): number {
    return this.#connected().logBytes
  }

  /**
   * Runs writes in one transaction and returns when it is durable. `gather` is called with the write lock held and gives
   * the calls; `meanwhile` is called while others hold it. Throws, nothing gathered, where there is no connection or no
   * lock; each gathered call has its answer in the reply.
   */
  write(gather: () => readonly ThreadCall[], meanwhile: () => void): Reply {
    return this.#gate.inside(() => this.#write(gather, meanwhile))
  }

  #write(gather: () => readonly ThreadCall[], meanwhile: () => void): Reply {
    let calls: readonly ThreadCall[] = []
    try {
      this.#begin(meanwhile)
      calls = gather()
      return this.#commit(calls)
    } catch (error) {
      this.#giveUp(error)
      if (calls.length === 0) throw error
      if (this.#lost !== undefined || (isSuspect(error) && !isOutOfRoom(error)))
        return replyOf(calls.map((call) => this.#refusal(call, error)))
      if (calls.length === 1) return this.#writeSmaller(calls[0]!, meanwhile, error)
    }
    // One of them is the culprit, and it may have changed something before it failed: each by itself.
    const replies = calls.map((call) => this.#writeAlone(call, meanwhile))
    return {
      answers: replies.flatMap((reply) => reply.answers),
      rung: [...new Set(replies.flatMap((reply) => reply.rung))],
      hasEnds: replies.some((reply) => reply.hasEnds),
      hasMessages: replies.some((reply) => reply.hasMessages),
    }
  }

  #writeAlone(call: ThreadCall, meanwhile: () => void): Reply {
    try {
      return this.#write(() => [call], meanwhile)
    } catch (error) {
      return replyOf([this.#refusal(call, error)])
    }
  }

  /** What makes room, or will, is given the ballast where room is what it lacked, and is then done in small steps. */
  #writeSmaller(call: ThreadCall, meanwhile: () => void, failure: unknown): Reply {
    let error = failure
    const steps = call[1] === 'enqueue' ? [] : [undefined, ...tightSteps]
    for (const step of steps) {
      if (!isOutOfRoom(error)) break
      try {
        this.#makeRoom()
        this.#tight = step === undefined ? undefined : { step, until: performance.now() + tightMs }
        this.#begin(meanwhile)
        return this.#commit([call])
      } catch (again) {
        this.#giveUp(again)
        error = again
      }
    }
    return replyOf([this.#refusal(call, error)])
  }

  /** The ballast goes, and what is in the log is folded back into the file, as far as that can be done. */
  #makeRoom(): void {
    freeBallast(this.#file)
    this.#foldLog()
  }

  #foldLog(): void {
    try {
      this.#connected().session.db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch (error) {
      if (!isOutOfRoom(error)) throw error
    }
  }

  #begin(meanwhile: () => void): void {
    const { session } = this.#connected()
    this.#patiently(() => session.db.exec('BEGIN IMMEDIATE'), meanwhile)
  }

  /** Throws what is not the answer to one call alone; nothing is committed then. */
  #commit(calls: readonly ThreadCall[]): Reply {
    const { session, operations, identity } = this.#opened!
    const tight = this.#tight !== undefined && this.#tight.until > performance.now() ? this.#tight.step : undefined
    session.stepLimit = tight ?? stepLimit
    const answers = calls.map((call) =>
      this.#answer(operations.writes, tight === undefined ? call : smaller(call, tight)),
    )
    session.flush()
    this.#refuseLost(identity, true)
    // Nothing meanwhile: the transaction is open, and a read would find itself in it.
    this.#patiently(() => session.db.exec('COMMIT'))
    const reply: Reply = { answers, ...session.takeRings() }
    session.room.reset()
    this.#remember(calls, answers)
    // Another transaction that finds no room would leave none to do this either.
    if (tight !== undefined) this.#foldLog()
    session.room.keepBallast()
    return reply
  }

  /** Runs calls that change nothing, all on one state of the file. */
  read(calls: readonly ThreadCall[]): Answer[] {
    return this.#gate.inside(() => this.#read(calls))
  }

  #read(calls: readonly ThreadCall[]): Answer[] {
    // Of these each has a connection of its own: they are asked seldom, and of a file that nothing can open.
    const health = calls.filter(isHealth)
    if (health.length > 0) {
      const others = calls.filter((call) => !isHealth(call))
      return [...health.map((call) => this.#lookFor(call)), ...(others.length > 0 ? this.#read(others) : [])]
    }
    try {
      if (this.#opened === undefined && calls.every(isLook)) return this.#look(calls)
      const { session, operations, identity } = this.#connected()
      this.#refuseLost(identity, false)
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
  #look(calls: readonly ThreadCall[]): Answer[] {
    const found = this.#patiently(() => lookInto(this.#file, this.#open, queuesIn))
    return calls.map(([number]) => [number, found ?? []])
  }

  #lookFor(call: ThreadCall): Answer {
    try {
      return [call[0], this.#patiently(() => lookInto(this.#file, this.#open, healthLook(this.#file, call))) ?? []]
    } catch (error) {
      return this.#refusal(call, error)
    }
  }

  isWrite(call: ThreadCall): boolean {
    return !isLook(call) && call[1] in this.#connected().operations.writes
  }

  /** Our own errors come before anything is written: they are the answer to their call and leave the others alone. */
  #answer(operations: object, [number, name, args]: ThreadCall): Answer {
    try {
      return [number, (operations as Record<string, (...args: readonly unknown[]) => unknown>)[name]!(...args)]
    } catch (error) {
      if (isMillraceError(error)) return [number, undefined, carried(error)]
      throw error
    }
  }

  #refusal([number]: ThreadCall, error: unknown): Answer {
    return [number, undefined, carried(typedError(this.#file, error))]
  }

  #remember(calls: readonly ThreadCall[], answers: readonly Answer[]): void {
    for (const [i, [, name, args]] of calls.entries())
      if (name === 'open' && answers[i]![2] === undefined)
        for (const settings of args[0] as readonly QueueSettings[]) this.#queues.set(settings.name, settings)
  }

  /**
   * Throws where something else lies at the path than what is open: nobody else would ever read what is committed. Before a
   * commit the file is looked at each time, all else at most so often.
   */
  #refuseLost(identity: SqliteIdentity, isCommit: boolean): void {
    const now = performance.now()
    const isThorough = now - this.#lookedAt > lookMs
    if (!isThorough && !isCommit) return
    if (isThorough) this.#lookedAt = now
    this.#lost = identity.lost(isThorough)
    if (this.#lost !== undefined) throw moved(this.#file, this.#lost)
  }

  /**
   * Gives up the files that were lost. What is in a log that nobody else can find, or that lies next to another file and would
   * be read as that one's, goes into the file that we have first. As long as that cannot be done nothing is opened anew.
   */
  #leave({ session, identity }: OpenedFile): void {
    if (this.#lost !== 'file' || identity.hasLog) {
      const { busy } = session.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      if (busy !== 0) return
    }
    if (this.#lost === 'file') {
      identity.removeLog()
      this.#isReplaced = true
    } else this.#isSuspected = true
    this.#lookedAt = Number.NEGATIVE_INFINITY
    this.close()
    this.#onLost()
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
    else if (this.#lost !== undefined) this.#gate.inside(() => this.#tryToLeave(opened))
  }

  #tryToLeave(opened: OpenedFile): void {
    try {
      this.#leave(opened)
    } catch {
      this.#isSuspected = true
      this.close()
    }
  }

  #connected(): OpenedFile {
    this.#opened ??= this.#gate.inside(() => this.#patiently(() => this.#connect()))
    return this.#opened
  }

  #connect(): OpenedFile {
    try {
      return this.#opening()
    } catch (error) {
      // Its index alone may be more than there is room for.
      if (!isOutOfRoom(error) || !freeBallast(this.#file)) throw error
      return this.#opening()
    }
  }

  #opening(): OpenedFile {
    let db: Database | undefined
    try {
      const before = idOf(this.#file)
      db = openFile(this.#file, this.#open, this.#clock)
      const identity = new SqliteIdentity(this.#file)
      if (before !== undefined && before !== idOf(this.#file)) throw moved(this.#file, 'file')
      // Another connection of this process, which has not noticed yet, keeps them open: others would make their own.
      if (identity.missing !== undefined) throw moved(this.#file, identity.missing)
      if (this.#isSuspected) checkQuickly(this.#file, db)
      this.#isSuspected = false
      const logBytes = boundLog(this.#file, db)
      const session = new SqliteTransaction(db, this.#clock, new SqliteRoom(this.#file, db), this.#mostClaimBytes)
      const opened = { session, operations: sqliteOperations(session), identity, logBytes }
      if (this.#isReplaced) this.#openQueues(opened)
      this.#isReplaced = false
      this.#lost = undefined
      return opened
    } catch (error) {
      db?.close()
      throw isMisunderstood(error) ? corrupt(this.#file, String(error), error) : error
    }
  }

  /** In a file that took the place of ours. */
  #openQueues({ session, operations }: OpenedFile): void {
    session.db.exec('BEGIN IMMEDIATE')
    operations.writes.open([...this.#queues.values()])
    session.flush()
    session.db.exec('COMMIT')
    session.forget()
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

export function replyOf(answers: readonly Answer[]): Reply {
  return { answers, rung: [], hasEnds: false, hasMessages: false }
}
