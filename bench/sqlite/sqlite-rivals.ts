/**
 * The SQLite store compared with plainjob, at both of its durabilities: each in a process of its own, in alternating
 * rounds.
 */

import { join } from 'node:path'
import type { BenchReport } from '../bench.js'
import { MeasuringProcess } from '../measuring-process.js'
import { figure, grouped, type Rounds, roundsOf, roundsText } from '../rounds.js'
import { hasPlainjob, plainjobInstall } from './rival-plainjob.js'
import { type RivalMeasureName, type SqliteContenderName, sqliteContenderNames } from './sqlite-contender.js'

const rounds = 5

const titles: Record<RivalMeasureName, { readonly title: string; readonly unit: string; readonly digits: number }> = {
  lonely: { title: 'enqueue, one at a time', unit: ' ms', digits: 3 },
  many: { title: 'enqueueMany of 15,000', unit: '/s', digits: 0 },
  work: { title: 'process, 15,000 jobs', unit: '/s', digits: 0 },
}

/** Prints the figures and resolves to the ratios by name. If plainjob is not installed, there are none. */
export async function besidePlainjob(report: BenchReport, folder: string): Promise<Record<string, number>> {
  if (!hasPlainjob()) {
    report.say(`beside plainjob: not measured, it is not there. '${plainjobInstall}' puts it there, in some minutes`)
    return {}
  }
  const ratios: Record<string, number> = {}
  const contenders = new Map<SqliteContenderName, MeasuringProcess>()
  const entry = join(import.meta.dirname, 'sqlite-contender-entry.ts')
  try {
    for (const name of sqliteContenderNames)
      contenders.set(name, await MeasuringProcess.start(name, entry, [name, folder]))
    for (const [measure, { title, unit, digits }] of Object.entries(titles)) {
      const laps = await lapsOf(contenders, measure)
      for (const rival of sqliteContenderNames.slice(1)) {
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
  measure: string,
): Promise<RivalLap[]> {
  const laps: RivalLap[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const lap = new Map<SqliteContenderName, number>()
    for (const [name, contender] of contenders) lap.set(name, Number(await contender.ask(measure)))
    if (round > 0) laps.push(lap)
  }
  return laps
}
