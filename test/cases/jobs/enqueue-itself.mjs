// A poller that looks every minute until the other side is ready: it enqueues itself under its own id, so that there is one at most.
// That cannot work while it runs, and an error says so, which names snooze().
import { defineTask, millrace, snooze } from 'millrace'

let runs = 0
const outcomes = []
const poll = defineTask({
  name: 'poll',
  async run(order, ctx) {
    runs += 1
    const options = { id: `poll-${order}`, delay: '100ms', ifWaiting: 'replace' }
    const next = await ctx.enqueue(poll, order, options).catch((error) => ({ outcome: error.message }))
    outcomes.push(next.outcome)
    return runs < 3 ? snooze('100ms') : undefined
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `poll${Date.now()}`, tasks: [poll] })
await mill.worker().start()
await mill.enqueue(poll, 42, { id: 'poll-42' })
await new Promise((done) => setTimeout(done, 1_500))
console.log(runs === 3 && outcomes.every((one) => one.includes('snooze(')) ? 'ok' : 'WRONG', { runs, outcomes })
await mill.close()
