/** Jobs chosen by what they are: listed, counted and changed, on every store. */

import { defineOrderedTask, defineTask, type JobFilter, type Mill, type MillOptions, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { QueueAdmin } from '#src/client/admin/queue-admin.js'
import { errorKind } from '#src/core/messages/error-kind.js'
import { testMill } from '../../test-mill.js'
import { workerRedis } from '../../worker-redis.js'
import { adminParts } from '../enqueue/ordered-scene.js'

const send = defineTask({ name: 'send', queue: 'mail', run: (_to: string) => {} })
const bill = defineTask({ name: 'bill', queue: 'mail', run: (_to: string) => {} })

type Kind = 'memory' | 'sqlite' | 'postgres' | 'redis'
const kinds: readonly Kind[] = ['memory', 'sqlite', 'postgres', 'redis']

async function millOn(kind: Kind, given: Partial<MillOptions> = {}): Promise<Mill> {
  const options = { queues: { mail: {} }, tasks: [send, bill], ...given }
  if (kind !== 'redis') return testMill(options, kind)
  const { url } = await workerRedis()
  const mill = millrace({ ...options, store: url, namespace: `filter-${Math.random().toString(36).slice(2)}` }) as Mill
  onTestFinished(() => mill.close())
  return mill
}

/** More than two pages of a group, beside another group and jobs without one. */
async function fill(mill: Mill): Promise<void> {
  const jobs = (group: string | undefined, count: number) =>
    Array.from({ length: count }, (_, i) => {
      const options = { id: `${group ?? 'none'}-${i}`, ...(group === undefined ? {} : { group }) }
      return [send, `${i}`, options] as const
    })
  await mill.enqueueMany([...jobs('acme', 450), ...jobs('beta', 30), ...jobs(undefined, 20)])
}

describe.each(kinds)('jobs chosen by a filter on %s', (kind) => {
  it('are cancelled by their group, all of them and no others', async () => {
    const mill = await millOn(kind)
    await fill(mill)
    const { jobs } = mill.queue('mail')
    expect(await jobs.count({ group: 'acme' })).toBe(450)
    expect(await jobs.cancel({ group: 'acme' })).toBe(450)
    expect(await jobs.count({ group: 'acme', state: 'ready' })).toBe(0)
    expect((await mill.queue('mail').depth()).ready).toBe(50)
    expect(await jobs.delete({ group: '' })).toBe(20)
    expect((await mill.queue('mail').depth()).ready).toBe(30)
  })

  it('are listed page by page by group, and counted by task, field, state and time', async () => {
    const mill = await millOn(kind)
    await fill(mill)
    const { jobs } = mill.queue('mail')
    const found: string[] = []
    for (let cursor: string | undefined, pages = 0; pages < 10; pages += 1) {
      const page = await jobs.list({ group: 'beta', by: 'id', limit: 200, ...(cursor && { cursor }) })
      found.push(...page.jobs.map(({ id }) => id))
      cursor = page.cursor
      if (cursor === undefined) break
    }
    expect(found.sort()).toEqual(Array.from({ length: 30 }, (_, i) => `beta-${i}`).sort())
    await mill.enqueue(bill, 'x', { id: 'bill', delay: '1h' })
    await jobs.setFields('beta-7', { order: 4711 })
    expect(await jobs.count({ task: bill })).toBe(1)
    expect(await jobs.count({ task: 'send' })).toBe(500)
    expect(await jobs.count({ fields: { order: 4711 } })).toBe(1)
    expect(await jobs.count({ fields: { order: 4712 } })).toBe(0)
    expect(await jobs.count({ task: bill, state: 'scheduled' })).toBe(1)
    expect(await jobs.runNow({ task: bill })).toBe(1)
    expect(await jobs.count({ to: new Date(0) })).toBe(0)
    expect(await jobs.count({ from: new Date(0) })).toBe(501)
  })

  it('are found by a text in their id, task, group, fields or input, and changed by it', async () => {
    const mill = await millOn(kind)
    await fill(mill)
    const { jobs, morgue } = mill.queue('mail')
    await mill.enqueue(send, 'Order 4711 of Ada', { id: 'a', priority: 3 })
    await mill.enqueue(send, 'x', { id: 'b-4711', delay: '1h' })
    await mill.enqueue(send, 'x', { id: 'c', group: 'shop-4711', fields: { order: 4712 } })
    await mill.enqueue(bill, 'x', { id: 'd' })
    expect(await jobs.count({ text: '4711' })).toBe(3)
    expect(await jobs.count({ text: 'oRDER 4711 OF' })).toBe(1)
    expect(await jobs.count({ text: 'order=4712' })).toBe(1)
    expect(await jobs.count({ text: 'BILL' })).toBe(1)
    expect(await jobs.count({ text: '4711', state: 'scheduled' })).toBe(1)
    expect(await jobs.count({ text: '4711', group: 'shop-4711' })).toBe(1)
    const { jobs: first, cursor } = await jobs.list({ text: '4711', limit: 200 })
    expect([first.map(({ id }) => id), cursor === undefined]).toEqual([['a'], false])
    expect(await jobs.bury({ text: 'ada' })).toBe(1)
    expect((await morgue.list({ text: 'ada' })).jobs.map(({ id }) => id)).toEqual(['a'])
    expect(await morgue.revive({ text: 'ada' })).toBe(1)
    expect(await jobs.cancel({ text: '4711' })).toBe(3)
    expect(await jobs.count({ text: '4711' })).toBe(0)
  })

  it('are found by the text of payloads, and of inputs that are compressed and sealed, if the key is here', async () => {
    const orders = defineOrderedTask({ name: 'orders', id: (o: { id: string; note: string }) => o.id, run: () => {} })
    const queues = { mail: {}, orders: { ordered: true } }
    const keys = { new: Buffer.alloc(32, 7).toString('base64') }
    const packing = { compress: { above: 100 }, seal: { current: 'new', keys } }
    const sealed = await millOn(kind, { queues, tasks: [send, orders], ...packing })
    const text = `order 4711 ${'x'.repeat(500)}`
    await sealed.enqueue(send, text, { id: 'a' })
    await sealed.enqueueMany(
      orders,
      [1, 2].map((n) => ({ id: 'o', note: `note ${n}` })),
      ({ note }) => ({ score: Number(note.at(-1)) }),
    )
    const { jobs } = sealed.queue('mail')
    const store = await sealed.adminParts.connect()
    const [stored] = (await store.records!.list('mail', { by: 'time', limit: 1 })).jobs
    expect(stored?.codec).toBe('json+gzip+sealed')
    expect(await jobs.count({ text: 'order 4711' })).toBe(1)
    expect(await sealed.queue('orders').jobs.count({ text: 'note 2' })).toBe(1)
    const keyless = new QueueAdmin('mail', adminParts(store))
    expect(await keyless.jobs.count({ text: 'order 4711' })).toBe(0)
    expect(await keyless.jobs.count({ text: 'send' })).toBe(1)
  })

  it('are revived by the kind of their error', async () => {
    const mill = await millOn(kind)
    const { jobs, morgue } = mill.queue('mail')
    await mill.enqueueMany(send, ['a', 'b', 'c'], (id) => ({ id }))
    const store = await mill.adminParts.connect()
    const { claims } = await store.claim([{ queue: 'mail', limit: 3 }], { worker: 'w', leaseMs: 60_000 })
    const errors: Record<string, string> = {
      a: 'Error: order 4711 is gone\n    at here',
      b: 'Error: order 12 is gone\n    at there',
      c: 'Error: no route to shop',
    }
    await store.settle(claims.map((claim) => ({ ...claim, kind: 'bury', error: errors[claim.id]! }) as const))
    expect(await jobs.count({ error: 'Error: order 1 is gone' })).toBe(2)
    expect((await morgue.list({ error: 'Error: order 1 is gone' })).jobs.map(({ id }) => id).sort()).toEqual(['a', 'b'])
    expect(await morgue.revive({ error: 'Error: order 1 is gone' })).toBe(2)
    expect(await mill.queue('mail').depth()).toMatchObject({ ready: 2, dead: 1 })
    expect(await morgue.delete({ task: 'send' })).toBe(1)
  })
})

describe('a filter', () => {
  const wrong: readonly (readonly [JobFilter, RegExp])[] = [
    [{}, /a filter must say something, such as \{ group: 'acme' \}/],
    [{ group: undefined }, /a filter must say something/],
    [{ grup: 'acme' } as never, /where\(\{ grup \}\)/],
    [{ group: {} as never }, /^group must be/],
    [{ state: 'active' as never }, /must be one of .*What others call active is here running/],
    [{ task: {} as never }, /where\(\{ task \}\) expects a task/],
    [{ fields: ['a'] as never }, /^fields must be an object/],
    [{ from: 'yesterday' }, /^from must be a valid Date or ISO-8601 text/],
    [{ error: 4 as never }, /where\(\{ error \}\)/],
    [{ text: 4711 as never }, /where\(\{ text \}\)/],
    [{ text: '' }, /^text must have 1 to 1,000 characters; got 0/],
    [{ text: 'x'.repeat(1_001) }, /^text must have 1 to 1,000 characters; got 1001/],
  ]

  it.each(wrong)('that is wrong is refused, and changes nothing: %j', async (filter, message) => {
    const mill = testMill({ queues: { mail: {} }, tasks: [send] })
    await mill.enqueue(send, 'a')
    const refused = await mill
      .queue('mail')
      .jobs.cancel(filter)
      .catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'argument-invalid' })
    expect((refused as Error).message).toMatch(message)
    expect((await mill.queue('mail').depth()).ready).toBe(1)
  })

  it('is not taken together with the members of dead joins', async () => {
    const mill = testMill({ queues: { mail: {} }, tasks: [send] })
    await expect(mill.queue('mail').morgue.revive({ group: 'a' }, { members: true })).rejects.toThrow(
      /takes ids or 'all'/,
    )
  })
})

it.each([
  ['Error: order 4711 of 3f2a9c7e is gone\n  at x', 'Error: order # of # is gone'],
  ['Error: 9f1b2c3d-0000-4000-8000-0123456789ab', 'Error: #'],
  ['connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED #'],
  ['TypeError: x is not a function', 'TypeError: x is not a function'],
  ['at 0xdeadbeef after 12.5 s', 'at # after # s'],
  ['', ''],
])('the kind of %j is %j', (error, kind) => expect(errorKind(error)).toBe(kind))
