/** Depth: the cost of a job in front of a short and of a long backlog. */

import type { BenchReport } from '../bench.js'
import type { ContenderProcess } from '../contenders/contender-process.js'
import { figure, grouped, roundsOf } from '../rounds.js'
import { type Lap, lapOf, lapsText } from './redis-lap.js'

const short = 10_000
const jobs = 30_000

/**
 * Claim and completion at concurrency 100. Resolves to the cost of a job before `long` jobs, divided by its cost before
 * 10,000.
 */
export async function depth(report: BenchReport, contender: ContenderProcess, long: number, rounds: number) {
  report.say('\nprocess, concurrency 100, in front of a backlog')
  const costs: number[] = []
  for (const backlog of [short, long]) {
    await contender.take('fill', { jobs: backlog + jobs * rounds })
    const laps: Lap[] = []
    for (let round = 0; round < rounds; round += 1)
      laps.push(lapOf(await contender.take('work', { jobs, concurrency: 100 }), jobs))
    report.say(`  ${grouped(backlog).padStart(10)} ${lapsText(laps)}`)
    costs.push(1 / roundsOf(laps.map((lap) => lap.perSecond)).median)
  }
  return figure(costs[1]! / costs[0]!)
}
