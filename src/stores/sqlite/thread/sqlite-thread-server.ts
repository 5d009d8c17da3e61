/**
 * The server of a SQLite store, in its thread: takes all calls that have arrived, runs them in one transaction, and
 * answers after its commit. Calls that arrive while it waits for the write lock or the disk make the next transaction
 * larger: the busier the store, the fewer commits per job.
 */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { BellWriter } from '../bell/sqlite-bell-writer.js'
import { loadClock, type SqliteClock } from '../file/sqlite-clock.js'
import { loadDriver, type OpenDatabase } from '../file/sqlite-driver.js'
import { carried, typedError } from '../file/sqlite-errors.js'
import { exitGate } from './exit-gate.js'
import { weightOf } from './sqlite-batch-limits.js'
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
