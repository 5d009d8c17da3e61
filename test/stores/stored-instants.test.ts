/**
 * The stored instants of SQLite and Redis: each is known by its name, and one until which something lasts is trusted no
 * further than its own rule allows when the wall clock is set back.
 */

import { expect, it, onTestFinished } from 'vitest'
import { readFileClock } from '#src/store-testing/harness/file-clock.js'
import { auditedClient } from '#src/store-testing/harness/redis-audit.js'
import { type SqliteHarness, sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { Store } from '#src/stores/contract/store.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { listIn, textIn } from '#src/stores/redis/client/redis-reply.js'
import { keyTypes, scopeKeys, scopeKeyTypes, workersKey } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { longestExpectMs } from '#src/stores/rules/bounds.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { workerRedis } from '../worker-redis.js'

const windowMs = 10_000
const leaseMs = 30_000
const holdMs = 20_000
const ttlMs = 15_000
/** How long a lead of suspects may take. */
const roomMs = 5_000
const hourMs = 3_600_000

/** Until when something lasts, by the rule that says how long; or why an instant follows the wall clock. */
type Rule = number | 'told' | 'wall'

/** `told`: when something happened, or what orders; nothing waits for it. `wall`: due times and ages, which people see. */
const metaRules: Record<string, Rule> = {
  heldUntil: holdMs,
  shutUntil: windowMs + 1,
  leadAt: leaseMs,
  suspectLeadAt: roomMs,
  sparesUntil: leaseMs,
  seenAt: 0,
  expiringAt: 'wall',
}
const redisRules: Record<string, Rule> = {
  leases: leaseMs,
  shut: Math.max(holdMs, windowMs + 1),
  holds: holdMs,
  calls: 0,
  scheduled: 'wall',
  expiry: 'wall',
  expiring: 'wall',
  'ended-until': 'wall',
  // Nobody waits for longer than that: a later instant is over.
  ends: longestExpectMs,
  ended: 'wall',
  dead: 'wall',
  deaths: 'told',
  joins: 'wall',
  'join-tasks': 'wall',
  // A time to wait is for people, and counts as a due time does.
  steps: 'wall',
  'signal-waits': 'wall',
  morgue: 'wall',
  // What is in transit is brought on at once if the clock was set back: see `transit-lua`.
  transit: 'told',
  ...Object.fromEntries(
    ['ready-list', 'ready', 'suspects', 'jobs', 'claims', 'history', 'notes', 'completed'].map((key) => [key, 'told']),
  ),
  ...Object.fromEntries(['grouped', 'lanes', 'successors', 'joining'].map((key) => [key, 'told'])),
}
/** What holds no instant. */
const timeless = [
  'batches',
  'retries',
  'call-order',
  'meta',
  'wake',
  'turns',
  'running-by-group',
  'payloads',
  'bodies',
  'claimed-payloads',
  'dead-payloads',
  'dead-bodies',
  'joined',
]
/** Those of a throttle move with its recovery: see `rules/throttle/throttle-recovery`. */
const scopeFields = ['recoveredAt', 'lastAt', 'quietUntil']

/** Columns by table; those of the monotonic clock, which nobody can set, have a rule. */
const sqliteRules: Record<string, Record<string, Rule>> = {
  queue: {
    ...{ lead_wake_at: leaseMs, suspect_lead_wake_at: roomMs, held_until: holdMs, shut_until: windowMs + 1 },
    expiring_at: 'wall',
    // A wait that it may concern ends with an error, not with a value: see `client/jobs/result-watcher`.
    ...{ last_stamp: 'told', lost_at: 'wall' },
  },
  job: {
    lease_until: leaseMs,
    ...{ stamp: 'wall', expires_at: 'wall', waited_until: 'wall', successor_stamp: 'wall' },
    ...{
      created_at: 'told',
      updated_at: 'told',
      started_at: 'told',
      finished_at: 'wall',
      successor_created_at: 'told',
    },
  },
  // A time to wait is for people, and counts as a due time does.
  join_job: { run_at: 'wall', late_at: 'wall', seal_by: 'wall', due_at: 'wall' },
  step: { at: 'told', until: 'wall' },
  signal_wait: { until: 'wall' },
  death: { died_at: 'told' },
  lane: { shut_until: Math.max(holdMs, windowMs + 1), held_until: holdMs },
  throttle: { recovered_at: 0, last_at: 0, quiet_until: windowMs + 1, last_wall: 'told' },
  throttle_counter: { last_at: 0 },
  throttle_start: { at: 0 },
  remembered: { until: 'wall', created_at: 'told', stamp: 'told', started_at: 'told', finished_at: 'told' },
  worker: { seen_at: 0, until: ttlMs },
  // A clock that is set back is found by the lead: see `workers/schedule-loop`.
  schedule: { next_at: 'wall', last_at: 'wall', created_at: 'told', updated_at: 'told' },
  live_watch: { until: ttlMs },
  result_wait: { until: longestExpectMs },
  history: { at: 'told' },
}

const throttle = { scope: 'mail', by: 'group', rules: [{ limit: 1, windowMs, moderate: false }] } as const
const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const queues: QueueSettings[] = [
  { ...plain, name: 'mail', throttle },
  { ...plain, name: 'shut', throttle: { ...throttle, scope: 'shut', by: 'queue' } },
  { ...plain, name: 'held' },
  { ...plain, name: 'tried' },
]

/** Leaves an instant of every kind behind. */
async function leaveAll(store: Store, advance: (ms: number) => Promise<void>): Promise<void> {
  await store.open(queues)
  const job = (id: string, group?: string): NewJob => {
    return { id, task: 'send', payload: '{}', priority: 0, rememberMs: 0, ...(group === undefined ? {} : { group }) }
  }
  const add = (queue: string, ...jobs: NewJob[]) => store.enqueue([{ callId: `${queue} ${jobs[0]!.id}`, queue, jobs }])
  const claim = async (queue: string, limit: number, worker: string, lease = leaseMs) =>
    (await store.claim([{ queue, limit }], { worker, leaseMs: lease })).claims
  await add('tried', job('suspect'))
  await claim('tried', 1, 'dead', 1)
  await advance(leaseMs)
  await claim('tried', 0, 'finder')
  // A server that was started anew spares it for one lease more.
  await advance(leaseMs)
  await claim('tried', 0, 'finder')
  await add('tried', { ...job('expiring'), expiresMs: 24 * hourMs })
  await add('mail', ...['x', 'y'].flatMap((group) => [job(`${group}1`, group), job(`${group}2`, group)]))
  await add('shut', job('a'), job('b'))
  await add('held', job('a', 'x'), job('b', 'y'), job('c'))
  const own = await claim('held', 3, 'busy')
  const release = (of: 'queue' | 'group', n: number) => {
    const { id, fence } = own[n]!
    return { queue: 'held', id, fence, kind: 'release', delayMs: 0, hold: { of, forMs: holdMs } } as const
  }
  await store.settle([release('group', 0), release('queue', 1)])
  for (const queue of ['mail', 'shut', 'held']) {
    const claims = await claim(queue, 9, 'busy')
    if (claims.length > 0) await store.extend(claims.map(({ id, fence }) => ({ queue, id, fence, leaseMs })))
    await claim(queue, 9, 'idle')
  }
  const process = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, queues: [], concurrency: 1, running: 0 }
  await store.workers!.beat({ ...process, id: 'dead', startedAt: 0 }, ttlMs)
}

