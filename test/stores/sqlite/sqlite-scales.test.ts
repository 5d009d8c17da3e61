/** The scales of plain claims: which queues are weighed, and that those of older files are. */

import { afterEach, expect, it } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { job, queue, SqliteScene } from './sqlite-scene.js'

const by = { worker: 'w1', leaseMs: 30_000 }
/** What a job, or a checkpoint, may weigh and still be light: 500 of both are then less than 1 MiB. */
const light = 1_024

const scene = new SqliteScene()
afterEach(() => scene.close())

async function isWeighed(): Promise<boolean> {
  const db = (await loadDriver())(scene.file)
  const { weighed } = db.prepare('SELECT weighed FROM queue').get() as { weighed: number }
  db.close()
  return weighed === 1
}

it('a queue is weighed by bytes once a job of more than 1 KiB has arrived', async () => {
  const store = await scene.opened()
  const add = (id: string, payload: string | Uint8Array, meta?: string) =>
    store.enqueue([
      { callId: id, queue: queue.name, jobs: [job(id, { payload, ...(meta === undefined ? {} : { meta }) })] },
    ])
  await add('text', 'x'.repeat(light - 4), 'meta')
  await add('wide', 'ü'.repeat(light / 2))
  await add('bytes', new Uint8Array(light))
  expect(await isWeighed()).toBe(false)

  await add('heavy', 'ü'.repeat(light / 2), 'm')
  expect(await isWeighed()).toBe(true)
})

it('a queue is weighed once a job has left a checkpoint of more than 1 KiB', async () => {
  const store = await scene.opened()
  await store.enqueue([{ callId: 'a', queue: queue.name, jobs: [job('a')] }])
  const [claim] = (await store.claim([{ queue: queue.name, limit: 1 }], by)).claims
  const leave = (bytes: number) =>
    store.extend([{ ...claim!, leaseMs: 1_000, beat: { checkpoint: { payload: 'x'.repeat(bytes) } } }])
  await leave(light)
  expect(await isWeighed()).toBe(false)
  await leave(light + 1)
  expect(await isWeighed()).toBe(true)
})

it('a claim of more jobs than are light together is weighed in every queue', async () => {
  const store = await scene.opened()
  const payload = 'x'.repeat(light)
  for (let call = 0; call < 11; call += 1) {
    const jobs = Array.from({ length: 100 }, (_, i) => job(`job-${call}-${i}`, { payload }))
    await store.enqueue([{ callId: `call-${call}`, queue: queue.name, jobs }])
  }
  expect((await store.claim([{ queue: queue.name, limit: 1_100 }], by)).claims.length).toBe(1_024)
  expect(await isWeighed()).toBe(false)
})
