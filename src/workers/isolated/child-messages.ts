/**
 * The messages between a worker and the process of an isolated job, over the channel with which it was started, and
 * those between the main thread of the process and its guard. The assignment of the process is sent ahead through a
 * pipe of its own, so that it either arrives whole or is known not to.
 */

import type { Socket } from 'node:net'
import type { Queue } from '../../core/queue/queue.js'
import type { Span } from '../../core/queue/throttle.js'
import { isQueueName } from '../../core/values/ids.js'
import { LineChannel } from '../../runtime/line-channel.js'
import { type Verdict, withHold } from '../../runtime/run/verdict.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Claim } from '../../stores/contract/claim.js'

/** The assignment of the process. */
export interface Assignment {
  readonly claim: Claim
  readonly leaseMs: number
  /** How long to keep a result. */
  readonly results: Queue['results']
  readonly worker: string
  /** The number of its slot there. */
  readonly slot: number
  /** The pid of its worker. */
  readonly supervisor: number
  readonly onSupervisorLoss: 'detach' | 'exit'
  /** Time limit in ms; Infinity: none. */
  readonly timeLimitMs: number
  /** For a throttled queue: the span in which its handler must begin, on the clock of `sharedMono()`. */
  readonly start: Span | undefined
  /** The module that the task names. */
  readonly module: string | undefined
  /** Anything else that the entry of the process needs to find the task and the store. */
  readonly from: unknown
}

export interface WorkerMessage {
  /**
   * `stop`: the worker stops and its grace is over, so the job goes back. `heard`: the worker has heard how the job
   * ended, and reports it.
   */
  readonly kind: 'stop' | 'heard'
}

/** The file descriptor of the process for messages in both directions. */
export const messageFd = 3

/** The file descriptor of the process for reading its assignment, to the end. */
export const assignmentFd = 6

/** A verdict of the process, as sent to its worker, which reports it as its own. */
export interface ChildVerdict {
  readonly kind: 'complete' | 'retry' | 'release' | 'bury' | 'cancel'
  readonly answer: 'ok' | 'lost' | 'gone'
  readonly runMs: number
  readonly delayMs?: number
  readonly holdMs?: number
  readonly last?: boolean
  readonly reason?: string
  readonly error?: string
  /** How many jobs its handler has enqueued, by queue; absent: none. */
  readonly enqueued?: Readonly<Record<string, number>>
}

export type ChildMessage =
  /** The process keeps the lease itself from now on. */
  | { readonly kind: 'keeping' }
  /** The handler has been called. */
  | { readonly kind: 'started' }
  /** The job has ended, and is not put back: the process sends the last output, then settles. */
  | { readonly kind: 'decided' }
  /** The process cannot run the job: its module does not load, or has no such task. */
  | { readonly kind: 'unable'; readonly error: string }
  | { readonly kind: 'settled'; readonly verdict: ChildVerdict }

const kinds: readonly unknown[] = ['complete', 'retry', 'release', 'bury', 'cancel'] satisfies ChildVerdict['kind'][]
const answers: readonly unknown[] = ['ok', 'lost', 'gone'] satisfies ChildVerdict['answer'][]

/** Undefined for anything else: the job may write to the channel as well. */
export function childMessageIn(said: object): ChildMessage | undefined {
  const { kind, error, verdict } = said as Record<string, unknown>
  if (kind === 'keeping' || kind === 'started' || kind === 'decided') return { kind }
  if (kind === 'unable') return { kind, error: String(error) }
  if (kind !== 'settled' || typeof verdict !== 'object' || verdict === null) return undefined
  const { kind: end, answer, runMs, enqueued = {} } = verdict as Record<string, unknown>
  if (!kinds.includes(end) || !answers.includes(answer) || typeof runMs !== 'number') return undefined
  if (!areCounts(enqueued)) return undefined
  return { kind, verdict: verdict as ChildVerdict }
}

/** Counts of jobs by queue. */
function areCounts(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).every(([queue, jobs]) => isQueueName(queue) && Number.isSafeInteger(jobs) && jobs > 0)
}

function isWorkerMessage(said: object): said is WorkerMessage {
  const { kind } = said as Partial<WorkerMessage>
  return kind === 'stop' || kind === 'heard'
}

/** The verdict of the process, as one of its worker. */
export function verdictOfChild(told: ChildVerdict): Verdict {
  return withHold(endingOf(told), told.holdMs)
}

function endingOf({ kind, delayMs = 0, last = false, reason = '', error }: ChildVerdict): Verdict {
  switch (kind) {
    case 'complete':
      return { kind, result: undefined }
    case 'retry':
      return last ? { kind, delayMs: 0, last, error, reason } : { kind, delayMs, last, error }
    case 'release':
      return { kind, delayMs, reason }
    case 'bury':
      return { kind, reason, error }
    case 'cancel':
      return { kind, reason }
  }
}

/** A blocked worker hears the end of the job once it goes on. */
const hearingMs = 5_000

/** The line of the process to its worker. */
export class WorkerLine {
  readonly #channel: LineChannel
  #isHeard = false
  #heard: () => void = () => {}

  /** `stopped`: called when the worker stops and its grace is over. */
  constructor(socket: Socket, stopped: () => void) {
    this.#channel = new LineChannel(socket, (message) => {
      if (!isWorkerMessage(message)) return
      if (message.kind === 'stop') stopped()
      else {
        this.#isHeard = true
        this.#heard()
      }
    })
  }

  /**
   * Resolves with whether the worker has the message, or with false once it is gone. The end of a job counts as heard
   * only once the worker says so: nobody reads the rest of a pipe whose worker leaves.
   */
  async tell(message: ChildMessage): Promise<boolean> {
    const isSent = await this.#channel.say(message)
    if (!isSent || message.kind !== 'settled') return isSent
    const heard = new Promise<void>((resolve) => {
      this.#heard = resolve
    })
    if (this.#isHeard) return true
    const isAnswered = await endsWithin(hearingMs, Promise.race([heard, this.#channel.closed]))
    return this.#isHeard || !isAnswered
  }
}

/** A message from the thread of the process to its main thread. */
export type GuardMessage =
  | { readonly kind: 'keeping' }
  | { readonly kind: 'cancelled' }
  /** The worker is gone, and the process must end with it. */
  | { readonly kind: 'orphaned' }
  | { readonly kind: 'failed'; readonly message: string }
  /** All output printed before the request has been sent. */
  | { readonly kind: 'drained' }

/** A message from the main thread to the thread. */
export type GuardedMessage =
  | { readonly kind: 'begun' }
  | { readonly kind: 'progress'; readonly fraction: number; readonly note?: string }
  | { readonly kind: 'drain' }
  /** The job is settled: its lease is kept no longer. */
  | { readonly kind: 'settled' }
