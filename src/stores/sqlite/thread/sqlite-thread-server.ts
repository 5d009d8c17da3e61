/**
 * The server of a SQLite store, in its thread: takes all calls that have arrived, runs them in one transaction, and
 * answers after its commit. Calls that arrive while it waits for the write lock or the disk make the next transaction
 * larger: the busier the store, the fewer commits per job.
 */

import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { ClaimFrom } from '../../contract/claim.js'
import type { ExtendItem, SettleItem } from '../../contract/settle.js'
import { mostClaimBytes } from '../../rules/claim-weight.js'
import { loadClock, type SqliteClock } from '../file/sqlite-clock.js'
import { loadDriver, type OpenDatabase } from '../file/sqlite-driver.js'
import { carried, typedError } from '../file/sqlite-errors.js'
import { giveRightsTo } from '../file/sqlite-sharing.js'
import { makeBellDirectories, resultsDirectory, SqliteWakeTokens } from '../sqlite-wake-token.js'
import type { BareCall, SqliteEnqueueCall, SqliteGraphCall } from '../work/sqlite-bare-call.js'
import type { Completions } from '../work/sqlite-completion.js'
import { exitGate } from './exit-gate.js'
import { replyOf, SqliteConnection } from './sqlite-connection.js'
import type { Reply, Request, ThreadCall, ThreadSettings } from './sqlite-thread-messages.js'

/** Bounds of one transaction: other processes wait for it, and the log grows with it. */
const mostJobs = 2_000

const mostBytes = 4 * 1_024 * 1_024

export class SqliteThreadServer {
  readonly #port: MessagePort
  readonly #settings: ThreadSettings
  readonly #bells: BellWriter
  readonly #gate = exitGate()
  #inbox: ThreadCall[] = []
  #isClosing = false
  #connection: SqliteConnection | undefined

  constructor(port: MessagePort, settings: ThreadSettings) {
    this.#port = port
    this.#settings = settings
    this.#bells = new BellWriter(settings.file)
  }

  /** Answers the calls that arrive at the port, until it is told to close. */
  start(): void {
    // Not awaited: a failure becomes the answer to each call.
    this.#gate.enter()
    const connected = Promise.all([loadDriver(this.#settings.driver), loadClock(this.#settings.clock)])
      .finally(() => this.#gate.leave())
      .then(([open, clock]) => this.#connect(open, clock))
    connected.catch(() => {})
    this.#port.on('message', (request: Request) => void this.#answer(request, connected))
  }

  #connect(open: OpenDatabase, clock: SqliteClock): SqliteConnection {
    const onLost = () => this.#bells.close()
    this.#connection = new SqliteConnection({ ...this.#settings, open, clock, gate: this.#gate, onLost })
    return this.#connection
  }

  /** Never rejects: a failure becomes the answer to each call. */
  async #answer(request: Request, connected: Promise<SqliteConnection>): Promise<void> {
    this.#accept(request)
    try {
      this.#work(this.#connection ?? (await connected))
    } catch (error) {
      this.#refuseAll(error)
    }
    if (this.#isClosing) this.#finish()
  }

  #accept(request: Request): void {
    if (request === 'close') this.#isClosing = true
    else this.#inbox.push(...request)
  }

  #drain(): void {
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port))
      this.#accept(next.message as Request)
  }

  #work(connection: SqliteConnection): void {
    // Reads do not wait while another process holds the write lock.
    const meanwhile = () => {
      this.#drain()
      this.#answerReads(connection)
    }
    for (this.#drain(); this.#inbox.length > 0; this.#drain()) {
      try {
        if (this.#inbox.some((call) => connection.isWrite(call)))
          this.#send(connection.write(() => this.#takeWrites(connection), meanwhile))
        this.#answerReads(connection)
      } catch (error) {
        this.#refuseAll(error)
      }
    }
  }

  /** Takes the first writes of the inbox, as many as one transaction may hold. */
  #takeWrites(connection: SqliteConnection): ThreadCall[] {
    this.#drain()
    const taken: ThreadCall[] = []
    const left: ThreadCall[] = []
    const most = Math.min(mostBytes, connection.logBytes)
    let [jobs, bytes] = [0, 0]
    let isFull = false
    for (const call of this.#inbox) {
      if (!isFull && connection.isWrite(call)) {
        const weight = weightOf(call)
        jobs += weight.jobs
        bytes += weight.bytes
        isFull = taken.length > 0 && (jobs > mostJobs || bytes > most)
      }
      if (isFull || !connection.isWrite(call)) left.push(call)
      else taken.push(call)
    }
    this.#inbox = left
    return taken
  }

  #answerReads(connection: SqliteConnection): void {
    const reads = this.#inbox.filter((call) => !connection.isWrite(call))
    if (reads.length === 0) return
    this.#inbox = this.#inbox.filter((call) => connection.isWrite(call))
    this.#send(replyOf(connection.read(reads)))
  }

  #send(reply: Reply): void {
    // Before the answers: a caller that learns that a job was accepted must not be able to overtake the bell.
    this.#bells.ring(reply.rung, reply.hasEnds, reply.hasMessages)
    this.#port.postMessage(reply)
  }

  #refuseAll(error: unknown): void {
    const calls = this.#inbox
    this.#inbox = []
    const refusal = carried(typedError(this.#settings.file, error))
    if (calls.length > 0) this.#port.postMessage(replyOf(calls.map(([number]) => [number, undefined, refusal])))
  }

  #finish(): void {
    this.#connection?.close()
    this.#bells.close()
    this.#port.close()
  }
}

