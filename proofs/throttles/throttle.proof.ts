/**
 * Proof: whatever the rules, arrivals and claims, and however wrong the clocks of eight processes are, no closed window
 * holds more starts than its limit, and none fewer than it may. The same judge finds out two throttles that are written
 * wrong.
 */

import { startRedis } from 'millrace/store-testing'
import { writeFileClock } from '#src/store-testing/harness/file-clock.js'
import { postgresHarness } from '#src/store-testing/harness/postgres-harness.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { defaultStartAt } from '#src/store-testing/harness/store-harness.js'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { ThrottleCrew } from './throttle-crew.js'
import { memoryContestant } from './throttle-memory.js'
import { planOf, processes } from './throttle-plan.js'
import { clientInstants, fixedWindows } from './throttle-rivals.js'
import { type Contestant, carriedOut } from './throttle-run.js'

export const seed = 800_000

const runs = Number(process.env['RUNS'] ?? 1_000)
const hourMs = 3_600_000
/** From an hour behind to an hour ahead. */
const skewsMs = Array.from({ length: processes }, (_, i) => Math.round((i / (processes - 1)) * 2 * hourMs) - hourMs)

export async function prove(report: Report): Promise<Summary> {
  const figures: Record<string, unknown> = {}
  const keeps = async (what: string, contestant: Contestant) => {
    const sums = await allRuns(contestant)
    report.say(`${what}: ${runs} runs, ${sums.started} starts`)
    report.claim(`${what}: no closed window holds more than its limit (${sums.violations})`, sums.violations === 0)
    report.claim(`${what}: as many start as may (other numbers: ${sums.deviations})`, sums.deviations === 0)
    figures[what] = sums
  }
  const memory = memoryContestant()
  await keeps('memory, eight claimers in one process', memory)
  await memory.close()

  const sqlite = await sqliteHarness()
  const { file, clockUrl, clockFile } = sqlite
  const onSqlite = await ThrottleCrew.start({ kind: 'sqlite', file, clockUrl }, skewsMs, (now) =>
    writeFileClock(clockFile, now),
  )
  await keeps('SQLite, eight processes', onSqlite)
  await onSqlite.end()
  await sqlite.close()

  const postgres = await PostgresServer.start()
  const onServer = await postgresHarness(postgres.url)()
  let at = defaultStartAt
  const moveServer = async (now: number) => {
    await onServer.advance(now - at)
    at = now
  }
  const words = { kind: 'postgres', url: postgres.url, schema: onServer.schema } as const
  const onPostgres = await ThrottleCrew.start(words, skewsMs, moveServer)
  await keeps('Postgres, eight processes', onPostgres)
  await onPostgres.end()
  await onServer.close()
  await postgres.stop()

  const server = await startRedis()
  report.say(`the server: ${await redisVersion(server)}`)
  const onRedis = await ThrottleCrew.start({ kind: 'redis', url: server.url, namespace: 'throttle' }, skewsMs)
  await keeps('Redis, eight processes', onRedis)
  await onRedis.end()
  await server.stop()

  for (const [what, rival] of [
    ['a fixed window', fixedWindows()],
    ['the instant of whoever asks', clientInstants(skewsMs)],
  ] as const) {
    const sums = await allRuns(rival)
    report.claim(`${what} is found out: ${sums.violations} windows hold too many`, sums.violations > 0)
    figures[what] = sums
  }
  return figures
}

async function allRuns(contestant: Contestant): Promise<{ started: number; violations: number; deviations: number }> {
  const sums = { started: 0, violations: 0, deviations: 0 }
  for (let run = 0; run < runs; run += 1) {
    const verdict = await carriedOut(planOf(seed + run, `run-${run}`), contestant)
    sums.started += verdict.started
    sums.violations += verdict.violations
    sums.deviations += verdict.deviations
  }
  return sums
}
