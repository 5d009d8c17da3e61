/** Somebody who can write to the store, and has no key: what becomes of sealed jobs that they change. */

import { randomUUID } from 'node:crypto'
import { defineOrderedTask, defineTask } from 'millrace'
import type { NewJob, Store } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { newKey } from '../core/seal-keys.js'
import { nextEvent } from '../next-event.js'
import { packedKinds, packedStores } from './packed-stores.js'

type Content = Pick<NewJob, 'payload' | 'meta' | 'codec'>

const seal = { current: '2026-11', keys: { '2026-11': newKey }, only: true }

/** A mill with two tasks of one queue and an ordered one, whose handlers note their calls. */
async function scene(kind: (typeof packedKinds)[number]) {
  const on = await packedStores[kind]()
  const ran: string[] = []
  const remind = defineTask({ name: 'remind', queue: 'q', run: (_, { job }) => void ran.push(`remind ${job.id}`) })
  const erase = defineTask({ name: 'erase', queue: 'q', run: (_, { job }) => void ran.push(`erase ${job.id}`) })
  const book = defineOrderedTask({ name: 'book', queue: 'o', run: (all) => void ran.push(`book ${[...all.keys()]}`) })
  const mill = on.mill({ seal, tasks: [remind, erase, book] })
  const store = await on.store()

  /** The content of a job as it is stored. The job is gone then. */
  async function taken(queue: string, id: string): Promise<Content> {
    const { payload, meta, codec, payloads } = (await store.records!.get(queue, id))!
    await store.records!.delete(queue, { ids: [id] })
    const one: Content = payloads?.[0] ?? { payload, ...(meta && { meta }), ...(codec && { codec }) }
    return { payload: one.payload, ...(one.meta && { meta: one.meta }), ...(one.codec && { codec: one.codec }) }
  }
  async function stored(queue: string, id: string, task: string, content: Content): Promise<void> {
    const job = { id, task, ...content, priority: 0, rememberMs: queue === 'o' ? 0 : 1 }
    await store.enqueue([{ callId: randomUUID(), queue, jobs: [queue === 'o' ? { ...job, score: 1 } : job] }])
  }
  /** Works until one job is buried. */
  async function buried() {
    const event = nextEvent(mill, 'job.buried')
    const worker = mill.worker()
    await worker.start()
    const { reason, error } = await event
    await worker.stop()
    return { reason, error: String(error) }
  }
  return { mill, store, ran, remind, book, taken, stored, buried }
}

