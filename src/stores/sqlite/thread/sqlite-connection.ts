/** The thread's connection to its file: opens it, waits for the write lock, and runs calls in transactions. */

import { isMillraceError } from '../../../core/errors.js'
import type { ClaimFrom } from '../../contract/claim.js'
import type { QueueSettings } from '../../contract/queue-settings.js'
import type { SettleAnswer, SettleItem } from '../../contract/settle.js'
import type { FsckFinding } from '../../contract/store-health.js'
import { stepLimit } from '../../rules/bounds.js'
import { preparingLate } from '../file/late-statements.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, OpenDatabase } from '../file/sqlite-driver.js'
import { carried, isOutOfRoom, isSuspect, moved, partlySettled, rebuilt, typedError } from '../file/sqlite-errors.js'
import { checkQuickly, lookInto, openFile, rollBack } from '../file/sqlite-file.js'
import { type FilePart, idOf, SqliteIdentity } from '../file/sqlite-identity.js'
import { boundLog, freeBallast, SqliteRoom } from '../file/sqlite-room.js'
import { queuesIn } from '../records/sqlite-records.js'
import { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { examineSqlite } from '../sqlite-examine.js'
import { checkSqlite } from '../sqlite-fsck.js'
import { type Completions, itemsOf } from '../work/sqlite-completion.js'
import type { ExitGate } from './exit-gate.js'
import { LockPatience } from './lock-patience.js'
import { type SqliteOperations, sqliteOperations } from './sqlite-thread-api.js'
import type { Answer, Reply, ThreadCall } from './sqlite-thread-messages.js'

/** The greatest age of the last look at the log and its index; before a read, also of the last look at the file. */
const lookMs = 250

/** With hardly any room: the most jobs that a call takes or changes, and how long the step that fit is kept. */
const tightSteps = [25, 1]

const tightMs = 1_000

interface OpenedFile {
  readonly transaction: SqliteTransaction
  readonly operations: SqliteOperations
  readonly identity: SqliteIdentity
  readonly logBytes: number
}

interface ConnectionSettings {
  readonly file: string
  readonly open: OpenDatabase
  readonly clock: SqliteClock
  /** The weight, in bytes, at which a claim is full. */
  readonly mostClaimBytes?: number | undefined
  /** Shared with the other side, which sets its first cell to 1 when it closes the store. */
  readonly closing: Int32Array
  readonly gate: ExitGate
  /** Called when the file was removed or replaced: everything opened next to it belongs to the former file. */
  readonly onLost: () => void
}

export class SqliteConnection {
  readonly #file: string
  readonly #open: OpenDatabase
  readonly #clock: SqliteClock
  readonly #mostClaimBytes: number | undefined
  readonly #gate: ExitGate
  readonly #patience: LockPatience
  readonly #onLost: () => void
  #opened: OpenedFile | undefined
  #isSuspected = false
  /** The part of the files that was found to be removed or replaced. */
  #lost: FilePart | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  /** The queues that were opened: a file that takes the place of ours does not have them. */
  readonly #queues = new Map<string, QueueSettings>()
  #isReplaced = false
  /** Set while there is hardly any room. */
  #tight: { readonly step: number; readonly until: number } | undefined

  constructor({ file, open, clock, mostClaimBytes, closing, gate, onLost }: ConnectionSettings) {
    this.#file = file
    this.#open = open
    this.#clock = clock
    this.#mostClaimBytes = mostClaimBytes
    this.#gate = gate
    this.#patience = new LockPatience(closing, gate)
    this.#onLost = onLost
  }

  /** The bytes that one transaction may add to the log: on a small volume the log is short. */
  get logBytes(): number {
    return this.#connected().logBytes
  }

  /**
   * Runs writes in one transaction and returns when it is durable. `gather` is called with the write lock held and
   * returns the calls; `meanwhile` is called while others hold the lock. Throws, with nothing gathered, if there is no
   * connection or no lock. Each gathered call has its answer in the reply.
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
    // One of them failed, perhaps after it had changed something: each is now run by itself.
    return together(calls.map((call) => this.#writeAlone(call, meanwhile)))
  }

  #writeAlone(call: ThreadCall, meanwhile: () => void): Reply {
    try {
      return this.#write(() => [call], meanwhile)
    } catch (error) {
      return replyOf([this.#refusal(call, error)])
    }
  }

  /**
   * If room was missing, calls other than enqueues get that of the ballast, and are then done in small steps. Of a settle
   * each step has a commit of its own: claims end one by one. A step that is refused is the last.
   */
  #writeSmaller(call: ThreadCall, meanwhile: () => void, failure: unknown): Reply {
    let error = failure
    let left: ThreadCall | undefined = call
    const parts: Reply[] = []
    const steps = call[1] === 'enqueue' || call[1] === 'enqueueGraph' ? [] : [undefined, ...tightSteps]
    for (const step of steps) {
      if (!isOutOfRoom(error)) break
      try {
        this.#makeRoom()
        this.#tight = step === undefined ? undefined : { step, until: performance.now() + tightMs }
        while (left !== undefined) {
          const [part, others] = firstPart(left, step)
          this.#begin(meanwhile)
          const reply = this.#commit([part], true)
          const [, , refusal] = reply.answers[0]!
          if (refusal !== undefined) throw rebuilt(refusal)
          parts.push(reply)
          left = others
        }
        return joined(parts)
      } catch (again) {
        this.#giveUp(again)
        error = again
      }
    }
    const why = parts.length === 0 ? error : partlySettled(this.#file, error)
    return { ...together(parts), answers: [this.#refusal(call, why)] }
  }

  /** Removes the ballast, and folds the log back into the file as far as that can be done. */
  #makeRoom(): void {
    freeBallast(this.#file)
    this.#foldLog('TRUNCATE')
  }

  /** 'PASSIVE': waits for nobody, and leaves the log its length. */
  #foldLog(mode: 'PASSIVE' | 'TRUNCATE'): void {
    try {
      this.#connected().transaction.db.exec(`PRAGMA wal_checkpoint(${mode})`)
    } catch (error) {
      if (!isOutOfRoom(error)) throw error
    }
  }

  #begin(meanwhile: () => void): void {
    const { transaction } = this.#connected()
    const since = this.#clock.mono()
    this.#patience.try(() => transaction.begin(), meanwhile)
    transaction.amnesty.waited(since, this.#clock.mono())
  }

  /** Throws an error that is not the answer to one call alone. Then nothing is committed. */
  #commit(calls: readonly ThreadCall[], isRetry = false): Reply {
    const { transaction, operations, identity } = this.#opened!
    const tight = this.#tight !== undefined && this.#tight.until > performance.now() ? this.#tight.step : undefined
    transaction.stepLimit = tight ?? stepLimit
    const isTight = isRetry || tight !== undefined
    // A claim writes its jobs anew. What fills the log to the last byte leaves no room to fold it, and none for a settle.
    transaction.boundClaims(isTight ? this.logBytes / 4 : undefined)
    const answers = calls.map((call) =>
      this.#answer(operations.writes, tight === undefined ? call : smaller(call, tight)),
    )
    transaction.flush()
    this.#refuseLost(identity, true)
    transaction.room.keepLog(identity)
    // Without `meanwhile`: the transaction is open, and a read would be inside it.
    this.#patience.try(() => transaction.commit())
    const { isScattered } = transaction
    const reply: Reply = { answers, ...transaction.takeRings() }
    transaction.room.reset()
    this.#remember(calls, answers)
    this.#tidyUp(isTight, isScattered)
    return reply
  }

  /** After a commit. Never throws: the calls are durable, and a failure here must neither refuse them nor make them again. */
  #tidyUp(isTight: boolean, isScattered: boolean): void {
    try {
      // Otherwise another transaction that finds no room would leave none for this either.
      if (isTight) this.#foldLog('TRUNCATE')
      // Otherwise a commit of somebody else folds the pages of many steps, and takes as long as all of them.
      else if (isScattered) this.#foldLog('PASSIVE')
      this.#opened!.transaction.room.keepBallast()
    } catch (error) {
      this.#giveUp(error)
    }
  }

  /** Runs calls that change nothing, all on one state of the file. */
  read(calls: readonly ThreadCall[]): Answer[] {
    return this.#gate.inside(() => this.#read(calls))
  }

  #read(calls: readonly ThreadCall[]): Answer[] {
    // Each of these has a connection of its own: they are rare, and are also asked of files that nothing can open.
    const health = calls.filter(isHealth)
    if (health.length > 0) {
      const others = calls.filter((call) => !isHealth(call))
      return [...health.map((call) => this.#lookFor(call)), ...(others.length > 0 ? this.#read(others) : [])]
    }
    try {
      if (this.#opened === undefined && calls.every(isLook)) return this.#look(calls)
      const { transaction, operations, identity } = this.#connected()
      this.#refuseLost(identity, false)
      // Rows that were kept from the last write may have been changed by another connection.
      transaction.forgetRows()
      this.#patience.try(() => transaction.db.exec('BEGIN'))
      const answers = calls.map((call) => this.#patience.try(() => this.#answer(operations.reads, call)))
      transaction.db.exec('COMMIT')
      transaction.forgetRows()
      return answers
    } catch (error) {
      this.#giveUp(error)
      return calls.map((call) => this.#refusal(call, error))
    }
  }

  /** A caller that only asks for the queues makes no file. */
  #look(calls: readonly ThreadCall[]): Answer[] {
    const found = this.#patience.try(() => lookInto(this.#file, this.#open, queuesIn))
    return calls.map(([number]) => [number, found ?? []])
  }

  #lookFor(call: ThreadCall): Answer {
    try {
      return [call[0], this.#patience.try(() => lookInto(this.#file, this.#open, healthLook(this.#file, call))) ?? []]
    } catch (error) {
      return this.#refusal(call, error)
    }
  }

  isWrite(call: ThreadCall): boolean {
    return !isLook(call) && call[1] in this.#connected().operations.writes
  }

  /** Our own errors are thrown before anything is written: they are the answer to their call, and the others go on. */
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
   * Throws if the open file is not the one at its path: no other process would ever read the commit. The file is
   * checked before each commit, everything else at most once in `lookMs`.
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
   * Gives up the files that were lost. If no other process can find the log, or would read it as that of another file,
   * it is first folded into the file that we have. While that cannot be done, nothing is opened anew.
   */
  #leave({ transaction, identity }: OpenedFile): void {
    if (this.#lost !== 'file' || identity.hasLog) {
      const { busy } = transaction.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
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

  /** Ends the transaction that failed; never throws. If not even that is possible, the connection is given up. */
  #giveUp(error: unknown): void {
    const opened = this.#opened
    if (opened === undefined) return
    opened.transaction.forget()
    try {
      rollBack(opened.transaction.db)
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
    this.#opened ??= this.#gate.inside(() => this.#patience.try(() => this.#connect()))
    return this.#opened
  }

  #connect(): OpenedFile {
    try {
      return this.#opening()
    } catch (error) {
      // The index alone may need more room than there is.
      if (!isOutOfRoom(error) || !freeBallast(this.#file)) throw error
      return this.#opening()
    }
  }

  #opening(): OpenedFile {
    let db: Database | undefined
    try {
      const before = idOf(this.#file)
      db = preparingLate(openFile(this.#file, this.#open, this.#clock))
      const identity = new SqliteIdentity(this.#file)
      if (before !== undefined && before !== idOf(this.#file)) throw moved(this.#file, 'file')
      // Another connection of this process, which has not noticed, keeps them open: others would make their own.
      if (identity.missing !== undefined) throw moved(this.#file, identity.missing)
      if (this.#isSuspected) checkQuickly(this.#file, db)
      this.#isSuspected = false
      const logBytes = boundLog(this.#file, db)
      const transaction = new SqliteTransaction(db, this.#clock, new SqliteRoom(this.#file, db), this.#mostClaimBytes)
      const opened = { transaction, operations: sqliteOperations(transaction), identity, logBytes }
      if (this.#isReplaced) this.#openQueues(opened)
      this.#isReplaced = false
      this.#lost = undefined
      return opened
    } catch (error) {
      db?.close()
      throw error
    }
  }

  /** Opens the known queues in a file that took the place of ours. */
  #openQueues({ transaction, operations }: OpenedFile): void {
    transaction.begin()
    operations.writes.open([...this.#queues.values()], { follows: true })
    transaction.flush()
    transaction.commit()
    transaction.forget()
  }

  /** Never throws: a connection that cannot be closed ends with the thread. */
  close(): void {
    const opened = this.#opened
    this.#opened = undefined
    try {
      this.#gate.inside(() => opened?.transaction.db.close())
    } catch {
      this.#isSuspected = true
    }
  }
}

export function replyOf(answers: readonly Answer[]): Reply {
  return { answers, rung: [], hasEnds: false, hasMessages: false }
}

/** The outcome of several transactions. */
function together(replies: readonly Reply[]): Reply {
  return {
    answers: replies.flatMap((reply) => reply.answers),
    rung: [...new Set(replies.flatMap((reply) => reply.rung))],
    hasEnds: replies.some((reply) => reply.hasEnds),
    hasMessages: replies.some((reply) => reply.hasMessages),
  }
}

/** The outcome of one call. A settle may have been made in several parts, each with the answers to its own items. */
function joined(parts: readonly Reply[]): Reply {
  const { answers, ...told } = together(parts)
  const [[number]] = answers as [Answer]
  const value = () => answers.flatMap(([, some]) => some as SettleAnswer[])
  return { ...told, answers: answers.length === 1 ? answers : [[number, value()]] }
}

/** The first `step` claims of a settle, and the others if there are more. Any other call is in one part. */
function firstPart(call: ThreadCall, step = Number.POSITIVE_INFINITY): readonly [ThreadCall, ThreadCall?] {
  const [number, name, [first]] = call
  if (name !== 'settle' && name !== 'complete') return [call]
  const items = name === 'settle' ? (first as readonly SettleItem[]) : itemsOf(first as Completions)
  if (items.length <= step) return [call]
  return [
    [number, 'settle', [items.slice(0, step)]],
    [number, 'settle', [items.slice(step)]],
  ]
}

/** Whether the call can be answered without an open store. */
function isLook(call: ThreadCall): boolean {
  return call[1] === 'queues' || isHealth(call)
}

/** Whether the call examines the file, which may be one that nothing can open. */
function isHealth([, name]: ThreadCall): boolean {
  return name === 'check' || name === 'examine'
}

/** Examines or checks the file. */
function healthLook(file: string, [, name, [queue]]: ThreadCall): (db: Database) => FsckFinding[] {
  return (db) => (name === 'check' ? checkSqlite(db, queue as string | undefined) : examineSqlite(file, db))
}

/** A claim becomes one of at most `step` jobs. A settle is made in parts; all other calls are done in small steps anyway. */
function smaller([number, name, args]: ThreadCall, step: number): ThreadCall {
  if (name !== 'claim') return [number, name, args]
  const [from, ...more] = args as [readonly ClaimFrom[], ...unknown[]]
  return [number, name, [from.map((one) => ({ ...one, limit: Math.min(step, one.limit) })), ...more]]
}
