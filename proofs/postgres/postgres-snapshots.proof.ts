/**
 * Whether a transaction that somebody keeps open slows down work on Postgres. It needs an idle machine. While 800 jobs a second come
 * and are worked off, one transaction reads an old snapshot, so that no dead row of the store can be removed, and another has enqueued a
 * job and does not commit. Claims take at most twice as long as before, nothing piles up, and every job runs once.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'
import pg from 'pg'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import type { Store } from '#src/stores/contract/store.js'
import type { Report, Summary } from '../report.js'

/** Nothing is drawn at random. */
export const seed = 0

const perSecond = 800
/** How long the transactions stay open; `SNAPSHOT_SECONDS=3600` is an hour. */
const openSeconds = Number(process.env['SNAPSHOT_SECONDS'] ?? 300)
const warmSeconds = 20
/** Compared are as many seconds before, and the last ones of the open transactions. */
const seconds = 30

const mostSlowdown = 2
/** The jobs of a second. */
const mostWaiting = perSecond

interface Seen {
  readonly claimMs: number
  /** From the enqueue to the start. */
  readonly p50: number
  readonly p99: number
  readonly waiting: number
}

export async function prove(report: Report): Promise<Summary> {
  const server = await PostgresServer.start({ settings: { fsync: 'on', autovacuum: 'on', autovacuum_naptime: '5s' } })
  const latencies: number[] = []
  const runs = new Map<string, number>()
  const tick = defineTask({
    name: 'tick',
    queue: 'ticks',
    run: async ({ at }: { readonly at: number }, { job }) => {
      latencies.push(performance.now() - at)
      runs.set(job.id, (runs.get(job.id) ?? 0) + 1)
    },
  })
  const mill = millrace({ store: server.url, tasks: [tick], queues: { ticks: { retention: { results: 'none' } } } })
  const outer = millrace({ store: server.url, tasks: [tick], queues: { ticks: {} } })
  const [reader, writer, eyes] = [0, 1, 2].map(() => new pg.Client(server.url)) as [pg.Client, pg.Client, pg.Client]
  let enqueued = 0
  try {
    for (const client of [reader, writer, eyes]) await client.connect()
    await outer.ready()
    const parts = mill as unknown as { readonly adminParts: { connect(): Promise<Store> } }
    const claims = timedClaims(await parts.adminParts.connect())
    await mill.worker({ concurrency: 50 }).start()
    report.say(`the server: Postgres ${(await eyes.query('SHOW server_version')).rows[0].server_version}`)

    /** Jobs come at their time, even if earlier ones have not been accepted, for so long. */
    const load = async (forSeconds: number): Promise<Seen> => {
      claims.length = latencies.length = 0
      const [startedAt, jobs] = [performance.now(), forSeconds * perSecond]
      const accepted: Promise<unknown>[] = []
      for (let i = 0; i < jobs; i += 1) {
        const wait = startedAt + (i * 1_000) / perSecond - performance.now()
        if (wait > 0) await delay(wait)
        accepted.push(mill.enqueue(tick, { at: performance.now() }))
      }
      await Promise.all(accepted)
      enqueued += jobs
      const { ready } = await mill.queue('ticks').depth()
      return { claimMs: at(claims, 0.5), p50: at(latencies, 0.5), p99: at(latencies, 0.99), waiting: ready }
    }
    await load(warmSeconds)
    const before = await load(seconds)
    say(report, 'without', before)

    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT count(*) FROM millrace.queue')
    await writer.query('BEGIN')
    await outer.enqueueIn(writer, tick, { at: performance.now() }, { id: 'not yet' })
    for (let left = openSeconds - seconds; left > 0; left -= 60) {
      const seen = await load(Math.min(60, left))
      say(report, `open for ${openSeconds - left + Math.min(60, left)} s`, seen)
    }
    const during = await load(seconds)
    say(report, `open for ${openSeconds + (openSeconds > seconds ? 0 : seconds)} s`, during)
    const { rows } = await eyes.query(
      "SELECT sum(n_dead_tup)::int AS dead FROM pg_stat_user_tables WHERE schemaname = 'millrace'",
    )
    report.say(`— dead rows that nobody may remove: ${rows[0].dead}`)
    const slowdown = during.claimMs / before.claimMs
    report.claim(
      `claims take at most ${mostSlowdown} times as long, by their median: ${slowdown.toFixed(2)}`,
      slowdown <= mostSlowdown,
    )
    report.claim(
      `at most ${mostWaiting} jobs wait, those of a second: ${during.waiting}`,
      during.waiting <= mostWaiting,
    )
    report.claim('the job of the open transaction has not begun', !runs.has('not yet'))
    await writer.query('COMMIT')
    await reader.query('COMMIT')
    enqueued += 1
    while ((await mill.queue('ticks').depth()).processed < enqueued) await delay(50)
    report.claim(`each of ${enqueued} jobs has run: ${runs.size}`, runs.size === enqueued)
    const twice = [...runs.values()].filter((count) => count > 1).length
    report.claim(`none has run twice: ${twice}`, twice === 0)
    return { before, during, slowdown, dead: rows[0].dead, enqueued }
  } finally {
    await mill.close()
    await outer.close()
    for (const client of [reader, writer, eyes]) await client.end()
    await server.stop()
  }
}

/** The ms of every claim that has granted jobs, from now on. */
function timedClaims(store: Store): number[] {
  const took: number[] = []
  const claim = store.claim.bind(store)
  store.claim = async (...asked) => {
    const startedAt = performance.now()
    const answer = await claim(...asked)
    if (answer.claims.length > 0) took.push(performance.now() - startedAt)
    return answer
  }
  return took
}

function at(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN
}

function say(report: Report, when: string, { claimMs, p50, p99, waiting }: Seen): void {
  report.say(
    `— ${when}: a claim ${claimMs.toFixed(2)} ms (median); from enqueue to start ${p50.toFixed(2)} ms (median), ${p99.toFixed(1)} ms (p99); ${waiting} wait`,
  )
}
