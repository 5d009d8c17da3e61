/**
 * Proof of the reports of members: in every store the contract catches each mutation that drops the report of a way in which
 * a member can end, reports what is no end, or counts an end twice. A report that is only delivered twice changes nothing:
 * no case tells it apart.
 */

import { startRedis } from 'millrace/store-testing'
import { catchAll } from '../models/model.js'
import { caughtBy, type Mutation } from '../models/mutants.js'
import { redisVersion } from '../redis-version.js'
import { Report, type Summary } from '../report.js'
import { memoryJoinMutations, memoryRepeats } from './memory-join-mutations.js'
import { redisJoinMutations, redisRepeats } from './redis-join-mutations.js'
import { sqliteJoinMutations, sqliteRepeats } from './sqlite-join-mutations.js'

export const seed = 521_000

/** `JOINS_STORES`: some of the stores, by their names. */
const { JOINS_STORES: only } = process.env
/** Each mutation names the concern of the contract that catches it. */
const noDraws = { seed, sequences: 0, steps: 0 }

export async function prove(report: Report): Promise<Summary> {
  const redis = await startRedis()
  try {
    report.say(`the server: ${await redisVersion(redis)}`)
    const stores: [name: string, place: string, readonly Mutation[], repeats: readonly Mutation[]][] = [
      ['memory', 'memory', memoryJoinMutations, memoryRepeats],
      ['SQLite', 'sqlite', sqliteJoinMutations, sqliteRepeats],
      ['Redis', redis.url, redisJoinMutations, redisRepeats],
    ]
    const asked = stores.filter(([name]) => only === undefined || only.split(',').includes(name))
    // Beside each other: a mutant mostly waits for its process to begin.
    const tried = await Promise.all(
      asked.map(async ([name, place, mutations, repeats]) => {
        const own = new Report()
        own.say(`— ${name}`)
        const survivors = await catchAll(own, mutations, place, noDraws)
        for (const repeat of repeats) {
          const by = await caughtBy(repeat, place, noDraws)
          own.claim(
            `${repeat.what}: '${repeat.concern}' finds no difference${by === undefined ? '' : `, but for ${by}`}`,
            by === undefined,
          )
        }
        return { own, survivors }
      }),
    )
    for (const { own } of tried) {
      report.lines.push(...own.lines)
      report.failed.push(...own.failed)
    }
    const survivors = tried.flatMap((one) => one.survivors)
    const mutants = asked.reduce((sum, [, , mutations]) => sum + mutations.length, 0)
    return { mutants, survivors }
  } finally {
    await redis.stop()
  }
}
