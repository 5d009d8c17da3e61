// A job with an id of its own completed without a result. Its status is known, and result() says the same: it resolves with undefined.
// An id whose result is no longer kept is known to have had one: result() throws, and never says undefined.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'

const blank = defineTask({ name: 'blank', run: async () => {} })
const full = defineTask({ name: 'full', queue: 'full', run: async () => 'a value' })
const mill = millrace({
  store: process.env.STORE ?? 'memory:',
  namespace: `own${Date.now()}`,
  queues: { full: { retention: { results: { count: 0 } } } },
  tasks: [blank, full],
})
await mill.worker().start()
const jobs = [await mill.enqueue(blank, {}, { id: 'own' }), await mill.enqueue(full, {}, { id: 'own' })]
for (const job of jobs) while ((await job.status()) !== 'completed') await sleep(20)
const ends = []
for (const job of jobs) ends.push(await job.result({ timeout: '2s' }).catch((error) => error.code))
await mill.close()
console.log(ends[0] === undefined && ends[1] === 'result-not-kept' ? 'ok' : 'WRONG', ends)
