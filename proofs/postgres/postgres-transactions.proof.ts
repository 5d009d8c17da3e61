/**
 * Proof: with each client of Postgres that users have, exactly the committed rows have jobs, and exactly the completed jobs have
 * effects. For each of them 1,000 transactions, in READ COMMITTED and SERIALIZABLE by turns, write orders and enqueue their jobs by
 * `mill.enqueueIn`, and end in commits, rollbacks and kill -9. Then handlers write an effect and end their job by
 * `ctx.completeIn` in one transaction, while workers are killed, and stopped for longer than their leases. It takes about ten
 * minutes.
 */

import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { drillEffects, drillOrders, type EffectsOutcome, type OrdersOutcome } from './transactions-drill.js'

export const seed = 20_261_129

const rounds = Number(process.env['ROUNDS'] ?? 1_000)
const names = ['pg', 'postgres.js', 'Drizzle on pg', 'Kysely', "TypeORM's manager", 'Knex']
const plan = { jobs: 300, processes: 3, kills: 4, stops: 2 }

export async function prove(report: Report): Promise<Summary> {
  const server = await PostgresServer.start()
  const random = seededRandom(seed)
  const figures: Record<string, unknown> = {}
  try {
    for (const name of names) {
      const orders = await drillOrders(server, name, rounds, seed)
      judgeOrders(report, name, orders)
      const effects = await drillEffects(server, name, { ...plan, random })
      judgeEffects(report, name, effects)
      figures[name] = { orders, effects }
    }
    return figures
  } finally {
    await server.stop()
  }
}

function judgeOrders(report: Report, name: string, outcome: OrdersOutcome): void {
  const { rounds: ends, kills, repeated, orders, ran, withoutJob, withoutOrder, ranTwice, findings } = outcome
  const told = Object.entries(ends).map(([end, count]) => `${end} ${count}`)
  report.say(`${name}: ${rounds} transactions: ${told.join(', ')}; ${kills} processes died, ${repeated} begun anew`)
  report.say(`  ${orders} orders committed, ${ran} jobs ran`)
  report.claim(`${name}: each committed order has its job`, withoutJob.length === 0 && orders > 0)
  report.claim(`${name}: no job is there for an order that was not committed`, withoutOrder.length === 0)
  report.claim(`${name}: each ran once`, ranTwice.length === 0)
  report.claim(`${name}: every kind of end came about`, kills > 0 && Object.values(ends).every((count) => count > 0))
  report.claim(`${name}: what the store holds fits together ${findings.join(' · ')}`.trim(), findings.length === 0)
}

function judgeEffects(report: Report, name: string, outcome: EffectsOutcome): void {
  const { jobs, effects, without, twice, kills, stops, refused, processed, left, failedCalls, findings } = outcome
  report.say(
    `${name}: ${jobs} jobs, ${kills} × kill -9, ${stops} × SIGSTOP, ${refused} refused settles, ${failedCalls.length} failed calls`,
  )
  for (const call of new Set(failedCalls)) report.say(`  ${call}`)
  report.claim(
    `${name}: each job has one effect (${effects}; without ${without.length}, twice ${twice.length})`,
    without.length === 0 && twice.length === 0 && effects === jobs,
  )
  report.claim(`${name}: as many jobs have completed (${processed}; dead ${left})`, processed === jobs && left === 0)
  report.claim(`${name}: all fits together after the effects ${findings.join(' · ')}`.trim(), findings.length === 0)
}
