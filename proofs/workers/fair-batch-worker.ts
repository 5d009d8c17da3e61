/** A worker process of the fair-batch proof: one slot, and jobs of two seconds under a lease that is not renewed. */

import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, millrace, type StoreDescriptor } from 'millrace'

/** The messages to its parent: that it is up, and each job that it has run. Instants are wall time. */
export type FairBatchWord =
  | { readonly kind: 'ready' }
  | { readonly kind: 'ran'; readonly id: string; readonly from: number; readonly to: number }

const [described = '', jobMs = '2000', leaseMs = '6000'] = process.argv.slice(2)
const say = (word: FairBatchWord) => process.send?.(word)
const task = defineTask({
  name: 'slow',
  timeLimit: Number(jobMs) + 500,
  async run(_, { job }) {
    const from = Date.now()
    await delay(Number(jobMs))
    say({ kind: 'ran', id: job.id, from, to: Date.now() })
  },
})
const mill = millrace({
  store: JSON.parse(described) as StoreDescriptor,
  tasks: [task],
  queues: { default: { renewLease: false, lease: Number(leaseMs) } },
})
await mill.worker({ concurrency: 1 }).start()
say({ kind: 'ready' })
process.once('SIGTERM', async () => {
  await mill.close()
  process.disconnect()
})
