// A program fans out 5,000 jobs and waits for all results, from before the first of them runs. A queue keeps 1,000 results by default.
// Whoever waits gets the value all the same: 5,000 values of 5,000.
import { defineTask, millrace } from 'millrace'

const double = defineTask({ name: 'double', queue: 'double', run: async (n) => n * 2 })
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `many${Date.now()}`, tasks: [double] })
const jobs = await mill.enqueueMany(
  double,
  Array.from({ length: 5_000 }, (_, i) => i),
)
const waiting = mill.results(jobs, { timeout: '120s' })
await mill.worker({ concurrency: 50 }).start()
const settled = await waiting
const right = settled.filter(({ value }, i) => value === i * 2).length
await mill.close()
console.log(right === 5_000 ? 'ok' : 'WRONG', { right, others: [...new Set(settled.map((one) => one.reason?.code))] })
