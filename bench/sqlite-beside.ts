/** A build of the package on SQLite beside an earlier one: both in new processes for each of many rounds, one after the other. */

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchReport } from './bench.js'
import { MeasuringProcess } from './measuring-process.js'
import { figure, grouped, roundsOf, roundsText } from './rounds.js'
import { type SqliteMeasureName, sqliteMeasures } from './sqlite-measures.js'

/** Two builds differ by less than two processes of one build: only the median of many pairs tells them apart. */
const pairs = 25
const compared: readonly SqliteMeasureName[] = ['process', 'process10', 'enqueue', 'enqueueMany']

/** Says the ratios, and resolves to them by name. `checkout`: the folder of the earlier one, built. */
export async function besideBaseline(report: BenchReport, folder: string, checkout: string) {
  const own = join(import.meta.dirname, '..')
  const ratios: Record<string, number> = {}
  for (const name of compared) {
    const laps: { readonly own: number; readonly baseline: number }[] = []
    for (let pair = 0; pair < pairs; pair += 1) {
      const measured = new Map<string, number>()
      // Who comes first may find the machine other than who comes last.
      for (const one of pair % 2 === 0 ? [own, checkout] : [checkout, own])
        measured.set(one, await perSecond(one, folder, name))
      laps.push({ own: measured.get(own)!, baseline: measured.get(checkout)! })
    }
    const ratio = roundsOf(laps.map((lap) => lap.own / lap.baseline))
    const [ours, theirs] = [roundsOf(laps.map((lap) => lap.own)), roundsOf(laps.map((lap) => lap.baseline))]
    report.say(
      `${sqliteMeasures[name].title.padEnd(26)} ${roundsText(ratio, 2)} of the baseline: ${grouped(ours.median)}/s beside ${grouped(theirs.median)}/s`,
    )
    ratios[`${name}OfBaseline`] = figure(ratio.median)
  }
  return ratios
}

/** In a new process, after one round that is not counted: its code is compiled then. */
async function perSecond(checkout: string, folder: string, name: SqliteMeasureName): Promise<number> {
  const files = join(folder, 'round')
  mkdirSync(files)
  const build = await MeasuringProcess.start(checkout, join(import.meta.dirname, 'sqlite-entry.ts'), [checkout, files])
  try {
    await build.ask(name)
    return Number(await build.ask(name))
  } finally {
    await build.end()
    rmSync(files, { recursive: true })
  }
}
