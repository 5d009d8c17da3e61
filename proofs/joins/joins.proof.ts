/**
 * Proof of the joins: a join runs when all of its members have ended, never before, never twice and with the results of
 * its own members, whatever dies meanwhile.
 */

import { startRedis } from 'millrace/store-testing'
import type { Report, Summary } from '../report.js'
import { type DrillSeen, joinsDrill } from './joins-drill.js'

export const seed = 520_000

const scale = Number(process.env.JOINS_SCALE ?? 1)
const plan = { seed, joins: Math.round(1_000 * scale), kills: Math.round(300 * scale), workers: 4, producers: 2 }

export async function prove(report: Report): Promise<Summary> {
  const sqlite = told(report, 'SQLite', await joinsDrill(plan))
  const redis = await startRedis({ config: ['appendonly yes', 'appendfsync always'] })
  try {
    const restart = async () => {
      await redis.kill()
      await redis.restart()
    }
    return { sqlite, redis: told(report, 'Redis with restarts', await joinsDrill(plan, redis.url, restart)) }
  } finally {
    await redis.stop()
  }
}

function told(report: Report, store: string, seen: DrillSeen): Summary {
  const { early, foreign, stuck, wronglyDead, ...figures } = seen
  report.say(`— ${store}: ${JSON.stringify(figures)}`)
  const none = (what: string, found: readonly string[]) =>
    report.claim(
      `${store}: ${what}: ${found.length}${found.length > 0 ? ` (${found.slice(0, 5).join('; ')})` : ''}`,
      found.length === 0,
    )
  none('joins that ran before a member had ended', early)
  report.claim(`${store}: joins that completed twice: ${seen.twice}`, seen.twice === 0)
  none('missing and foreign results', foreign)
  none('joins without an end', stuck)
  none('joins that are dead without a reason', wronglyDead)
  return figures
}
