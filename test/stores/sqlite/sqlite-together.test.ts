/** Jobs that one statement could take together: what is special about one of them is done as if each came alone. */

import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Store } from '#src/stores/contract/store.js'
import { enqueueCall, queue, SqliteScene } from './sqlite-scene.js'

let scene: SqliteScene
let store: Store
beforeEach(async () => {
  scene = new SqliteScene()
  store = await scene.opened()
})
afterEach(() => scene.close())

const claimed = async (limit: number) =>
  (await store.claim([{ queue: queue.name, limit }], { worker: 'w', leaseMs: 30_000 })).claims

it('a call of many leaves out the ids that are there or come twice, and keeps the order of all others', async () => {
  expect(await store.enqueue([enqueueCall('a', 'b', 'c', 'd')])).toEqual([['added', 'added', 'added', 'added']])
  const answers = [['duplicate', 'added', 'added', 'added', 'duplicate']]
  expect(await store.enqueue([enqueueCall('c', 'e', 'f', 'g', 'e')])).toEqual(answers)
  expect((await claimed(10)).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
})

it('of many completions of one claim one that is sent again is gone, and the others are done', async () => {
  await store.enqueue([enqueueCall('a', 'b', 'c', 'd', 'e')])
  const ends = (await claimed(5)).map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' as const }))
  expect(await store.settle(ends.slice(0, 1))).toEqual(['ok'])
  expect(await store.settle(ends)).toEqual(['gone', 'ok', 'ok', 'ok', 'ok'])
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ running: 0, ready: 0, processed: 5 })
})
