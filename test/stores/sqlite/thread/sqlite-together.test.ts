/** Jobs that one statement could take together: what is special about one of them is done as if each came alone. */

import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Store } from '#src/stores/contract/store.js'
import { enqueueCall, job, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
let store: Store
beforeEach(async () => {
  store = await scene.opened()
})
afterEach(() => scene.close())

const claimed = async (limit: number) =>
  (await store.claim([{ queue: queue.name, limit }], { worker: 'w', leaseMs: 30_000 })).claims

it('a call with many jobs leaves out ids that exist or repeat, and keeps the order of the others', async () => {
  expect(await store.enqueue([enqueueCall('a', 'b', 'c', 'd')])).toEqual([['added', 'added', 'added', 'added']])
  const answers = [['duplicate', 'added', 'added', 'added', 'duplicate']]
  expect(await store.enqueue([enqueueCall('c', 'e', 'f', 'g', 'e')])).toEqual(answers)
  expect((await claimed(10)).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
})

it('a call with many jobs leaves out a remembered id, and adds new ids with it', async () => {
  await store.enqueue([{ callId: 'first', queue: queue.name, jobs: [job('a', { rememberMs: 60_000 })] }])
  const [{ id, fence } = { id: '', fence: 0 }] = await claimed(1)
  await store.settle([{ queue: queue.name, id, fence, kind: 'complete' }])

  const made = { ...enqueueCall('e', 'f', 'g', 'h'), hasNewIds: true }
  expect(await store.enqueue([enqueueCall('a', 'b', 'c', 'd'), made])).toEqual([
    ['duplicate', 'added', 'added', 'added'],
    ['added', 'added', 'added', 'added'],
  ])
  expect((await claimed(10)).map((claim) => claim.id)).toEqual(['b', 'c', 'd', 'e', 'f', 'g', 'h'])
})

it('a call with many replacing jobs takes the place of waiting ones, and keeps its own order', async () => {
  await store.enqueue([enqueueCall('a', 'b', 'c', 'd')])
  const jobs = ['c', 'x', 'a', 'y'].map((id) => job(id, { ifWaiting: 'replace', payload: '1' }))
  const answers = await store.enqueue([{ callId: 'second', queue: queue.name, jobs }])
  expect(answers).toEqual([['replaced', 'added', 'replaced', 'added']])
  const texts = (await claimed(10)).map(({ id, payload }) => `${id} ${payload}`)
  expect(texts).toEqual(['b {}', 'd {}', 'c 1', 'x 1', 'a 1', 'y 1'])
})

it('a call with many jobs is refused as a whole if its new jobs exceed the limit of the queue', async () => {
  await store.open([{ ...queue, maxPending: 5 }])
  await store.enqueue([enqueueCall('a', 'b', 'c', 'd')])
  expect(await store.enqueue([enqueueCall('a', 'b', 'e', 'f')])).toEqual([['full', 'full', 'full', 'full']])
  expect(await store.enqueue([enqueueCall('a', 'b', 'c', 'e')])).toEqual([
    ['duplicate', 'duplicate', 'duplicate', 'added'],
  ])
})

it('a repeated call with many jobs gets its first answer', async () => {
  const call = enqueueCall('a', 'b', 'c', 'd')
  const first = await store.enqueue([call])
  await claimed(4)
  expect(await store.enqueue([{ ...call, isResent: true }])).toEqual(first)
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ ready: 0, running: 4 })
})

const singles = (name: string, ...ids: string[]) => ids.map((id) => ({ callId: id, queue: name, jobs: [job(id)] }))

it('calls with one job each that travel together are answered separately', async () => {
  await store.open([
    { ...queue, maxPending: 5 },
    { ...queue, name: 'orders', kind: 'ordered' },
  ])
  const added = ['added', 'added', 'added', 'added']
  expect((await store.enqueue(singles(queue.name, 'a', 'b', 'c', 'd'))).flat()).toEqual(added)
  expect((await store.enqueue(singles(queue.name, 'e', 'f', 'a', 'g'))).flat()).toEqual([
    ...['added', 'full', 'added', 'full'],
  ])
  expect((await store.enqueue(singles('orders', 'a', 'b', 'c', 'd'))).flat()).toEqual(added)
  await store.records!.drain('orders')
  expect((await store.enqueue(singles('orders', 'e', 'f', 'g', 'h'))).flat()).toEqual(added.map(() => 'draining'))
  expect((await claimed(10)).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd', 'e'])
})

it('each call that travelled with others gets its first answer again if it is repeated', async () => {
  const calls = singles(queue.name, 'a', 'b', 'c', 'd')
  await store.enqueue(calls)
  const ends = (await claimed(4)).map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' as const }))
  await store.settle(ends)
  expect(await store.enqueue(calls.map((call) => ({ ...call, isResent: true })))).toEqual(calls.map(() => ['added']))
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ ready: 0, processed: 4 })
})

it('in many completions of one claim a repeated one is gone, and the others succeed', async () => {
  await store.enqueue([enqueueCall('a', 'b', 'c', 'd', 'e')])
  const ends = (await claimed(5)).map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' as const }))
  expect(await store.settle(ends.slice(0, 1))).toEqual(['ok'])
  expect(await store.settle(ends)).toEqual(['gone', 'ok', 'ok', 'ok', 'ok'])
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ running: 0, ready: 0, processed: 5 })
})
