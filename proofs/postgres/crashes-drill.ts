/**
 * The crashes: producers and workers on a Postgres that is stopped at once and started again under them, whose backends are
 * terminated, and of whom many are killed.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { attack } from '../attack.js'
import { Crew } from '../crew.js'
import { effectLines } from '../everything/effect-lines.js'
import { LastingProcess } from '../lasting-process.js'
import { type CrashJudgement, crashJudgement } from './crash-judge.js'
import { ordered, plain, queues } from './crash-mill.js'
import { asked } from './postgres-pair.js'

/** What all processes of a drill reach the server through. */
export interface CrashPlace {
  readonly url: string
  /** The server that takes writes now. Absent: the one that there was at first. */
  readonly server?: PostgresServer
  /** Absent: the server is stopped at once, and started again on its data after at most a second. */
  crash?(): Promise<void>
  stop(): Promise<void>
}

export interface CrashPlan {
  /** Plain jobs; of ordered payloads there are about a fifth as many more. */
  readonly jobs: number
  readonly workers: number
  readonly producers: number
  readonly kills: { readonly workers: number; readonly producers: number }
  /** How often the server is stopped at once. */
  readonly stops: number
  /** How often one of the backends of the store is terminated. */
  readonly terminations: number
  /** Absent: all processes reach the server itself. */
  readonly behind?: (server: PostgresServer) => Promise<CrashPlace>
  readonly random: () => number
  readonly withinMs: number
}

export interface CrashOutcome extends CrashJudgement {
  readonly seconds: number
  readonly version: string
  readonly kills: CrashPlan['kills']
  readonly stops: number
  readonly terminations: number
  readonly refused: number
  readonly failedCalls: Readonly<Record<string, number>>
  /** Dead jobs, and findings of fsck other than `ok`. */
  readonly dead: number
  readonly findings: readonly string[]
}

/** The time for which a stopped server is away, at most. */
const awayMs = 1_000
const lookMs = 50

export async function drillCrashes(plan: CrashPlan): Promise<CrashOutcome> {
  const server = await PostgresServer.start({ settings: { fsync: 'on', full_page_writes: 'on' } })
  const place: CrashPlace = (await plan.behind?.(server)) ?? server
  const { url } = place
  const primary = () => place.server ?? server
  const folder = mkdtempSync(join(tmpdir(), 'millrace-crashes-'))
  const mill = millrace({ store: url, tasks: [plain, ordered], queues })
  const crew = new Crew('postgres/crash-worker.ts', [url, folder])
  const startedAt = performance.now()
  const producers: LastingProcess[] = []
  const done = { workers: 0, producers: 0, stops: 0, terminations: 0 }
  const { random, jobs, kills } = plan
  /** Resolves to the number of dead jobs. Asks again while the server is away. */
  const until = async (isSo: (depth: { processed: number; left: number }) => boolean): Promise<number> => {
    for (;;) {
      const depths = await mill.depths([plain.queue, ordered.queue]).catch(() => undefined)
      const left = (depths ?? []).reduce((sum, { ready, scheduled, running }) => sum + ready + scheduled + running, 0)
      if (depths !== undefined && isSo({ processed: depths[0]!.processed, left }))
        return depths.reduce((sum, { dead }) => sum + dead, 0)
      if (performance.now() > startedAt + plan.withinMs)
        throw new Error(`not so within ${plan.withinMs} ms: ${isSo}; ${JSON.stringify(depths)}`)
      await delay(lookMs)
    }
  }
  const counted = (times: number, what: keyof typeof done, make: () => Promise<unknown>) => ({
    times,
    async make() {
      await make()
      done[what] += 1
    },
  })
  const reached = async (share: number) => void (await until(({ processed }) => processed >= share * jobs))
  try {
    await mill.ready()
    const version = await versionOf(server)
    await Promise.all(Array.from({ length: plan.workers }, () => crew.start()))
    for (let i = 0; i < plan.producers; i += 1)
      producers.push(new LastingProcess(join(import.meta.dirname, 'crash-producer.ts'), [url, folder, `p${i}`], {}))
    const anyProducer = () => producers[Math.floor(random() * producers.length)]!
    await Promise.all([
      attack([{ ...counted(kills.workers, 'workers', () => crew.killOne(random)), lasts: true }], random, reached),
      attack([counted(kills.producers, 'producers', () => anyProducer().kill())], random, reached),
      attack([counted(plan.terminations, 'terminations', () => terminateOne(primary()))], random, reached),
      attack([counted(plan.stops, 'stops', () => place.crash?.() ?? stopAtOnce(server, random))], random, reached),
    ])
    await reached(1)
    await Promise.all(producers.map((producer) => producer.end()))
    const dead = await until(({ left }) => left === 0)
    await crew.end()
    const check = (await (await mill.health())?.check()) ?? []
    return {
      ...crashJudgement(effectLines(folder)),
      seconds: (performance.now() - startedAt) / 1_000,
      ...{ version, dead, refused: crew.refused, failedCalls: counts(crew.failedCalls) },
      kills: { workers: done.workers, producers: done.producers },
      ...{ stops: done.stops, terminations: done.terminations },
      findings: check.filter(({ level }) => level !== 'ok').map(({ text }) => text),
    }
  } finally {
    crew.kill()
    for (const producer of producers) {
      producer.isDone = true
      await producer.kill()
    }
    await mill.close()
    await place.stop()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** As `pg_ctl stop -m immediate` does: what is in memory alone is lost. */
async function stopAtOnce(server: PostgresServer, random: () => number): Promise<void> {
  await server.kill()
  await delay(random() * awayMs)
  await server.restart()
}

async function terminateOne(server: PostgresServer): Promise<void> {
  await asked(
    server,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millrace' ORDER BY random() LIMIT 1`,
  ).catch(() => {})
}

async function versionOf(server: PostgresServer): Promise<string> {
  const [row] = await asked(server, 'SHOW server_version')
  return row!['server_version']!
}

function counts(calls: readonly string[]): Record<string, number> {
  const times: Record<string, number> = {}
  for (const call of calls) {
    const name = call.split(':')[0]!
    times[name] = (times[name] ?? 0) + 1
  }
  return times
}
