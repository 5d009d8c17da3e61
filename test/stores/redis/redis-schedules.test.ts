/** Schedules on Redis: their places, and what a writer leaves behind that dies half way. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import type { ScheduleChange } from '#src/stores/contract/schedules.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { textIn } from '#src/stores/redis/client/redis-reply.js'
import { scheduleIndexKeys, scheduleKeys } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { RedisSchedulePlaces } from '#src/stores/redis/schedules/redis-schedule-places.js'
import { RedisSchedules } from '#src/stores/redis/schedules/redis-schedules.js'
import { RedisQueues } from '#src/stores/redis/shards/redis-queues.js'
import { workerRedis } from '../../worker-redis.js'

const redis = await workerRedis()

let made = 0
function opened(namespace = `schedules-${++made}`) {
  const client = openRedisClient(redisAddress(redis.url))
  const store = new RedisStore({ client, namespace })
  onTestFinished(() => store.close())
  return { namespace, store, schedules: store.schedules, client }
}

const queue = (name: string) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }) as const
function due(revision: string, of = 'mail'): ScheduleChange {
  const job = { task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
  const rule = { everyMs: 3_600_000, timeZone: 'UTC' }
  const rest = { onMissed: 'latest', overlap: 'allow', jitterMs: 0 } as const
  return { definition: { name: 's', queue: of, rule, job, ...rest }, revision, paused: false, nextAt: 1_000 }
}
const dueOf = async ({ schedules }: RedisStore) =>
  (await schedules.due('worker', 30_000, 10)).due.map(({ revision, definition }) => `${definition.queue} ${revision}`)

describe('a schedule on Redis', () => {
  it('belongs to one namespace only', async () => {
    const [one, other] = [opened(), opened()]
    for (const { store } of [one, other]) await store.open([queue('mail')])
    await one.schedules.put(due('r1'), undefined)
    expect(await other.schedules.get('s')).toBeUndefined()
    expect([await dueOf(one.store), await dueOf(other.store)]).toEqual([['mail r1'], []])
  })

  it('makes room for another after a half-finished removal', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open([queue('mail'), queue('reports')])
    for (const of of ['mail', 'reports']) {
      await schedules.put(due('r1'), undefined)
      // What a remove does first.
      await client.command('HDEL', [scheduleKeys(`{${namespace}:mail}`)[0]!, 's'])
      expect([await schedules.get('s'), await dueOf(store)]).toEqual([undefined, []])
      expect(await schedules.put(due('r2', of), undefined)).toBe(true)
      expect(await dueOf(store)).toEqual([`${of} r2`])
      expect(await schedules.remove('s')).toBe(true)
    }
  })

  it('does not tick if nothing points to it, and is deleted once it is old', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open([queue('mail')])
    const [records] = scheduleKeys(`{${namespace}:mail}`)
    await schedules.put(due('r1'), undefined)
    await client.command('HDEL', [scheduleIndexKeys(namespace)[0], 's'])
    expect(await dueOf(store)).toEqual([])
    expect(await client.command('HLEN', [records!])).toBe(1)
    expect(await schedules.put(due('r2'), undefined)).toBe(true)
    expect(await dueOf(store)).toEqual(['mail r2'])

    await client.command('HDEL', [scheduleIndexKeys(namespace)[0], 's'])
    const text = textIn(await client.command('HGET', [records!, 's']))
    await client.command('HSET', [records!, 's', text.replace(/ \d+(?=\0)/, ' 1')])
    expect(await dueOf(store)).toEqual([])
    expect(await client.command('HLEN', [records!])).toBe(0)
  })

  it('has the state of the last confirmed change if several write or remove it at once', async () => {
    const [one, other] = [opened('shared'), opened('shared')]
    for (const { store } of [one, other]) await store.open(['mail', 'reports', 'alerts'].map(queue))
    const paused = (revision: string, of: string): ScheduleChange => {
      const { nextAt: _, ...change } = due(revision, of)
      return { ...change, paused: true }
    }
    const stored = async () => (await one.schedules.get('s'))?.revision
    for (let round = 0; round < 30; round += 1) {
      const idle = paused('r1', 'mail')
      expect(await one.schedules.put(idle, undefined)).toBe(true)
      const moved = await Promise.all([
        one.schedules.put(paused('r2', 'reports'), idle),
        other.schedules.put(paused('r3', 'alerts'), idle),
      ])
      expect(moved.filter(Boolean).length).toBe(1)
      expect(await stored()).toBe(moved[0] ? 'r2' : 'r3')
      expect(await one.schedules.remove('s')).toBe(true)

      expect(await one.schedules.put(due('r4'), undefined)).toBe(true)
      const [isWritten, isRemoved] = await Promise.all([
        one.schedules.put(due('r5'), due('r4')),
        other.schedules.remove('s', 'r4'),
      ])
      expect([isWritten, isRemoved]).toEqual(isWritten ? [true, false] : [false, true])
      expect(await stored()).toBe(isWritten ? 'r5' : undefined)
      await one.schedules.remove('s')
      expect(await one.client.command('HLEN', [scheduleIndexKeys('shared')[0]])).toBe(0)
    }
  })

  it('is written again and ticks in one queue if a writer died between two queues', async () => {
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

  it('keeps the state that others have written if a late move arrives, and leaves nothing there', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open(['mail', 'reports', 'alerts'].map(queue))
    const queues = new RedisQueues(client, namespace)
    const places = new RedisSchedulePlaces(client, queues, namespace)
    const from = `{${namespace}:mail}`
    await schedules.put(due('r1'), undefined)
    const read = (await places.read('s', from))!
    const late = { ...read, updatedAt: read.updatedAt - 1_000 }
    await schedules.put(due('r2', 'reports'), due('r1'))
    await schedules.put(due('r3', 'reports'), due('r2'))

    for (const name of ['reports', 'alerts']) {
      const [to] = await queues.find([name])
      await places.move(late, from, to!.shards[0]!, 'r1')
      expect(await dueOf(store)).toEqual(['reports r3'])
    }

    for (const name of ['mail', 'alerts'])
      expect(await client.command('EXISTS', scheduleKeys(`{${namespace}:${name}}`))).toBe(0)
  })

  it('on an absent server does not block the others', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open(['mail', 'reports'].map(queue))
    await schedules.put(due('r1'), undefined)
    const other = due('r2', 'reports')
    await schedules.put({ ...other, definition: { ...other.definition, name: 'other' } }, undefined)
    const away: RedisClient = Object.assign(Object.create(client) as RedisClient, {
      command: client.command.bind(client),
      run: (...[script, keys, args]: Parameters<RedisClient['run']>) =>
        keys[0]!.startsWith(`{${namespace}:mail}`)
          ? Promise.reject(new StoreUnavailableError('the server is away.'))
          : client.run(script, keys, args),
    })
    const half = new RedisSchedules(away, new RedisQueues(away, namespace), namespace, 0)
    const found = await half.due('worker', 30_000, 10)
    expect(found.due.map(({ definition }) => definition.name)).toEqual(['other'])
  })

  it('leaves nothing behind when it follows its queue to other shards', async () => {
    const { namespace, store, schedules, client } = opened()
    await store.open([{ ...queue('syncs'), kind: 'ordered', shards: 2 }])
    const { definition, ...change } = due('r1', 'syncs')
    const job = { ...definition.job, id: 'tenant-1' }
    await schedules.put({ ...change, definition: { ...definition, job } }, undefined)
    const [, places] = scheduleIndexKeys(namespace)
    for (const shards of [3, 5]) {
      for (let more = true; more; ) more = (await store.records.reshard('syncs', shards)).more
      const step = { revision: 'r1', dueAt: 1_000, nextAt: 1_000, callId: `call-${shards}`, skips: 0, misses: 0 }
      expect((await schedules.tick({ ...step, name: 's', queue: 'syncs', jobs: [job] })).outcome).toBe('ticked')
      expect(await client.command('HLEN', [places])).toBe(1)
    }
  })

  it('passes fsck', async () => {
    const { store, schedules } = opened()
    await store.open([queue('mail')])
    await schedules.put(due('r1'), undefined)
    await dueOf(store)
    expect((await store.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  })
})
