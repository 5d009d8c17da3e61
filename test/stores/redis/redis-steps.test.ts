/** The steps and signals of jobs as the keys of a Redis store have them: none stays behind, and a check finds what is wrong. */

import { describe, expect, it } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import { joinIndexKeys } from '#src/stores/redis/redis-keys.js'
import { queue, RedisScene, settings, sharedRedis } from './redis-scene.js'

const { client } = await sharedRedis()

async function opened(): Promise<RedisScene> {
  const scene = new RedisScene(client)
  await scene.store.open([settings])
  return scene
}

/** The job has two steps, a sleep and a signal, and runs. */
async function stepped(scene: RedisScene, id = 'a'): Promise<Claim> {
  await scene.add({ id, expiresMs: 600_000 })
  const claim = (await scene.take()).find((one) => one.id === id)!
  const { steps } = scene.store
  await steps.keep(claim, { name: 'charge', kind: 'step', payload: '1' }, 600_000)
  await steps.keep(claim, { name: 'cool-off', kind: 'sleep', forMs: 5 }, 600_000)
  await steps.keep(claim, { name: 'ship', kind: 'step' }, 600_000)
  await steps.signal({ queue, id }, { name: 'go', payload: '2' })
  return claim
}

const kept = async (scene: RedisScene) => [
  ...(await scene.fields('steps')),
  ...(await scene.all('signal-waits')),
  ...(await scene.all('joining')),
]

const ended =
  (kind: string, how: object = {}) =>
  (scene: RedisScene, claim: Claim) =>
    scene.end(claim, { kind, ...how })
const waits = ended('wait', { signal: 'other', withinMs: 60_000 })

describe('the steps and signals', () => {
  it.each<[string, ...((scene: RedisScene, claim: Claim) => unknown)[]]>([
    ['is completed', ended('complete')],
    ['is completed with a result', ended('complete', { result: { payload: '1' } })],
    ['is cancelled while it runs', ended('cancel')],
    ['is cancelled while it waits', waits, (s) => s.store.records.cancel(queue, 'all')],
    ['is deleted while it waits', waits, (s) => s.store.records.delete(queue, { ids: ['a'] })],
    ['is cleared from the morgue', ended('bury'), (s) => s.store.records.clear(queue)],
    [
      'is buried while it waits, and deleted',
      waits,
      (s) => s.store.records.bury(queue, 'all'),
      (s) => s.store.records.clear(queue),
    ],
    ['is deleted after a retry', ended('retry', { delayMs: 0 }), (s) => s.store.records.delete(queue, 'all')],
    [
      'forgets its steps one by one and is completed after a signal',
      async (s, claim) => {
        for (const name of ['charge', 'cool-off', 'ship']) await s.store.steps.forget({ queue, id: 'a' }, name, 'step')
        await waits(s, claim)
        await s.store.steps.signal({ queue, id: 'a' }, { name: 'other' })
        await ended('complete')(s, (await s.take())[0]!)
      },
    ],
  ])('leave no key behind when their job %s', async (_, ...steps) => {
    const scene = await opened()
    const claim = await stepped(scene)
    expect(await scene.fields('steps')).toHaveLength(9)
    for (const step of steps) await step(scene, claim)
    expect(await kept(scene)).toEqual([])
    expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  })

  it('of a job that is passed over, because its record is lost, leave no key behind', async () => {
    const scene = await opened()
    await scene.end(await stepped(scene), { kind: 'release', delayMs: 0 })
    await scene.raw('HDEL', 'jobs', 'a')
    await scene.take()
    expect(await kept(scene)).toEqual([])
  })

  it('are stored in two fields each, and their job has one more, however many there are', async () => {
    const scene = await opened()
    await scene.add({ id: 'a' })
    const claim = (await scene.take())[0]!
    for (let n = 0; n < 600; n += 1) {
      await scene.store.steps.keep(claim, { name: `s${n}`, kind: 'step', payload: `${n}` }, 600_000)
      if (n % 100 === 0) await scene.store.steps.forget({ queue, id: 'a' }, `s${n}`, 'step')
    }
    const names = (await scene.store.steps.read({ queue, id: 'a' }))!.steps.map(({ name }) => name)
    expect(names).toEqual(Array.from({ length: 600 }, (_, n) => `s${n}`).filter((_, n) => n % 100 !== 0))
    expect(await scene.fields('steps')).toHaveLength(2 * 594 + 1)
    await scene.end(claim, { kind: 'complete' })
    expect(await kept(scene)).toEqual([])
  })
})

describe('the check of a queue with steps and waits', () => {
  it('finds nothing if a job waits for a signal for ever: no worker need look for an end of that', async () => {
    const scene = await opened()
    await scene.end(await stepped(scene), { kind: 'wait', signal: 'approved' })
    expect(await scene.client.command('EXISTS', [joinIndexKeys(scene.namespace)[0]])).toBe(0)
    expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  })

  it.each([{}, { reason: 'unrecoverable' }])('finds nothing if a job has waited and is dead, %o', async (how) => {
    const scene = await opened()
    await scene.end(await stepped(scene), { kind: 'wait', signal: 'approved' })
    await scene.store.steps.signal({ queue, id: 'a' }, { name: 'approved' })
    await scene.end((await scene.take())[0]!, { kind: 'bury', ...how })
    const { state, reason } = (await scene.store.records.get(queue, 'a'))!
    expect({ state, reason }).toEqual({ state: 'dead', reason: undefined, ...how })
    expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  })

  const faults: [string, RegExp, RegExp, (scene: RedisScene) => unknown][] = [
    [
      'steps without a job',
      /stand in 'steps' without a job: gone/,
      /^removed steps and signals of jobs that are gone: gone$/,
      (s) => s.raw('HSET', 'steps', 'gone\0ncharge', 'p', 'gone', 'x'),
    ],
    [
      'a wait of which nobody will notice the end',
      /nobody will notice when their time is over: a/,
      /^noted when the waits of jobs for signals are over: a$/,
      (s) => s.raw('DEL', 'signal-waits'),
    ],
    [
      'a wait without its job',
      /stand in 'signal-waits' without a job: gone/,
      /^removed waits for signals of jobs that do not wait: gone$/,
      (s) => s.raw('ZADD', 'signal-waits', '5', '\0\0\0\0\0\0gone'),
    ],
    [
      'a job whose signal is not stored',
      /but the store does not say which: a/,
      /^made jobs ready that waited for signals/,
      (s) => s.raw('HDEL', 'steps', 'a\0w'),
    ],
    [
      'a queue in which no worker would look for the end of a wait',
      /no worker looks whether their time is over/,
      /^noted that workers are to look whether the time of its joins and waits/,
      (s) => s.client.command('DEL', [joinIndexKeys(s.namespace)[0]]),
    ],
    [
      'a job that is marked as having no steps',
      /are marked as having none: a/,
      /^marked jobs that have steps or signals: a$/,
      async (s) => {
        const past = await s.field('history', 'a')
        await s.raw('HSET', 'history', 'a', Buffer.concat([Buffer.from('a'), past.subarray(1)]))
      },
    ],
  ]
  it.each(faults)('finds %s, and a repair mends that', async (_, wrong, mends, harm) => {
    const scene = await opened()
    await waits(scene, await stepped(scene))
    expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
    expect((await scene.health.repair!()).mended).toEqual([])
    await harm(scene)
    expect((await scene.health.check()).map(({ text }) => text)).toContainEqual(expect.stringMatching(wrong))
    const { mended, left } = await scene.health.repair!()
    expect(mended.map(({ text }) => text)).toContainEqual(expect.stringMatching(mends))
    expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
  })
})
