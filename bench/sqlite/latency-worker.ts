/**
 * A worker process for the latency benchmark. It reports, per job, ms from before its enqueue was called to the start
 * of its handler.
 */

import { defineTask, millrace } from 'millrace'

const [store = ''] = process.argv.slice(2)
const latencies: number[] = []

const timed = defineTask({
  name: 'timed',
  run: async (input) => {
    // All processes of a machine share the monotonic clock.
    latencies.push(Number(process.hrtime.bigint() - BigInt(input as string)) / 1e6)
  },
})

const mill = millrace({ store, tasks: [timed] })
await mill.worker({ concurrency: 10 }).start()
process.send?.('ready')
process.once('disconnect', () => process.exit())
process.once('message', async () => {
  await mill.close()
  process.send?.(latencies, () => process.disconnect())
})
