/** A settle that is made in parts, for lack of room: the call has the answers of all parts in order, or one refusal. */

import { afterEach, describe, expect, it } from 'vitest'
import type { Answer } from '#src/stores/sqlite/thread/sqlite-thread-messages.js'
import { enqueueCall, queue, SqliteScene } from '../sqlite-scene.js'
import { watchedConnection } from './watched-connection.js'

const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(() => scene.close())

const ids = Array.from({ length: 30 }, (_, i) => `job-${i}`)

/** The answer to a settle of 30 claims of which 25 and 5 are made at once, since two commits lack room. `strange`: the one of an unknown queue. */
async function settledInParts(strange?: number): Promise<Answer> {
  const store = await scene.opened()
  await store.enqueue([enqueueCall(...ids)])
  const { claims } = await store.claim([{ queue: queue.name, limit: 30 }], { worker: 'w', leaseMs: 60_000 })
  await store.close()
  let commits = 0
  const connection = await watchedConnection(scene.file, (sql) => {
    if (sql === 'COMMIT' && ++commits <= 2) throw Object.assign(new Error('full'), { errcode: 13 })
  })
  const items = claims.map(({ queue, id, fence }, i) => ({
    queue: i === strange ? 'strange' : queue,
    ...{ id, fence, kind: 'complete' },
  }))
  const { answers } = connection.write(
    () => [[1, 'settle', [items]]],
    () => {},
  )
  connection.close()
  expect(answers).toHaveLength(1)
  return answers[0]!
}

async function running(): Promise<number> {
  const { depths } = await (await scene.opened()).depth([queue.name])
  return depths[0]!.running
}

describe('a settle in parts', () => {
  it('has one answer for each claim', async () => {
    expect(await settledInParts()).toEqual([1, ids.map(() => 'ok')])
    expect(await running()).toBe(0)
  })

  it('is refused as it would be at once, if its first part is', async () => {
    const [, value, error] = await settledInParts(3)

    expect(value).toBeUndefined()
    expect(error).toMatchObject({ name: 'UnknownQueueError' })
    expect(await running()).toBe(30)
  })

  it('is refused with what is settled, if a later part is refused', async () => {
    const [, value, error] = await settledInParts(27)

    expect(value).toBeUndefined()
    expect(error).toMatchObject({ name: 'StoreUnavailableError', message: expect.stringContaining("'strange'") })
    expect(await running()).toBe(5)
  })
})
