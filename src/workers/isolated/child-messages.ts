/**
 * The messages between a worker and the process that runs an isolated job, over the channel with which it was started; and its
 * assignment, which is sent ahead through a pipe of its own, so that it is whole, or known not to be.
 */

import type { Queue } from '../../core/queue/queue.js'
import type { Span } from '../../core/queue/start-window.js'
import { isQueueName } from '../../core/values/ids.js'
import type { Claim } from '../../stores/contract/claim.js'

/** What the process is to do. */
export interface Assignment {
  readonly claim: Claim
  readonly leaseMs: number
  /** How long a result is kept. */
  readonly results: Queue['results']
  readonly worker: string
  /** Its process. */
  readonly supervisor: number
  readonly onSupervisorLoss: 'detach' | 'exit'
  /** In ms; Infinity: none. */
  readonly timeLimitMs: number
  /** Of a throttled queue: between which instants its handler must begin, on the clock of `sharedMono()`. */
  readonly start: Span | undefined
  /** Where the task says it is found. */
  readonly module: string | undefined
  /** Whatever else the entry of the process needs to find the task and the store. */
  readonly from: unknown
}

export interface WorkerMessage {
  /** `stop`: the worker stops and its grace is over; the job goes back. `heard`: it has heard how the job ended, and tells that. */
  readonly word: 'stop' | 'heard'
}

/** The file descriptor of the process at which words go to and fro. */
export const messageFd = 3

/** The file descriptor of the process that its assignment can be read from, to the end. */
export const assignmentFd = 6

/** How a verdict of the process reads to its worker, which tells of it as of its own. */
export interface ChildVerdict {
  readonly kind: 'complete' | 'retry' | 'release' | 'bury' | 'cancel'
  readonly answer: 'ok' | 'lost' | 'gone'
  readonly runMs: number
  readonly delayMs?: number
  readonly last?: boolean
  readonly reason?: string
  readonly error?: string
  /** How many jobs its handler has enqueued, by queue; absent: none. */
  readonly enqueued?: Readonly<Record<string, number>>
}

export type ChildMessage =
  /** The process keeps the lease itself from now on. */
  | { readonly word: 'keeping' }
  /** The handler has been called. */
  | { readonly word: 'started' }
  /** The process cannot run the job: its module does not load, or knows no such task. */
  | { readonly word: 'unable'; readonly error: string }
  | { readonly word: 'settled'; readonly verdict: ChildVerdict }

const kinds: readonly unknown[] = ['complete', 'retry', 'release', 'bury', 'cancel'] satisfies ChildVerdict['kind'][]
const answers: readonly unknown[] = ['ok', 'lost', 'gone'] satisfies ChildVerdict['answer'][]

/** Undefined for what is none: the job may write to the channel as well. */
export function childMessageIn(said: object): ChildMessage | undefined {
  const { word, error, verdict } = said as Record<string, unknown>
  if (word === 'keeping' || word === 'started') return { word }
  if (word === 'unable') return { word, error: String(error) }
  if (word !== 'settled' || typeof verdict !== 'object' || verdict === null) return undefined
  const { kind, answer, runMs, enqueued = {} } = verdict as Record<string, unknown>
  if (!kinds.includes(kind) || !answers.includes(answer) || typeof runMs !== 'number') return undefined
  if (!areCounts(enqueued)) return undefined
  return { word, verdict: verdict as ChildVerdict }
}

/** Of jobs by queue. */
function areCounts(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).every(([queue, jobs]) => isQueueName(queue) && Number.isSafeInteger(jobs) && jobs > 0)
}

export function isWorkerMessage(said: object): said is WorkerMessage {
  const { word } = said as Partial<WorkerMessage>
  return word === 'stop' || word === 'heard'
}

/** What the thread of the process sends to its main thread. */
export type GuardMessage =
  | { readonly word: 'keeping' }
  | { readonly word: 'cancelled' }
  /** The worker is gone, and the process is to end with it. */
  | { readonly word: 'orphaned' }
  | { readonly word: 'failed'; readonly message: string }
  /** All that was printed before it was asked has been sent. */
  | { readonly word: 'drained' }

/** What the main thread sends to it. */
export type GuardedMessage =
  | { readonly word: 'begun' }
  | { readonly word: 'progress'; readonly fraction: number; readonly note?: string }
  | { readonly word: 'drain' }
  /** The job is settled: nothing is kept any longer. */
  | { readonly word: 'settled' }
