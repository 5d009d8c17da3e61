// A job with an id of its own dies. The bug is mended, and the same id is enqueued with a new input. There is a way by which the new
// input runs without an operator: `ifWaiting: 'replace'`. Without it, an event tells of each input that was dropped.
import { defineTask, millrace } from 'millrace'

let isMended = false
const sync = defineTask({
  name: 'sync',
  retry: { max: 0 },
  async run(version) {
    if (!isMended) throw new Error('bug')
    return version
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `dead${Date.now()}`, tasks: [sync] })
await mill.worker().start()
await (await mill.enqueue(sync, 'v1', { id: 'user-42' })).result().catch(() => {})
isMended = true
let dropped = 0
mill.on('job.dropped', () => (dropped += 1))
await mill.enqueue(sync, 'v2', { id: 'user-42' })
const job = await mill.enqueue(sync, 'v2', { id: 'user-42', ifWaiting: 'replace' })
const answer = await job.result({ timeout: '5s' }).catch((error) => error.code)
console.log(answer === 'v2' && dropped === 1 ? 'ok' : 'WRONG', job.outcome, answer)
await mill.close()
