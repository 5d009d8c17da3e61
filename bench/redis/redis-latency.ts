/** Start latency: from before a job is enqueued in one process to the start of its handler in another. */

import type { BenchReport } from '../bench.js'
import type { ContenderName } from '../contenders/contender.js'
import { ContenderProcess } from '../contenders/contender-process.js'
import { figure, roundsOf, roundsText } from '../rounds.js'
import type { RedisField } from './redis-field.js'

export interface Latency {
  readonly p50: number
  readonly p99: number
}

const perSecond = 100
/** After these jobs, connections are open and code is compiled. */
const firstJobs = 100

/** Medians over the rounds, by contender. */
export async function latency(report: BenchReport, field: RedisField, url: string, rounds: number, jobs: number) {
  const found = new Map<ContenderName, Latency[]>()
  for (let round = 0; round < rounds; round += 1) {
    for (const producer of field.contenders.values()) {
      if (producer.name === 'raw' || producer.name === 'prototype') continue
      found.set(producer.name, [...(found.get(producer.name) ?? []), await latencyOf(producer, url, jobs)])
    }
  }
  report.say(`\nstart latency at ${perSecond} jobs/s across two processes`)
  const medians: Partial<Record<ContenderName, Latency>> = {}
  for (const [name, all] of found) {
    const [p50, p99] = [roundsOf(all.map((one) => one.p50)), roundsOf(all.map((one) => one.p99))]
    report.say(`  ${name.padEnd(10)} p50 ${roundsText(p50, 2)} ms, p99 ${roundsText(p99, 2)} ms`)
    medians[name] = { p50: figure(p50.median), p99: figure(p99.median) }
  }
  return medians
}

async function latencyOf(producer: ContenderProcess, url: string, jobs: number): Promise<Latency> {
  const worker = await ContenderProcess.start(producer.name, url)
  try {
    await producer.take('fill', { jobs: 0 })
    await worker.take('listen', { jobs: firstJobs + jobs, concurrency: 10 })
    await producer.take('pace', { jobs: firstJobs + jobs, perSecond })
    const latencies = (await worker.take('heard', {})).slice(firstJobs).sort((a, b) => a - b)
    return { p50: latencies[Math.floor(latencies.length / 2)]!, p99: latencies[Math.floor(latencies.length * 0.99)]! }
  } finally {
    await worker.end()
  }
}