/** What goes on after the step. */
async function goOn(store: Store): Promise<void> {
  for (const { name } of queues) await store.claim([{ queue: name, limit: 0 }], { worker: 'later', leaseMs })
  const process = { host: 'h', boot: 'b', pidns: 'n', pid: 2, ticks: 1, queues: [], concurrency: 1, running: 0 }
  await store.workers!.beat({ ...process, id: 'later', startedAt: 0 }, ttlMs)
  await store.workers!.list()
}

it('every Redis key is known to hold instants of one kind, or none', () => {
  const known = [...Object.keys(redisRules), ...timeless]
  expect(Object.keys(keyTypes).sort()).toEqual(known.sort())
})

it('on Redis every instant expires within its own rule after the clock was set back', async () => {
  const { url } = await workerRedis()
  const namespace = `instants-${process.pid}`
  const eyes = openRedisClient(redisAddress(url))
  let now = 1_700_000_000_000
  let run = 1
  const info = () => `run_id:${run}\r\nuptime_in_seconds:0\r\nsecond_repl_offset:-1\r\n`
  const store = new RedisStore({
    client: auditedClient(openRedisClient(redisAddress(url)), namespace, () => now, info),
    namespace,
  })
  for (const one of [store, eyes]) onTestFinished(() => one.close())
  await leaveAll(store, async (ms) => {
    now += ms
    // So that leases of a server that was started anew are spared.
    if (run === 1) run = 2
  })
  now -= hourMs
  await goOn(store)

  const late: string[] = []
  const seen = new Set<string>()
  const look = (what: string, at: number, rule: Rule) => {
    seen.add(what)
    if (typeof rule === 'number' && at > now + rule) late.push(`${what}: ${at - now} ms`)
  }
  const pairs = async (command: string, ...args: string[]) => {
    const flat = listIn(await eyes.command(command, args))
    return flat.flatMap((one, i) => (i % 2 === 0 ? [[one as Buffer, flat[i + 1] as Buffer] as const] : []))
  }
  for (const { name } of queues) {
    const key = (of: string) => `{${namespace}:${name}}:${of}`
    for (const [field, value] of await pairs('HGETALL', key('meta'))) {
      const named = textIn(field)
      if (/(?:At|Until)$/.test(named)) expect(Object.keys(metaRules)).toContain(named)
      if (metaRules[named] !== undefined) look(named, Number(textIn(value)), metaRules[named])
    }
    for (const of of ['leases', 'shut', 'holds'])
      for (const [, score] of await pairs('ZRANGE', key(of), '0', '-1', 'WITHSCORES'))
        look(of, Number(textIn(score)), redisRules[of]!)
    for (const [, call] of await pairs('HGETALL', key('calls')))
      look('calls', call.readUIntBE(0, 6), redisRules['calls']!)
  }
  for (const scope of ['mail', 'shut'])
    for (const [field, value] of await pairs('HGETALL', scopeKeys(namespace, scope)[0]!)) {
      const named = textIn(field)
      if (/(?:At|Until)$/.test(named)) expect(scopeFields).toContain(named)
      if (scopeFields.includes(named)) look(named, Number(textIn(value)), named === 'quietUntil' ? windowMs + 1 : 0)
    }
  for (const [, record] of await pairs('HGETALL', workersKey(namespace)))
    look('workers', record.readUIntBE(6, 6), ttlMs)

  expect(late).toEqual([])
  const kept = ['leases', 'shut', 'holds', 'calls', 'workers', ...scopeFields]
  expect([...seen].sort()).toEqual([...Object.keys(metaRules), ...kept].sort())
  expect(Object.keys(scopeKeyTypes)).toEqual(['rules', 'starts', 'counters', 'idle'])
}, 120_000)

it('on SQLite every instant is known, and none lasts longer if the wall clock is set back', async () => {
  const harness: SqliteHarness = await sqliteHarness()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  await leaveAll(store, (ms) => harness.advance(ms))
  await harness.step(-hourMs)
  await goOn(store)
  const db = (await loadDriver())(harness.file)
  onTestFinished(() => db.close())
  const { now, mono } = readFileClock(harness.clockFile)

  const columns = db
    .prepare(
      "SELECT m.name AS tab, c.name AS col FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name <> 'audit'",
    )
    .all() as { tab: string; col: string }[]
  const instants = columns.filter(({ col }) => /(?:^|_)(?:at|until|stamp|wall)$/.test(col))
  const unknown = instants.filter(({ tab, col }) => sqliteRules[tab]?.[col] === undefined)
  expect(unknown).toEqual([])
  const late = instants.flatMap(({ tab, col }) => {
    const rule = sqliteRules[tab]![col]!
    if (typeof rule !== 'number') return []
    const { most } = db.prepare(`SELECT max(${col}) AS most FROM ${tab}`).get() as { most: number | null }
    return most !== null && most > (tab === 'worker' ? now : mono) + rule ? [`${tab}.${col}: ${most}`] : []
  })
  expect(late).toEqual([])
})
