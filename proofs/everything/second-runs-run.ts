/** The second runs on one store, in a process of its own: takes its plan as an argument, and tells its parent what came of it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { redisSite, sqliteSite } from './second-runs-ground.js'

export interface SecondRunsOrder {
  readonly store: keyof typeof sites
  readonly seed: number
  readonly minutes: number
}

const sites = { SQLite: sqliteSite, Redis: redisSite }

const { store, seed, minutes } = JSON.parse(process.argv[2]!) as SecondRunsOrder
const folder = mkdtempSync(join(tmpdir(), 'millrace-effects-'))
const ground = await sites[store](minutes)
try {
  Object.assign(process.env, {
    ...{ MILLRACE_STORE: ground.url, EVERYTHING_FOLDER: folder, EVERYTHING_SCHEDULES: 'all', EVERYTHING_GRACE: '1s' },
  })
  const { drillSecondRuns } = await import('./second-runs-drill.js')
  process.send!(await drillSecondRuns(ground, minutes, new Dice(seed).random))
} finally {
  await ground.close()
  if (process.env.CHAOS_KEEP === undefined) rmSync(folder, { recursive: true })
}
process.disconnect()
