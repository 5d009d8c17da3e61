/**
 * The child process of an isolated job, as its worker holds it: the worker starts it, watches it, and reports how it
 * ended.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { ProcessDiedError, TimeLimitError } from '../../core/errors.js'
import type { Events, JobRef } from '../../core/events.js'
import type { Random } from '../../core/platform/clock.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import { exactDuration } from '../../core/values/duration.js'
import { LineChannel } from '../../runtime/line-channel.js'
import { Stillness, switchesOf } from '../../runtime/process/stillness.js'
import { longestForeignMs } from '../../runtime/run/claim-decoder.js'
import { hookFailed, refOf } from '../../runtime/run/run-events.js'
import { type Verdict, verdictOnFailure } from '../../runtime/run/verdict.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Claim } from '../../stores/contract/claim.js'
import { childEnvironment, childFlags } from './child-environment.js'
import {
  type Assignment,
  assignmentFd,
  type ChildMessage,
  type ChildVerdict,
  childMessageIn,
  messageFd,
  type WorkerMessage,
} from './child-messages.js'
import { drainMark, openCapture, Tail, tailFd } from './child-output.js'
import { signalGroup } from './job-group.js'
import { isTooLarge, mostBytes, ranOutOfMemory } from './memory-bound.js'

interface IsolatedProcessSettings {
  /** The program of the process. */
  readonly entry: URL
  readonly assignment: Assignment
  /** Names of environment variables that it receives besides the usual ones. */
  readonly env: readonly string[]
  /** Variables that it receives with values of its own. */
  readonly variables: Readonly<Record<string, string>>
  readonly maxHeapBytes: number | undefined
  readonly heard: (message: ChildMessage) => void
}

/** The end of a job's process. */
export type ProcessEnd =
  | { readonly kind: 'settled'; readonly verdict: ChildVerdict }
  | { readonly kind: 'unable'; readonly error: string }
  /** The lease belongs, or may belong, to another worker; the process was killed for that. */
  | { readonly kind: 'lost' }
  | {
      readonly kind: 'died'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      readonly isOutOfMemory: boolean
      /** The last of its output. */
      readonly tail: string
      /** The part of that which the store has not received. */
      readonly unsent: string
    }

/** A process that has ended without settling its job. */
interface DeadProcess {
  readonly claim: JobRef & Pick<Claim, 'attempt'>
  readonly task: AnyPlainTask
  readonly pid: number | undefined
  readonly end:
    | Extract<ProcessEnd, { kind: 'unable' }>
    | ({ readonly kind: 'died' } & ConstructorParameters<typeof ProcessDiedError>[1])
  /** Its handler was called. */
  readonly hasStarted: boolean
  /** It was killed at its time limit. */
  readonly isOverdue: boolean
}

/** The verdict on its job. */
export function verdictOnDeath(
  { claim, task, pid, end, hasStarted, isOverdue }: DeadProcess,
  { events, random }: { readonly events: Events; readonly random: Random },
): Verdict {
  const name = `the process of the job${pid === undefined ? '' : ` (${pid})`}`
  const died = end.kind === 'died' ? new ProcessDiedError(name, end) : undefined
  // The handler was never called: nothing counts against the job.
  if (died === undefined || !hasStarted) {
    const error = end.kind === 'unable' ? end.error : died!.message
    events.emit('process.failed', { ...refOf(claim), child: pid, error })
    return { kind: 'release', delayMs: longestForeignMs, reason: 'not-loaded', error }
  }
  const error = isOverdue ? new TimeLimitError(task.name, exactDuration(task.timeLimitMs)) : died
  return verdictOnFailure(task, error, claim.attempt, random, hookFailed(events))
}

/** The last output is read before the end is reported, if it comes within this time. */
const tailMs = 200
const watchMs = 500
/** A frozen process may not end before it is thawed. It runs nothing any more, so its slot is free. */
const frozenMs = 500

/** It may have died while its last output was requested. */
function withoutMark(text: string): string {
  return text.replace(drainMark, '').toWellFormed()
}

export class IsolatedProcess {
  readonly ended: Promise<ProcessEnd>
  readonly #child: ChildProcess
  /** The output that the process passes on. */
  readonly #tail: Socket
  /** Output that the process has not read itself: it is read here once the process is dead. */
  readonly #unread: Socket
  readonly #messages: LineChannel
  readonly #watch: NodeJS.Timeout
  readonly #maxBytes: number
  readonly #leaseMs: number
  /** Set once the process keeps its lease itself. */
  #stillness: Stillness | undefined
  readonly #printed = new Tail()
  #last: ProcessEnd | undefined
  /** It was killed for its size. */
  #wasTooLarge = false
  #wasStill = false
  #resolveEnded: (end: ProcessEnd) => void = () => {}

