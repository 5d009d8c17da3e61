/**
 * A worker process of `postgres-transactions`: its handlers write an effect and end their job in one transaction of the user's
 * client, and take their time between the two and before the commit.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import { clients } from '../../test/stores/postgres/user/postgres-clients.js'
import { leaseMs, type WorkerWord } from '../crew.js'
import { pay, type TransactionSite } from './transaction-words.js'

const { store, client: name } = JSON.parse(process.argv[2]!) as TransactionSite
const say = (word: WorkerWord) => process.connected && process.send!(word)
const client = await clients[name]!(store.split('?')[0]!)
const pauseMs = 60
const pause = () => delay(Math.random() * pauseMs)

const task = pay.handle(async (_, ctx) => {
  const { id, fence } = ctx.job
  await client.transact(fence % 2 === 0 ? 'read committed' : 'serializable', async ({ tx, run }) => {
    await run('INSERT INTO effects VALUES ($1)', id)
    await pause()
    await ctx.completeIn(tx)
    await pause()
  })
  await pause()
})
const mill = millrace({ store, tasks: [task], queues: { [pay.queue]: { lease: leaseMs, maxCrashes: 100 } } })
mill.on('store.failed', ({ call, error }) => say({ kind: 'failed', call: `${call}: ${String(error)}` }))
mill.on('settle.refused', () => say({ kind: 'refused' }))
const worker = mill.worker({ concurrency: 5 })
await worker.start()
say({ kind: 'ready', worker: worker.id })
process.once('SIGTERM', async () => {
  await mill.close()
  await client.close()
  process.disconnect()
})
