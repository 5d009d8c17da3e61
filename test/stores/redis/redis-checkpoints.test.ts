/** What a Redis store writes down of a job beside its record: what beats said, checkpoints, logs, and who holds it. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { joinedLog, mostLogBytes } from '#src/core/job/job-log.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { Beat } from '#src/stores/contract/job-beat.js'
import { connect, queue, RedisScene, settings, sharedRedis } from './redis-scene.js'

const { server } = await sharedRedis()

async function opened(): Promise<RedisScene> {
  const scene = new RedisScene(connect(server))
  onTestFinished(() => scene.store.close())
  await scene.store.open([settings])
  return scene
}

/** Its id is remembered for a moment only. */
async function taken(scene: RedisScene, id = 'a'): Promise<Claim> {
  await scene.add({ id, rememberMs: 1 })
  return (await scene.take())[0]!
}

const beat = (scene: RedisScene, { id, fence }: Claim, beat: Beat) =>
  scene.store.extend([{ queue, id, fence, leaseMs: 600_000, beat }])

const said: Beat = { startedMs: 0, host: 'here', checkpoint: { payload: '1' }, log: 'one\n' }

describe('the run record from heartbeats', () => {
  it('is read in the format of an earlier release, and is updated', async () => {
    const scene = await opened()
    const claim = await taken(scene)
    await scene.raw('HSET', 'notes', 'ba', '1700000000000\0mill-1\x004711\0{"fraction":0.5}\x001700000000001')
    const before = { startedAt: 1_700_000_000_000, host: 'mill-1', pid: 4_711, progress: { fraction: 0.5 } }
    expect(await scene.store.workers.held('worker-1')).toEqual([expect.objectContaining(before)])

    await beat(scene, claim, { startedMs: 0, boot: 'boot-1', pidns: '7', ticks: 17 })

    const after = { ...before, boot: 'boot-1', pidns: '7', ticks: 17 }
    expect(await scene.store.workers.held('worker-1')).toEqual([expect.objectContaining(after)])
  })

  it('begins with the fields that an earlier release reads', async () => {
    const scene = await opened()
    await beat(scene, await taken(scene), { host: 'mill-1', pid: 4_711, boot: 'boot-1', ticks: 17 })

    const { updatedAt } = (await scene.store.records.get(queue, 'a'))!
    const fields = String(await scene.field('notes', 'ba')).split('\0')
    expect(fields.slice(0, 5)).toEqual(['', 'mill-1', '4711', '', String(updatedAt)])
  })
})

describe('the fields `notes`', () => {
  type Step = (scene: RedisScene, claim: Claim) => Promise<unknown>
  const ended =
    (kind: string, more = {}): Step =>
    (s, claim) =>
      s.end(claim, { kind, ...more } as never)
  it.each<[string, ...Step[]]>([
    ['is completed', ended('complete')],
    [
      'was cancelled, once its id is no longer remembered',
      ended('cancel'),
      async (s) => {
        for (let n = 0; (await s.fields('ended')).includes('a'); n += 1)
          await s.end(await taken(s, `b${n}`), { kind: 'complete' })
      },
    ],
    ['is deleted', ended('release', { delayMs: 0 }), (s) => s.store.records.delete(queue, { ids: ['a'] })],
    ['is cleared from the morgue', ended('bury', { error: 'broken' }), (s) => s.store.records.clear(queue)],
    [
      'is trimmed from the results',
      ended('complete', { result: { payload: '1', keepMs: 0 } }),
      async (s) => s.end(await taken(s, 'b'), { kind: 'complete' }),
    ],
  ])('are deleted with a job that %s', async (_, ...steps) => {
    const scene = await opened()
    const claim = await taken(scene)
    await beat(scene, claim, said)
    expect((await scene.fields('notes')).sort()).toEqual(['ba', 'ka', 'la'])

    for (const step of steps) await step(scene, claim)

    expect(await scene.fields('notes')).toEqual([])
  })

  it('keep the fields of new jobs until these are over, together with others or alone, and a check finds nothing wrong', async () => {
    const scene = await opened()
    const fields = { order: '4711', paid: false }
    await scene.add({ id: 'x' }, { id: 'a', fields }, { id: 'y' }, { id: 'b', fields, delayMs: 60_000 })
    expect(await scene.field('notes', 'fa').then(String)).toBe('order="4711"\0paid=false\0')
    expect(await scene.health.check()).not.toContainEqual(expect.objectContaining({ level: 'error' }))

    const claims = await scene.take(3)
    expect(claims.map(({ id }) => id)).toEqual(['x', 'a', 'y'])
    expect(await scene.health.check()).not.toContainEqual(expect.objectContaining({ level: 'error' }))
    const items = claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'complete' }) as const)
    expect(await scene.store.settle(items)).toEqual(['ok', 'ok', 'ok'])
    await scene.store.records.delete(queue, { ids: ['b'] })
    expect([await scene.fields('notes'), await scene.fields('history')]).toEqual([[], []])
  })

  it('keep log and worker of a job with a kept result, and no checkpoint', async () => {
    const scene = await opened()
    const claim = await taken(scene)
    await beat(scene, claim, said)
    await scene.end(claim, { kind: 'complete', result: { payload: '1' } })

    expect((await scene.fields('notes')).sort()).toEqual(['ba', 'la', 'ra', 'wa'])
  })

  it('keep neither checkpoint nor log for a job of an ordered queue', async () => {
    const scene = await opened()
    await scene.store.open([{ ...settings, name: 'orders', kind: 'ordered' }])
    const job = { id: 'a', task: 'sync', payload: '1', priority: 0, rememberMs: 0 }
    await scene.store.enqueue([{ callId: 'orders', queue: 'orders', jobs: [job] }])
    const { claims } = await scene.store.claim([{ queue: 'orders', limit: 1 }], { worker: 'w', leaseMs: 600_000 })
    const { id, fence } = claims[0]!
    await scene.store.extend([{ queue: 'orders', id, fence, leaseMs: 600_000, beat: said }])

    const notes = await scene.client.command('HKEYS', [`{${scene.namespace}:orders:0.0}:notes`])
    expect((notes as Buffer[]).map(String)).toEqual(['ba'])
  })
})

