/**
 * Proof: while workers die by the hundred, no queue and no group ever has more claims than it may. When all workers
 * have died, the bounds can be used whole again within the lease and 5 s, without a repair.
 */

import { seededRandom } from '../../test/seeded-random.js'
import { leaseMs } from '../crew.js'
import { type OpenGround, redisGround, sqliteGround } from '../ground.js'
import type { Report, Summary } from '../report.js'
import { drillLimits, maxRunning, perGroup } from './limits-drill.js'

export const seed = 20_260_006

const plan = { processes: 8, kills: 1_000, killedAtOnce: 4 }

export async function prove(report: Report): Promise<Summary> {
  const grounds: readonly (readonly [string, OpenGround])[] = [
    ['SQLite', sqliteGround],
    ['Redis', redisGround],
  ]
  const figures: Record<string, unknown> = {}
  for (const [name, open] of grounds) {
    const outcome = await drillLimits({ ...plan, random: seededRandom(seed) }, open)
    const { seconds, kills, claims, mostRunning, mostInGroup, wholeAgainMs } = outcome
    report.say(`${name}: ${plan.processes} processes, ${kills} × kill -9 in ${seconds.toFixed(0)} s, ${claims} claims`)
    report.claim(`${name}: never more than ${maxRunning} claims (${mostRunning})`, mostRunning === maxRunning)
    report.claim(`${name}: never more than ${perGroup} of a group (${mostInGroup})`, mostInGroup === perGroup)
    report.claim(
      `${name}: when all had died the bounds were used whole again within the lease and 5 s (${wholeAgainMs.toFixed(0)} ms)`,
      wholeAgainMs <= leaseMs + 5_000,
    )
    figures[name] = outcome
  }
  return figures
}
