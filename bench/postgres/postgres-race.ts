/** The race: contenders take the same measure one after the other, round by round, and are compared within each round. */

import type { BenchReport } from '../bench.js'
import { figure, grouped, roundsOf, roundsText } from '../rounds.js'
import type { PostgresName } from './postgres-contenders.js'
import type { PostgresContender, PostgresField } from './postgres-field.js'
import type { PostgresSpent } from './postgres-meter.js'

interface PostgresRace {
  readonly title: string
  /** The prefix of the names of its ratios. */
  readonly key: string
  run(contender: PostgresContender, jobs: number): Promise<PostgresSpent>
}

interface PostgresLap {
  readonly perSecond: number
  readonly serverUs: number
  readonly nodeUs: number
  readonly walBytes: number
}

/** Jobs of the first round, which shows how many jobs the next one needs. */
const firstJobs = 2_000
const [fewestJobs, mostJobs] = [1_000, 200_000]
/** Rounds that are not counted: after them the code of every contender is compiled. */
const warmUps = 2

export function processingOn(key: string, concurrency: number): PostgresRace {
  return {
    title: `process, concurrency ${concurrency}`,
    key,
    async run(contender, jobs) {
      await contender.take('fill', { jobs })
      return contender.take('work', { jobs, concurrency })
    },
  }
}

export function adding(key: string, inFlight: number): PostgresRace {
  return {
    title: `enqueue, ${grouped(inFlight)} in flight`,
    key,
    run: (contender, jobs) => contender.take('enqueue', { jobs, inFlight }),
  }
}

export function addingMany(key: string, perCall: number): PostgresRace {
  return {
    title: `enqueueMany of ${grouped(perCall)}`,
    key,
    run: (contender, jobs) => contender.take('enqueueMany', { jobs, perCall, inFlight: 1 }),
  }
}

/** Runs the race, prints the outcome, and resolves to its ratios by name: what Millrace does, divided by what the others do. */
export async function postgresRace(
  report: BenchReport,
  { contenders }: PostgresField,
  { title, key, run }: PostgresRace,
  { rounds, roundMs }: { readonly rounds: number; readonly roundMs: number },
): Promise<Record<string, number>> {
  const laps = new Map<PostgresName, PostgresLap[]>()
  for (let round = 0; round < warmUps + rounds; round += 1) {
    // The first to run may find the machine in another state than the last.
    const names = [...contenders.keys()]
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const before = laps.get(name)?.at(-1)
      const jobs = before === undefined ? firstJobs : jobsIn(roundMs, before)
      const lap = lapOf(await run(contenders.get(name)!, jobs), jobs)
      laps.set(name, [...(laps.get(name) ?? []), lap])
    }
  }
  report.say(`\n${title}`)
  for (const [name, all] of laps) {
    laps.set(name, all.slice(warmUps))
    report.say(`  ${name.padEnd(20)} ${lapsText(all.slice(warmUps))}`)
  }
  const own = laps.get('millrace')
  const ratios: Record<string, number> = {}
  if (own === undefined) return ratios
  for (const [name, theirs] of laps) {
    if (name === 'millrace') continue
    const ratio = roundsOf(own.map(({ perSecond }, round) => perSecond / theirs[round]!.perSecond))
    report.say(`  ${roundsText(ratio, 2)} × ${name}`)
    ratios[`${key} × ${name}`] = figure(ratio.median)
  }
  return ratios
}

function lapOf({ ms, serverCpuMs, nodeCpuMs, walBytes }: PostgresSpent, jobs: number): PostgresLap {
  return {
    perSecond: (1_000 * jobs) / ms,
    serverUs: (1_000 * serverCpuMs) / jobs,
    nodeUs: (1_000 * nodeCpuMs) / jobs,
    walBytes: walBytes / jobs,
  }
}

function jobsIn(forMs: number, { perSecond }: PostgresLap): number {
  return Math.min(Math.max(Math.round((perSecond * forMs) / 1_000), fewestJobs), mostJobs)
}

function lapsText(laps: readonly PostgresLap[]): string {
  const median = (of: (lap: PostgresLap) => number) => roundsOf(laps.map(of)).median
  const spent = (of: (lap: PostgresLap) => number) => grouped(median(of), 1)
  return [
    `${roundsText(roundsOf(laps.map((lap) => lap.perSecond)), 0)} jobs/s`.padEnd(36),
    `server ${spent((lap) => lap.serverUs)} + Node ${spent((lap) => lap.nodeUs)} µs`.padEnd(32),
    `${grouped(median((lap) => lap.walBytes))} bytes of WAL a job`,
  ].join('')
}