  /** Rejects if no process can be started. */
  static async start(settings: IsolatedProcessSettings): Promise<IsolatedProcess> {
    const { printing, reading } = await openCapture()
    const { entry, env, variables, maxHeapBytes } = settings
    try {
      const child = spawn(process.execPath, [...childFlags(process.execArgv, maxHeapBytes), fileURLToPath(entry)], {
        // A session and a group of its own: it outlives this process, and can be killed with all its children.
        detached: true,
        env: { ...childEnvironment(process.env, env), ...variables },
        stdio: ['ignore', printing, printing, 'pipe', reading, 'pipe', 'pipe'],
      })
      // No program, or no descriptors are left: then it has no pipes either.
      if (child.pid === undefined) throw (await once(child, 'error'))[0]
      // A signal that did not arrive is an error too; the end says more.
      child.on('error', () => {})
      return new IsolatedProcess(child, reading, settings)
    } catch (error) {
      reading.destroy()
      throw error
    } finally {
      printing.destroy()
    }
  }

  private constructor(
    child: ChildProcess,
    reading: Socket,
    { assignment, maxHeapBytes, heard }: IsolatedProcessSettings,
  ) {
    this.#child = child
    this.#unread = reading
    this.#tail = this.#pipe(tailFd)
    this.#maxBytes = maxHeapBytes === undefined ? Number.POSITIVE_INFINITY : mostBytes(maxHeapBytes)
    this.#leaseMs = assignment.leaseMs
    this.#watch = setInterval(() => this.#look(), watchMs)
    this.#messages = new LineChannel(this.#pipe(messageFd), (said) => {
      const message = childMessageIn(said)
      if (message === undefined) return
      if (message.kind === 'settled') {
        this.#last = { kind: 'settled', verdict: message.verdict }
        this.tell({ kind: 'heard' })
      }
      if (message.kind === 'unable') this.#last = { kind: 'unable', error: message.error }
      if (message.kind === 'keeping') this.#stillness ??= new Stillness(performance.now())
      heard(message)
    })
    const told = this.#pipe(assignmentFd)
    told.on('error', () => {})
    told.end(serialize(assignment))
    const decoder = new StringDecoder('utf8')
    this.#tail.on('data', (bytes: Buffer) => this.#printed.read(decoder.write(bytes)))
    for (const socket of [this.#tail, this.#unread]) socket.on('error', () => {})
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve
    })
    child.once('exit', (code, signal) => void this.#exited(code, signal))
  }

  /** Never rejects: its slot must become free, even if the job has damaged the channels. */
  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    clearInterval(this.#watch)
    this.kill()
    await endsWithin(tailMs, Promise.all([this.#readAll(), this.#messages.closed]))
    for (const socket of [this.#unread, this.#tail]) socket.destroy()
    this.#messages.close()
    const wasLost = this.#wasStill || this.#printed.isLost
    this.#resolveEnded(this.#last ?? (wasLost ? { kind: 'lost' } : this.#died(code, signal)))
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** It has reported how its job ended, and ends. */
  get hasSettled(): boolean {
    return this.#last?.kind === 'settled'
  }

  #pipe(fd: number): Socket {
    return (this.#child.stdio as readonly unknown[])[fd] as Socket
  }

  tell(message: WorkerMessage): void {
    // A process that has just ended does not hear it, and its end is reported anyway.
    void this.#messages.say(message)
  }

  /** Kills it at once, with all its children that have stayed in its group. */
  kill(): void {
    signalGroup(this.pid, 'SIGKILL')
  }

  /** In the order of printing. */
  async #readAll(): Promise<void> {
    await over(this.#tail)
    const decoder = new StringDecoder('utf8')
    this.#unread.on('data', (bytes: Buffer) => this.#printed.print(decoder.write(bytes))).resume()
    await over(this.#unread)
  }

  /** Lets it go on without this process. */
  leave(): void {
    clearInterval(this.#watch)
    this.#unread.destroy()
    this.#messages.close()
    this.#tail.destroy()
    this.#child.unref()
  }

  #died(code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
    const { last: tail, unsent } = this.#printed
    const isOutOfMemory = ranOutOfMemory({ code, signal, tail, wasTooLarge: this.#wasTooLarge })
    return { kind: 'died', code, signal, isOutOfMemory, tail, unsent: withoutMark(unsent) }
  }

  #look(): void {
    if (this.#isLarge()) {
      this.#wasTooLarge = true
      this.kill()
    } else if (this.#stillness !== undefined && this.#isStill(this.#stillness)) {
      this.#wasStill = true
      this.kill()
      clearInterval(this.#watch)
      setTimeout(() => this.#resolveEnded({ kind: 'lost' }), frozenMs)
    }
  }

  #isLarge(): boolean {
    if (this.#maxBytes === Number.POSITIVE_INFINITY) return false
    try {
      return isTooLarge(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'), this.#maxBytes)
    } catch {
      // It has just ended, or the system does not say.
      return false
    }
  }

  /**
   * Its guard runs several times a second. One that stood still for a lease has not kept it, and must not wake up next
   * to its successor.
   */
  #isStill(stillness: Stillness): boolean {
    return stillness.look(performance.now(), switchesOf(this.pid)) >= this.#leaseMs
  }
}

/** Resolves when the socket brings nothing more, however it ended. */
function over(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed || socket.readableEnded) return resolve()
    for (const event of ['end', 'error', 'close']) socket.once(event, () => resolve())
  })
}
