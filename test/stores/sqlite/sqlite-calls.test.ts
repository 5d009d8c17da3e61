/** The memory of enqueue calls: for how long a call that is sent again is answered and not repeated, whatever the wall clock says. */

import { afterEach, beforeEach, expect, it } from 'vitest'
import { readFileClock, writeFileClock } from '#src/store-testing/harness/file-clock.js'
import { type SqliteHarness, sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import type { Store } from '#src/stores/contract/store.js'
import { enqueueCall, queue } from './sqlite-scene.js'

let harness: SqliteHarness
let store: Store
beforeEach(async () => {
  harness = await sqliteHarness()
  store = await harness.open()
  await store.open([queue])
})
afterEach(() => harness.close())

const hour = 3_600_000
const call = enqueueCall('a')

/** Runs the job of the call to its end: the same id would be accepted again. */
async function completed(): Promise<void> {
  expect(await store.enqueue([call])).toEqual([['added']])
  const [claim] = (await store.claim([{ queue: queue.name, limit: 1 }], { worker: 'w', leaseMs: 30_000 })).claims
  await store.settle([{ queue: queue.name, id: claim!.id, fence: claim!.fence, kind: 'complete' }])
}

/** How many jobs wait when the call is sent again, from this process or from another. */
async function readyAfterAnother(): Promise<number> {
  expect(await store.enqueue([call])).toEqual([['added']])
  expect(await (await harness.open()).enqueue([call])).toEqual([['added']])
  return (await store.depth([queue.name])).depths[0]!.ready
}

it.each([hour, -hour, 60_001])('a call is not repeated if the clock steps by %i ms in between', async (ms) => {
  await completed()
  await harness.step(ms)
  expect(await readyAfterAnother()).toBe(0)
  await harness.advance(59_999)
  expect(await readyAfterAnother()).toBe(0)
})

it.each([hour, -hour])('a call is forgotten after a minute even if the clock steps by %i ms in between', async (ms) => {
  await completed()
  await harness.step(ms)
  await harness.advance(60_000)
  expect(await readyAfterAnother()).toBe(1)
})

it('a call from an earlier boot is forgotten, because nobody is left to repeat it', async () => {
  await completed()
  await store.close()
  const { now } = readFileClock(harness.clockFile)
  writeFileClock(harness.clockFile, now + 1, 'boot-2', 7)
  store = await harness.open()
  await store.open([queue])
  expect(await store.enqueue([call])).toEqual([['added']])
  expect((await store.depth([queue.name])).depths[0]!.ready).toBe(1)
})
