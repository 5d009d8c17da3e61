/**
 * Proof: the Postgres store works through PgBouncer in transaction mode, with the address of the server for notifications. The
 * whole contract of stores runs on three connections that all share; then producers and workers, some of which are killed, while
 * connections of the pooler are terminated and the server is stopped at once. It takes about five minutes.
 */

import { runContractCase, storeContract } from 'millrace/store-testing'
import { postgresHarness } from '#src/store-testing/harness/postgres-harness.js'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { reportCrashes } from './crash-report.js'
import { drillCrashes } from './crashes-drill.js'
import { startPgBouncer } from './pgbouncer.js'

export const seed = 20_261_131

const connections = 3

export async function prove(report: Report): Promise<Summary> {
  const contract = await wholeContract(report)
  const plan = {
    jobs: 20_000,
    workers: 4,
    producers: 2,
    kills: { workers: 8, producers: 2 },
    stops: 1,
    terminations: 20,
  }
  const outcome = await drillCrashes({
    ...plan,
    random: seededRandom(seed),
    withinMs: 600_000,
    behind: (server) => startPgBouncer(server, connections),
  })
  return { contract, load: reportCrashes(report, outcome) }
}

async function wholeContract(report: Report): Promise<Summary> {
  const server = await PostgresServer.start()
  const pooler = await startPgBouncer(server, connections)
  try {
    report.say(`PgBouncer ${pooler.version} in transaction mode, ${connections} connections to the server`)
    const makeHarness = postgresHarness(pooler.url, server.url)
    let [passed, skipped] = [0, 0]
    const failed: string[] = []
    for (const one of storeContract.flatMap(({ cases }) => cases)) {
      try {
        if ((await inTime(() => runContractCase(makeHarness, one))) === undefined) passed += 1
        else skipped += 1
      } catch (error) {
        failed.push(one.title)
        report.say(`failed: '${one.title}': ${(error as Error).message.split('\n').slice(0, 8).join(' ')}`)
      }
    }
    report.say(`the contract of stores: ${passed} cases pass, ${skipped} are skipped as without a pooler`)
    report.claim(
      `each case of the contract passes through it (${failed.length} do not)`,
      failed.length === 0 && passed > 0,
    )
    return { passed, skipped, failed }
  } finally {
    await pooler.stop()
    await server.stop()
  }
}

/** A case that waits for a ring has 5 s for it. On a machine that others use it may need more, so it is tried thrice. */
async function inTime<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (tries === 3 || !/it took longer than/.test((error as Error).message)) throw error
    }
  }
}
