/** Jobs enqueued again, and dead ones revived with another input, on every store that has records. */

import { defineOrderedTask, defineTask, type Mill, many, millrace } from 'millrace'
import * as v from 'valibot'
import { describe, expect, it, onTestFinished } from 'vitest'
import { testMill } from '../../test-mill.js'
import { workerRedis } from '../../worker-redis.js'

const send = defineTask({
  name: 'send',
  queue: 'mail',
  input: v.object({ to: v.string(), tries: v.optional(v.number(), 3) }),
  group: ({ to }) => to.split('@')[1] ?? '',
  run: async ({ to }) => to,
})
const note = defineTask({ name: 'note', queue: 'mail', run: async (_text: string) => {} })
const gather = defineTask({ name: 'gather', queue: 'mail', joins: { notes: many(note) }, run: async () => {} })
const sync = defineOrderedTask({ name: 'sync', queue: 'orders', run: async () => {} })

type Kind = 'memory' | 'sqlite' | 'postgres' | 'redis'
const kinds: readonly Kind[] = ['memory', 'sqlite', 'postgres', 'redis']

async function millOn(kind: Kind): Promise<Mill> {
  const options = { queues: { mail: {} }, tasks: [send, note, gather, sync] }
  if (kind !== 'redis') return testMill(options, kind)
  const { url } = await workerRedis()
  const mill = millrace({ ...options, store: url, namespace: `again-${Math.random().toString(36).slice(2)}` }) as Mill
  onTestFinished(() => mill.close())
  return mill
}

/** Claims this one ready job, and buries it as its worker would. */
async function die(mill: Mill, queue = 'mail'): Promise<void> {
  const store = await mill.adminParts.connect()
  const { claims } = await store.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 60_000 })
  await store.settle(claims.map((claim) => ({ ...claim, kind: 'bury', error: 'Error: no such host' }) as const))
}

