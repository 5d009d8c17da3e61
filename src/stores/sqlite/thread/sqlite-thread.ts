/**
 * The thread of a SQLite store: takes all calls that have arrived, runs them in one transaction, and answers after its
 * commit. What arrives while it waits for the write lock or the disk makes the next transaction larger: the busier, the
 * fewer commits per job.
 */

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { BellWriter } from '../bell/sqlite-bell-writer.js'
import { loadClock } from '../file/sqlite-clock.js'
import { loadDriver } from '../file/sqlite-driver.js'
import { carried, typedError } from '../file/sqlite-errors.js'
import { exitGate } from './exit-gate.js'
import { weightOf } from './sqlite-batch-limits.js'
import { replyOf, SqliteConnection } from './sqlite-connection.js'
import type { Reply, Request, ThreadCall, ThreadSettings } from './sqlite-thread-messages.js'

/** Bounds of one transaction: others wait for it, and the log grows with it. */
const mostJobs = 1_000
const mostBytes = 4 * 1_024 * 1_024

const port = parentPort!
const { file, clock, closing, mostClaimBytes } = workerData as ThreadSettings
const bells = new BellWriter(file)
const gate = exitGate()
let inbox: ThreadCall[] = []
let isClosing = false
let connection: SqliteConnection | undefined

// Without waiting for anything: a failure is told to each call.
gate.enter()
const loaded = Promise.all([loadDriver(), loadClock(clock)]).finally(() => gate.leave())
loaded.catch(() => {})

port.on('message', (request: Request) => void answer(request))

/** Never rejects: what fails is the answer to each call. */
async function answer(request: Request): Promise<void> {
  accept(request)
  try {
    const [driver, loadedClock] = await loaded
    connection ??= new SqliteConnection({
      file,
      open: driver,
      clock: loadedClock,
      mostClaimBytes,
      closing,
      gate,
      onLost: () => bells.close(),
    })
    work(connection)
  } catch (error) {
    refuseAll(error)
  }
  if (isClosing) finish()
}

function accept(request: Request): void {
  if (request === 'close') isClosing = true
  else inbox.push(...request)
}

function drain(): void {
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    accept(next.message as Request)
}

function work(connection: SqliteConnection): void {
  for (drain(); inbox.length > 0; drain()) {
    try {
      if (inbox.some((call) => connection.isWrite(call))) {
        send(connection.write(() => takeWrites(connection), meanwhile))
      }
      answerReads(connection)
    } catch (error) {
      refuseAll(error)
    }
  }

  /** Others hold the write lock: whoever only wants to look need not wait for them. */
  function meanwhile(): void {
    drain()
    answerReads(connection)
  }
}

/** The first writes of the inbox, as many as one transaction may hold. */
function takeWrites(connection: SqliteConnection): ThreadCall[] {
  drain()
  const taken: ThreadCall[] = []
  const left: ThreadCall[] = []
  const most = Math.min(mostBytes, connection.logBytes)
  let [jobs, bytes] = [0, 0]
  let isFull = false
  for (const call of inbox) {
    if (!isFull && connection.isWrite(call)) {
      const weight = weightOf(call)
      jobs += weight.jobs
      bytes += weight.bytes
      isFull = taken.length > 0 && (jobs > mostJobs || bytes > most)
    }
    if (isFull || !connection.isWrite(call)) left.push(call)
    else taken.push(call)
  }
  inbox = left
  return taken
}

function answerReads(connection: SqliteConnection): void {
  const reads = inbox.filter((call) => !connection.isWrite(call))
  if (reads.length === 0) return
  inbox = inbox.filter((call) => connection.isWrite(call))
  send(replyOf(connection.read(reads)))
}

function send(reply: Reply): void {
  // Before the answers: who is told that a job was accepted must not be able to go ahead of the bell.
  bells.ring(reply.rung, reply.hasEnds)
  port.postMessage(reply)
}

function refuseAll(error: unknown): void {
  const calls = inbox
  inbox = []
  const refusal = carried(typedError(file, error))
  if (calls.length > 0) port.postMessage(replyOf(calls.map(([number]) => [number, undefined, refusal])))
}

function finish(): void {
  connection?.close()
  bells.close()
  port.close()
}
