// From `feed.ready()` on a feed misses nothing: a job that ran when the feed began to watch ends one second later, and its end is told.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, millrace } from 'millrace'

const slow = defineTask({
  name: 'slow',
  queue: 'q',
  async run() {
    await sleep(2_300)
    return 'done'
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `feed${Date.now()}`, tasks: [slow] })
await mill.worker().start()
await sleep(500)
const job = await mill.enqueue(slow, {})
await sleep(500)
const feed = mill.queue('q').events({ signal: AbortSignal.timeout(6_000) })
await feed.ready()
const status = await job.status()
let seen = 'nothing'
for await (const event of feed) {
  seen = event.type
  if (event.type === 'job.completed') break
}
await mill.close()
console.log(status === 'running' && seen === 'job.completed' ? 'ok' : 'WRONG', { status, seen })
