/**
 * Proof of a damaged queue next to a sound one on Redis: the rate of the sound one with and without that neighbour, in
 * alternating rounds on one server. One worker serves both.
 */

import { defineTask, millrace } from 'millrace'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'

/** Nothing is drawn at random. */
export const seed = 0

const rounds = 8
const jobs = 30_000
const perCall = 5_000
/** A round takes seconds. One that takes longer than this has stalled. */
const longestRoundMs = 60_000

export async function prove(report: Report): Promise<Summary> {
  const server = await startRedis()
  try {
    report.say(`the server: ${await redisVersion(server)}; ${jobs} blank jobs a round, 100 slots`)
    const rates: Record<'alone' | 'beside', number[]> = { alone: [], beside: [] }
    // The first round of each warms up.
    for (let round = 0; round <= rounds; round += 1)
      for (const kind of round % 2 === 0 ? (['alone', 'beside'] as const) : (['beside', 'alone'] as const)) {
        const rate = await rateOf(server, `${kind}-${round}`, kind === 'beside')
        if (round > 0) rates[kind].push(rate)
      }
    const [alone, beside] = [median(rates.alone), median(rates.beside)]
    report.say(`alone, jobs/s: ${rates.alone.join(' ')}; median ${alone}`)
    report.say(`next to a damaged queue, jobs/s: ${rates.beside.join(' ')}; median ${beside}`)
    report.claim(
      `a healthy queue keeps ≥ 95 % of its rate (${((beside / alone) * 100).toFixed(1)} %)`,
      beside >= alone * 0.95,
    )
    return { alone, beside, ratio: beside / alone }
  } finally {
    await server.stop()
  }
}

/**
 * Jobs per second of a round in a namespace of its own. The worker's looks at the damaged queue are part of the round.
 */
async function rateOf(server: RedisServer, namespace: string, isDamaged: boolean): Promise<number> {
  let [left, done] = [jobs, () => {}]
  const tasks = ['healthy', 'damaged'].map((queue) =>
    defineTask({
      name: queue,
      queue,
      run: async () => {
        left -= 1
        if (left === 0) done()
      },
    }),
  )
  const mill = millrace({ store: server.url, namespace, queues: { healthy: {}, damaged: {} }, tasks })
  try {
    await mill.depths()
    if (isDamaged) await server.ask('SET', `{${namespace}:damaged}:ready`, 'theirs')
    for (let from = 0; from < jobs; from += perCall)
      await mill.enqueueMany(tasks[0]!, Array<undefined>(perCall).fill(undefined))
    const worker = mill.worker({ concurrency: 100 })
    const over = new Promise<void>((resolve, reject) => {
      done = resolve
      setTimeout(
        () => reject(new Error(`${left} of ${jobs} jobs are left after ${longestRoundMs} ms`)),
        longestRoundMs,
      ).unref()
    })
    const startedAt = performance.now()
    await worker.start()
    await over
    const rate = Math.round(jobs / ((performance.now() - startedAt) / 1_000))
    await worker.stop()
    return rate
  } finally {
    await mill.close()
  }
}

function median(rates: readonly number[]): number {
  const sorted = [...rates].sort((a, b) => a - b)
  return Math.round((sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.ceil((sorted.length - 1) / 2)]!) / 2)
}