describe('a checkpoint', () => {
  it('is returned with each claimed job that has one, whatever else the claim takes', async () => {
    const scene = await opened()
    const ids = Array.from({ length: 9 }, (_, i) => `job-${i}`)
    await scene.add(...ids.map((id) => ({ id })))
    for (const claim of await scene.take(9)) {
      if (Number(claim.id.slice(4)) % 3 === 0) await beat(scene, claim, { checkpoint: { payload: claim.id } })
      await scene.end(claim, { kind: 'release', delayMs: 0 })
    }
    await scene.add({ id: 'fresh' })

    const claims = await scene.take(10)

    expect(claims.map(({ id, checkpoint }) => [id, checkpoint?.payload])).toEqual([
      ...ids.map((id, i) => [id, i % 3 === 0 ? id : undefined]),
      ['fresh', undefined],
    ])
  })
})

describe('a log', () => {
  it.each(['½', '中', '🎈'])('is cut between characters, wherever in a %s its limit falls', async (character) => {
    const scene = await opened()
    for (const more of ['', 'x', 'xx', 'xxx']) {
      const claim = await taken(scene, `cut-${more}`)
      const whole = character.repeat(mostLogBytes)
      await beat(scene, claim, { log: whole })
      await beat(scene, claim, { log: `${more}\0` })

      const { log } = (await scene.store.records.get(queue, claim.id))!
      expect(log === joinedLog(whole, `${more}\0`), more).toBe(true)
    }
  })
})

describe('an adoption', () => {
  it('leaves nothing of the earlier name, whether the new one is longer or shorter', async () => {
    const scene = await opened()
    const claim = await taken(scene)
    let holder = 'worker-1'
    for (const heir of ['w', 'worker-½-with-a-long-name', 'x'.repeat(255), 'worker-2']) {
      const before = await scene.store.records.get(queue, 'a')
      expect(await scene.store.workers.adopt(claim, holder, heir)).toBe(true)
      expect(await scene.store.records.get(queue, 'a')).toEqual({ ...before, worker: heir })
      holder = heir
    }

    expect(await scene.health.check()).toMatchObject([{ level: 'ok' }])
    await scene.end(claim, { kind: 'complete' })
  })

  it('by a worker with an id too long for a claim is refused', async () => {
    const scene = await opened()
    const claim = await taken(scene)

    await expect(scene.store.workers.adopt(claim, 'worker-1', 'x'.repeat(256))).rejects.toThrow(/at most 255 bytes/)
    expect(await scene.store.workers.held('worker-1')).toHaveLength(1)
  })
})
