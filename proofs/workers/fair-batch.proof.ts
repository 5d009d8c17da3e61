/**
 * Proof: a batch under a lease that is not renewed leaves other workers their share. Ten jobs of 2 s, a lease of 6 s,
 * two processes with one slot each, on SQLite and on Redis. One worker alone would take 20 s; two that share take at
 * least 10 s.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { forkedProgram } from '../forked-program.js'
import { type Ground, redisGround, sqliteGround } from '../ground.js'
import type { Report } from '../report.js'
import type { FairBatchWord } from './fair-batch-worker.js'

export const seed = 0

const jobs = 10
const jobMs = 2_000
const leaseMs = 6_000
const rounds = 3
const withinMs = 12_000
/** After this time the proof has failed. */
const givenUpMs = 40_000

interface Run {
  readonly worker: number
  readonly id: string
  readonly from: number
  readonly to: number
}

export async function prove(report: Report): Promise<unknown> {
  const summary: Record<string, number[]> = {}
  for (const [name, open] of [
    ['sqlite', sqliteGround],
    ['redis', redisGround],
  ] as const) {
    const ground = await open()
    try {
      summary[name] = []
      for (let round = 1; round <= rounds; round += 1) {
        const { runs, tookMs } = await shared(ground)
        const shares = [0, 1].map((worker) => runs.filter((run) => run.worker === worker).length)
        report.say(
          `${name}, round ${round}: ${shares.join(' and ')} jobs, done ${(tookMs / 1_000).toFixed(2)} s after the enqueue`,
        )
        report.claim('every job ran once', runs.length === jobs && new Set(runs.map(({ id }) => id)).size === jobs)
        report.claim('both workers had their part', Math.min(...shares) >= jobs / 2 - 1)
        report.claim(`all was done within ${withinMs / 1_000} s`, tookMs <= withinMs)
        summary[name].push(Math.round(tookMs))
      }
    } finally {
      await ground.close()
    }
  }
  return summary
}

/** Both workers are up and idle before the jobs arrive. */
async function shared(ground: Ground): Promise<{ runs: Run[]; tookMs: number }> {
  const runs: Run[] = []
  let finish = () => {}
  const allRan = new Promise<void>((resolve) => (finish = resolve))
  const workers = await Promise.all(
    [0, 1].map((worker) =>
      started(ground, ({ id, from, to }) => {
        if (runs.push({ worker, id, from, to }) === jobs) finish()
      }),
    ),
  )
  const task = defineTask({ name: 'slow', timeLimit: jobMs + 500 })
  const queues = { default: { renewLease: false, lease: leaseMs } }
  const mill = millrace({ store: ground.store, tasks: [task], queues })
  const timer = setTimeout(finish, givenUpMs)
  try {
    const enqueuedAt = Date.now()
    await mill.enqueueMany(task, [...Array(jobs).keys()])
    await allRan
    return { runs, tookMs: Math.max(...runs.map(({ to }) => to)) - enqueuedAt }
  } finally {
    clearTimeout(timer)
    await mill.close()
    await Promise.all(workers.map(ended))
  }
}

async function started(
  ground: Ground,
  ran: (word: Extract<FairBatchWord, { kind: 'ran' }>) => void,
): Promise<ChildProcess> {
  const args = [JSON.stringify(ground.store), String(jobMs), String(leaseMs)]
  const worker = forkedProgram(join(import.meta.dirname, 'fair-batch-worker.ts'), args)
  const ready = new Promise<void>((resolve) => {
    worker.on('message', (word: FairBatchWord) => (word.kind === 'ready' ? resolve() : ran(word)))
  })
  await Promise.race([ready, once(worker, 'exit').then(() => Promise.reject(new Error('a worker did not start')))])
  return worker
}

async function ended(worker: ChildProcess): Promise<void> {
  const exit = once(worker, 'exit')
  worker.kill('SIGTERM')
  await exit
}
