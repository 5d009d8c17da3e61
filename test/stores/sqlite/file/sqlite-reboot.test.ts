import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { job, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
/** What the machine's clocks say; its monotonic one counts from the boot. */
let times: { now: number; mono: number; boot: string; bootedAt: number }
beforeEach(() => {
  times = { now: 1_700_000_000_000, mono: 5_000_000, boot: 'first', bootedAt: 1_700_000_000_000 - 5_000_000 }
  writeFileSync(
    clockModule(),
    `import { readFileSync } from 'node:fs'
     const times = () => JSON.parse(readFileSync(${JSON.stringify(`${clockModule()}.json`)}, 'utf8'))
     export const clock = {
       now: () => times().now, mono: () => times().mono, bootId: () => times().boot, bootedAt: () => times().bootedAt
     }`,
  )
  tell()
})
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 60_000 }
const asked = [{ queue: queue.name, limit: 9 }]

function clockModule(): string {
  return join(scene.folder, 'clock.mjs')
}

function tell(): void {
  writeFileSync(`${clockModule()}.json`, JSON.stringify(times))
}

function pass(ms: number): void {
  times = { ...times, now: times.now + ms, mono: times.mono + ms }
  tell()
}

async function opened(settings: Partial<QueueSettings>): Promise<SqliteStore> {
  const store = scene.store(scene.file, pathToFileURL(clockModule()).href)
  await store.open([{ ...queue, ...settings }])
  return store
}

/** The machine is off for so long, and is started anew. */
async function reboot(store: SqliteStore, offMs: number, settings: Partial<QueueSettings>): Promise<SqliteStore> {
  await store.close()
  times = { now: times.now + offMs, mono: 2_000, boot: 'second', bootedAt: times.now + offMs - 2_000 }
  tell()
  return opened(settings)
}

async function enqueue(store: SqliteStore, ...ids: string[]): Promise<void> {
  const jobs = ids.map((id) => job(id, { group: id.slice(0, 1) }))
  await store.enqueue([{ callId: ids.join(), queue: queue.name, jobs }])
}

async function claimed(store: SqliteStore) {
  const { claims, waits } = await store.claim(asked, by)
  return { ids: claims.map(({ id }) => id), wait: waits[0] }
}

it('a short window is silent once after a restart of the machine, and then goes on', async () => {
  const rules = [{ limit: 2, windowMs: 10_000, moderate: false }]
  const settings = { throttle: { scope: 'api', by: 'queue', rules } } as const
  let store = await opened(settings)
  await enqueue(store, 'a1', 'a2', 'a3', 'a4')
  expect((await claimed(store)).ids).toEqual(['a1', 'a2'])
  store = await reboot(store, 60_000, settings)

  expect(await claimed(store)).toMatchObject({ ids: [], wait: { reason: 'throttled', forMs: 10_001 } })
  expect(await store.throttles.state(queue.name)).toMatchObject({ hits: [0], quietForMs: 10_001 })
  pass(10_000)
  expect((await claimed(store)).ids).toEqual([])
  pass(1)
  // The leases of before are over: those two are suspects, and others are taken in company.
  expect((await claimed(store)).ids).toEqual(['a3', 'a4'])
})

it('a long window still counts earlier starts by their age, and possible unknown ones', async () => {
  const rules = [{ limit: 8, windowMs: 3_600_000, moderate: false }]
  const settings = { throttle: { scope: 'api', by: 'group', rules } } as const
  let store = await opened(settings)
  await enqueue(store, 'a1', 'a2', 'a3')
  expect((await claimed(store)).ids).toEqual(['a1', 'a2', 'a3'])
  store = await reboot(store, 900_000, settings)
  // A quarter of the window later: a quarter of the limit.
  await enqueue(store, 'a4', 'a5', 'a6', 'a7', 'b1')

  expect((await claimed(store)).ids).toEqual(['a4', 'a5', 'a6', 'b1'])
  expect(await store.throttles.state(queue.name, 'a')).toMatchObject({ hits: [8], groups: 2, quietForMs: 0 })
  pass(2_700_000)
  expect((await claimed(store)).ids).toEqual([])
  pass(1)
  expect((await claimed(store)).ids).toEqual(['a7'])
})

it('a hold ends at its time after a restart, and a queue shut by a throttle is checked again', async () => {
  const settings = {
    throttle: { scope: 'api', by: 'group', rules: [{ limit: 1, windowMs: 1_000, moderate: false }] },
  } as const
  let store = await opened(settings)
  await enqueue(store, 'a1', 'b1', 'b2')
  const first = await store.claim([{ queue: queue.name, limit: 1 }], by)
  const { id, fence } = first.claims[0]!
  const hold = { of: 'group', forMs: 600_000 } as const
  await store.settle([{ queue: queue.name, id, fence, kind: 'release', delayMs: 0, hold }])
  expect((await claimed(store)).ids).toEqual(['b1'])
  store = await reboot(store, 400_000, settings)
  expect((await claimed(store)).ids).toEqual([])
  pass(1_001)
  expect((await claimed(store)).ids).toEqual(['b2'])
  pass(600_000 - 400_000 - 1_001 - 1)

  expect(await claimed(store)).toMatchObject({ ids: [], wait: { forMs: 1 } })
  pass(1)
  expect((await claimed(store)).ids).toEqual(['a1'])
})

it('a claim that ended with the machine holds no slot of `maxRunning`', async () => {
  const settings = { maxRunning: { perGroup: 1 } }
  let store = await opened(settings)
  await enqueue(store, 'a1', 'a2', 'b1')
  expect((await claimed(store)).ids).toEqual(['a1', 'b1'])
  expect(await claimed(store)).toMatchObject({ ids: [], wait: { reason: 'full' } })
  store = await reboot(store, 1_000, settings)

  const { claims, crashed } = await store.claim(asked, by)

  expect(crashed.map(({ id }) => id).sort()).toEqual(['a1', 'b1'])
  expect(claims.map(({ id }) => id)).toEqual(['a2'])
})