/** How much of a transaction's bounds a call takes. */
interface Weight {
  readonly jobs: number
  readonly bytes: number
}

/** Bytes are estimated: a text counts its UTF-16 units. An invalid call is refused by its operation, not here. */
function weightOf(call: ThreadCall): Weight {
  try {
    return weighed(call)
  } catch {
    return { jobs: 1, bytes: 0 }
  }
}

function weighed([, name, [first]]: ThreadCall): Weight {
  if (name === 'enqueue' || name === 'enqueueGraph') {
    let jobs = 0
    let bytes = 0
    for (const call of first as readonly (SqliteEnqueueCall | SqliteGraphCall | BareCall)[]) {
      for (const { count, units } of 'rows' in call ? [call] : ('runs' in call && call.runs) || []) {
        jobs += count
        bytes += units
      }
      if ('rows' in call) continue
      jobs += call.jobs.length
      for (const { payload, meta } of call.jobs) bytes += (payload?.length ?? 0) + (meta?.length ?? 0)
    }
    return { jobs, bytes }
  }
  if (name === 'settle') {
    const items = first as readonly SettleItem[]
    let bytes = 0
    for (const item of items) if (item.kind === 'complete') bytes += item.result?.payload?.length ?? 0
    return { jobs: items.length, bytes }
  }
  if (name === 'complete') {
    const { count, results = '' } = first as Completions
    return { jobs: count, bytes: results.length }
  }
  if (name === 'claim') {
    const from = first as readonly ClaimFrom[]
    return { jobs: from[0]?.limit ?? 0, bytes: Math.max(0, ...from.map(mostHandedOver)) }
  }
  if (name === 'extend') {
    const items = first as readonly ExtendItem[]
    let bytes = 0
    for (const { beat } of items) bytes += (beat?.checkpoint?.payload.length ?? 0) + (beat?.log?.length ?? 0)
    return { jobs: items.length, bytes }
  }
  if (name === 'gone') return { jobs: (first as readonly unknown[]).length, bytes: 0 }
  return { jobs: 1, bytes: 0 }
}

/**
 * The most bytes of payloads that a claim hands over, as far as the call shows. Payloads of an ordered queue are all in
 * the answer.
 */
function mostHandedOver({ limit, maxPayloads }: ClaimFrom): number {
  if (maxPayloads === undefined || limit === 0) return 0
  return maxPayloads === Number.POSITIVE_INFINITY ? maxPayloads : mostClaimBytes
}

const byte = Buffer.from('..')

/** Never through a link, and nothing is truncated: a file that is there loses at most one byte. */
const openFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW

/**
 * The writer of the bell: notifies waiters in other processes through files that they watch. Each queue that is rung
 * gets a token. When jobs end, one byte is written to a file for all that wait for results; when there are live
 * messages, one is written to another.
 */
class BellWriter {
  readonly #file: string
  readonly #tokens: SqliteWakeTokens
  readonly #told = new Map<string, number>()

  constructor(file: string) {
    this.#file = file
    this.#tokens = new SqliteWakeTokens(file)
  }

  /** Never throws: a waiter that is not rung looks by itself within a second. */
  ring(queues: readonly string[], hasEnds: boolean, hasMessages: boolean): void {
    for (const queue of queues) this.#tokens.put(queue)
    if (hasEnds) this.#tell('ended')
    if (hasMessages) this.#tell('messages')
  }

  #tell(name: 'ended' | 'messages'): void {
    try {
      writeSync(this.#told.get(name) ?? this.#open(name), byte, 0, 1, 0)
    } catch {
      this.close()
    }
  }

  #open(name: string): number {
    makeBellDirectories(this.#file)
    const directory = resultsDirectory(this.#file)
    const descriptor = openSync(join(directory, name), openFlags, 0o600)
    giveRightsTo(descriptor, directory)
    this.#told.set(name, descriptor)
    return descriptor
  }

  close(): void {
    const descriptors = [...this.#told.values()]
    this.#told.clear()
    for (const descriptor of descriptors) {
      try {
        closeSync(descriptor)
      } catch {
        // It was closed all the same (close(2)). The next ring opens the file anew.
      }
    }
  }
}
