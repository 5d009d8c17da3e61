// A schedule with `jitter` (or `enqueue: { delay }`) is removed. Nothing of it runs any more: the jobs that no worker has begun are
// deleted with it.
import { defineTask, millrace } from 'millrace'

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
let ran = 0
const poll = defineTask({
  name: 'poll',
  async run() {
    ran += 1
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `rm${Date.now()}`, tasks: [poll] })
await mill.worker().start()
await mill.schedules.set('poll', { every: '1s', enqueue: { delay: '6s' }, task: poll })
await sleep(4_500)
await mill.schedules.remove('poll')
ran = 0
await sleep(9_000)
console.log(ran === 0 ? 'ok' : 'WRONG', `${ran} runs after the removal`)
await mill.close()
