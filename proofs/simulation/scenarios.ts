/** The scenarios of the simulation: small models, each of which shows one promise at risk. */

import type { NewJob, QueueSettings } from 'millrace/store'

export type SentJob = Pick<NewJob, 'id' | 'delayMs' | 'score' | 'group'> & { readonly payload: string }

export interface Scenario {
  readonly name: string
  readonly settings: QueueSettings
  /** Jobs of the producer, one call each, in this order. */
  readonly jobs: readonly SentJob[]
  /** Most jobs of one claim. */
  readonly claimLimit: number
  /** A job that has failed so often is buried. */
  readonly maxAttempts: number
  /** The first steps, always the same: they save the depth for what is interesting. */
  readonly prologue: readonly string[]
  /** Steps of which every order is tried. */
  readonly depth: number
}

/** The queue of every scenario. */
export const queueName = 'q'
export const workerCount = 2
export const leaseMs = 1_000
/** What one step of time is: two of them end a lease, and a window, to the millisecond. */
export const stepMs = 500
export const windowMs = 1_000
export const maxCrashes = 2

const plain: QueueSettings = { name: queueName, kind: 'plain', order: 'fifo', maxCrashes, dead: {} }
const ordered: QueueSettings = { ...plain, kind: 'ordered' }
const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, payload: id })) as [SentJob, SentJob, SentJob]
const sent = (count: number) => Array.from({ length: count }, () => 'enqueue')
const rules = [{ limit: 2, windowMs, moderate: false }]

export const scenarios: readonly Scenario[] = [
  {
    name: 'two plain jobs, two workers that crash, stall and repeat themselves',
    settings: plain,
    ...{ jobs: [a, b], claimLimit: 1, maxAttempts: 2, prologue: ['enqueue'], depth: 6 },
  },
  {
    name: 'three plain jobs, taken two at a time',
    settings: plain,
    ...{ jobs: [a, b, c], claimLimit: 2, maxAttempts: 2, prologue: sent(3), depth: 5 },
  },
  {
    name: 'a job for later and one for now',
    settings: plain,
    ...{ jobs: [{ ...a, delayMs: 2 * stepMs }, b], claimLimit: 2, maxAttempts: 1, prologue: ['enqueue'], depth: 6 },
  },
  {
    name: 'one ordered id, whose three revisions arrive out of order',
    settings: ordered,
    jobs: [3, 1, 2].map((score) => ({ id: 'x', payload: `r${score}`, score })),
    ...{ claimLimit: 1, maxAttempts: 2, prologue: ['enqueue'], depth: 5 },
  },
  {
    name: 'two ordered ids in one batch',
    settings: ordered,
    jobs: ['x', 'y', 'x', 'y'].map((id, i) => ({ id, payload: `${id}${i}`, score: 10 - i })),
    ...{ claimLimit: 2, maxAttempts: 1, prologue: sent(3), depth: 5 },
  },
  {
    name: 'a throttle of two starts a second',
    settings: { ...plain, throttle: { scope: queueName, by: 'queue', rules } },
    jobs: Array.from('abcd', (id) => ({ id, payload: id })),
    ...{ claimLimit: 2, maxAttempts: 2, prologue: sent(4), depth: 5 },
  },
  {
    name: 'at most one job at a time',
    settings: { ...plain, maxRunning: 1 },
    ...{ jobs: [a, b], claimLimit: 2, maxAttempts: 2, prologue: sent(2), depth: 6 },
  },
  {
    name: 'at most one job at a time of each group',
    settings: { ...plain, maxRunning: { perGroup: 1 } },
    jobs: [a, b, c].map((job, i) => ({ ...job, group: i < 2 ? 'g' : 'h' })),
    ...{ claimLimit: 2, maxAttempts: 2, prologue: sent(3), depth: 5 },
  },
]
