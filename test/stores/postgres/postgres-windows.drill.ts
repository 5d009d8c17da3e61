/** A throttled queue of a Postgres store under four processes, whose starts are judged by a ledger of their own. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { postgresStore } from 'millrace'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../../cli/project.js'
import { workerPostgres } from '../../worker-postgres.js'

const windowMs = 400
const limit = 3
const groups = 6
const jobsEach = 30
const total = groups * jobsEach

/** Claims until nothing is left. A start is entered with the instant of its grant, if the server's clock has shown it in between. */
const program = `
  import pg from 'pg'
  import { postgresStore } from 'millrace'
  const { TEST_URL: url, TEST_NAMESPACE: namespace, TEST_QUEUE: queue, TEST_WORKER: worker } = process.env
  const ledger = new pg.Client(url)
  await ledger.connect()
  const store = await postgresStore({ pool: { connectionString: url }, namespace })
  await store.open([JSON.parse(queue)])
  const serverMs = async () => Number((await ledger.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms')).rows[0].ms)
  const { shards } = JSON.parse(queue)
  for (let n = 0; ; n++) {
    // One shard at a time: the grants of several are not made at one instant.
    const from = { queue: 'mail', limit: 4, ...(shards ? { shard: n % shards } : {}) }
    const before = await serverMs()
    const { now, claims } = await store.claim([from], { worker, leaseMs: 60_000 })
    const after = await serverMs()
    if (now < Math.floor(before) || now > after) throw new Error(['a grant at', now, 'between', before, after].join(' '))
    await ledger.query('INSERT INTO windows_ledger SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[])',
      [namespace, claims.map(({ id }) => id), claims.map(({ group }) => group), claims.map(() => now)])
    await store.settle(claims.map(({ id, fence }) => ({ queue: 'mail', id, fence, kind: 'complete' })))
    if (claims.length > 0) continue
    const [{ ready, running }] = (await store.depth(['mail'])).depths
    if (ready + running === 0) break
  }
  await store.close()
  await ledger.end()`

it.each(['plain', 'ordered'] as const)(
  'four processes never start more than the limit of a group in any window of a throttled %s queue',
  async (kind) => {
    const { url } = await workerPostgres()
    const namespace = `windows_${process.pid}_${kind}`
    const throttle = { scope: 'mail', by: 'group', rules: [{ limit, windowMs, moderate: false }] } as const
    const queue = { name: 'mail', kind, order: 'fifo', throttle, ...(kind === 'ordered' ? { shards: 3 } : {}) } as const
    const store = await postgresStore({ pool: { connectionString: url }, namespace })
    const eyes = new pg.Client(url)
    await eyes.connect()
    onTestFinished(async () => {
      await eyes.query('DROP TABLE IF EXISTS windows_ledger')
      await eyes.end()
      await store.close()
    })
    await eyes.query('CREATE TABLE IF NOT EXISTS windows_ledger (namespace text, id text, grp text, at bigint)')
    await store.open([queue])
    const jobs = Array.from({ length: total }, (_, i) => ({
      ...{ id: `job-${i}`, task: 'send', payload: '1', priority: 0, rememberMs: 0, group: `group-${i % groups}` },
    }))
    await store.enqueue([{ callId: 'all', queue: 'mail', jobs }])

    const env = { ...process.env, TEST_URL: url, TEST_NAMESPACE: namespace, TEST_QUEUE: JSON.stringify(queue) }
    const children = Array.from({ length: 4 }, (_, i) =>
      spawn(process.execPath, ['--input-type=module', '-e', program], {
        cwd: root,
        env: { ...env, TEST_WORKER: `worker-${i}` },
        stdio: ['ignore', 'ignore', 'inherit'],
      }),
    )
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'close'))[0]))
    expect(codes).toEqual([0, 0, 0, 0])

    const { rows } = await eyes.query('SELECT id, grp, at FROM windows_ledger WHERE namespace = $1 ORDER BY at', [
      namespace,
    ])
    expect(new Set(rows.map(({ id }) => id)).size).toBe(total)
    expect(rows).toHaveLength(total)
    for (let group = 0; group < groups; group++) {
      const starts = rows.filter(({ grp }) => grp === `group-${group}`).map(({ at }) => Number(at))
      expect(starts).toHaveLength(jobsEach)
      // The start so many places later must be outside the closed window.
      const distances = starts.slice(limit).map((at, i) => at - starts[i]!)
      expect(Math.min(...distances)).toBeGreaterThan(windowMs)
    }
  },
  120_000,
)
