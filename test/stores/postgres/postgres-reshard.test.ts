import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresDatabase } from '../../worker-postgres.js'

let url: string
const closing: { close(): Promise<void> }[] = []
const by = { worker: 'w', leaseMs: 30_000 }

beforeAll(async () => {
  url = await postgresDatabase()
}, 60_000)
afterAll(async () => {
  for (const one of closing) await one.close()
})

/** Two stores of one schema with the queue `orders` of three shards, and who reshards it. */
async function resharded(schema: string) {
  const address = { ...postgresAddress(url), schema }
  const stores = [new PostgresStore({ address }), new PostgresStore({ address })]
  closing.push(...stores)
  for (const store of stores) {
    await store.open([{ name: 'orders', kind: 'ordered', order: 'fifo', shards: 3 }])
    await store.open([{ name: 'other', kind: 'ordered', order: 'fifo' }])
  }
  return {
    store: stores[0]!,
    other: stores[1]!,
    admin: stores[0]!.records,
  }
}

const push = (store: PostgresStore, ids: readonly string[], payload: string, queue = 'orders') =>
  store.enqueue([
    {
      ...{ callId: `${payload} ${ids[0]}`, queue },
      jobs: ids.map((id) => ({ id, payload, task: 'sync', priority: 0, rememberMs: 0 })),
    },
  ])

async function toTheEnd(step: () => Promise<{ changed: number; more: boolean }>): Promise<number> {
  let changed = 0
  for (;;) {
    const done = await step()
    changed += done.changed
    if (!done.more) return changed
  }
}

async function taken(store: PostgresStore, queue = 'orders') {
  const all: string[] = []
  for (;;) {
    const { claims } = await store.claim([{ queue, limit: 100 }], by)
    if (claims.length === 0) return all.sort()
    all.push(...claims.map(({ id, payloads }) => `${id}: ${payloads!.map(({ payload }) => payload).join(' ')}`))
    const items = claims.map(({ fence, id }) => ({ queue, id, fence, kind: 'complete' as const }))
    expect(new Set(await store.settle(items))).toEqual(new Set(['ok']))
  }
}

const ids = Array.from({ length: 20 }, (_, i) => `id-${i}`)

describe('a reshard on a Postgres store', () => {
  it('waits for claims, moves each id once, and is found by a process that knew the old shards', async () => {
    const { store, other, admin } = await resharded('reshard_1')
    await push(store, ids, 'v0')
    const { claims } = await other.claim([{ queue: 'orders', limit: 1 }], by)
    const [claim = expect.fail()] = claims
    expect(await admin.reshard('orders', 5)).toEqual({ changed: 0, more: true })
    expect((await other.claim([{ queue: 'orders', limit: 9 }], by)).waits.map(({ reason }) => reason)).toEqual([
      'paused',
      'paused',
      'paused',
    ])
    expect(await push(other, ids, 'v1')).toEqual([ids.map(() => 'merged')])
    expect(await other.settle([{ queue: 'orders', id: claim.id, fence: claim.fence, kind: 'complete' }])).toEqual([
      'ok',
    ])

    const steps = () => toTheEnd(() => admin.reshard('orders', 5))
    const [one, same] = await Promise.all([steps(), steps()])
    expect(one + same).toBe(ids.length)
    expect(await other.settle([{ queue: 'orders', id: claim.id, fence: claim.fence, kind: 'complete' }])).toEqual([
      'lost',
    ])
    expect(await push(other, ids, 'v2')).toEqual([ids.map(() => 'merged')])
    const { depths } = await store.depth(['orders'])
    expect([depths[0]!.ready, depths[0]!.processed, depths[0]!.shardLagsMs!.length]).toEqual([ids.length, 1, 5])
    const expected = ids.map((id) => `${id}: ${id === claim.id ? 'v1 v2' : 'v0 v1 v2'}`)
    expect(await taken(other)).toEqual(expected.sort())
  })

  it('loses no payload that comes meanwhile', async () => {
    const { store, other, admin } = await resharded('reshard_2')
    await push(store, ids, 'v0')
    let isOver = false
    const pushes = async () => {
      let n = 1
      for (; !isOver; n++) await push(other, ids, `v${n}`)
      return n
    }
    const reshards = async () => {
      for (const shards of [2, 5, 1, 4]) await toTheEnd(() => admin.reshard('orders', shards))
      isOver = true
    }
    const [count] = await Promise.all([pushes(), reshards()])
    const all = Array.from({ length: count }, (_, i) => `v${i}`).join(' ')
    expect(await taken(other)).toEqual(ids.map((id) => `${id}: ${all}`).sort())
  })

  it('of jobs to another queue joins those that wait or are dead there', async () => {
    const { store, admin } = await resharded('reshard_3')
    const bury = async (queue: string, error: string) => {
      const { claims } = await store.claim([{ queue, limit: 1 }], by)
      await store.settle(claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'bury', error })))
    }
    await push(store, ['a'], 'd1', 'other')
    await bury('other', 'first')
    await push(store, ['a'], 'd0')
    await bury('orders', 'second')
    await push(store, ['a', 'b'], 'v0')
    await push(store, ['a'], 'v1', 'other')

    expect(await admin.move('orders', 'other')).toEqual({ changed: 3, more: false })
    expect(await admin.move('orders', 'other')).toEqual({ changed: 0, more: false })
    const { depths } = await store.depth(['orders', 'other'])
    expect(depths.map(({ ready, dead }) => [ready, dead])).toEqual([
      [0, 0],
      [2, 1],
    ])
    expect(await taken(store, 'other')).toEqual(['a: v0 v1', 'b: v0'])
    await expect(admin.move('other', 'other')).rejects.toThrow('into itself')
  })
})
