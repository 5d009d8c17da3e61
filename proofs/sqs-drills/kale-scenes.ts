/** What Kale did on SQS, as scenes in real time: each on queues of its own of one service, so that all can run at once. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Duration,
  defineTask,
  exponential,
  type Mill,
  type MillOptions,
  millrace,
  UnrecoverableError,
} from 'millrace'
import { forkedProgram } from '../forked-program.js'

/** What a worker process of the stop says. */
export type KaleWord =
  | { readonly kind: 'ready' }
  | { readonly kind: 'begun' | 'ended'; readonly job: number }
  | { readonly kind: 'released'; readonly reason: string }

/** The queue of a batch under one visibility, as Kale has it: nothing is renewed. */
export const keptLease = (lease: Duration) => ({ renewLease: false, lease }) as const

export const stopped = defineTask({ name: 'stopped' })

/** A mill whose queues are there, under a namespace of its own. */
async function millOf(store: string, namespace: string, options: Omit<MillOptions, 'store'>): Promise<Mill> {
  const mill = millrace({ store, namespace, ...options })
  await mill.createQueues()
  return mill
}

const defaultQueue = async (mill: Mill) => mill.queue('default').depth()

function buried(mill: Mill): Promise<string> {
  return new Promise((resolve) => mill.on('job.buried', ({ reason }) => resolve(String(reason))))
}

/** A job that fails at each of its attempts: when each began, from the first on, and what lies in the dead-letter queue. */
export async function failing(store: string) {
  const begunAt: number[] = []
  const task = defineTask({
    name: 'failing',
    retry: { max: 4, backoff: exponential({ jitter: false }) },
    run() {
      begunAt.push(performance.now())
      throw new Error('it never works')
    },
  })
  const mill = await millOf(store, 'failing', { tasks: [task] })
  try {
    const reason = buried(mill)
    await mill.worker({ concurrency: 1 }).start()
    await mill.enqueue(task, {})
    const why = await reason
    // It is buried before it is deleted.
    await delay(1_000)
    const { dead, ready, running, scheduled } = await defaultQueue(mill)
    return { gapsMs: begunAt.slice(1).map((at, i) => at - begunAt[i]!), why, dead, left: ready + running + scheduled }
  } finally {
    await mill.close()
  }
}

/** A job that says that nothing helps. */
export async function unrecoverable(store: string) {
  let runs = 0
  const task = defineTask({
    name: 'unrecoverable',
    retry: { max: 4, backoff: exponential({ jitter: false }) },
    run() {
      runs += 1
      throw new UnrecoverableError('nothing helps')
    },
  })
  const mill = await millOf(store, 'unrecoverable', { tasks: [task] })
  try {
    const reason = buried(mill)
    await mill.worker({ concurrency: 1 }).start()
    const startedAt = performance.now()
    await mill.enqueue(task, {})
    const why = await reason
    const ms = performance.now() - startedAt
    await delay(1_000)
    return { runs, why, ms, dead: (await defaultQueue(mill)).dead }
  } finally {
    await mill.close()
  }
}

/** What a mill says to a task that may take as long as its batch is hidden. */
export function tooLong(store: string): string {
  const task = defineTask({ name: 'slow', timeLimit: '60s', run() {} })
  try {
    millrace({ store, tasks: [task], queues: { default: keptLease('60s') } })
    return 'it was taken'
  } catch (error) {
    return (error as Error).message
  }
}

/** What the producer is told of a payload that no message can hold, and how much of it is in the queue. */
export async function tooLarge(store: string) {
  const task = defineTask({ name: 'large', run() {} })
  const mill = await millOf(store, 'large', { tasks: [task] })
  try {
    const said = await mill.enqueue(task, 'x'.repeat(1_100_000)).then(
      () => 'it was taken',
      (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
    )
    return { said, queued: (await defaultQueue(mill)).ready }
  } finally {
    await mill.close()
  }
}

interface BatchPlan {
  readonly visibility: Duration
  readonly timeLimit: Duration
  readonly jobMs: number
}

/** Ten jobs under one visibility, one after the other: how often they were begun, and why some went back. */
export async function batch(store: string, namespace: string, { visibility, timeLimit, jobMs }: BatchPlan) {
  const runs: number[] = []
  const task = defineTask({
    name: 'batched',
    timeLimit,
    async run(n) {
      runs.push(n as number)
      await delay(jobMs)
    },
  })
  const mill = await millOf(store, namespace, { tasks: [task], queues: { default: keptLease(visibility) } })
  try {
    const released: Record<string, number> = {}
    mill.on('job.released', ({ reason }) => {
      released[reason] = (released[reason] ?? 0) + 1
    })
    let completed = 0
    const ended = new Promise<void>((resolve) => {
      mill.on('job.completed', () => {
        completed += 1
        if (completed === 10) resolve()
      })
    })
    await mill.enqueueMany(
      task,
      Array.from({ length: 10 }, (_, n) => n),
    )
    const startedAt = performance.now()
    await mill.worker({ concurrency: 1 }).start()
    await ended
    const ms = performance.now() - startedAt
    return { runs: runs.length, jobs: new Set(runs).size, released, ms: Math.round(ms) }
  } finally {
    await mill.close()
  }
}

/** SIGTERM for a process with one job running and five fetched; another one stands ready. */
export async function stop(store: string) {
  const namespace = 'stop'
  const mill = await millOf(store, namespace, { tasks: [stopped], queues: { default: keptLease('10m') } })
  const words: { readonly word: KaleWord; readonly of: ChildProcess; readonly at: number }[] = []
  const start = (firstMs: number): ChildProcess => {
    const args = [store, namespace, String(firstMs)]
    const worker = forkedProgram(join(import.meta.dirname, 'kale-worker.ts'), args)
    worker.on('message', (word: KaleWord) => words.push({ word, of: worker, at: performance.now() }))
    return worker
  }
  const said = (of: ChildProcess, kind: KaleWord['kind']) =>
    words.filter((one) => one.of === of && one.word.kind === kind)
  const [first, second] = [start(5_000), start(0)]
  try {
    await mill.enqueueMany(stopped, [1, 2, 3, 4, 5, 6])
    await Promise.all([once(first, 'message'), once(second, 'message')])
    const begun = once(first, 'message')
    first.send('go')
    await begun
    const at = performance.now()
    first.kill('SIGTERM')
    second.send('go')
    const [code] = await once(first, 'exit')
    const exitMs = performance.now() - at
    second.kill('SIGTERM')
    await once(second, 'exit')
    const { running, ready, dead } = await defaultQueue(mill)
    const elsewhere = said(second, 'begun').map((one) => one.at - at)
    return {
      ...{ code, exitMs: Math.round(exitMs), left: running + ready + dead },
      released: said(first, 'released').map(({ word }) => (word.kind === 'released' ? word.reason : '')),
      elsewhere: elsewhere.length,
      slowestElsewhereMs: Math.round(Math.max(...elsewhere)),
      runs: said(first, 'begun').length + elsewhere.length,
      ended: said(first, 'ended').length + said(second, 'ended').length,
    }
  } finally {
    for (const worker of [first, second]) if (worker.exitCode === null) worker.kill('SIGKILL')
    await mill.close()
  }
}
