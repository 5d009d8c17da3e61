/** A worker process of the chaos on SQS: writes down each run when it begins and ends, and tells its parent of failed calls. */

import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import type { WorkerWord } from '../crew.js'
import { chaosQueues, chaosTasks, concurrency } from './chaos-drill.js'
import { RunLedger } from './run-ledger.js'

const [store = '', file = '', kind = 'plain', runMs = '0'] = process.argv.slice(2)
const say = (word: WorkerWord) => process.send?.(word)
const ledger = await RunLedger.open(file)

async function run(lane: string, jobs: readonly number[], fence: number): Promise<void> {
  // A fence of this store is the instant of its claim in µs, or more.
  const number = ledger.begin({ worker: worker.id, lane, jobs, claimedAt: Math.floor(fence / 1_000) })
  await delay(Math.random() * 2 * Number(runMs))
  ledger.end(number)
}

const { plain, ordered } = chaosTasks()
const task =
  kind === 'plain'
    ? plain.handle((n, { job }) => run(job.id, [n], job.fence))
    : ordered.handle(async (payloadsById, { job }) => {
        for (const [id, payloads] of payloadsById)
          await run(
            id,
            payloads.map(({ n }) => n),
            job.fence,
          )
      })
const mill = millrace({ store, tasks: [task], queues: chaosQueues(task) })
mill.on('store.failed', ({ call, error }) => say({ kind: 'failed', call: `${call}: ${String(error)}` }))
mill.on('settle.refused', () => say({ kind: 'refused' }))
const worker = mill.worker({ concurrency })
await worker.start()
say({ kind: 'ready', worker: worker.id })
process.once('SIGTERM', async () => {
  await mill.close()
  ledger.close()
  process.disconnect()
})
