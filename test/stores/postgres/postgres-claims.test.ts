import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'

let server: PostgresServer
const stores: PostgresStore[] = []
const mail = { name: 'mail', kind: 'plain', order: 'fifo' } as const

beforeAll(async () => {
  server = await PostgresServer.start()
}, 60_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  await server.stop()
})

async function storeIn(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore({ address: { ...postgresAddress(server.url), schema } })
  stores.push(store)
  await store.open([mail])
  return store
}

const jobOf = (id: string) => ({ id, task: 'send', payload: `{"to":"${id}"}`, priority: 0, rememberMs: 0 })

describe('several processes on a Postgres store', () => {
  it('take each job once, while jobs keep coming', async () => {
    const producer = await storeIn('shared')
    const workers = await Promise.all(Array.from({ length: 6 }, () => storeIn('shared')))
    const total = 2_000
    const seen: string[] = []
    const produce = async () => {
      for (let n = 0; n < total; n += 50) {
        const jobs = Array.from({ length: 50 }, (_, i) => jobOf(`job-${n + i}`))
        await producer.enqueue([{ callId: `call-${n}`, hasNewIds: true, queue: 'mail', jobs }])
      }
    }
    const work = async (store: PostgresStore, i: number) => {
      while (seen.length < total) {
        const { claims } = await store.claim([{ queue: 'mail', limit: 25 }], { worker: `w${i}`, leaseMs: 30_000 })
        seen.push(...claims.map(({ id }) => id))
        const items = claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const }))
        expect(new Set(await store.settle(items))).toEqual(new Set(items.length === 0 ? [] : ['ok']))
      }
    }
    await Promise.all([produce(), ...workers.map(work)])

    expect(new Set(seen).size).toBe(total)
    expect(seen.length).toBe(total)
    const { ready, running, processed } = (await producer.depth(['mail'])).depths[0]!
    expect({ ready, running, processed }).toEqual({ ready: 0, running: 0, processed: total })
  })

  it('get the first answers of a call that is sent again, once', async () => {
    const [first, second] = [await storeIn('again'), await storeIn('again')]
    const call = { callId: 'call-1', queue: 'mail', jobs: [jobOf('a'), jobOf('b')] }
    expect(await first.enqueue([call])).toEqual([['added', 'added']])
    expect(await second.enqueue([{ ...call, isResent: true }])).toEqual([['added', 'added']])

    expect((await first.depth(['mail'])).depths[0]!.ready).toBe(2)
  })

  it('end nothing that somebody else runs by now, however short the moment since they looked', async () => {
    const store = await storeIn('late')
    await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [jobOf('a')] }])
    const claim = async () =>
      (await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 30_000 })).claims[0]!
    const { fence } = await claim()
    await store.settle([{ queue: 'mail', id: 'a', fence, kind: 'release', delayMs: 0 }])
    const later = await claim()
    const asker = new pg.Client(server.url)
    await asker.connect()
    const ends = JSON.stringify([{ id: 'a', fence, to: 'gone' }])
    const { rows } = await asker.query(`SELECT late.ends_1((SELECT qid FROM late.queue), $1)->1 AS done`, [ends])
    await asker.end()

    expect(rows).toEqual([{ done: [false] }])
    expect(await store.settle([{ queue: 'mail', id: 'a', fence: later.fence, kind: 'complete' }])).toEqual(['ok'])
  })

  it('count attempts beyond those of a small integer, as `retry.max` may say', async () => {
    const store = await storeIn('tried')
    await store.open([{ name: 'orders', kind: 'ordered', order: 'fifo' }])
    const asker = new pg.Client(server.url)
    await asker.connect()
    for (const queue of ['mail', 'orders']) {
      const claim = async () => (await store.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 30_000 })).claims[0]!
      await store.enqueue([{ callId: queue, queue, jobs: [jobOf('a')] }])
      const { fence } = await claim()
      await asker.query('UPDATE tried.job SET attempt = 32767 WHERE fence = $1', [fence])
      expect(await store.settle([{ queue, id: 'a', fence, kind: 'retry', delayMs: 0 }])).toEqual(['ok'])
      const again = await claim()
      expect(again.attempt).toBe(32_768)
      expect(await store.settle([{ queue, id: 'a', fence: again.fence, kind: 'bury' }])).toEqual(['ok'])
      expect((await store.records.morgue.get(queue, 'a'))?.attempt).toBe(32_768)
    }
    await asker.end()
  })

  it('go on after the server was started anew, with greater fences', async () => {
    const store = await storeIn('anew')
    await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [jobOf('a'), jobOf('b'), jobOf('c')] }])
    const claim = async (by: PostgresStore) =>
      (await by.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 30_000 })).claims[0]!.fence
    const before = await claim(store)
    await server.restart()
    // As if the crash had forgotten the number of the claim.
    const admin = new pg.Client(server.url)
    await admin.connect()
    await admin.query("SELECT setval('anew.fence_seq', $1)", [before - 1])
    await admin.end()
    const byOther = await claim(await storeIn('anew'))

    expect(byOther).toBeGreaterThan(before)
    expect(await claim(store)).toBeGreaterThan(byOther)
  })
})

describe('a queue that nobody claims from', () => {
  it('forgets its old calls, and adds its counts up', async () => {
    const store = await storeIn('unclaimed')
    const enqueue = (id: string) => store.enqueue([{ callId: `call ${id}`, queue: 'mail', jobs: [jobOf(id)] }])
    await Promise.all(Array.from({ length: 500 }, (_, i) => enqueue(`early ${i}`)))
    const admin = new pg.Client(server.url)
    await admin.connect()
    await admin.query('UPDATE unclaimed.call SET at_ms = at_ms - 120000')
    let n = 0
    const rows = async () => {
      await enqueue(`late ${++n}`)
      const text = 'SELECT (SELECT count(*) FROM unclaimed.call) + (SELECT count(*) FROM unclaimed.tally) AS n'
      return Number((await admin.query(text)).rows[0].n)
    }

    await expect.poll(rows, { timeout: 30_000, interval: 500 }).toBeLessThan(300)
    expect((await store.depth(['mail'])).depths[0]!.ready).toBe(500 + n)
    await admin.end()
  }, 40_000)
})

describe('a process that hears notifications on a connection of its own', () => {
  it('hears again after the server has ended that connection', async () => {
    const address = postgresAddress(`${server.url}?listen=${server.host}:${server.port}`)
    const store = new PostgresStore({ address: { ...address, schema: 'heard' } })
    stores.push(store)
    await store.open([mail])
    const admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    const listening = async () => {
      const { rows } = await admin.query("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
      return rows.map(({ pid }: { pid: number }) => pid)
    }
    const over = new AbortController()
    const waiting = store.wait(['mail'], 60_000, over.signal)
    const [first] = await vi.waitFor(async () => {
      const pids = await listening()
      expect(pids).toHaveLength(1)
      return pids
    })
    await admin.query('SELECT pg_terminate_backend($1)', [first])

    await vi.waitFor(async () => expect(await listening()).toEqual([expect.not.toSatisfy((pid) => pid === first)]), {
      timeout: 15_000,
      interval: 100,
    })
    over.abort()
    await waiting
    await admin.end()
  })
})
