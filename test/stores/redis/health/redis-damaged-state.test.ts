/** Damage next to sound queues: a field of the worker registry, and the state of a throttle. */

import { beforeEach, describe, expect, it } from 'vitest'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { sharedRedis } from '../redis-scene.js'

const by = { worker: 'w', leaseMs: 30_000 }
const settingsOf = (name: string, more: Partial<QueueSettings> = {}): QueueSettings => ({
  ...{ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} },
  ...more,
})
const throttle = { scope: 't', by: 'queue', rules: [{ limit: 2, windowMs: 60_000, moderate: false }] } as const

const { server, client } = await sharedRedis()
let store: RedisStore
let namespace = 's'
beforeEach(async () => {
  namespace += 'x'
  store = new RedisStore({ client, namespace })
  await store.open([settingsOf('a'), settingsOf('throttled', { throttle }), settingsOf('z')])
})

function enqueue(queue: string, ...ids: string[]) {
  const jobs = ids.map((id) => ({ id, task: 'x', payload: '{}', priority: 0, rememberMs: 0 }))
  return store.enqueue([{ callId: `${queue}-${ids}`, queue, jobs }])
}

describe('an unreadable field of the worker registry', () => {
  const process = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, queues: ['a'], concurrency: 1, running: 0 }
  const beat = (id: string) => store.workers.beat({ ...process, id, startedAt: 0 }, 60_000)

  it.each([
    ['too short', 'x'],
    ['no record', `${'\0'.repeat(6)}\x7f${'\0'.repeat(5)}{"host":`],
    ['of another form', `${'\0'.repeat(6)}\x7f${'\0'.repeat(5)}null`],
    ['without its queues', `${'\0'.repeat(6)}\x7f${'\0'.repeat(5)}{"host":"h","pid":1}`],
  ])('does not hide the other workers: %s', async (_, text) => {
    await beat('sound')
    await client.command('HSET', [`{${namespace}}:workers`, 'broken', Buffer.from(text, 'latin1')])
    expect((await store.workers.list()).map(({ id }) => id)).toEqual(['sound'])
    await store.workers.remove('broken')
    expect(await server.ask('HEXISTS', `{${namespace}}:workers`, 'broken')).toBe(0)
    await beat('broken')
    expect((await store.workers.list()).map(({ id }) => id)).toEqual(['broken', 'sound'])
  })
})

describe('the damaged state of a throttle', () => {
  const key = (name: string) => `{${namespace}:t}:${name}`
  const damages: readonly [string, () => Promise<unknown>][] = [
    ['invalid rules', () => server.ask('HSET', key('rules'), 'rules', 'nonsense')],
    ['no rules', () => server.ask('DEL', key('rules'))],
    ['rules of another type', () => server.ask('DEL', key('rules')).then(() => server.ask('SET', key('rules'), 'x'))],
    ['a count that cannot be read', () => server.ask('HSET', key('counters'), '', 'x')],
    [
      'starts of another type',
      () => server.ask('DEL', key('starts')).then(() => server.ask('SET', key('starts'), 'x')),
    ],
    ['an invalid instant', () => server.ask('HSET', key('rules'), 'lastAt', 'x', 'quietUntil', 'y')],
  ]

  it.each(damages)('does not block the other queues and their listings: %s', async (_, damage) => {
    await enqueue('a', 'a1')
    await enqueue('z', 'z1')
    await enqueue('throttled', 't1', 't2', 't3')
    await store.claim([{ queue: 'throttled', limit: 10 }], by)
    await damage()
    for (const handle of [store, new RedisStore({ client, namespace })]) {
      const from = ['a', 'throttled', 'z'].map((queue) => ({ queue, limit: 10 }))
      const granted: string[] = []
      for (let n = 0; n < 3; n++) granted.push(...(await handle.claim(from, by)).claims.map(({ id }) => id))
      expect(granted).toEqual(handle === store ? ['a1', 'z1'] : [])
      expect((await handle.records.queues()).map(({ name }) => name)).toEqual(['a', 'throttled', 'z'])
      expect((await handle.depth(['a', 'throttled', 'z'])).depths).toHaveLength(3)
      await handle.open([settingsOf('a'), settingsOf('throttled', { throttle }), settingsOf('z')])
    }
  })

  it.each(damages)('is found by fsck, and a sound one is not: %s', async (_, damage) => {
    await enqueue('throttled', 't1', 't2', 't3')
    await store.claim([{ queue: 'throttled', limit: 10 }], by)
    const found = async () => (await store.health.check()).map(({ level, what }) => `${level} ${what}`)
    const sound = ['ok queue a', 'ok queue throttled', 'ok queue z']
    expect(await found()).toEqual(sound)
    await damage()
    expect(await found()).toEqual([...sound, 'error throttle t'])
    const [finding] = (await store.health.check('throttled')).filter(({ level }) => level === 'error')
    expect(finding!.text).toMatch(
      /:(?:rules|counters|starts)' .*Stop their workers, delete \{.*:rules, .*:starts, .*:counters, .*:idle,/,
    )
    expect((await store.health.check('a')).map(({ level }) => level)).toEqual(['ok'])
  })

  it('is repaired by following fsck', async () => {
    for (const [i, [what, damage]] of damages.entries()) {
      if (i > 0) await store.open([settingsOf('throttled', { throttle })])
      await enqueue('throttled', `${i}`)
      await store.claim([{ queue: 'throttled', limit: 10 }], by)
      await damage()
      await server.ask('DEL', ...['rules', 'starts', 'counters', 'idle'].map(key))
      store = new RedisStore({ client, namespace })
      await store.open([settingsOf('throttled', { throttle })])
      await enqueue('throttled', `${i}-anew`)
      expect((await store.claim([{ queue: 'throttled', limit: 10 }], by)).claims, what).toHaveLength(1)
      expect((await store.health.check('throttled')).map(({ level }) => level)).toEqual(['ok'])
    }
  })

  it('is not reported while a queue is being opened', async () => {
    const queues = `{${namespace}}:queues`
    const layout = String(await server.ask('HGET', queues, 'throttled'))
    expect(layout).toMatch(/ in t$/)
    await server.ask('HSET', queues, 'young', layout.replace(/ in t$/, ' in u'))
    const found = (await store.health.check()).map(({ level, what }) => `${level} ${what}`)
    expect(found.filter((text) => !text.startsWith('ok '))).toEqual(['warning queue young'])
  })

  it('is reported with a remedy to every caller that reads it', async () => {
    await server.ask('HSET', key('rules'), 'rules', 'nonsense')
    const told = {
      code: 'store-corrupt',
      message: expect.stringMatching(/throttle 't' is damaged: .*:rules' holds no rules/),
    }
    await expect(store.throttles.state('throttled')).rejects.toMatchObject(told)
    await server.ask('DEL', key('rules'))
    await enqueue('throttled', '1')
    const [damaged] = (await store.claim([{ queue: 'throttled', limit: 1 }], by)).damaged!
    expect(damaged!.error.message).toContain(`'${key('rules')}' is not there, or not whole`)
    const anew = new RedisStore({ client, namespace })
    await anew.open([settingsOf('throttled', { throttle })])
    expect((await anew.claim([{ queue: 'throttled', limit: 1 }], by)).claims.map(({ id }) => id)).toEqual(['1'])
  })
})
