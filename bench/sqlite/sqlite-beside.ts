/**
 * A build of the package on SQLite compared with an earlier one: both in new processes again and again, in alternating
 * rounds.
 */

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchReport } from '../bench.js'
import { MeasuringProcess, withoutPretenuring } from '../measuring-process.js'
import { figure, grouped, roundsOf, roundsText } from '../rounds.js'
import { type SqliteMeasureName, sqliteMeasures } from './sqlite-measures.js'

/**
 * Two builds differ by less than two processes of one build, or two rounds. Only the median of many tells them apart.
 */
const renewals = 10
const rounds = 5
const compared: readonly SqliteMeasureName[] = ['process', 'process10', 'enqueue', 'enqueueMany']

/** Jobs a second. */
interface Lap {
  readonly own: number
  readonly baseline: number
}

/** Prints the ratios and resolves to them by name. `checkout`: the folder of the earlier build. */
export async function besideBaseline(report: BenchReport, folder: string, checkout: string) {
  const own = join(import.meta.dirname, '../..')
  const ratios: Record<string, number> = {}
  for (const name of compared) {
    const laps: Lap[] = []
    for (let renewal = 0; renewal < renewals; renewal += 1)
      laps.push(...(await lapsOf([own, checkout], renewal, folder, name)))
    const ratio = roundsOf(laps.map((lap) => lap.own / lap.baseline))
    const [ours, theirs] = [roundsOf(laps.map((lap) => lap.own)), roundsOf(laps.map((lap) => lap.baseline))]
    report.say(
      `${sqliteMeasures[name].title.padEnd(26)} ${roundsText(ratio, 2)} of the baseline: ${grouped(ours.median)}/s beside ${grouped(theirs.median)}/s`,
    )
    ratios[`${name}OfBaseline`] = figure(ratio.median)
  }
  return ratios
}

/** Laps of two new processes. Their first round is not counted, because their code is compiled in it. */
async function lapsOf(
  checkouts: readonly [own: string, baseline: string],
  renewal: number,
  folder: string,
  name: SqliteMeasureName,
): Promise<Lap[]> {
  const files = join(folder, 'round')
  const start = (checkout: string) =>
    MeasuringProcess.start(
      checkout,
      join(import.meta.dirname, 'sqlite-entry.ts'),
      [checkout, files],
      withoutPretenuring,
    )
  const builds = [await start(checkouts[0]), await start(checkouts[1])] as const
  const perSecond = async (build: MeasuringProcess) => {
    mkdirSync(files)
    const measured = Number(await build.ask(name))
    rmSync(files, { recursive: true })
    return measured
  }
  try {
    const laps: Lap[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const lap = new Map<MeasuringProcess, number>()
      // The first to run may find the machine in another state than the last.
      for (const build of (renewal + round) % 2 === 0 ? builds : builds.toReversed())
        lap.set(build, await perSecond(build))
      if (round > 0) laps.push({ own: lap.get(builds[0])!, baseline: lap.get(builds[1])! })
    }
    return laps
  } finally {
    for (const build of builds) await build.end()
  }
}
