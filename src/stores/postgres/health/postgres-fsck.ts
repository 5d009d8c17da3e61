/**
 * The fsck of a Postgres store: whether its rows fit together. Each look is one statement, so that it sees one state of the
 * database while work goes on. It only reads.
 */

import { hasCode, UnknownQueueError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import type { FsckFinding } from '../../contract/store-health.js'
import { error, foundIn, inPlace, listed, warning } from '../../rules/findings.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { heldUs } from '../ordered/shard-claim.js'
import { inSchema } from '../schema/sql-function.js'

/** The jobs that run and have no claim, of queue `$1`. */
export const claimless = `SELECT j.id, j.fence FROM @.job j WHERE j.qid = $1 AND j.fence > 0 AND NOT EXISTS (SELECT FROM @.bunch b WHERE b.fence = j.fence)`

/** The claims of queue `$1` that do not know their jobs: how many they are, and between which places. What has left them is still counted. */
export const lostClaims = `SELECT b.fence FROM @.bunch b CROSS JOIN LATERAL (SELECT count(*) + (SELECT count(*) FROM @.bunch_left l
      WHERE l.qid = b.qid AND l.fence = b.fence) AS n, min(stamp) AS lo, max(stamp) AS hi, min(rank) AS lo_rank,
    max(rank) AS hi_rank FROM @.job j WHERE j.qid = b.qid AND j.fence = b.fence) j
  WHERE b.qid = $1 AND (j.n <> b.n OR j.lo < b.lo OR j.hi > b.hi OR j.lo_rank < b.lo_rank OR j.hi_rank > b.hi_rank)`

/** Of a row `s` of `join_set`: the ends that its counters say. */
export const countedEnds = `SELECT count(*) FILTER (WHERE fate = 0) AS completed, count(*) FILTER (WHERE fate = 1) AS dead,
  count(*) FILTER (WHERE fate = 2) AS cancelled, count(*) FILTER (WHERE fate = 3) AS expired FROM @.join_end e WHERE e.sid = s.sid`

/** The joins of queue `$1` whose counters of ends are wrong. */
export const miscounted = `SELECT DISTINCT j.id FROM @.join_job j JOIN @.join_set s USING (jid) CROSS JOIN LATERAL (${countedEnds}) c
  WHERE j.qid = $1 AND (c.completed, c.dead, c.cancelled, c.expired) IS DISTINCT FROM (s.completed, s.dead, s.cancelled, s.expired)`

/**
 * Each: its level; what is wrong, before the ids; the harm, which names `--repair` if that mends it; and the SQL that finds
 * rows with `id`, of the queue `$1`.
 */
const breaches: readonly (readonly ['error' | 'warning', wrong: string, harm: string, sql: string])[] = [
  ['error', 'run under no claim', 'Nobody takes them back. Run fsck --repair.', `SELECT id FROM (${claimless}) x`],
  [
    'error',
    'claims do not know all of their jobs',
    'Some may never be taken back after a crash. Run fsck --repair.',
    `SELECT fence::text AS id FROM (${lostClaims}) x`,
  ],
  [
    'error',
    'run, and their fences are higher than the last that was given',
    'It would be given again: a lost lease could settle. Run fsck --repair.',
    'SELECT id FROM @.job WHERE qid = $1 AND fence > (SELECT last_value FROM @.fence_seq)',
  ],
  [
    'error',
    'have no payloads',
    'A worker that claims them finds nothing to do. Delete them, and enqueue them again.',
    `SELECT id FROM @.job j WHERE qid = $1 AND head IS NOT NULL AND updated_ms < @.us() / 1000 - ${Math.ceil(heldUs / 100)}
       AND NOT EXISTS (SELECT FROM @.payload p WHERE p.head = j.head)
     UNION ALL SELECT id FROM @.ended e WHERE qid = $1 AND head IS NOT NULL AND NOT EXISTS (SELECT FROM @.payload p WHERE p.head = e.head)`,
  ],
  [
    'error',
    'wait for a signal, but the store does not say which',
    'They wait for ever. Delete them, and enqueue them again.',
    `SELECT id FROM @.job j WHERE qid = $1 AND flags & 128 > 0 AND fence = 0
       AND NOT EXISTS (SELECT FROM @.signal_wait w WHERE w.id = j.id AND w.qid = j.qid)`,
  ],
  [
    'error',
    'wait for other jobs, but the store does not say which',
    'They wait for ever. Delete them, and enqueue them again.',
    `SELECT id FROM @.job j WHERE qid = $1 AND flags & 32 > 0 AND pool = -1 AND NOT EXISTS (SELECT FROM @.join_job x WHERE x.id = j.id AND x.qid = j.qid)`,
  ],
  [
    'error',
    'count the ends of their members wrongly',
    'They may start too early, or never. Run fsck --repair.',
    miscounted,
  ],
]

/** The counters of a queue, and how they are counted. */
const counters = [
  ['waiting', 'SELECT count(*) FROM @.job WHERE qid = $1 AND fence = 0'],
  ['retries', 'SELECT count(*) FROM @.job WHERE qid = $1 AND fence = 0 AND pool >= 0 AND attempt > 1'],
  ['dead', 'SELECT count(*) FROM @.ended WHERE qid = $1 AND state = 4'],
] as const

/** Takes a queue. The difference of each counter, counted less said. */
export const countDrift = `SELECT ${counters
  .map(([name, sql]) => `(${sql}) - coalesce((SELECT sum(${name}) FROM @.tally WHERE qid = $1), 0) AS ${name}`)
  .join(', ')}`

/** Rows that belong to nothing: their name, the harm, and the SQL that counts them. */
const strays: readonly (readonly [what: string, harm: string, sql: string])[] = [
  [
    'payloads',
    'Nothing but room is lost.',
    `SELECT count(*) FROM @.payload p WHERE NOT EXISTS (SELECT FROM @.job j WHERE j.head = p.head) AND NOT EXISTS (SELECT FROM @.ended e WHERE e.head = p.head)`,
  ],
  ...(['checkpoint', 'step', 'signal_wait'] as const).map((table): readonly [string, string, string] => [
    { checkpoint: 'checkpoints, logs and fields', step: 'steps and signals', signal_wait: 'waits for signals' }[table],
    'A new job with the same id could get one of them.',
    `SELECT count(*) FROM @.${table} x WHERE NOT EXISTS (SELECT FROM @.job j WHERE j.id = x.id AND j.qid = x.qid)
       AND NOT EXISTS (SELECT FROM @.ended e WHERE e.id = x.id AND e.qid = x.qid)`,
  ]),
]

const countStrays = `SELECT ${strays.map(([, , sql]) => `(${sql})`).join(', ')}`

/** The part of a connection that a check needs. */
type CheckedConnection = Pick<PostgresConnection, 'schema' | 'query'>

/** A queue, or a shard of one. */
interface CheckedQueue {
  readonly qid: number
  readonly name: string
  readonly what: string
}

/** The queues to look at. Throws `UnknownQueueError` for one that is not stored. */
export async function checkedQueues(connection: CheckedConnection, only?: string): Promise<CheckedQueue[]> {
  const rows = (await connection.query(
    inSchema('SELECT qid, name, shard, shards FROM @.queue ORDER BY name, shard < 0, abs(shard)', connection.schema),
    [],
  )) as [qid: number, name: string, shard: number, shards: number][]
  if (only !== undefined && rows.every(([, name]) => name !== only))
    throw new UnknownQueueError(only, [...new Set(rows.map(([, name]) => name))])
  return rows
    .filter(([, name]) => only === undefined || name === only)
    .map(([qid, name, shard, shards]) => ({
      ...{ qid: Number(qid), name },
      what: `queue ${name}${shards === 1 ? '' : shard < 0 ? `, former shard ${-1 - shard}` : `, shard ${shard}`}`,
    }))
}

/** See `StoreHealth.check`. Throws `UnknownQueueError`. */
export async function checkPostgres(connection: CheckedConnection, only?: string): Promise<FsckFinding[]> {
  const ask = async (text: string, values: readonly unknown[]) =>
    connection.query(inSchema(text, connection.schema), values)
  try {
    const queues = await checkedQueues(connection, only)
    const findings: FsckFinding[] = []
    for (const { qid, what } of queues) {
      const found = [...(await driftOf(ask, qid, what)), ...(await breachesOf(ask, qid, what))]
      const [jobs] = found.length > 0 ? [] : await ask('SELECT count(*) FROM @.job WHERE qid = $1', [qid])
      findings.push(...(jobs === undefined ? found : [inPlace(what, Number(jobs[0]))]))
    }
    if (only === undefined) {
      const [counts] = await ask(countStrays, [])
      for (const [i, [what, harm]] of strays.entries()) {
        const count = Number(counts![i])
        if (count > 0) findings.push(warning(what, `${count} belong to no job. ${harm}`))
      }
    }
    return foundIn(findings)
  } catch (failure) {
    if (!hasCode(failure, 'store-corrupt')) throw failure
    return [error('rows', `they cannot be read (${messageOf(failure)}).`)]
  }
}

type Ask = (text: string, values: readonly unknown[]) => Promise<unknown[][]>

async function driftOf(ask: Ask, qid: number, what: string): Promise<FsckFinding[]> {
  const [drift] = await ask(countDrift, [qid])
  const wrong = counters.flatMap(([name], i) => {
    const by = Number(drift![i])
    return by === 0 ? [] : [`${name} ${Math.abs(by)} too ${by > 0 ? 'low' : 'high'}`]
  })
  if (wrong.length === 0) return []
  const text = `it counts ${wrong.join(', ')}. Depths are wrong, and bounds hold too early or too late. Run fsck --repair.`
  return [error(what, text)]
}

async function breachesOf(ask: Ask, qid: number, what: string): Promise<FsckFinding[]> {
  const text = breaches.map(([, , , sql], i) => `SELECT ${i}, id FROM (${sql}) x${i}`).join(' UNION ALL ')
  const rows = (await ask(text, [qid])) as [number, string][]
  return breaches.flatMap(([level, wrong, harm], i): FsckFinding[] => {
    const ids = rows.filter(([breach]) => breach === i).map(([, id]) => id)
    return ids.length === 0 ? [] : [{ level, what, text: `${wrong}${listed(ids)}. ${harm}` }]
  })
}
