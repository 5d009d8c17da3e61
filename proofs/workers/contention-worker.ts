/**
 * A worker process of the contention proof: runs jobs, and reports failed store calls and its longest call to its
 * parent.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace, type StoreDescriptor } from 'millrace'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { leaseMs, type WorkerWord } from '../crew.js'
import { contended } from './contention.js'

const [described = '', jobMs = '0'] = process.argv.slice(2)
const store = JSON.parse(described) as StoreDescriptor
const say = (word: WorkerWord) => process.send?.(word)

let slowestMs = 0
for (const { prototype } of [SqliteStore, RedisStore]) {
  for (const name of ['claim', 'settle', 'extend', 'enqueue'] as const) {
    const call = prototype[name] as (...args: unknown[]) => Promise<unknown>
    Object.assign(prototype, {
      async [name](...args: unknown[]) {
        const startedAt = performance.now()
        try {
          return await call.apply(this, args)
        } finally {
          const ms = performance.now() - startedAt
          if (ms > slowestMs) {
            slowestMs = ms
            say({ kind: 'slowest', ms })
          }
        }
      },
    })
  }
}

const longestMs = 2 * Number(jobMs)
const task = defineTask({
  name: contended.name,
  async run(n) {
    if (longestMs > 0) await delay(Math.random() * longestMs)
    // Some jobs take a moment, so that a killed worker has work in hand.
    else if ((n as number) % 10 === 0) await delay(2)
  },
})
const mill = millrace({ store, tasks: [task], queues: { default: { lease: leaseMs } } })
mill.on('store.failed', ({ call, error }) => say({ kind: 'failed', call: `${call}: ${String(error)}` }))
mill.on('settle.refused', () => say({ kind: 'refused' }))
const worker = mill.worker({ concurrency: 10 })
await worker.start()
say({ kind: 'ready', worker: worker.id })
process.once('SIGTERM', async () => {
  await mill.close()
  process.disconnect()
})
