/**
 * Proof: over random sequences of commands the SQLite store answers and holds, after every step, the same as the memory
 * store. The comparison catches mutations of its SQL.
 */

import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import type { Report, Summary } from '../report.js'
import { catchAll, playAll } from './model.js'
import { sqliteMutations } from './sqlite-mutations.js'

export const seed = 500_000

export async function prove(report: Report): Promise<Summary> {
  const draws = [
    { seed, sequences: 1_200, steps: 60 },
    // Long sequences reach states that need a long history.
    { seed: seed + 1_200, sequences: 20, steps: 600 },
  ]
  const differences = await playAll(report, 'SQLite', sqliteHarness, draws)
  const survivors = await catchAll(report, sqliteMutations, 'sqlite', { seed, sequences: 80, steps: 300 })
  return { differences, mutants: sqliteMutations.length, survivors }
}
