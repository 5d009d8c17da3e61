/** A damaged queue does not keep the window from telling of the throttles and holds of others. */

import { webHandler } from 'millrace/web'
import { expect, it, onTestFinished } from 'vitest'
import { StoreCorruptError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../test-mill.js'

/** A store in which nothing can be read of the throttle of queue `broken`. */
function brokenStore(): MemoryStore {
  const store = new MemoryStore()
  const refuse = <Read extends (queue: string, ...rest: never[]) => Promise<unknown>>(read: Read) =>
    ((queue, ...rest) =>
      queue === 'broken'
        ? Promise.reject(new StoreCorruptError('its keys are not ours'))
        : read(queue, ...rest)) as Read
  const { throttles } = store
  throttles.state = refuse(throttles.state.bind(throttles))
  throttles.holds = refuse(throttles.holds.bind(throttles))
  return store
}

it('the throttles and holds of other queues are shown', async () => {
  const throttle = { limit: 5, window: '1s' } as const
  const shared = { ...throttle, scope: 'both' } as const
  const mill = testMillOn(brokenStore(), {
    queues: { broken: { throttle: shared }, well: { throttle: shared }, alone: { throttle } },
  })
  await mill.ready()
  await mill.queue('well').pause({ group: 'a' })
  const window = webHandler(mill)
  onTestFinished(() => window.close())
  const get = async (path: string) => {
    const response = await window.fetch(new Request(`http://localhost/api/v1/${path}`), { address: '127.0.0.1' })
    return { status: response.status, json: (await response.json()) as { items: Record<string, unknown>[] } }
  }
  const [throttles, holds] = [await get('throttles'), await get('holds')]

  expect(throttles.json.items.map(({ scope, queues }) => [scope, queues])).toEqual([
    ['both', ['broken', 'well']],
    ['alone', ['alone']],
  ])
  expect(holds).toMatchObject({ status: 200, json: { items: [{ queue: 'well', total: 1 }] } })
})
