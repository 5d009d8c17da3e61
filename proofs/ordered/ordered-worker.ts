/**
 * A worker process of the ordered drill: records the payloads that it gets, takes its time, and writes with its fence.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineOrderedTask, millrace, type StoreDescriptor } from 'millrace'
import { leaseMs, type WorkerWord } from '../crew.js'
import { Ledger } from '../ledger.js'
import { isPoisoned, orderedTaskOptions, queueOptions } from './ordered-drill.js'

const [described = '', file = '', exclusive = 'id', runMs = '0', maxPayloads = '50'] = process.argv.slice(2)
const say = (word: WorkerWord) => process.send?.(word)
const ledger = await Ledger.open(file)

const task = defineOrderedTask({
  ...orderedTaskOptions,
  maxPayloads: Number(maxPayloads),
  async run(payloadsById, ctx) {
    const { fence } = ctx.job
    for (const [id, payloads] of payloadsById) ledger.handedOver({ id, fence, payloads: payloads.map(({ n }) => n) })
    await delay(Math.random() * 2 * Number(runMs))
    for (const [id, payloads] of payloadsById) {
      if (isPoisoned(payloads[0]!.n)) ctx.fail(id, new Error('this payload never works'))
      else if (!ledger.write(id, fence)) say({ kind: 'refused' })
    }
  },
})
const mill = millrace({
  store: JSON.parse(described) as StoreDescriptor,
  tasks: [task],
  queues: { [task.queue]: queueOptions(exclusive as 'id' | 'shard', leaseMs) },
})
mill.on('store.failed', ({ call, error }) => say({ kind: 'failed', call: `${call}: ${String(error)}` }))
const worker = mill.worker({ concurrency: 4 })
await worker.start()
say({ kind: 'ready', worker: worker.id })
process.once('SIGTERM', async () => {
  await mill.close()
  ledger.close()
  process.disconnect()
})
