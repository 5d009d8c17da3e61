/**
 * The price of SQS: calls of its API per job and per idle minute, compared with other consumers. Calls are counted
 * where they arrive.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { strictSqs } from '../test/stores/sqs/strict-sqs.js'
import type { BenchReport } from './bench.js'
import { type SqsContender, sqsContenders } from './sqs-contenders.js'

const jobs = 5_000
const idleQueues = 3
const idleMinutes = 2
/** Time after which the work at the start is over. */
const settleMs = 65_000
/** Dollars per million calls of a standard queue, after the first million of a month. */
const millionCalls = 0.4

export async function bench({ say }: BenchReport) {
  say(
    `${jobs} blank jobs are sent and worked off, concurrency 10; then ${idleQueues} empty queues for ${idleMinutes} minutes.`,
  )
  const figures: Record<string, Record<string, number>> = {}
  for (const contender of sqsContenders) {
    const { total, byKind } = await counted(async (endpoint) => contender.work(endpoint, jobs))
    const perJob = total / jobs
    figures[contender.name] = { callsPerJob: rounded(perJob), dollarsPerMillionJobs: rounded(perJob * millionCalls) }
    say(`${contender.name}: ${perJob.toFixed(3)} calls a job, $${(perJob * millionCalls).toFixed(3)} a million jobs`)
    say(`  ${JSON.stringify(byKind)}`)
  }
  // All at once, because they do almost nothing.
  const idle = await Promise.all(sqsContenders.map((contender) => idleCalls(contender)))
  for (const [i, { name }] of sqsContenders.entries()) {
    figures[name]!['callsPerIdleMinute'] = rounded(idle[i]!)
    say(`${name}: ${idle[i]!.toFixed(1)} calls an idle minute`)
  }
  return figures
}

async function counted(work: (endpoint: string) => Promise<void>) {
  const sqs = await strictSqs()
  await work(sqs.endpoint)
  const byKind = await sqs.calls()
  await sqs.close()
  return { byKind, total: Object.values(byKind).reduce((sum, calls) => sum + calls, 0) }
}

/** Calls a minute, after it has settled. */
async function idleCalls(contender: SqsContender): Promise<number> {
  const sqs = await strictSqs()
  const stop = new AbortController()
  const idle = contender.idle(sqs.endpoint, idleQueues, stop.signal)
  await delay(settleMs)
  const before = sum(await sqs.calls())
  await delay(idleMinutes * 60_000)
  const made = sum(await sqs.calls()) - before
  stop.abort()
  await idle
  await sqs.close()
  return made / idleMinutes
}

function sum(calls: Readonly<Record<string, number>>): number {
  return Object.values(calls).reduce((total, made) => total + made, 0)
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
