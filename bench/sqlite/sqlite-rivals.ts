/**
 * The SQLite store compared with plainjob and bunqueue, at two durabilities each: each in a process of its own, in alternating
 * rounds.
 */

import { join } from 'node:path'
import type { BenchReport } from '../bench.js'
import { bunqueueInstall, bunRunner } from '../contenders/bunqueue-package.js'
import { MeasuringProcess, nodeRunner, type Runner } from '../measuring-process.js'
import { figure, grouped, type Rounds, roundsOf, roundsText } from '../rounds.js'
import { hasPlainjob, plainjobInstall } from './rival-plainjob.js'
import {
  type RivalMeasureName,
  type RivalOrder,
  type SqliteContenderName,
  sqliteContenderNames,
} from './sqlite-contender.js'

/** `jobs`: of the measures of many jobs. */
export interface RivalPlan {
  readonly rounds: number
  readonly jobs: number
}

const lonelyJobs = 1_000
const titles: Record<RivalMeasureName, { readonly title: string; readonly unit: string; readonly digits: number }> = {
  lonely: { title: 'enqueue, one at a time', unit: ' ms', digits: 3 },
  many: { title: 'enqueueMany', unit: '/s', digits: 0 },
  work: { title: 'process', unit: '/s', digits: 0 },
}

/** The packages of the rivals. A name of a contender begins with its package. */
const packages: Readonly<Record<string, { readonly runner: Runner | undefined; readonly install: string }>> = {
  plainjob: { runner: hasPlainjob() ? nodeRunner() : undefined, install: plainjobInstall },
  bunqueue: { runner: bunRunner(), install: bunqueueInstall },
}

/** Prints the figures and resolves to the ratios by name. A rival that is not installed has none. */
export async function besideRivals(
  report: BenchReport,
  folder: string,
  { rounds, jobs }: RivalPlan,
): Promise<Record<string, number>> {
  const runners = new Map<SqliteContenderName, Runner>([['millrace', nodeRunner()]])
  for (const [name, { runner, install }] of Object.entries(packages)) {
    if (runner === undefined)
      report.say(`beside ${name}: not measured, it is not there. '${install}' puts it there, in some minutes`)
    else for (const rival of sqliteContenderNames) if (rival.startsWith(name)) runners.set(rival, runner)
  }
  const ratios: Record<string, number> = {}
  const contenders = new Map<SqliteContenderName, MeasuringProcess>()
  const entry = join(import.meta.dirname, 'sqlite-contender-entry.ts')
  try {
    for (const [name, runner] of runners)
      contenders.set(name, await MeasuringProcess.start(name, entry, [name, folder], [], runner))
    report.say(`beside others, with ${grouped(jobs)} jobs at once`)
    for (const measure of Object.keys(titles) as RivalMeasureName[]) {
      const { title, unit, digits } = titles[measure]
      const laps = await lapsOf(contenders, { measure, jobs: measure === 'lonely' ? lonelyJobs : jobs }, rounds)
      for (const rival of [...contenders.keys()].slice(1)) {
        const ratio = roundsOf(laps.map((lap) => lap.get('millrace')! / lap.get(rival)!))
        const of = (name: SqliteContenderName) => grouped(medianOf(laps, name).median, digits) + unit
        report.say(`${title.padEnd(26)} ${roundsText(ratio, 2)} of ${rival}: ${of('millrace')} beside ${of(rival)}`)
        ratios[`${measure}Of ${rival}`] = figure(ratio.median)
      }
    }
    return ratios
  } finally {
    for (const contender of contenders.values()) await contender.end()
  }
}

type RivalLap = ReadonlyMap<SqliteContenderName, number>

function medianOf(laps: readonly RivalLap[], name: SqliteContenderName): Rounds {
  return roundsOf(laps.map((lap) => lap.get(name)!))
}

/** The first round is not counted, because the code is compiled in it. */
async function lapsOf(
  contenders: ReadonlyMap<SqliteContenderName, MeasuringProcess>,
  order: RivalOrder,
  rounds: number,
): Promise<RivalLap[]> {
  const laps: RivalLap[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const lap = new Map<SqliteContenderName, number>()
    for (const [name, contender] of contenders) lap.set(name, Number(await contender.ask(order)))
    if (round > 0) laps.push(lap)
  }
  return laps
}
