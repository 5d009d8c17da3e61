/** A worker process of `postgres-crashes`: writes down each run when it begins and ends, and when the store has taken its end. */

import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import type { WorkerWord } from '../crew.js'
import { type Kind, LedgerWriter } from '../everything/effect-lines.js'
import { ordered, plain, queues } from './crash-mill.js'

const [store = '', folder = ''] = process.argv.slice(2)
/** What is still under way when the mill is closed may fail after its parent has left. */
const say = (word: WorkerWord) => process.connected && process.send!(word)
const ledger = new LedgerWriter(folder)

/** Some runs take a moment, so that a killed worker has work in hand. */
async function moment(): Promise<void> {
  if (Math.random() < 0.1) await delay(5)
}

const tasks = [
  plain.handle(async (_, { job }) => {
    ledger.begun('plain', job.id, job.fence, '')
    await moment()
    ledger.ended('plain', job.id, job.fence)
  }),
  ordered.handle(async (payloadsById, { job: { fence } }) => {
    for (const [id, payloads] of payloadsById) ledger.begun('ordered', id, fence, payloads.map(({ n }) => n).join(','))
    await moment()
    for (const id of payloadsById.keys()) ledger.ended('ordered', id, fence)
  }),
]
const mill = millrace({ store, tasks, queues })
mill.on('job.completed', ({ task, id }) => ledger.completed(task as Kind, id))
mill.on('store.failed', ({ call, error }) => say({ kind: 'failed', call: `${call}: ${String(error)}` }))
mill.on('worker.failed', ({ error }) => say({ kind: 'failed', call: `worker: ${String(error)}` }))
mill.on('settle.refused', () => say({ kind: 'refused' }))
const worker = mill.worker({ concurrency: 8 })
await worker.start()
say({ kind: 'ready', worker: worker.id })
process.once('SIGTERM', async () => {
  await mill.close()
  process.disconnect()
})
