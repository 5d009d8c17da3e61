/** The SQLite store beside the raw limit of its engine, in alternating rounds of one run. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import type { BenchReport } from './bench.js'
import { rawInserts, rawTurns } from './raw-sqlite.js'

const rounds = 5
const jobs = 50_000
const payload = { n: 12_345 }

const blank = defineTask({ name: 'blank', run: async () => {} })
const timed = defineTask({ name: 'timed' })

interface Round {
  readonly perSecond: number
  readonly rawPerSecond: number
  readonly perCommit: number
}

export async function bench(report: BenchReport): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  try {
    report.say(
      `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, synchronous=FULL, ${jobs.toLocaleString('en')} jobs a round`,
    )
    const process100 = await measured(report, 'process, concurrency 100', () => processRound(folder, 100))
    const process10 = await measured(report, 'process, concurrency 10', () => processRound(folder, 10))
    const enqueue = await measured(report, 'enqueue, 1,000 in flight', () => enqueueRound(folder, 1_000))
    const enqueue100 = await measured(report, 'enqueue, 100 in flight', () => enqueueRound(folder, 100))
    const enqueueMany = await measured(report, 'enqueueMany of 1,000', () => enqueueManyRound(folder, 1_000))
    const enqueueMany100 = await measured(report, 'enqueueMany of 100', () => enqueueManyRound(folder, 100))
    const latencyMs = await latency(folder)
    report.say(`latency at 100 jobs/s across two processes: p50 ${latencyMs.p50} ms, p99 ${latencyMs.p99} ms`)
    return { ratios: { process: process100, process10, enqueue, enqueue100, enqueueMany, enqueueMany100 }, latencyMs }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The median ratio over the rounds; the spread is printed beside it. */
async function measured(report: BenchReport, what: string, round: () => Promise<Round>): Promise<number> {
  await round()
  const results: (Round & { ratio: number })[] = []
  for (let i = 0; i < rounds; i += 1) {
    const result = await round()
    results.push({ ...result, ratio: result.perSecond / result.rawPerSecond })
  }
  results.sort((a, b) => a.ratio - b.ratio)
  const { ratio, perSecond, rawPerSecond, perCommit } = results[rounds >> 1]!
  const spread = `${results[0]!.ratio.toFixed(2)} … ${results.at(-1)!.ratio.toFixed(2)}`
  report.say(
    `${what.padEnd(26)} ${ratio.toFixed(2)} of raw (${spread}): ${per(perSecond)} beside ${per(rawPerSecond)}, ${perCommit.toFixed(0)} jobs per commit`,
  )
  return Number(ratio.toFixed(3))
}

async function processRound(folder: string, concurrency: number): Promise<Round> {
  const mill = freshMill(folder)
  await mill.enqueueMany(
    blank,
    Array.from({ length: jobs }, () => payload),
  )
  let completed = 0
  let claims = 0
  mill.on('queue.claimed', () => {
    claims += 1
  })
  const done = new Promise<void>((resolve) => {
    mill.on('job.completed', () => {
      completed += 1
      if (completed === jobs) resolve()
    })
  })
  const startedAt = performance.now()
  await mill.worker({ concurrency }).start()
  await done
  const perSecond = jobs / seconds(startedAt)
  await mill.close()
  const perCommit = Math.round(jobs / claims)
  return { perSecond, perCommit, rawPerSecond: await rawTurns(folder, jobs, perCommit, JSON.stringify(payload)) }
}

async function enqueueRound(folder: string, inFlight: number): Promise<Round> {
  const mill = freshMill(folder)
  await mill.depths()
  const calls = countedCalls()
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (let i = 0; i < jobs / inFlight; i += 1) await mill.enqueue(blank, payload)
    }),
  )
  const perSecond = jobs / seconds(startedAt)
  const perCommit = Math.round(jobs / calls.stop())
  await mill.close()
  return { perSecond, perCommit, rawPerSecond: await rawInserts(folder, jobs, perCommit, JSON.stringify(payload)) }
}

async function enqueueManyRound(folder: string, perCommit: number): Promise<Round> {
  const mill = freshMill(folder)
  await mill.depths()
  const inputs = Array.from({ length: perCommit }, () => payload)
  const startedAt = performance.now()
  for (let i = 0; i < jobs / perCommit; i += 1) await mill.enqueueMany(blank, inputs)
  const perSecond = jobs / seconds(startedAt)
  await mill.close()
  return { perSecond, perCommit, rawPerSecond: await rawInserts(folder, jobs, perCommit, JSON.stringify(payload)) }
}

/** Counts the store's enqueue calls, each of which is one commit here: a new one is made only when the last was answered. */
function countedCalls(): { stop(): number } {
  const { enqueue } = SqliteStore.prototype
  let calls = 0
  SqliteStore.prototype.enqueue = function (...args) {
    calls += 1
    return enqueue.apply(this, args)
  }
  return {
    stop() {
      SqliteStore.prototype.enqueue = enqueue
      return calls
    },
  }
}

async function latency(folder: string): Promise<{ p50: number; p99: number }> {
  const store = `sqlite:${join(folder, 'latency.db')}`
  const mill = millrace({ store, tasks: [timed] })
  await mill.depths()
  const jiti = join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')
  const worker = fork(join(import.meta.dirname, 'latency-worker.ts'), [store], { execArgv: [jiti] })
  try {
    await once(worker, 'message')
    const accepted: Promise<unknown>[] = []
    const startedAt = performance.now()
    for (let i = 0; i < 1_000; i += 1) {
      // Open loop: jobs come at their time, whether or not the last one has been accepted.
      await delay(Math.max(0, startedAt + i * 10 - performance.now()))
      accepted.push(mill.enqueue(timed, String(process.hrtime.bigint())))
    }
    await Promise.all(accepted)
    await mill.queue('default').drain()
    worker.send('stop')
    const [latencies] = (await once(worker, 'message')) as [number[]]
    const sorted = latencies.slice(100).sort((a, b) => a - b)
    const at = (share: number) => Number(sorted[Math.floor(sorted.length * share)]!.toFixed(2))
    return { p50: at(0.5), p99: at(0.99) }
  } finally {
    worker.kill('SIGKILL')
    await mill.close()
  }
}

let files = 0

function freshMill(folder: string) {
  files += 1
  return millrace({ store: `sqlite:${join(folder, `bench-${files}.db`)}`, tasks: [blank] })
}

function seconds(since: number): number {
  return (performance.now() - since) / 1_000
}

function per(perSecond: number): string {
  return `${Math.round(perSecond).toLocaleString('en')}/s`
}
