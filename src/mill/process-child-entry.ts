/**
 * The entry of a process that runs one isolated job. It starts the guard that keeps the lease, then loads the task and
 * runs it.
 */

import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { deserialize } from 'node:v8'
import type { Worker as Thread } from 'node:worker_threads'
import { ConfigError } from '../core/errors.js'
import { messageOf } from '../core/messages/describe.js'
import { entryFile } from '../core/package-files.js'
import { isTask } from '../core/task/any-task.js'
import { processIdentity } from '../runtime/process/process-identity.js'
import type { GuardSettings } from '../workers/isolated/child-guard.js'
import {
  type Assignment,
  assignmentFd,
  type ChildMessage,
  type GuardMessage,
  messageFd,
  WorkerLine,
} from '../workers/isolated/child-messages.js'
import { drainMark } from '../workers/isolated/child-output.js'
import type { ChildRun } from '../workers/isolated/child-run.js'
import { leadGroup, signalGroup } from '../workers/isolated/job-group.js'
import { environmentOptions } from './configuration/environment.js'
import { isOptions } from './configuration/merged-options.js'
import { type Exports, importAll } from './configuration/user-modules.js'
import { filesFor, type IsolatedFrom, markIsolated } from './isolated-from.js'
import { type ConfigFile, isMill, optionsMill } from './load-mill.js'
import type { Mill } from './mill.js'
import { millrace } from './millrace.js'
import { millOptionNames } from './options/mill-options.js'
import type { GuardThreadData } from './process-guard-entry.js'
import { storeSource } from './store-source.js'
import { startStoreThread } from './store-thread.js'

const lastWordsMs = 500

let child: ChildRun | undefined
/** 1 once the guard has read everything that was printed. */
const marked = new Int32Array(new SharedArrayBuffer(4))
/** 1 once the settle of the job is on its way. */
const settling = new Int32Array(new SharedArrayBuffer(4))
/** Messages of the guard from before the run. */
const early: GuardMessage[] = []
/** The reason of a stop that was requested before the run. */
let stopped: string | undefined

leadGroup()
// The end of the channel does not end the process. A process that must not outlive its worker is ended by its guard.
const worker = new WorkerLine(new Socket({ fd: messageFd, readable: true, writable: true }), () =>
  stop('the worker is stopping and its grace is over; the job is released.'),
)
process.on('SIGTERM', () => {
  const message = 'the process got SIGTERM; the job is released.'
  if (child !== undefined) child.terminate(message)
  else stopped ??= message
})
process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)
// The handler has ended the process: the guard first reads what it printed.
process.on('exit', () => {
  writeSync(1, drainMark)
  Atomics.wait(marked, 0, 0, lastWordsMs)
})

void assigned().then((assignment) => (assignment === undefined ? finished() : run(assignment)))

/** Undefined if the worker died before it had sent all of it. */
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
    child = await mill.isolated({ assignment, store, guard, settling, tell, finished, isOver }, from)
    for (const message of early.splice(0)) child.onMessage(message)
    if (stopped !== undefined) child.stop(stopped)
    await child.run()
  } catch (error) {
    print(error)
    await tell({ kind: 'unable', error: messageOf(error) })
    await finished()
  }
}

/** Whether it was told to stop, or need not begin for another reason, before it began. */
function isOver(): boolean {
  return stopped !== undefined || early.some(({ kind }) => kind === 'cancelled' || kind === 'orphaned')
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
  const entry = entryFile('process-guard-entry.js')
  const guard = startStoreThread<GuardThreadData>('millrace-guard', entry, { settings, descriptor, access })
  guard.on('message', (message: GuardMessage) => {
    if (child === undefined) early.push(message)
    else child.onMessage(message)
  })
  // Without a guard nobody keeps the lease: no process is better than one that nobody can stop.
  guard.on('error', (error) => {
    print(error)
    signalGroup(process.pid, 'SIGKILL')
  })
  return guard
}

/** Loads the mill. Rejects if the files cannot be loaded, or if nothing that they export runs the task. */
async function loadIsolated(
  task: string,
  files: readonly string[],
  { descriptor, command }: IsolatedFrom,
): Promise<Mill> {
  markIsolated()
  const loaded = await importAll(files)
  const exported = loaded.flatMap(exportedBy)
  const knows = ({ tasks }: Mill) => command !== undefined || [...tasks.values()].some((one) => isCalled(one, task))
  const mill = exported.filter(isMill).find(knows)
  if (mill !== undefined) return mill
  const configs = files.flatMap((file, i) => configIn(file, loaded[i]!['default']))
  if (configs.length > 0) {
    const made = await optionsMill(configs, environmentOptions(process.env))
    if (knows(made)) return made
  }
  const tasks = [...new Set(exported.filter(isTask))]
  if (command !== undefined || tasks.some((one) => isCalled(one, task))) return millrace({ store: descriptor, tasks })
  const message = `must export task '${task}', or a mill that knows it`
  throw new ConfigError(files.join(', '), [{ path: 'exports', message }])
}

/** The exports of a module. If Node or a loader takes it for CommonJS, all of them are in its default export. */
function exportedBy(exports: Exports): unknown[] {
  const { default: whole } = exports
  const isWhole = typeof whole === 'object' && whole !== null && !isMill(whole) && !isTask(whole)
  return [...Object.values(exports), ...(isWhole ? Object.values(whole) : [])]
}

/** The options in the default export of a file, which the worker has checked. A module may export anything else. */
function configIn(file: string, exported: unknown): ConfigFile[] {
  const isConfig = isOptions(exported) && Object.keys(exported).every((option) => millOptionNames.has(option))
  return isConfig ? [{ file, options: exported }] : []
}

function isCalled({ name, aliases }: { name: string; aliases: readonly string[] }, task: string): boolean {
  return name === task || aliases.includes(task)
}

/** Prints an error into the log of the job. */
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
  else void tell({ kind: 'unable', error: messageOf(error) }).then(finished)
}

/** Sends a message. Resolves to true if the worker has it, or false if the worker is gone. */
function tell(message: ChildMessage): Promise<boolean> {
  return worker.tell(message)
}

/** Ends the process and everything that the job has started. */
async function finished(): Promise<never> {
  signalGroup(process.pid, 'SIGKILL')
  return new Promise(() => {})
}
