// A digest is debounced with `ifWaiting: 'replace'`. Its first run enqueued a mail and then failed; before the retry it is replaced by a new
// digest, which enqueues a mail with an equal input. The job that takes the place is another job: two mails are sent.
import { defineTask, millrace } from 'millrace'

const mails = []
const outcomes = []
const mail = defineTask({ name: 'mail', run: ({ to }) => void mails.push(to) })
const digest = defineTask({
  name: 'digest',
  retry: { max: 3, backoff: () => 600 },
  async run({ revision }, ctx) {
    const { outcome } = await ctx.enqueue(mail, { to: 'ada' })
    outcomes.push(`revision ${revision}: ${outcome}`)
    if (revision === 1) throw new Error('after it enqueued')
  },
})
const mill = millrace({
  store: process.env.STORE ?? 'memory:',
  namespace: `digest${Date.now()}`,
  tasks: [mail, digest],
})
await mill.worker().start()
await mill.enqueue(digest, { revision: 1 }, { id: 'digest-ada' })
await new Promise((failed) => setTimeout(failed, 300))
await mill.enqueue(digest, { revision: 2 }, { id: 'digest-ada', ifWaiting: 'replace' })
await new Promise((done) => setTimeout(done, 1_500))
console.log(mails.length === 2 ? 'ok' : 'WRONG', outcomes, `${mails.length} mails`)
process.exit()
