/** A search over all queues: how much of them it reads at once. */

import { webHandler } from 'millrace/web'
import { expect, it, onTestFinished } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../test-mill.js'

it('it reads at most 400 records at once, however many queues there are, and looks at all of them', async () => {
  const store = new MemoryStore()
  const list = store.records.list.bind(store.records)
  const asked = new Set<string>()
  let [reading, most] = [0, 0]
  store.records.list = async (queue, query) => {
    asked.add(queue)
    reading += query.limit
    most = Math.max(most, reading)
    await new Promise((resolve) => setImmediate(resolve))
    reading -= query.limit
    return list(queue, query)
  }
  const queues = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`queue-${n}`, {}]))
  const mill = testMillOn(store, { queues })
  await mill.ready()
  const window = webHandler(mill)
  onTestFinished(() => window.close())
  const response = await window.fetch(new Request('http://localhost/api/v1/search?text=ada'), { address: '127.0.0.1' })

  expect(await response.json()).toEqual({ items: [], more: false })
  expect(asked.size).toBe(60)
  expect(most).toBeLessThanOrEqual(400)
})
