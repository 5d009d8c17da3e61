/** Waiting for many results on a SQLite store: the look for those that have ended leaves room for other calls. */

import { afterEach, expect, it } from 'vitest'
import { sharedThread } from '#src/store-testing/harness/shared-thread.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import type { StartThread } from '#src/stores/sqlite/thread/sqlite-thread-client.js'
import type { Request } from '#src/stores/sqlite/thread/sqlite-thread-messages.js'
import { job, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene()
afterEach(() => scene.close())

it('a look for thousands of results is cut into parts, and other calls are done between them', async () => {
  const sent: string[] = []
  const startThread: StartThread = (settings) => {
    const thread = sharedThread(settings)
    const post = thread.postMessage.bind(thread)
    return Object.assign(thread, {
      postMessage(request: Request) {
        if (request !== 'close')
          for (const [, name, [first]] of request)
            sent.push(name === 'ended' ? `${name} ${(first as unknown[]).length}` : name)
        post(request)
      },
    })
  }
  const store = new SqliteStore({ file: scene.file, startThread })
  await store.open([queue])
  const keys = Array.from({ length: 2_500 }, (_, i) => ({ queue: queue.name, id: `job-${i}` }))
  const waiting = keys.filter((_, i) => i % 1_000 !== 7)
  await store.enqueue([{ callId: 'a', queue: queue.name, jobs: waiting.map(({ id }) => job(id)) }])
  sent.length = 0

  const watched = store.records.watch(keys, 60_000, new AbortController().signal)
  // Sent while the first part is looked for.
  while (!sent.some((name) => name.startsWith('ended'))) await new Promise(setImmediate)
  const { claims } = await store.claim([{ queue: queue.name, limit: 1 }], { worker: 'w', leaseMs: 60_000 })

  expect(claims.length).toBe(1)
  expect((await watched).map(({ id }) => id)).toEqual(['job-7', 'job-1007', 'job-2007'])
  expect(sent.filter((name) => name !== 'dataVersion')).toEqual(['ended 1000', 'claim', 'ended 1000', 'ended 500'])
  await store.close()
})
