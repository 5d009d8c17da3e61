import { defineOrderedTask } from 'millrace'
import type { Store } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { shardOf } from '#src/stores/rules/payloads.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMill, testMillOn } from '../../test-mill.js'

const ids = Array.from({ length: 60 }, (_, i) => `id-${i}`)
const turn = () => new Promise((resolve) => setImmediate(resolve))

function orders(run: (ids: string[]) => unknown = () => {}, batchSize = 1) {
  return defineOrderedTask({
    name: 'orders',
    id: (id) => String(id),
    batchSize,
    run: (payloadsById) => run([...payloadsById.keys()]),
  })
}

/** A memory store that is taken for one that other processes share. */
function sharedStore(): Store {
  return Object.assign(new MemoryStore(), { traits: { ...memoryTraits, shared: true } })
}

describe('a worker of an ordered queue', () => {
  it('runs all of its own shards first, and then those of an absent member', async () => {
    const task = orders()
    const m = testMill({ tasks: [task], queues: { orders: { ordered: true, shards: 4 } } })
    await m.enqueueMany(task, ids)
    const started = recorded(m, 'job.started')
    const done = nextEvent(m, 'job.completed', () => started.length === ids.length)
    await m.worker({ concurrency: 2, shardsOf: { member: 1, members: 2 } }).start()
    await done

    const shards = started.map(({ id }) => shardOf(id, 4))
    const own = ids.filter((id) => shardOf(id, 4) % 2 === 1)
    expect(new Set(shards.slice(0, own.length))).toEqual(new Set([1, 3]))
    expect(new Set(shards.slice(own.length))).toEqual(new Set([0, 2]))
  })

  it('shares the shards with other workers in the registry, and takes over if these do nothing', async () => {
    const store = sharedStore()
    const task = orders()
    const m = testMillOn(store, { tasks: [task], queues: { orders: { ordered: true, shards: 12 } } })
    const other = {
      id: 'other',
      host: 'h',
      boot: 'b',
      pidns: '1',
      pid: 1,
      ticks: 1,
      queues: ['orders'],
      concurrency: 1,
      running: 0,
    }
    await store.workers!.beat({ ...other, startedAt: 0 }, 60_000)
    const asked: (number | undefined)[][] = []
    const claim = store.claim.bind(store)
    store.claim = (from, by) => {
      asked.push(from.map(({ shard }) => shard))
      return claim(from, by)
    }
    const waits = new Promise((resolve) => {
      const wait = store.wait.bind(store)
      store.wait = (...args) => {
        resolve(undefined)
        return wait(...args)
      }
    })
    await m.worker({ concurrency: 1 }).start()
    // By then it has asked the registry as well.
    await waits
    const started = recorded(m, 'job.started')
    const done = nextEvent(m, 'job.completed', () => started.length === ids.length)
    asked.length = 0
    await m.enqueueMany(task, ids)
    await done

    // It was rung: all shards, its own before the others. After that its own, until these are empty.
    expect(asked[0]!.toSorted((a, b) => a! - b!)).toEqual(Array.from({ length: 12 }, (_, shard) => shard))
    const own = new Set(asked[1])
    expect(own.size).toBeGreaterThan(0)
    expect(own.size).toBeLessThan(12)
    const isOwn = started.map(({ id }) => own.has(shardOf(id, 12)))
    expect(isOwn).toEqual([...isOwn].sort((a, b) => Number(b) - Number(a)))
    expect(isOwn).toContain(false)
  })

  it('wakes up for each shard in which a job falls due', async () => {
    const task = orders()
    const m = testMill({ tasks: [task], queues: { orders: { ordered: true, shards: 5 } } })
    const completed = recorded(m, 'job.completed')
    const done = nextEvent(m, 'job.completed', () => completed.length === 20)
    await m.worker({ concurrency: 4 }).start()
    const from = performance.now()
    await m.enqueueMany(task, ids.slice(0, 20), (_, i) => ({ delay: 20 + 10 * i }))
    await done

    // Else it would look by itself every 5 s.
    expect(performance.now() - from).toBeLessThan(4_500)
  })

  it('refuses options that share out nothing', () => {
    const m = testMill({ tasks: [orders()] })
    const wrong = (shardsOf: never) => () => m.worker({ shardsOf })

    expect(wrong({ member: 2, members: 2 } as never)).toThrow('shardsOf: must have a `member` less than `members`')
    expect(wrong({ member: -1, members: 2 } as never)).toThrow(ConfigError)
    expect(wrong({ member: 0, members: 1, node: 1 } as never)).toThrow('shardsOf.node: is not an option')
    expect(wrong('0/2' as never)).toThrow(ConfigError)
  })

  it('fails with the mistake of a function that shares out shards', async () => {
    const m = testMill({ tasks: [orders()] })
    const worker = m.worker({ shardsOf: () => [{ queue: 'orders', shard: 99 }] })
    await worker.start()

    await expect(worker.finished()).rejects.toThrow('shardsOf: picked shard 99')
  })
})

describe('exclusive shards', () => {
  it('have at most one batch at work each, over all workers, and every job runs', async () => {
    const atWork = new Map<number, number>()
    let mostOfOne = 0
    let mostShards = 0
    const task = orders(async (batch) => {
      const shards = new Set(batch.map((id) => shardOf(id, 4)))
      expect(shards.size).toBe(1)
      const [shard] = shards
      atWork.set(shard!, (atWork.get(shard!) ?? 0) + 1)
      mostOfOne = Math.max(mostOfOne, ...atWork.values())
      mostShards = Math.max(mostShards, [...atWork.values()].filter((n) => n > 0).length)
      for (let i = 0; i < 3; i += 1) await turn()
      atWork.set(shard!, atWork.get(shard!)! - 1)
    }, 3)
    const m = testMill({ tasks: [task], queues: { orders: { ordered: true, shards: 4, exclusive: 'shard' } } })
    const completed = recorded(m, 'job.completed')
    const failed = recorded(m, 'job.failed')
    const done = nextEvent(m, 'job.completed', () => completed.length === ids.length)
    await Promise.all([1, 2].map(() => m.worker({ concurrency: 3 }).start()))
    await m.enqueueMany(task, ids)
    await done

    expect(failed).toEqual([])
    expect(mostOfOne).toBe(1)
    expect(mostShards).toBeGreaterThan(1)
  })
})
