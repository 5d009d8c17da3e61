/**
 * Proof: the memory store keeps each promise in every interleaving of small models, and in long walks through them.
 * Each of the seeded faults is found.
 */

import { join } from 'node:path'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { tried } from '../models/mutants.js'
import type { Report, Summary } from '../report.js'
import { everyInterleaving, walks } from './interleavings.js'
import { scenarios } from './scenarios.js'
import type { WorldParts } from './simulated-world.js'
import { simulationFaults } from './simulation-faults.js'

export const seed = 900_000

const parts: WorldParts = { MemoryStore, ManualClock }
const walk = { count: 20_000, length: 40 }
const leastSteps = 10_000_000

export async function prove(report: Report): Promise<Summary> {
  let [interleavings, steps, violations] = [0, 0, 0]
  for (const [i, scenario] of scenarios.entries()) {
    const runs = [
      await everyInterleaving(scenario, parts),
      await walks(scenario, parts, { seed: seed + i * walk.count, ...walk }),
    ] as const
    report.say(`${scenario.name}:`)
    report.say(`  every order of ${scenario.depth} steps: ${counts(runs[0])}`)
    report.say(`  walks of ${walk.length} steps: ${counts(runs[1])}`)
    for (const { broken, ...done } of runs) {
      interleavings += done.interleavings
      steps += done.steps
      if (broken === undefined) continue
      violations += 1
      report.say(`  BROKEN: ${broken.what}: ${broken.trace.join(', ')}`)
    }
  }
  report.say('')
  report.claim(`${count(interleavings)} interleavings, ${count(steps)} steps: no promise is broken`, violations === 0)
  report.claim(`they are at least ${count(leastSteps)} steps`, steps >= leastSteps)
  report.say('')
  let survivors = 0
  for (const fault of simulationFaults) {
    const found = await tried(fault, join(import.meta.dirname, 'fault-trial.ts'))
    report.claim(`found: ${fault.what}${found === undefined ? '' : ` → ${found}`}`, found !== undefined)
    if (found === undefined) survivors += 1
  }
  return { interleavings, steps, violations, faults: simulationFaults.length, survivors }
}

const count = (figure: number) => figure.toLocaleString('en')
const counts = ({ interleavings, steps }: { readonly interleavings: number; readonly steps: number }) =>
  `${count(interleavings)} runs, ${count(steps)} steps`
