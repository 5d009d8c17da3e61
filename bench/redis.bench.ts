/**
 * Millrace on Redis, compared with BullMQ, bee-queue and the raw limit, on one server, in alternating rounds of one
 * run.
 */

import { createRequire } from 'node:module'
import { cpus } from 'node:os'
import type { BenchReport } from './bench.js'
import { type ContenderName, contenderNames } from './contenders/contender.js'
import { depth } from './redis/redis-depth.js'
import { RedisField } from './redis/redis-field.js'
import { idle, memory } from './redis/redis-footprint.js'
import { latency } from './redis/redis-latency.js'
import { limit } from './redis/redis-limit.js'
import { beginning, enqueueing, enqueueingMany, processing, race } from './redis/redis-race.js'
import { startRedisServer } from './redis/redis-server.js'

const races = [
  processing('process', 100),
  processing('process10', 10),
  processing('process1', 1),
  beginning('processFresh', 100, 50_000),
  enqueueing('enqueue', 1_000),
  enqueueingMany('enqueueMany', 1_000),
]

const full = {
  renewals: 0,
  rounds: 3,
  roundMs: 1_500,
  memoryJobs: 100_000,
  // A whole minute: the history of each queue is written once in it.
  idleMs: 60_000,
  latencyJobs: 500,
  backlog: 5_000_000,
}
/**
 * Two builds of one package differ by less than two processes of one build, or two rounds. Only the median of many
 * tells them apart.
 */
const besideBaseline = { ...full, renewals: 10, rounds: 5 }
/** Shows that everything runs; its figures mean nothing. */
const quick = {
  renewals: 0,
  rounds: 1,
  roundMs: 300,
  memoryJobs: 10_000,
  idleMs: 5_000,
  latencyJobs: 100,
  backlog: 50_000,
}

/**
 * Options: `--quick`; `--backlog=500000` for a shorter long backlog; `--contenders=bullmq,raw` for some of them,
 * without the ratios of the others. `--baseline=../earlier`: only the races, against Millrace as built in that
 * checkout.
 */
export async function bench(report: BenchReport): Promise<unknown> {
  const baseline = flag('baseline')
  const names = chosenNames(flag('contenders') ?? (baseline === undefined ? undefined : 'millrace'))
  const thorough = baseline === undefined ? full : besideBaseline
  const plan = process.argv.includes('--quick') ? quick : thorough
  const backlog = Number(flag('backlog') ?? plan.backlog)
  const server = await startRedisServer()
  const field = new RedisField(server.url, baseline === undefined ? names : [...names, 'baseline'], baseline)
  try {
    await field.renew()
    report.say(
      `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, ${versions()}, appendfsync everysec, medians of ${Math.max(1, plan.renewals) * plan.rounds} rounds (spread)`,
    )
    return await figures(report, field, server.url, { ...plan, backlog })
  } finally {
    await field.end()
    await server.stop()
  }
}

async function figures(report: BenchReport, field: RedisField, url: string, plan: typeof full): Promise<unknown> {
  const ratios: Record<string, number | undefined> = {}
  for (const one of races) Object.assign(ratios, await race(report, field, one, plan))
  if (field.names.includes('baseline')) return { ratios }
  const [millrace, raw] = [field.contenders.get('millrace'), field.contenders.get('raw')]
  if (raw !== undefined) await limit(report, raw, plan)
  ratios['memoryPerWaitingJob'] = await memory(report, field, plan.memoryJobs, 10)
  ratios['memoryPerWaitingJobOf1KB'] = await memory(report, field, plan.memoryJobs, 1_024)
  ratios['idleCommands'] = await idle(report, field.names, plan.idleMs)
  const latencies = await latency(report, field, url, plan.rounds, plan.latencyJobs)
  if (millrace !== undefined) ratios['costInDepth'] = await depth(report, millrace, plan.backlog, plan.rounds)
  const { processOfRawLimit: ofRawLimit, ...others } = ratios
  const { millrace: latencyMs, ...rivals } = latencies
  return { ratios: { ofRawLimit, ...others }, latencyMs: { ...latencyMs, rivals } }
}

function flag(name: string): string | undefined {
  const start = `--${name}=`
  return process.argv.find((argument) => argument.startsWith(start))?.slice(start.length)
}

function chosenNames(list: string | undefined): ContenderName[] {
  const wanted = list?.split(',') ?? contenderNames
  const unknown = wanted.filter((name) => !contenderNames.some((known) => known === name))
  if (unknown.length > 0)
    throw new Error(`--contenders names '${unknown.join(`', '`)}'; expected some of ${contenderNames.join(', ')}`)
  return contenderNames.filter((name) => wanted.includes(name))
}

function versions(): string {
  const require = createRequire(import.meta.url)
  return ['ioredis', 'bullmq', 'bee-queue']
    .map((name) => `${name} ${(require(`${name}/package.json`) as { version: string }).version}`)
    .join(', ')
}
