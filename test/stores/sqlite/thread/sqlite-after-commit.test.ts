/** What a connection does after a commit: even if it fails, the calls of the commit are durable, and are answered once. */

import { afterEach, expect, it } from 'vitest'
import { enqueueCall, queue, SqliteScene } from '../sqlite-scene.js'
import { watchedConnection } from './watched-connection.js'

const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 60_000 }
const from = [{ queue: queue.name, limit: 1 }]

/** What SQLite may throw then, by its extended result codes. */
const errors = [
  ['another process recovers the index', 261, 'database is locked'],
  ['readers and writers collide', 15, 'locking protocol'],
  ['the disk fails', 266, 'disk I/O error'],
] as const

it.each(errors)(
  'if the look at the file fails after a commit because %s, its calls are answered once',
  async (_, errcode, text) => {
    const store = await scene.opened()
    await store.enqueue([enqueueCall('a', 'b', 'c', 'd')])
    const [first] = (await store.claim(from, by)).claims
    await store.close()
    let failures = 0
    const failing = () => {
      let hasCommitted = false
      return watchedConnection(scene.file, (sql) => {
        if (sql === 'BEGIN IMMEDIATE') hasCommitted = false
        if (sql === 'COMMIT') hasCommitted = true
        if (sql !== 'PRAGMA page_count' || !hasCommitted) return
        failures += 1
        throw Object.assign(new Error(text), { code: 'ERR_SQLITE_ERROR', errcode })
      })
    }

    const together = await failing()
    const reply = together.write(
      () => [
        [1, 'settle', [[{ queue: queue.name, id: 'a', fence: first!.fence, kind: 'complete' }]]],
        [2, 'claim', [from, by]],
        [3, 'cancel', [queue.name, { ids: ['c'] }]],
      ],
      () => {},
    )
    together.close()
    const alone = await failing()
    const { answers } = alone.write(
      () => [[4, 'claim', [from, by]]],
      () => {},
    )
    alone.close()

    expect(failures).toBe(2)
    expect(reply).toMatchObject({ rung: [queue.name], hasEnds: true })
    expect([...reply.answers, ...answers].map(([number, , error]) => [number, error])).toEqual(
      [1, 2, 3, 4].map((number) => [number, undefined]),
    )
    expect(reply.answers[0]![1]).toEqual(['ok'])
    expect(reply.answers[2]![1]).toEqual({ changed: 1, more: false })
    const { depths } = await (await scene.opened()).depth([queue.name])
    expect(depths[0]).toMatchObject({ running: 2, ready: 0, processed: 1 })
  },
)
