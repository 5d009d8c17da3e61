/** Proof: over random command sequences the SQLite store answers and holds, after every step, what the memory store does; and the comparison catches mutations of its SQL. */

import { compareStores, memoryHarness, type StoreHarness, sqliteHarness } from 'millrace/testing'
import { caughtIn, mutations } from './mutants.js'
import type { Report, Summary } from './report.js'

export const seed = 500_000
const sequences = 1_200
const steps = 60
/** Long ones reach what needs much to have happened before. */
const longSequences = 20
const longSteps = 600
/** What a mutant gets to be told apart. */
const mutantSequences = 80
const mutantSteps = 300

export async function prove(report: Report): Promise<Summary> {
  const startedAt = performance.now()
  const different: string[] = []
  for (let i = 0; i < sequences + longSequences; i += 1) {
    await compared(seed + i, i < sequences ? steps : longSteps).catch((error: Error) => {
      different.push(error.message)
    })
  }
  const seconds = (performance.now() - startedAt) / 1_000
  report.say(
    `${sequences} sequences of ${steps} commands and ${longSequences} of ${longSteps}, whole state compared after each: ${seconds.toFixed(0)} s`,
  )
  if (different[0] !== undefined) report.say(different[0])
  report.claim(`0 differences (seen: ${different.length})`, different.length === 0)

  const survivors: string[] = []
  for (const mutation of mutations) {
    const caughtAt = await caughtIn(mutation, seed, mutantSequences, mutantSteps)
    report.say(
      `mutant: ${mutation.what}: ${caughtAt === undefined ? 'SURVIVES' : `caught in sequence ${caughtAt + 1}`}`,
    )
    if (caughtAt === undefined) survivors.push(mutation.what)
  }
  report.claim(`each of ${mutations.length} mutations of the SQL is caught`, survivors.length === 0)
  return { sequences, steps, differences: different.length, mutants: mutations.length, survivors }
}

async function compared(sequence: number, length: number): Promise<void> {
  const harnesses: StoreHarness[] = [await memoryHarness(), await sqliteHarness()]
  try {
    await compareStores(harnesses[0]!, harnesses[1]!, { seed: sequence, steps: length })
  } finally {
    for (const harness of harnesses) await harness.close()
  }
}
