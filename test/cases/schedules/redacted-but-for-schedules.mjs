// `redact` hides a card number in all jobs that the window shows, and also in the input and meta that a schedule gives its jobs.
import { defineTask, millrace } from 'millrace'
import { webHandler } from 'millrace/web'

const pay = defineTask({ name: 'pay', run() {} })
const mill = millrace({ store: 'memory:', tasks: [pay] })
await mill.schedules.set('monthly', { cron: '@monthly', task: pay, input: { card: '4111-1111' } })
await mill.enqueue(pay, { card: '4111-1111' }, { id: 'one' })
const window = webHandler(mill, { redact: ({ input, meta, ...rest }) => rest })
for (const path of ['queues/default/jobs/one', 'schedules', 'schedules/monthly']) {
  const answer = await window.fetch(new Request(`http://localhost/api/v1/${path}`, { headers: { host: 'localhost' } }))
  console.log((await answer.text()).includes('4111') ? 'WRONG' : 'ok   ', path)
}
process.exit()
