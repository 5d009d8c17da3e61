/**
 * Proof: ordered queues survive their workers. Eight processes work on ten ids with 10,000 payloads each, while workers
 * are killed, stopped and relieved; with an exclusive id and with an exclusive shard, on SQLite and on Redis.
 */

import { seededRandom } from '../../test/seeded-random.js'
import { leaseMs } from '../crew.js'
import { type OpenGround, redisGround, sqliteGround } from '../ground.js'
import type { Report, Summary } from '../report.js'
import { drillOrdered, type OrderedPlan } from './ordered-drill.js'

export const seed = 20_260_005

const plan = { ids: 10, payloadsPerId: 10_000, processes: 8, runMs: 50, maxPayloads: 10, withinMs: 600_000 }

export async function prove(report: Report): Promise<Summary> {
  const random = seededRandom(seed)
  const grounds: readonly (readonly [string, OpenGround])[] = [
    ['SQLite', sqliteGround],
    ['Redis', redisGround],
  ]
  const figures: Record<string, unknown> = {}
  for (const [name, open] of grounds) {
    const faults = { kills: 30, stops: 15, reliefs: 0, random }
    figures[`${name} id`] = await drilled(
      report,
      `${name}, exclusive id`,
      { ...plan, ...faults, exclusive: 'id' },
      open,
    )
    const churn = { kills: 10, stops: 5, reliefs: 20, random }
    figures[`${name} shard`] = await drilled(
      report,
      `${name}, exclusive shard, workers join and leave`,
      { ...plan, ...churn, payloadsPerId: 3_000, exclusive: 'shard' },
      open,
    )
  }
  return figures
}

async function drilled(report: Report, what: string, plan: OrderedPlan, open: OpenGround): Promise<unknown> {
  const outcome = await drillOrdered(plan, open)
  const all = plan.ids * plan.payloadsPerId
  report.say(
    `${what}: ${plan.processes} processes, ${plan.ids} ids, ${all} payloads in ${outcome.seconds.toFixed(1)} s, ${outcome.handOvers} hand-overs, ${outcome.kills} × kill -9, ${outcome.stops} × SIGSTOP, ${plan.reliefs} left in order, ${outcome.returned} claims returned`,
  )
  report.claim(
    `every payload completed exactly once or lies in the morgue (${outcome.completed} and ${outcome.buried}; lost ${outcome.lost}, twice ${outcome.twice})`,
    outcome.lost === 0 && outcome.twice === 0 && outcome.completed + outcome.buried === all && outcome.buried > 0,
  )
  const { breaches } = outcome
  report.claim(
    `no two claims of one id were current at once ${breaches.slice(0, 3).join(' · ')}`.trim(),
    breaches.length === 0,
  )
  if (plan.exclusive === 'shard')
    report.claim(
      `at most one batch of a shard ran at any moment (${outcome.shardOverlaps})`,
      outcome.shardOverlaps === 0,
    )
  report.claim(`payloads stood in the order of their scores (${outcome.disorders})`, outcome.disorders === 0)
  report.claim(
    `no write with a fence smaller than one before was accepted (${outcome.staleWrites}; ${outcome.refusedWrites} refused)`,
    outcome.staleWrites === 0,
  )
  report.claim(
    `what was in hand came back within the lease and 5 s (${outcome.slowestReturnMs} ms)`,
    outcome.slowestReturnMs <= leaseMs + 5_000,
  )
  return outcome
}
