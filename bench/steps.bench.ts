/**
 * The price of steps: what a running job pays to keep the result of a step, beside what it pays to store a checkpoint of
 * the same size, on SQLite and on Redis. All in one process, in alternating rounds.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeSource } from '#src/mill/store-source.js'
import type { ClaimKey } from '#src/stores/contract/settle.js'
import { stepsOf } from '#src/stores/contract/steps.js'
import type { Store } from '#src/stores/contract/store.js'
import type { BenchReport } from './bench.js'
import { startRedisServer } from './redis/redis-server.js'
import { figure, grouped, roundsOf, roundsText } from './rounds.js'

/** The jobs that are at it at once. */
const sizes = [1, 20] as const
const leaseMs = 600_000
const payload = JSON.stringify({ region: 'north', total: 12_345 })

/** Options. `--quick`: shows that it runs; its figures mean nothing. `--stores=sqlite`: only these. */
export async function bench(report: BenchReport): Promise<unknown> {
  const isQuick = process.argv.includes('--quick')
  const stores = process.argv.find((argument) => argument.startsWith('--stores='))?.slice('--stores='.length)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const ratios: Record<string, number> = {}
  report.say(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}`)
  try {
    if (stores === undefined || stores.includes('sqlite'))
      Object.assign(ratios, await compared(report, 'SQLite', `sqlite:${join(folder, 'jobs.db')}`, isQuick))
    if (stores === undefined || stores.includes('redis')) {
      const server = await startRedisServer()
      try {
        Object.assign(ratios, await compared(report, 'Redis', server.url, isQuick))
      } finally {
        await server.stop()
      }
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  return { ratios }
}

/** Prints the ratios of steps to checkpoints within each round, and resolves to their medians by name. */
async function compared(report: BenchReport, name: string, url: string, isQuick: boolean) {
  const [rounds, each] = isQuick ? [1, 20] : [15, 200]
  const ratios: Record<string, number> = {}
  const store = await storeSource(url).create()
  try {
    for (const size of sizes) {
      const laps: { readonly step: number; readonly checkpoint: number }[] = []
      for (let round = -2; round < rounds; round += 1) {
        const lap = { step: 0, checkpoint: 0 }
        for (const what of round % 2 === 0 ? (['step', 'checkpoint'] as const) : (['checkpoint', 'step'] as const))
          lap[what] = await lapOf(store, `${size}-${round + 2}-${what}`, what, size, each)
        if (round >= 0) laps.push(lap)
      }
      const ratio = roundsOf(laps.map(({ step, checkpoint }) => step / checkpoint))
      const us = (what: 'step' | 'checkpoint') => grouped(roundsOf(laps.map((lap) => lap[what])).median, 1)
      report.say(
        `${name}, ${size} at once: a step ${us('step')} µs, a checkpoint ${us('checkpoint')} µs: ${roundsText(ratio, 2)}`,
      )
      ratios[`step${size}${name}`] = figure(ratio.median)
    }
  } finally {
    await store.close()
  }
  return ratios
}

/** µs for each step or checkpoint: so many by each of the jobs, which are new. */
async function lapOf(store: Store, queue: string, what: 'step' | 'checkpoint', size: number, each: number) {
  await store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  const jobs = Array.from({ length: size }, (_, i) => ({
    ...{ id: `job-${i}`, task: 'blank', payload: '{"n":1234}', priority: 0, rememberMs: 0 },
  }))
  await store.enqueue([{ callId: queue, queue, jobs }])
  const { claims } = await store.claim([{ queue, limit: size }], { worker: 'bench', leaseMs })
  const steps = stepsOf(store)
  const one = ({ id, fence }: ClaimKey, n: number): Promise<unknown> =>
    what === 'step'
      ? steps.keep({ queue, id, fence }, { name: `step-${n}`, kind: 'step', payload }, leaseMs)
      : store.extend([{ queue, id, fence, leaseMs, beat: { checkpoint: { payload } } }])
  const startedAt = performance.now()
  await Promise.all(
    claims.map(async (claim) => {
      for (let n = 0; n < each; n += 1) await one(claim, n)
    }),
  )
  const us = ((performance.now() - startedAt) * 1_000) / (size * each)
  await store.settle(claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'complete' })))
  return us
}
