/** The raw limit by itself: jobs a second at different numbers per call. */

import type { BenchReport } from '../bench.js'
import type { ContenderProcess } from '../contenders/contender-process.js'
import { roundsOf, roundsText } from '../rounds.js'
import { jobsIn, type Lap, lapOf } from './redis-lap.js'
import { type RaceLength, rawRuns } from './redis-race.js'

const perCalls = [1, 10, 100]
const firstJobs = 10_000

/** Runs on one connection. With two calls in flight, the next one waits at the server when the last is done. */
export async function limit(report: BenchReport, raw: ContenderProcess, { rounds, roundMs }: RaceLength) {
  report.say('\nraw limit, jobs/s with one call in flight | with two')
  for (const [title, run] of Object.entries(rawRuns)) {
    for (const perCall of perCalls) {
      const jobs = jobsIn(roundMs, lapOf(await run(raw, firstJobs, perCall, 1), firstJobs))
      const laps: Lap[][] = [[], []]
      for (let round = 0; round < rounds; round += 1) {
        for (const [index, lane] of laps.entries()) lane.push(lapOf(await run(raw, jobs, perCall, index + 1), jobs))
      }
      const [one, two] = laps.map((lane) => roundsText(roundsOf(lane.map((lap) => lap.perSecond)), 0))
      report.say(`  ${title.padEnd(9)} ${String(perCall).padStart(4)} per call  ${one} | ${two}`)
    }
  }
}
