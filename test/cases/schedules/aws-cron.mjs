// Expressions of EventBridge (serverless.yml, SST) have six fields with the year last. '0 12 * * ? *' is daily at noon there, and would
// be each hour at :12 if its first field were the second. It is refused, since `?` stands in a field that is no day.
import { defineTask } from 'millrace'
import { testMill } from 'millrace/testing'

const task = defineTask({ name: 'task', async run() {} })
const mill = testMill({ tasks: [task], now: '2026-03-10T10:07:30Z' })
const next = await mill.schedules.set('daily', { cron: '0 12 * * ? *', task }).then(
  () => mill.schedules.next('daily', 3),
  (error) => error.code,
)
console.log(next === 'config-invalid' ? 'ok' : 'WRONG', next)
