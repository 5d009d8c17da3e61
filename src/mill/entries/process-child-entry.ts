/** The entry of a process that runs one isolated job: has its lease kept at once, then loads the task and runs it. */

import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { deserialize } from 'node:v8'
import type { Worker as Thread } from 'node:worker_threads'
import { messageOf } from '../../core/values/describe.js'
import { processIdentity } from '../../runtime/process-identity.js'
import { drainMark } from '../../workers/isolated/capture.js'
import type { GuardSettings } from '../../workers/isolated/child-guard.js'
import {
  type Assignment,
  assignmentFd,
  type ChildMessage,
  type GuardMessage,
  messageFd,
} from '../../workers/isolated/child-messages.js'
import type { ChildRun } from '../../workers/isolated/child-run.js'
import { WorkerLine } from '../../workers/isolated/worker-line.js'
import { filesFor, type IsolatedFrom } from '../isolated-from.js'
import { loadIsolated } from '../load-isolated.js'
import { storeSource } from '../store-source.js'
import { startStoreThread } from '../store-thread.js'
import type { GuardThreadData } from './process-guard-entry.js'

const lastWordsMs = 500

let child: ChildRun | undefined
/** 1 once the guard has read all that was printed. */
const marked = new Int32Array(new SharedArrayBuffer(4))
/** 1 once the settle of the job is on its way. */
const settling = new Int32Array(new SharedArrayBuffer(4))
/** What the guard has said before it ran. */
const words: GuardMessage[] = []
/** Why it is to stop, where that was said before it ran. */
let stopped: string | undefined

// One that outlives its worker is not ended by the end of the channel, and one that does not is ended by its guard.
const worker = new WorkerLine(new Socket({ fd: messageFd, readable: true, writable: true }), () =>
  stop('the worker is stopping and its grace is over; the job is released.'),
)
process.on('SIGTERM', () => stop('the process was told to end (SIGTERM); the job is released.'))
process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)
// The handler has ended the process: what it has printed is read first.
process.on('exit', () => {
  writeSync(1, drainMark)
  Atomics.wait(marked, 0, 0, lastWordsMs)
})

void assigned().then((assignment) => (assignment === undefined ? finished() : run(assignment)))

/** Undefined where the worker died before it had said all of it. */
async function assigned(): Promise<Assignment | undefined> {
  try {
    return deserialize(await buffer(new Socket({ fd: assignmentFd }))) as Assignment
  } catch {
    return undefined
  }
}

async function run(assignment: Assignment): Promise<void> {
  const from = assignment.from as IsolatedFrom
  const guard = startGuard(assignment, from)
  try {
    const mill = await loadIsolated(assignment.claim.task, filesFor(assignment.module, from), from)
    const store = await storeSource(from.descriptor, from.access).create()
    child = await mill.isolated({ assignment, store, guard, settling, tell, finished }, from)
    for (const word of words.splice(0)) child.heed(word)
    if (stopped !== undefined) child.stop(stopped)
    await child.run()
  } catch (error) {
    print(error)
    await tell({ word: 'unable', error: messageOf(error) })
    await finished()
  }
}

function startGuard(assignment: Assignment, { descriptor, access }: IsolatedFrom): Thread {
  const { claim, leaseMs, timeLimitMs, supervisor, onSupervisorLoss } = assignment
  const { queue, id, fence } = claim
  const settings: GuardSettings = {
    job: { queue, id, fence },
    leaseMs,
    timeLimitMs,
    supervisor: onSupervisorLoss === 'exit' ? supervisor : undefined,
    identity: processIdentity(),
    ...{ marked, settling },
  }
  const entry = new URL('./process-guard-entry.js', import.meta.url)
  const guard = startStoreThread<GuardThreadData>('millrace-guard', entry, { settings, descriptor, access })
  guard.on('message', (word: GuardMessage) => {
    if (child === undefined) words.push(word)
    else child.heed(word)
  })
  // Without it nobody keeps the lease: better no process than one that nobody can stop.
  guard.on('error', (error) => {
    print(error)
    process.kill(-process.pid, 'SIGKILL')
  })
  return guard
}

/** Into the log of the job. */
function print(error: unknown): void {
  process.stderr.write(`${inspect(error)}\n`)
}

function stop(message: string): void {
  if (child !== undefined) child.stop(message)
  else stopped ??= message
}

function fail(error: unknown): void {
  print(error)
  if (child !== undefined) child.fail(error)
  else void tell({ word: 'unable', error: messageOf(error) }).then(finished)
}

/** Resolves with whether the worker has it, or is no longer there. */
function tell(word: ChildMessage): Promise<boolean> {
  return worker.tell(word)
}

/** Nothing that the job has started outlives it. */
async function finished(): Promise<never> {
  process.kill(-process.pid, 'SIGKILL')
  return new Promise(() => {})
}
