/** The SQLite store compared with the raw limit of its engine, in alternating rounds of one run. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import type { BenchReport } from './bench.js'
import { besideBaseline } from './sqlite/sqlite-beside.js'
import {
  jobs,
  payload,
  type SqliteBuild,
  type SqliteLap,
  type SqliteMeasureName,
  sqliteBuildOf,
  sqliteMeasures,
} from './sqlite/sqlite-measures.js'
import { besideRivals } from './sqlite/sqlite-rivals.js'

const rounds = 5
const besideOthers = { rounds, jobs: 15_000 }

const timed = defineTask({ name: 'timed' })

/**
 * Options. `--baseline=../earlier`: only compares with Millrace as built in that checkout. `--rivals`: only compares
 * with plainjob and bunqueue; with `--quick` in one round, which shows that it runs.
 */
export async function bench(report: BenchReport): Promise<unknown> {
  const baseline = process.argv.find((argument) => argument.startsWith('--baseline='))?.slice('--baseline='.length)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  try {
    report.say(
      `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, synchronous=FULL, ${jobs.toLocaleString('en')} jobs a round`,
    )
    if (baseline !== undefined) return { ratios: await besideBaseline(report, folder, resolve(baseline)) }
    if (process.argv.includes('--rivals')) {
      const isQuick = process.argv.includes('--quick')
      return { ratios: await besideRivals(report, folder, isQuick ? { rounds: 1, jobs: 500 } : besideOthers) }
    }
    const build = await sqliteBuildOf(join(import.meta.dirname, '..'))
    const ratios: Record<string, number> = {}
    for (const name of Object.keys(sqliteMeasures) as SqliteMeasureName[])
      ratios[name] = await measured(report, folder, build, name)
    const latencyMs = await latency(folder)
    report.say(`latency at 100 jobs/s across two processes: p50 ${latencyMs.p50} ms, p99 ${latencyMs.p99} ms`)
    return { ratios: { ...ratios, ...(await besideRivals(report, folder, besideOthers)) }, latencyMs }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The median ratio over the rounds. The spread is printed with it. */
async function measured(report: BenchReport, folder: string, build: SqliteBuild, name: SqliteMeasureName) {
  const { title, run, raw } = sqliteMeasures[name]
  await run(build, folder)
  const results: (SqliteLap & { readonly rawPerSecond: number; readonly ratio: number })[] = []
  for (let i = 0; i < rounds; i += 1) {
    const lap = await run(build, folder)
    const rawPerSecond = await raw(folder, jobs, lap.perCommit, JSON.stringify(payload))
    results.push({ ...lap, rawPerSecond, ratio: lap.perSecond / rawPerSecond })
  }
  results.sort((a, b) => a.ratio - b.ratio)
  const { ratio, perSecond, rawPerSecond, perCommit } = results[rounds >> 1]!
  const spread = `${results[0]!.ratio.toFixed(2)} … ${results.at(-1)!.ratio.toFixed(2)}`
  report.say(
    `${title.padEnd(26)} ${ratio.toFixed(2)} of raw (${spread}): ${per(perSecond)} beside ${per(rawPerSecond)}, ${perCommit.toFixed(0)} jobs per commit`,
  )
  return Number(ratio.toFixed(3))
}

async function latency(folder: string): Promise<{ p50: number; p99: number }> {
  const store = `sqlite:${join(folder, 'latency.db')}`
  const mill = millrace({ store, tasks: [timed] })
  await mill.depths()
  const jiti = join(import.meta.dirname, '../node_modules/jiti/lib/jiti-cli.mjs')
  const worker = fork(join(import.meta.dirname, 'sqlite/latency-worker.ts'), [store], { execArgv: [jiti] })
  try {
    await once(worker, 'message')
    const accepted: Promise<unknown>[] = []
    const startedAt = performance.now()
    for (let i = 0; i < 1_000; i += 1) {
      // Open loop: jobs are enqueued at their time, even if the last one has not been accepted.
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

function per(perSecond: number): string {
  return `${Math.round(perSecond).toLocaleString('en')}/s`
}
