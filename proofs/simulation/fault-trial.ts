/** The trial of a fault: prints the shortest run of any scenario in which a broken build breaks a promise; nothing when there is none. */

import { pathToFileURL } from 'node:url'
import { everyInterleaving, walks } from './interleavings.js'
import { scenarios } from './scenarios.js'
import type { WorldParts } from './simulated-world.js'

const [dist = ''] = process.argv.slice(2)
const load = (path: string) => import(pathToFileURL(`${dist}/${path}`).href)
const { MemoryStore } = await load('stores/memory/memory-store.js')
const { ManualClock } = await load('store-testing/harness/manual-clock.js')
const parts: WorldParts = { MemoryStore, ManualClock }

/** Orders of more steps than these take minutes. */
const mostSteps = 4

async function shortestRun(): Promise<string | undefined> {
  for (let depth = 1; depth <= mostSteps; depth += 1)
    for (const scenario of scenarios) {
      const { broken } = await everyInterleaving(scenario, parts, depth)
      if (broken !== undefined) return told(scenario.name, broken)
    }
  for (const scenario of scenarios) {
    const { broken } = await walks(scenario, parts, { seed: 1, count: 2_000, length: 12 })
    if (broken !== undefined) return told(scenario.name, broken)
  }
  return undefined
}

const told = (name: string, { what, trace }: { readonly what: string; readonly trace: readonly string[] }) =>
  `${what} [${name}: ${trace.join(', ')}]`

const found = await shortestRun()
if (found !== undefined) console.log(found)