describe.each(packedKinds)('a sealed job that an attacker changes, on %s', (kind) => {
  it('is buried if it is moved to another task', async () => {
    const { mill, ran, remind, taken, stored, buried } = await scene(kind)
    await mill.enqueue(remind, { user: 'ada' }, { id: 'a', delay: '1h' })
    await stored('q', 'a', 'erase', await taken('q', 'a'))

    expect(await buried()).toMatchObject({ reason: 'bad-payload', error: expect.stringMatching(/does not open/) })
    expect(ran).toEqual([])
  })

  it.each<[string, (own: Content, other: Content) => Content]>([
    ['is taken away', ({ meta: _, ...rest }) => rest],
    ['is that of another enqueue of its id', (own, { meta }) => ({ ...own, meta: meta! })],
    ['is not sealed', (own) => ({ ...own, meta: '{"dryRun":false}' })],
  ])('is buried if its meta %s', async (_, change) => {
    const { mill, ran, remind, taken, stored, buried } = await scene(kind)
    await mill.enqueue(remind, { user: 'ada' }, { id: 'a', delay: '1h', meta: { dryRun: true } })
    const own = await taken('q', 'a')
    await mill.enqueue(remind, { user: 'ada' }, { id: 'a', delay: '1h', meta: { dryRun: false } })
    await stored('q', 'a', 'remind', change(own, await taken('q', 'a')))

    expect(await buried()).toMatchObject({ reason: 'bad-payload' })
    expect(ran).toEqual([])
  })

  it('is buried if a meta is added', async () => {
    const { mill, ran, remind, taken, stored, buried } = await scene(kind)
    await mill.enqueue(remind, { user: 'ada' }, { id: 'a', delay: '1h' })
    const own = await taken('q', 'a')
    await mill.enqueue(remind, { user: 'bob' }, { id: 'a', delay: '1h', meta: { dryRun: true } })
    await stored('q', 'a', 'remind', { ...own, meta: (await taken('q', 'a')).meta! })

    expect(await buried()).toMatchObject({ reason: 'bad-payload' })
    expect(ran).toEqual([])
  })

  it.each<[string, (own: Content, other: Content) => Content]>([
    ['taken away', ({ meta: _, ...rest }) => rest],
    ['that of another payload of its id', (own, { meta }) => ({ ...own, meta: meta! })],
  ])('is buried if the meta of an ordered payload is %s', async (_, change) => {
    const { mill, ran, book, taken, stored, buried } = await scene(kind)
    await mill.enqueue(book, 1, { id: 'a', delay: '1h', meta: { dryRun: true } })
    const own = await taken('o', 'a')
    await mill.enqueue(book, 2, { id: 'a', delay: '1h' })
    await stored('o', 'a', 'book', change(own, await taken('o', 'a')))

    expect(await buried()).toMatchObject({ reason: 'bad-payload' })
    expect(ran).toEqual([])
  })

  it.each<[string, (bytes: Uint8Array) => Uint8Array]>([
    ['its version', (bytes) => Uint8Array.of(2, ...bytes.subarray(1))],
    ['the length of its key id', (bytes) => Uint8Array.of(...bytes.subarray(0, 2), 200, ...bytes.subarray(3))],
    ['its last bit', (bytes) => Uint8Array.of(...bytes.subarray(0, -1), bytes.at(-1)! ^ 1)],
  ])('is buried if %s is changed', async (_, change) => {
    const { mill, remind, taken, stored, buried } = await scene(kind)
    await mill.enqueue(remind, { user: 'ada' }, { id: 'a', delay: '1h' })
    const own = await taken('q', 'a')
    await stored('q', 'a', 'remind', { ...own, payload: change(own.payload as Uint8Array) })

    expect(await buried()).toMatchObject({ reason: 'bad-payload' })
  })

  it.each<[string, (own: Content) => Content]>([
    ['the id of its key', (own) => ({ ...own, payload: withKeyId(own.payload as Uint8Array, '2026-12') })],
    ['its codec', (own) => ({ ...own, codec: 'cbor+sealed' })],
  ])('is put back if %s is changed, and buried after a day', async (_, change) => {
    const { mill, store, remind, taken, stored, buried } = await scene(kind)
    await mill.enqueue(remind, { user: 'ada' }, { id: 'a', delay: '1h' })
    await stored('q', 'a', 'remind', change(await taken('q', 'a')))
    const released = nextEvent(mill, 'job.released')
    const worker = mill.worker()
    await worker.start()
    expect(await released).toMatchObject({ id: 'a', reason: expect.stringMatching(/^unknown-/) })
    await worker.stop()

    await aDayEarlier(store)
    expect(await buried()).toMatchObject({ reason: 'bad-payload', error: expect.stringMatching(/revive it/) })
  })
})

function withKeyId(bytes: Uint8Array, id: string): Uint8Array {
  return Uint8Array.of(...bytes.subarray(0, 3), ...Buffer.from(id), ...bytes.subarray(3 + id.length))
}

/** Moves the beginning of its wait, which its error has. */
async function aDayEarlier(store: Store): Promise<void> {
  await store.records!.runNow('q', { ids: ['a'] })
  const { claims } = await store.claim([{ queue: 'q', limit: 1 }], { worker: 'somebody', leaseMs: 60_000 })
  const { fence, error = '' } = claims[0]!
  const changed = error.replace(
    /from (\S+)/,
    (_, from) => `from ${new Date(Date.parse(from) - 86_400_000).toISOString()}`,
  )
  await store.settle([{ queue: 'q', id: 'a', fence, kind: 'release', delayMs: 0, error: changed }])
}
