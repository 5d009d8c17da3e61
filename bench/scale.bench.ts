/** Scale: the cost of a job on Redis with many workers, waiting jobs, queues or shards. */

import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchReport } from './bench.js'
import { MeasuringProcess } from './measuring-process.js'
import { RedisMeter } from './redis/redis-meter.js'
import { startRedisServer } from './redis/redis-server.js'
import { figure, grouped, type Rounds, roundsOf, roundsText } from './rounds.js'
import { type ScaleStep, scaleMill } from './scale-mill.js'
import type { ScaleCount, ScaleOrder } from './scale-worker.js'

interface Series {
  readonly title: string
  /** The values of the quantity that grows. */
  readonly at: readonly number[]
  step(at: number): Partial<ScaleStep>
}

interface Cost {
  readonly at: number
  readonly perSecond: number
  readonly redisUs: number
  /** The sum over all processes. */
  readonly nodeUs: number
  /** Jobs divided by script calls: half of what a claim or a settle carries, because a job needs both. */
  readonly perCall: number
}

const usual: ScaleStep = { processes: 1, queues: 1, shards: 0, waiting: 10_000 }

const series: Readonly<Record<string, Series>> = {
  processes: { title: 'worker processes', at: [1, 2, 4, 8], step: (processes) => ({ processes }) },
  waiting: { title: 'waiting jobs', at: [10_000, 100_000, 1_000_000, 5_000_000], step: (waiting) => ({ waiting }) },
  queues: { title: 'queues of one worker', at: [1, 10, 100, 300], step: (queues) => ({ queues }) },
  shards: { title: 'shards of an ordered queue', at: [1, 5, 12, 24], step: (shards) => ({ shards }) },
}

const full = { rounds: 3, jobs: 80_000, started: 60_000, share: 1 }
/** Shows that everything runs; its figures mean nothing. */
const quick = { rounds: 1, jobs: 3_000, started: 60_000, share: 0.01 }
const lookEveryMs = 20
const settledAfterMs = 500

/** Options: `--quick`. */
export async function bench(report: BenchReport): Promise<unknown> {
  const plan = process.argv.includes('--quick') ? quick : full
  const server = await startRedisServer()
  const meter = new RedisMeter(server.url)
  const machine = `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}`
  report.say(`${machine}, appendfsync everysec, blank jobs, concurrency 100, medians of ${plan.rounds} rounds (spread)`)
  try {
    const costs: Record<string, Cost[]> = {}
    for (const [name, { title, at, step }] of Object.entries(series)) {
      report.say(`\n${title}`)
      costs[name] = []
      for (const n of at) {
        const one = { ...usual, ...step(n) }
        costs[name].push(
          await costOf(report, server.url, meter, n, { ...one, waiting: one.waiting * plan.share }, plan),
        )
      }
    }
    return { machine, costs }
  } finally {
    await meter.close()
    await server.stop()
  }
}

async function costOf(
  report: BenchReport,
  url: string,
  meter: RedisMeter,
  at: number,
  step: ScaleStep,
  { rounds, jobs: each, started }: typeof full,
): Promise<Cost> {
  await meter.flush()
  // A process with few jobs never runs compiled code.
  const jobs = each * step.processes
  const { mill, fill } = scaleMill(url, step)
  const entry = join(import.meta.dirname, 'scale-worker.ts')
  const workers = await Promise.all(
    Array.from({ length: step.processes }, (_, i) => MeasuringProcess.start(`worker ${i}`, entry, [url])),
  )
  try {
    const laps: Lap[] = []
    let left = 0
    for (let round = 0; round <= rounds; round += 1) {
      // In a round more jobs end than are waited for, and many end before the count begins.
      const lacking = step.waiting + 3 * jobs + started - left
      await fill(lacking)
      const one = await lap(workers, meter, step, jobs)
      left += lacking - one.completed
      laps.push(one)
    }
    // The first lap is not counted, because the code is compiled in it.
    laps.shift()
    const [perSecond, redisUs, nodeUs, perCall] = (['perSecond', 'redisUs', 'nodeUs', 'perCall'] as const).map((key) =>
      roundsOf(laps.map((one) => one[key])),
    ) as [Rounds, Rounds, Rounds, Rounds]
    report.say(
      `${grouped(at).padStart(11)}  ${roundsText(perSecond, 0).padEnd(30)} jobs/s  Redis ${roundsText(redisUs, 1)} + Node ${roundsText(nodeUs, 1)} µs a job, ${roundsText(perCall, 0)} jobs a call`,
    )
    return {
      at,
      perSecond: Math.round(perSecond.median),
      redisUs: figure(redisUs.median),
      nodeUs: figure(nodeUs.median),
      perCall: figure(perCall.median),
    }
  } finally {
    await mill.close()
    for (const worker of workers) await worker.end()
  }
}

interface Lap extends Omit<Cost, 'at'> {
  readonly completed: number
}

/**
 * Until this number of jobs is completed, counted from the time when all workers run. Another benchmark measures how
 * long a start takes.
 */
async function lap(
  workers: readonly MeasuringProcess[],
  meter: RedisMeter,
  step: ScaleStep,
  jobs: number,
): Promise<Lap> {
  const all = (order: ScaleOrder) => Promise.all(workers.map((worker) => worker.ask(order))) as Promise<ScaleCount[]>
  await all({ begin: step })
  await delay(settledAfterMs)
  const before = await all('count')
  let done = before
  const { ms, redisCpuMs, scriptCalls } = await meter.measured(async () => {
    while (sum(done, 'jobs') < sum(before, 'jobs') + jobs) {
      await delay(lookEveryMs)
      done = await all('count')
    }
  })
  const completed = sum(done, 'jobs') - sum(before, 'jobs')
  return {
    completed: sum(await all('end'), 'jobs'),
    perSecond: (1_000 * completed) / ms,
    redisUs: (1_000 * redisCpuMs) / completed,
    perCall: completed / scriptCalls,
    nodeUs: (1_000 * (sum(done, 'cpuMs') - sum(before, 'cpuMs'))) / completed,
  }
}

function sum(counts: readonly ScaleCount[], key: keyof ScaleCount): number {
  return counts.reduce((total, count) => total + count[key], 0)
}
