/** The footprint: what a waiting job and an idle worker cost the server. */

import type { BenchReport } from '../bench.js'
import type { ContenderName } from '../contenders/contender.js'
import { ContenderProcess } from '../contenders/contender-process.js'
import { figure, grouped } from '../rounds.js'
import type { RedisField } from './redis-field.js'
import { startRedisServer } from './redis-server.js'

/**
 * Bytes per waiting job. The data is the same in every round, so one round is enough. Resolves to the ratio to BullMQ.
 */
export async function memory(report: BenchReport, field: RedisField, jobs: number, payloadBytes: number) {
  report.say(`\nmemory per waiting job, ${grouped(jobs)} of ${grouped(payloadBytes)} B payload`)
  const bytes = new Map<ContenderName, number>()
  for (const [name, contender] of field.contenders) {
    const spent = await contender.take('memory', { jobs, payloadBytes })
    bytes.set(name, spent.bytes / jobs)
    report.say(`  ${name.padEnd(10)} ${grouped(spent.bytes / jobs)} B`)
  }
  return toBullmq(bytes)
}

/** The workers that are measured idle, with the queues of each. The raw limit has no idle worker. */
const idlers: readonly { name: ContenderName; queues: number; shards: number }[] = [
  { name: 'millrace', queues: 1, shards: 1 },
  { name: 'bullmq', queues: 1, shards: 1 },
  { name: 'bee-queue', queues: 1, shards: 1 },
  { name: 'millrace', queues: 1, shards: 24 },
  { name: 'millrace', queues: 300, shards: 1 },
]

/**
 * Commands per second of idle workers, all at the same time, each with a server of its own. Resolves to the ratio to
 * BullMQ for one queue.
 */
export async function idle(report: BenchReport, names: readonly ContenderName[], forMs: number) {
  report.say(`\nidle worker, over ${grouped(forMs / 1_000)} s`)
  const results = await Promise.all(
    idlers
      .filter(({ name }) => names.includes(name))
      .map(async (idler) => ({ ...idler, ...(await idling(idler, forMs)) })),
  )
  const seconds = forMs / 1_000
  for (const { name, queues, shards, commands, nodeCpuMs } of results)
    report.say(
      `  ${name.padEnd(10)} ${(shards > 1 ? `${shards} shards` : `${queues} ${queues === 1 ? 'queue' : 'queues'}`).padEnd(10)} ${grouped(commands / seconds, 2)} commands/s, ${grouped(nodeCpuMs / seconds, 1)} ms of Node a second`,
    )
  return toBullmq(
    new Map(
      results.filter(({ queues, shards }) => queues * shards === 1).map(({ name, commands }) => [name, commands]),
    ),
  )
}

async function idling({ name, queues, shards }: (typeof idlers)[number], forMs: number) {
  const server = await startRedisServer()
  try {
    const contender = await ContenderProcess.start(name, server.url)
    try {
      return await contender.take('idle', { queues, shards, forMs })
    } finally {
      await contender.end()
    }
  } finally {
    await server.stop()
  }
}

/** Undefined if one of the two is missing. */
function toBullmq(figures: ReadonlyMap<ContenderName, number>): number | undefined {
  const [own, theirs] = [figures.get('millrace'), figures.get('bullmq')]
  return own === undefined || theirs === undefined ? undefined : figure(own / theirs)
}
