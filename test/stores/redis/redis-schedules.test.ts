/** Schedules on Redis: their places, and what a writer leaves behind that dies half way. */
import { startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ScheduleChange } from '#src/stores/contract/schedules.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { scheduleIndexKeys, scheduleKeys } from '#src/stores/redis/layout/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'

let redis: Awaited<ReturnType<typeof startRedis>>
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

let made = 0
function opened(namespace = `ns-${++made}`) {
  const client = openRedisClient(redisAddress(redis.url))
  const store = new RedisStore({ client, namespace })
  onTestFinished(() => store.close())
  return { namespace, store, schedules: store.schedules, client }
}

const queue = (name: string) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }) as const
function due(revision: string, of = 'mail'): ScheduleChange {
  const job = { task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
  const rule = { everyMs: 3_600_000, timeZone: 'UTC' }
  const rest = { onMissed: 'latest', overlap: 'allow', jitterMs: 0, isDeclared: false } as const
  return { definition: { name: 's', queue: of, rule, job, ...rest }, revision, paused: false, nextAt: 1_000 }
}
const dueOf = async ({ schedules }: RedisStore) =>
  (await schedules.due('worker', 30_000, 10)).due.map(({ revision, definition }) => `${definition.queue} ${revision}`)

describe('a schedule on Redis', () => {
  it('is one of its namespace only', async () => {
    const [one, other] = [opened(), opened()]
    for (const { store } of [one, other]) await store.open([queue('mail')])
    await one.schedules.put(due('r1'), undefined)
    expect(await other.schedules.get('s')).toBeUndefined()
    expect([await dueOf(one.store), await dueOf(other.store)]).toEqual([['mail r1'], []])
  })

  it('that a remover left behind half way ticks no more, is cleared away, and makes room for another', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open([queue('mail')])
    await schedules.put(due('r1'), undefined)
    // What a remove does first.
    await client.command('HDEL', [scheduleIndexKeys(namespace)[0], 's'])
    expect(await schedules.get('s')).toBeUndefined()
    expect(await schedules.put(due('r2'), undefined)).toBe(true)
    expect(await dueOf(store)).toEqual(['mail r2'])

    await client.command('HDEL', [scheduleIndexKeys(namespace)[0], 's'])
    expect(await dueOf(store)).toEqual([])
    expect(await client.command('HLEN', [scheduleKeys(`{${namespace}:mail}`)[0]!])).toBe(0)
  })

  it('of which a writer died between two queues is written once more, and ticks in one of them', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open([queue('mail'), queue('reports')])
    await schedules.put(due('r1'), undefined)
    const [index] = scheduleIndexKeys(namespace)
    // It has written the new record, and not yet said so in the index.
    expect(await schedules.put(due('r2', 'reports'), due('r1'))).toBe(true)
    await client.command('HSET', [index, 's', `{${namespace}:mail}`])
    expect(await dueOf(store)).toEqual([])
    expect(await schedules.get('s')).toBeUndefined()

    expect(await schedules.put(due('r3', 'reports'), undefined)).toBe(true)
    expect(await dueOf(store)).toEqual(['reports r3'])
    expect((await schedules.list(undefined, 10)).map(({ revision }) => revision)).toEqual(['r3'])
  })

  it('is found by fsck to be nothing strange', async () => {
    const { store, schedules } = opened()
    await store.open([queue('mail')])
    await schedules.put(due('r1'), undefined)
    await dueOf(store)
    expect((await store.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  })
})