describe.each(kinds)('on %s', (kind) => {
  it('a job is enqueued again under a new id that names the old one, with its input or another', async () => {
    const mill = await millOn(kind)
    const { jobs } = mill.queue('mail')
    await mill.enqueue(send, { to: 'ada@a.org' }, { id: 'old', priority: 3, meta: { by: 'shop' }, group: 'vip' })
    await die(mill)
    const same = await jobs.enqueueAgain('old')
    const other = await jobs.enqueueAgain('old', { input: { to: 'bob@b.org', tries: 5 } })
    const repeatOf = { queue: 'mail', id: 'old', task: 'send' }
    const kept = { state: 'ready', task: 'send', priority: 3, meta: { by: 'shop' }, repeatOf, attempt: 1 }

    expect(await same!.record()).toMatchObject({ ...kept, input: { to: 'ada@a.org', tries: 3 }, group: 'vip' })
    expect(await other!.record()).toMatchObject({ ...kept, input: { to: 'bob@b.org', tries: 5 }, group: 'b.org' })
    expect(await jobs.get('old')).toMatchObject({ state: 'dead', error: 'Error: no such host' })
    expect(await jobs.enqueueAgain('absent')).toBeUndefined()
  })

  it('a job that ended without a kept result is not enqueued again', async () => {
    const mill = await millOn(kind)
    await mill.enqueue(note, 'a', { id: 'done' })
    const store = await mill.adminParts.connect()
    const { claims } = await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
    await store.settle(claims.map((claim) => ({ ...claim, kind: 'complete' }) as const))
    expect(await mill.queue('mail').jobs.enqueueAgain('done', { input: 'b' })).toBeUndefined()
    expect((await mill.queue('mail').depth()).ready).toBe(0)
  })

  it('a dead job is revived with another input under its id, as a new job, and its id stays remembered', async () => {
    const mill = await millOn(kind)
    const { jobs, morgue } = mill.queue('mail')
    await mill.enqueue(send, { to: 'nobody' }, { id: 'welcome', priority: 2, meta: { by: 'shop' } })
    await jobs.setFields('welcome', { order: 4711 })
    await die(mill)

    expect(await morgue.revive(['welcome'], { input: { to: 'ada@a.org' } })).toBe(1)
    const revived = await jobs.get('welcome')
    expect(revived).toMatchObject({
      ...{ state: 'ready', attempt: 1, priority: 2, meta: { by: 'shop' }, group: 'a.org' },
      input: { to: 'ada@a.org', tries: 3 },
    })
    for (const gone of ['error', 'fields', 'reason', 'repeatOf']) expect(revived).not.toHaveProperty(gone)
    expect(await morgue.revive(['welcome'], { input: { to: 'eve@a.org' } })).toBe(0)
    expect(await morgue.revive(['absent'], { input: { to: 'eve@a.org' } })).toBe(0)
    const store = await mill.adminParts.connect()
    const { claims } = await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
    await store.settle(claims.map((claim) => ({ ...claim, kind: 'complete' }) as const))
    expect((await mill.enqueue(send, { to: 'ada@a.org' }, { id: 'welcome' })).outcome).toBe('duplicate')
  })

  it('an input that the schema refuses revives and enqueues nothing', async () => {
    const mill = await millOn(kind)
    const { jobs, morgue } = mill.queue('mail')
    await mill.enqueue(send, { to: 'nobody' }, { id: 'welcome' })
    await die(mill)

    for (const call of [
      () => morgue.revive(['welcome'], { input: { to: 4 } }),
      () => morgue.revive(['welcome'], { input: undefined }),
      () => jobs.enqueueAgain('welcome', { input: 'ada' }),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'job-invalid' })
    expect(await mill.queue('mail').depth()).toMatchObject({ ready: 0, dead: 1 })
  })

  it('another input is refused where runs have left a checkpoint or steps, and for joins, members and ordered jobs', async () => {
    const mill = await millOn(kind)
    const store = await mill.adminParts.connect()
    const { jobs, morgue } = mill.queue('mail')
    const begun = async (id: string) => {
      await mill.enqueue(note, 'a', { id })
      const { claims } = await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })
      return claims[0]!
    }
    const marked = await begun('marked')
    await store.extend([{ ...marked, leaseMs: 60_000, beat: { checkpoint: { payload: '1' } } }])
    await store.settle([{ ...marked, kind: 'bury' }])
    const stepped = await begun('stepped')
    await store.steps!.keep(stepped, { name: 'charge', kind: 'step', payload: '1' }, 60_000)
    await store.settle([{ ...stepped, kind: 'bury' }])
    await mill.enqueue(gather, null as never, { id: 'join', after: { notes: ['x'] } })
    await jobs.bury(['join'])
    const [member] = (await jobs.list({ task: note, state: 'ready' })).jobs
    await jobs.bury([member!.id])
    await mill.enqueue(sync, 1 as never, { id: 'e-1' })
    const orders = mill.queue('orders')
    await orders.jobs.bury(['e-1'])

    for (const [call, why] of [
      [() => morgue.revive(['marked'], { input: 'b' }), /it has a checkpoint that its runs have made of its input/],
      [() => morgue.revive(['stepped'], { input: 'b' }), /it has steps that its runs have made of its input/],
      [() => morgue.revive(['join'], { input: 'b' }), /it waits for other jobs, which belong to its input/],
      [() => morgue.revive([member!.id], { input: 'b' }), /it is waited for by another job/],
      [() => orders.morgue.revive(['e-1'], { input: 2 }), /it is ordered, and has payloads instead of one input/],
      [() => jobs.enqueueAgain('join'), /it waits for other jobs, which would have to be enqueued with it/],
      [() => orders.jobs.enqueueAgain('e-1'), /it is ordered/],
      [() => morgue.revive(['a', 'b'], { input: 1 }), /takes one id, and no members/],
      [() => morgue.revive('all', { input: 1 }), /takes one id, and no members/],
      [() => morgue.revive(['a'], { input: 1, members: true }), /takes one id, and no members/],
    ] as const) {
      const refused = await call().then(String, (error: unknown) => error)
      expect(refused).toMatchObject({ code: 'argument-invalid', message: expect.stringMatching(why) })
    }
    expect((await mill.queue('mail').depth()).dead).toBe(4)
    expect((await jobs.enqueueAgain('stepped', { input: 'b' }))?.outcome).toBe('added')
  })
})
