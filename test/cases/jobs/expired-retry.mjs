// A one-time code is worth nothing after two seconds. The mail server is away at the first attempt, and the retry is due later than
// that. The code is not sent: the job is cancelled as expired. The handler is told when that is.
import { defineTask, millrace } from 'millrace'

const attempts = []
const sendCode = defineTask({
  name: 'send-code',
  expiresIn: '2s',
  retry: { max: 3, backoff: () => 3_000 },
  async run(_, ctx) {
    attempts.push(ctx.job.expiresAt - ctx.job.createdAt)
    throw new Error('the mail server is away')
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `code${Date.now()}`, tasks: [sendCode] })
await mill.worker().start()
const job = await mill.enqueue(sendCode, '1234')
const end = await job.result({ timeout: '10s' }).catch((error) => `${error.code} ${error.reason}`)
console.log(end === 'job-cancelled expired' && attempts.join() === '2000' ? 'ok' : 'WRONG', { end, attempts })
await mill.close()
