// A day that does not exist is refused, as cron's `0 0 30 2 *` is, and a far one is called far.
import { defineTask } from 'millrace'
import { testMill } from 'millrace/testing'

const task = defineTask({ name: 'task', async run() {} })
const mill = testMill({ tasks: [task], now: '2026-12-01T00:00:00Z' })
for (const runAt of ['2027-02-30T09:00:00Z', '2027-06-31T09:00:00Z']) {
  const answer = await mill.enqueue(task, undefined, { runAt }).then(
    async (job) => new Date((await job.record()).runAt).toISOString(),
    (error) => error.code,
  )
  console.log(answer === 'job-invalid' ? 'ok' : 'WRONG', runAt, answer)
}
const far = await mill.enqueue(task, undefined, { runAt: '9999-12-31T00:00:00Z' }).catch((error) => error.message)
console.log(/valid Date/.test(far) ? 'WRONG' : 'ok', far)
