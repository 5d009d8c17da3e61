/** Contention: several worker processes on one SQLite file, some of them killed, and what the audit says of it afterwards. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type Mill, millrace } from 'millrace'
import type { AuditEntry } from 'millrace/testing'
import { sqliteHarness } from '#src/testing/sqlite-harness.js'

export interface ContentionPlan {
  readonly jobs: number
  readonly processes: number
  /** Workers killed with SIGKILL while there is work, each replaced at once. */
  readonly kills: number
  readonly random: () => number
  /** Gives up after so long. */
  readonly withinMs: number
}

export interface ContentionOutcome {
  readonly seconds: number
  readonly completed: number
  readonly lost: number
  readonly completedTwice: number
  /** Claims made while another one of the same job was current. */
  readonly overlaps: number
  readonly redelivered: number
  readonly kills: number
  /** Store calls that failed where a user would have seen it. */
  readonly failedCalls: readonly string[]
  /** Longest single store call of any worker. */
  readonly longestWaitMs: number
  /** Jobs claimed by each process slot, smallest to largest. */
  readonly shares: readonly number[]
}

/** What a worker says to its parent. */
export type WorkerWord =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly call: string }
  | { readonly kind: 'slowest'; readonly ms: number }

export const contended = defineTask({ name: 'contended' })
/** Short, so that what a killed worker held is back before the run is over. */
export const lease = '3s'

const lookMs = 20

export async function contend(plan: ContentionPlan): Promise<ContentionOutcome> {
  const harness = await sqliteHarness()
  const store = `sqlite:${harness.file}`
  const mill = millrace({ store, tasks: [contended], queues: { default: { lease } } })
  const workers = new Set<ChildProcess>()
  const failedCalls: string[] = []
  let longestWaitMs = 0
  const listen = (word: WorkerWord) => {
    if (word.kind === 'failed') failedCalls.push(word.call)
    if (word.kind === 'slowest') longestWaitMs = Math.max(longestWaitMs, word.ms)
  }
  try {
    await mill.depths()
    await Promise.all(Array.from({ length: plan.processes }, () => startWorker(store, workers, listen)))
    const startedAt = performance.now()
    const enqueued = enqueueAll(mill, plan.jobs)
    const kills = await killThrough(plan, mill, () => replaceOne(plan, store, workers, listen))
    await enqueued
    await finished(mill, plan.jobs, plan.withinMs - (performance.now() - startedAt))
    const seconds = (performance.now() - startedAt) / 1_000
    await Promise.all([...workers].map(stopWorker))
    await mill.close()
    return { seconds, kills, failedCalls, longestWaitMs, ...judged(await harness.audit(), plan.jobs) }
  } finally {
    for (const worker of workers) worker.kill('SIGKILL')
    await mill.close()
    await harness.close()
  }
}

/** In calls of 50, so that producer and workers contend all along. */
async function enqueueAll(mill: Mill, jobs: number): Promise<void> {
  for (let i = 0; i < jobs; i += 50) {
    const size = Math.min(50, jobs - i)
    await mill.enqueueMany(
      contended,
      Array.from({ length: size }, (_, n) => i + n),
    )
  }
}

async function startWorker(
  store: string,
  workers: Set<ChildProcess>,
  listen: (word: WorkerWord) => void,
): Promise<void> {
  const jiti = join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')
  const worker = fork(join(import.meta.dirname, 'contention-worker.ts'), [store], { execArgv: [jiti] })
  workers.add(worker)
  worker.on('message', listen)
  await once(worker, 'message')
}

async function stopWorker(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  worker.kill('SIGTERM')
  await once(worker, 'exit')
}

async function replaceOne(
  plan: ContentionPlan,
  store: string,
  workers: Set<ChildProcess>,
  listen: (word: WorkerWord) => void,
): Promise<void> {
  const victims = [...workers]
  const victim = victims[Math.floor(plan.random() * victims.length)]!
  workers.delete(victim)
  victim.kill('SIGKILL')
  await Promise.all([once(victim, 'exit'), startWorker(store, workers, listen)])
}

/** Kills at random points of progress, so that no run ends before its last kill. */
async function killThrough(plan: ContentionPlan, mill: Mill, kill: () => Promise<void>): Promise<number> {
  const points = Array.from({ length: plan.kills }, () => plan.random() * plan.jobs * 0.95).sort((a, b) => a - b)
  let kills = 0
  for (const point of points) {
    await reached(mill, point, plan.withinMs)
    await kill()
    kills += 1
  }
  return kills
}

async function finished(mill: Mill, jobs: number, withinMs: number): Promise<void> {
  await reached(mill, jobs, withinMs)
}

async function reached(mill: Mill, processed: number, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const [depth] = await mill.depths(['default'])
    if (depth!.processed >= processed) return
    if (performance.now() > deadline)
      throw new Error(`not at ${processed} jobs within ${withinMs} ms: ${JSON.stringify(depth)}`)
    await delay(lookMs)
  }
}

/** What the audit says: it was written by triggers, inside the transactions themselves. */
export function judged(audit: readonly AuditEntry[], jobs: number) {
  const ends = new Map<string, number>()
  const holders = new Map<string, number>()
  const shares = new Map<string, number>()
  let overlaps = 0
  let claims = 0
  for (const { kind, id, from, worker, fence } of audit) {
    if (kind === 'claim') {
      claims += 1
      if (holders.has(id)) overlaps += 1
      holders.set(id, fence)
      shares.set(worker!, (shares.get(worker!) ?? 0) + 1)
    } else if (from === 'running') {
      if (holders.get(id) !== fence) overlaps += 1
      holders.delete(id)
      if (kind === 'leave' || kind === 'keep') ends.set(id, (ends.get(id) ?? 0) + 1)
    }
  }
  const completedTwice = [...ends.values()].filter((times) => times > 1).length
  return {
    completed: ends.size,
    lost: jobs - ends.size,
    completedTwice,
    overlaps,
    redelivered: claims - ends.size,
    shares: [...shares.values()].sort((a, b) => a - b),
  }
}
