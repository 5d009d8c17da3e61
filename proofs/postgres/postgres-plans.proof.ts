/**
 * Proof: what a call of a Postgres store touches does not grow with the store. Statistics are those of empty tables: they were taken
 * before the first job came, and nobody takes others. The calls are measured among 10,000 jobs and among 1,000,000, on a
 * connection whose plans were made among 200, and on a new one. `JOBS` in the environment changes the number. It takes about ten
 * minutes.
 */

import pg from 'pg'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import type { Report, Summary } from '../report.js'
import { measuredCalls } from './measured-calls.js'
import { explaining, type Touched, TouchedBuffers } from './touched-buffers.js'

export const seed = 0

/** The plans of a connection are made among the first jobs. */
const [first, few] = [200, 10_000]
const jobs = Number(process.env['JOBS'] ?? 1_000_000)
const perCall = 10_000
/** So many jobs run all along. */
const [running, perClaim] = [500, 250]
const by = { worker: 'w', leaseMs: 3_600_000 }
/** An index of a million rows is two or three pages deeper than one of a thousand. */
const [mostTimes, mostMore] = [4, 100]
const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const queues: QueueSettings[] = [
  { ...plain, name: 'mail' },
  {
    ...plain,
    name: 'sites',
    throttle: { scope: 'sites', by: 'group', rules: [{ limit: 1_000, windowMs: 3_600_000, moderate: false }] },
  },
  { ...plain, name: 'entities', kind: 'ordered' },
]

export async function prove(report: Report): Promise<Summary> {
  const server = await PostgresServer.start({ settings: { ...explaining, autovacuum: 'off', shared_buffers: '512MB' } })
  const touched = new TouchedBuffers()
  const eyes = new pg.Client(server.url)
  const opened = () => new PostgresStore({ address: postgresAddress(server.url), mostClaimBytes: 1e9 })
  const [old, fresh] = [opened(), opened()]
  try {
    await eyes.connect()
    await old.open(queues)
    await eyes.query('ANALYZE')
    await fill(eyes, old, 0, first)
    await measuredCalls(touched, old, eyes, 'first')
    await fill(eyes, old, first, few)
    for (let n = 0; n < running; n += perClaim) await old.claim([{ queue: 'mail', limit: perClaim }], by)
    const small = await measuredCalls(touched, old, eyes, 'small')
    await fill(eyes, old, few, jobs)
    const { rows } = await eyes.query('SELECT count(*)::int AS jobs FROM millrace.job')
    report.say(`${rows[0].jobs} jobs in the store`)
    const kept = await measuredCalls(touched, old, eyes, 'old')
    await fresh.open(queues)
    const made = await measuredCalls(touched, fresh, eyes, 'fresh')
    for (const [call, { buffers }] of small) judge(report, call, buffers, kept.get(call)!, made.get(call)!)
    return { jobs: rows[0].jobs, small: plainly(small), old: plainly(kept), fresh: plainly(made) }
  } finally {
    await Promise.all([old.close(), fresh.close()])
    await eyes.end().catch(() => {})
    await server.stop()
  }
}

function judge(report: Report, call: string, few: number, kept: Touched, made: Touched): void {
  const most = Math.max(kept.buffers, made.buffers)
  report.claim(
    `${call}: ${few} buffers among few jobs, ${kept.buffers} among many by old plans, ${made.buffers} by new ones`,
    few > 0 && most <= few * mostTimes + mostMore,
  )
  const { worst, worstBuffers } = kept.buffers > made.buffers ? kept : made
  if (most > few * mostTimes + mostMore) report.say(`  ${worstBuffers} by: ${worst}`)
}

function plainly(calls: ReadonlyMap<string, Touched>): Record<string, number> {
  return Object.fromEntries([...calls].map(([call, { buffers }]) => [call, buffers]))
}

/**
 * Jobs with the numbers from … to: four fifths of them plain, of which a tenth is due tomorrow and a twentieth may expire; a tenth in
 * groups of a throttled queue; a tenth ordered ids, with two payloads each. As many as a tenth lie dead beside them.
 */
async function fill(eyes: pg.Client, store: PostgresStore, from: number, to: number): Promise<void> {
  const { rows } = await eyes.query('SELECT name, qid FROM millrace.queue')
  const qid = (name: string) => rows.find((row) => row.name === name).qid
  await eyes.query("SET client_min_messages = 'warning'; SET auto_explain.log_min_duration = -1")
  for (let at = from; at < to; at += perCall) {
    const end = Math.min(to, at + perCall)
    await enqueue(eyes, qid('mail'), `g % 10 NOT IN (8, 9)`, 'NULL', at, end)
    await enqueue(eyes, qid('sites'), `g % 10 = 8`, `array_agg('group-' || g % 1000)`, at, end)
    const ids = Array.from({ length: Math.ceil((end - at) / 10) }, (_, n) => `entity-${at / 10 + n}`)
    for (const score of [1, 2])
      await store.enqueue([
        {
          ...{ callId: `fill-${at}-${score}`, queue: 'entities' },
          jobs: ids.map((id) => ({ id, task: 't', payload: String(score), priority: 0, rememberMs: 0, score })),
        },
      ])
  }
  await eyes.query(
    `INSERT INTO millrace.ended (qid, state, rank, attempt, crashes, stamp, created_ms, finished_ms, remember_ms, id, task, payload, error, reason)
      SELECT $1, 4, 0, 1, 0, stamp, created_ms, created_ms, 0, 'dead-' || id, 't', '{}', 'an error', 'max-retries' FROM millrace.job
      WHERE qid = $1 ORDER BY seq DESC LIMIT $2`,
    [qid('mail'), (to - from) / 10],
  )
}

/** Of plain jobs, by the function that the store calls. */
async function enqueue(eyes: pg.Client, qid: number, where: string, groups: string, from: number, to: number) {
  await eyes.query(
    `SELECT millrace.enqueue_1(p_q => $1, p_ids => array_agg('job-' || g), p_tasks => array_agg('t'::text), p_payloads => array_agg('{}'::text),
      p_codecs => NULL, p_metas => NULL, p_ranks => array_agg(-(g % 3)::int), p_delays => array_agg(CASE g % 10 WHEN 0 THEN 86400000000 END),
      p_runs => NULL, p_expires => array_agg(CASE g % 20 WHEN 1 THEN 86400000::bigint END), p_remember => NULL,
      p_weights => array_agg(2), p_places => NULL, p_replaces => NULL, p_grps => ${groups}, p_fields => NULL, p_reports => NULL, p_new => true,
      p_calls => ARRAY['fill-' || $2::text], p_counts => ARRAY[count(*)::int])
      FROM generate_series($2::int, $3::int - 1) g WHERE ${where}`,
    [qid, from, to],
  )
}
