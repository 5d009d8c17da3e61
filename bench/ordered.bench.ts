/**
 * Ordered queues on Redis and on SQLite: blank jobs with distinct ids, compared with the raw limits of both stores at
 * the same jobs per call, in alternating rounds of one run. Also one id with very many payloads.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineOrderedTask, millrace } from 'millrace'
import type { BenchReport } from './bench.js'
import { ContenderProcess } from './contenders/contender-process.js'
import { hotIdOn } from './hot-id.js'
import { rawRuns } from './redis/redis-race.js'
import { startRedisServer } from './redis/redis-server.js'
import { figure, grouped, roundsOf, roundsText } from './rounds.js'
import { rawTurns } from './sqlite/raw-sqlite.js'
import { workedOff } from './sqlite/worked-off.js'

const batchSizes = [1, 10, 100]
const full = { rounds: 3, jobs: 100_000, payloads: 100_000 }
/** Shows that everything runs; its figures mean nothing. */
const quick = { rounds: 1, jobs: 5_000, payloads: 5_000 }
/** The text that the raw limit of SQLite writes into a row, the same as that of the ordered jobs. */
const payload = '{"n":1234}'

/** A store to measure on, and its raw limit: jobs per second at this number of jobs per call. */
interface Ground {
  readonly name: string
  /** Returns an empty store each time. */
  fresh(): Promise<string>
  raw(jobs: number, perCall: number): Promise<number>
}

/** A round of jobs with distinct ids that already wait, run by one worker. */
interface OrderedRound {
  /** From the start of the worker to its last completion. */
  readonly seconds: number
  /** The mean number of jobs per claim. */
  readonly perCall: number
}

const perEnqueue = 1_000
const ignore = () => {}
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }

/** Options: `--quick`. */
export async function bench(report: BenchReport): Promise<unknown> {
  const plan = process.argv.includes('--quick') ? quick : full
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const server = await startRedisServer()
  const rawRedis = await ContenderProcess.start('raw', server.url)
  let files = 0
  const grounds: Ground[] = [
    {
      name: 'redis',
      async fresh() {
        await rawRedis.take('fill', { jobs: 0 })
        return server.url
      },
      raw: async (jobs, perCall) => (1_000 * jobs) / (await rawRuns['ack+fetch'](rawRedis, jobs, perCall, 1)).ms,
    },
    {
      name: 'sqlite',
      fresh: async () => `sqlite:${join(folder, `ordered-${files++}.db`)}`,
      raw: (jobs, perCall) => rawTurns(folder, jobs, perCall, payload),
    },
  ]
  try {
    report.say(
      `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, ${grouped(plan.jobs)} distinct ids, 5 shards, handler concurrency 5`,
    )
    const figures: Record<string, unknown> = {}
    for (const ground of grounds) figures[ground.name] = await measured(report, ground, plan)
    return figures
  } finally {
    await rawRedis.end()
    await server.stop()
    rmSync(folder, { recursive: true })
  }
}

async function measured(report: BenchReport, ground: Ground, plan: typeof full): Promise<unknown> {
  const seconds: Record<string, number> = {}
  const ofRaw: Record<string, number> = {}
  for (const batchSize of batchSizes) {
    const rounds: (OrderedRound & { readonly ofRaw: number })[] = []
    // The first round is not counted, because the code is compiled in it.
    for (let round = 0; round <= plan.rounds; round += 1) {
      const one = await orderedRound(await ground.fresh(), { jobs: plan.jobs, batchSize, concurrency: 5 })
      const raw = await ground.raw(plan.jobs, Math.max(1, Math.round(one.perCall)))
      rounds.push({ ...one, ofRaw: plan.jobs / one.seconds / raw })
    }
    rounds.shift()
    const [time, share] = [roundsOf(rounds.map((one) => one.seconds)), roundsOf(rounds.map((one) => one.ofRaw))]
    const { perCall } = rounds.at(-1)!
    report.say(
      `${ground.name.padEnd(7)} batchSize ${String(batchSize).padStart(3)}  ${roundsText(time, 2)} s, ${grouped(plan.jobs / time.median)} jobs/s, ${roundsText(share, 2)} of the raw limit at ${grouped(perCall)} jobs a call`,
    )
    seconds[batchSize] = figure(time.median)
    ofRaw[batchSize] = figure(share.median)
  }
  const hot = await hotIdOn(await ground.fresh(), plan.payloads)
  report.say(
    `${ground.name.padEnd(7)} one id, ${grouped(plan.payloads)} payloads: enqueued at ${grouped(hot.firstPerSecond)}/s at first and ${grouped(hot.lastPerSecond)}/s at last; a claim of the oldest 1,000 takes ${grouped(hot.claimMs, 1)} ms (slowest of ${hot.claims}), its completion ${grouped(hot.completeMs, 1)} ms`,
  )
  return { seconds, ofRaw, hotId: { ...hot, enqueueLastOfFirst: figure(hot.lastPerSecond / hot.firstPerSecond) } }
}

async function orderedRound(
  store: string,
  { jobs, batchSize, concurrency }: { jobs: number; batchSize: number; concurrency: number },
): Promise<OrderedRound> {
  const blank = defineOrderedTask({ name: 'blank-ordered', batchSize, run: async () => {} })
  const mill = millrace({ store, tasks: [blank], logger: silent })
  const inputs = Array.from({ length: jobs }, () => ({ n: 1_234 }))
  for (let from = 0; from < jobs; from += perEnqueue)
    await mill.enqueueMany(blank, inputs.slice(from, from + perEnqueue), (_, i) => ({ id: `order-${from + i}` }))
  const { seconds, claims } = await workedOff(mill, jobs, concurrency)
  await mill.close()
  return { seconds, perCall: jobs / claims }
}
