/** A lap: the cost of one round for one contender. */

import { grouped, roundsOf, roundsText } from '../rounds.js'
import type { Spent } from './redis-meter.js'

export interface Lap {
  readonly jobs: number
  readonly perSecond: number
  readonly redisCpuUs: number
  readonly nodeCpuUs: number
  readonly commandsPerJob: number
  /** Jobs per script call; undefined for contenders that do not move jobs by scripts. */
  readonly perCall: number | undefined
}

export function lapOf(spent: Spent, jobs: number): Lap {
  return {
    jobs,
    perSecond: (1_000 * jobs) / spent.ms,
    redisCpuUs: (1_000 * spent.redisCpuMs) / jobs,
    nodeCpuUs: (1_000 * spent.nodeCpuMs) / jobs,
    commandsPerJob: spent.commands / jobs,
    perCall: spent.scriptCalls > checksAtStart ? jobs / spent.scriptCalls : undefined,
  }
}

/** How many jobs fill this time at the pace of this lap. */
export function jobsIn(forMs: number, { perSecond }: Lap): number {
  const jobs = Math.round((perSecond * forMs) / 1_000)
  return Math.min(Math.max(jobs, fewestJobs), mostJobs)
}

/** Script calls of a worker that otherwise uses none. */
const checksAtStart = 2
const fewestJobs = 1_000
const mostJobs = 300_000

/** The laps of one contender in a line: medians, and the spread of the compared figures. */
export function lapsText(laps: readonly Lap[]): string {
  const median = (of: (lap: Lap) => number) => roundsOf(laps.map(of)).median
  const perCall = laps.some((lap) => lap.perCall === undefined) ? undefined : median((lap) => lap.perCall!)
  return [
    `${roundsText(roundsOf(laps.map((lap) => lap.perSecond)), 0)} jobs/s`.padEnd(36),
    `Redis ${grouped(
      median((lap) => lap.redisCpuUs),
      1,
    )} + Node ${grouped(
      median((lap) => lap.nodeCpuUs),
      1,
    )} µs`.padEnd(30),
    `${grouped(
      median((lap) => lap.commandsPerJob),
      2,
    )} commands a job`.padEnd(24),
    perCall === undefined ? 'no script calls' : `${grouped(perCall, 1)} jobs a call`,
  ].join('')
}
