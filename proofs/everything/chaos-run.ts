/** The run of the chaos on one store, in a process of its own: takes its plan as an argument, and tells its parent what came of it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { ClockShim } from '../starts/clock-shim.js'
import type { ChaosPlan } from './chaos-drill.js'
import { clockSteps, clusterChaos, pickBy, sqliteChaos } from './chaos-ground.js'

export interface ChaosOrder extends ChaosPlan {
  readonly store: keyof typeof grounds
  readonly seed: number
  /** Of the numbers of faults of the store. */
  readonly scale: number
}

const grounds = { 'Redis Cluster': clusterChaos, SQLite: sqliteChaos }

const { store, seed, scale, ...plan } = JSON.parse(process.argv[2]!) as ChaosOrder
const { random } = new Dice(seed)
const folder = mkdtempSync(join(tmpdir(), 'millrace-effects-'))
const shim = ClockShim.made(folder)
// Everything that is started from here on has this clock, and none has it that runs already.
Object.assign(process.env, shim.env, { EVERYTHING_FOLDER: folder })
const ground = await grounds[store](pickBy(random), scale)
try {
  process.env.MILLRACE_STORE = ground.url
  const { drillChaos } = await import('./chaos-drill.js')
  const steps = clockSteps(shim, pickBy(random), Math.ceil(10 * scale))
  process.send!(await drillChaos(ground, steps, plan, random))
} finally {
  await ground.close()
  if (process.env.CHAOS_KEEP === undefined) rmSync(folder, { recursive: true })
}
process.disconnect()
