/**
 * Proof: over random sequences of every kind the Postgres store answers as the memory store does, and holds the same but for
 * what its clock decides. The comparison catches mutations of its functions.
 */

import { postgresHarness } from '#src/store-testing/harness/postgres-harness.js'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import type { Report, Summary } from '../report.js'
import { catchAll, playAll } from './model.js'
import { postgresMutations } from './postgres-mutations.js'

export const seed = 1_300_000

const [sequences, steps] = [60, 60]
/** A mutant is played until a sequence shows it. */
const trial = { sequences: 30, steps: 60 }

export async function prove(report: Report): Promise<Summary> {
  // A mutant that has ended may have left a statement that would never end.
  const server = await PostgresServer.start({ settings: { statement_timeout: '20s' } })
  try {
    const differences: Record<string, number> = {}
    const survivors: string[] = []
    for (const [kind, mutations] of postgresMutations) {
      const draws = { kind, seed }
      const makeSubject = postgresHarness(server.url)
      differences[kind] = await playAll(report, `Postgres, ${kind}`, makeSubject, [{ ...draws, sequences, steps }])
      survivors.push(...(await catchAll(report, mutations, server.url, { ...draws, ...trial })))
    }
    const mutants = [...postgresMutations.values()].reduce((sum, { length }) => sum + length, 0)
    return { differences, mutants, survivors }
  } finally {
    await server.stop()
  }
}
