/** An ordered project: a user's folder whose store, in memory, holds the same ordered jobs for every command anew. */

import { project } from './project.js'

/** Of `orders`: `a` waits with two payloads, `later` is scheduled, `run` runs with one and two wait, one with an evil id is dead. */
const storeFile = `
import { memoryHarness } from 'millrace/store-testing'

export default async () => {
  const harness = await memoryHarness({ startAt: Date.now() - 5_000 })
  const store = await harness.open()
  const settings = { order: 'fifo', maxCrashes: 3, dead: {} }
  await store.open([
    { ...settings, name: 'orders', kind: 'ordered', shards: 4 },
    { ...settings, name: 'old', kind: 'ordered', shards: 2 },
  ])
  let calls = 0
  const push = (queue, ...jobs) =>
    store.enqueue([{
      callId: 'call-' + calls++,
      queue,
      jobs: jobs.map(([id, input, more]) => ({
        id, task: 'sync-order', payload: JSON.stringify(input), priority: 0, rememberMs: 0, ...more,
      })),
    }])
  const by = { worker: 'w', leaseMs: 600_000 }
  await push('orders', ['dead\\u001b[2J', 'evil\\u001b[31m\\u202e', { score: 1 }], ['dead\\u001b[2J', 2, { score: 2 }])
  await store.records.bury('orders', 'all')
  await push('orders', ['run', 1, { score: 1 }], ['run', 2, { score: 2 }], ['run', 3, { score: 3 }])
  await store.claim([{ queue: 'orders', limit: 1, maxPayloads: 1 }], by)
  await push('orders', ['a', { rev: 2 }, { score: 2, meta: '{"by":"Ada"}' }], ['a', { rev: 1 }, { score: 1 }])
  await push('orders', ['a', 3, { score: 3.5, codec: 'msgpack' }], ['later', 1, { delayMs: 60_000 }])
  await push('old', ...Array.from({ length: 150 }, (_, i) => ['o' + i, i]))
  await store.claim([{ queue: 'old', limit: 1 }], by)
  await harness.advance(5_000)
  return store
}
`

const configFile = `
import { millrace } from 'millrace'
export default millrace({
  store: { module: './store.js' },
  queues: { orders: { ordered: true, shards: 8 }, old: { ordered: true, shards: 2 }, mail: {} },
  tasks: [],
})
`

export function orderedProject(): string {
  return project({ 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile })
}
