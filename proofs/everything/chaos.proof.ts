/**
 * Proof: everything at once. A million jobs of every kind run on Redis Cluster and on SQLite, by workers of two
 * versions that are killed, stopped and relieved. Meanwhile stores are killed, fail over, fill up, are cut off, and
 * move slots and shards, and clocks step. The judge reads only the records of producers and handlers.
 */

import { join } from 'node:path'
import { forkedProgram, outcomeOf } from '../forked-program.js'
import type { Report, Summary } from '../report.js'
import type { ChaosOutcome } from './chaos-drill.js'
import { claimSound } from './chaos-judge.js'
import type { ChaosOrder } from './chaos-run.js'
import { EarlierPackage } from './earlier-package.js'

export const seed = 20_261_126

/**
 * An older version: on Redis from before the memory of calls had its present form. A file of SQLite is only for versions
 * with the same tables.
 */
const earlier = { 'Redis Cluster': 'a879ce3', SQLite: '25bfa6aa' }
const scale = Number(process.env.CHAOS_SCALE ?? 1)
const withinMs = 45 * 60_000

export async function prove(report: Report): Promise<Summary> {
  const summary: Record<string, unknown> = {}
  for (const store of ['Redis Cluster', 'SQLite'] as const) {
    const old = EarlierPackage.at(earlier[store])
    try {
      const outcome = await run({
        ...{ store, seed, scale },
        jobs: {
          ...{ plain: times(440_000), ordered: times(40_000), grouped: times(10_000), throttled: times(6_000) },
          ...{ delayed: times(4_000), chained: times(2_000), long: times(40) },
        },
        ...{ processes: 4, kills: times(150), killsOfAll: times(8), stops: times(12), reliefs: times(12) },
        ...{ reshards: times(8), versions: [old.folder, join(import.meta.dirname, '../..')], withinMs },
      })
      summary[store] = judged(report, store, outcome, old.folder)
    } finally {
      old.close()
    }
  }
  return summary
}

const run = (order: ChaosOrder): Promise<ChaosOutcome> =>
  outcomeOf(forkedProgram(join(import.meta.dirname, 'chaos-run.ts'), [JSON.stringify(order)]))

const times = (count: number) => Math.max(1, Math.round(count * scale))
const count = (figure: number) => figure.toLocaleString('en')

function judged(report: Report, name: string, outcome: ChaosOutcome, oldFolder: string): Summary {
  const { accepted, runs, again, byKind, left, seconds } = outcome
  const { halts, faults, processes, deaths, rejectedEnqueues, refusedSettles, failedCalls } = outcome
  const faultText = Object.entries(faults)
    .map(([what, number]) => `${number} ${what}`)
    .join(', ')
  const old = processes[oldFolder] ?? 0
  const others = Object.values(processes).reduce((sum, number) => sum + number, 0) - old
  report.say('')
  report.say(`${name}, ${seconds.toFixed(0)} s: ${halts.kills} kills and ${halts.stops} stops of workers; ${faultText}`)
  report.say(`  worker processes: ${old} of version ${earlier[name as keyof typeof earlier]}, ${others} of this one`)
  report.say(
    `  jobs done: ${Object.entries(byKind)
      .map(([kind, number]) => `${count(number)} ${kind}`)
      .join(', ')}`,
  )
  report.say(`  ${count(runs)} runs, ${count(again)} of jobs that had run before`)
  report.say(
    `  ${rejectedEnqueues} enqueues were rejected and made again; ${refusedSettles} settles of lost claims were refused`,
  )
  for (const [call, number] of Object.entries(failedCalls)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 8))
    report.say(`  ${number} x ${call}`)
  claimSound(report, name, outcome, deaths)
  report.claim(`${name}: nothing waits, runs or is dead at the end`, left.waiting === 0 && left.dead === 0)
  return { accepted, runs, again, ...halts, faults, seconds: Math.round(seconds) }
}
