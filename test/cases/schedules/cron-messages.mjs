// What a refusal says about a field must be about what was written. '32', '13', and a range of 1 to 31, 1 to 12,
// not the numbers of a parser, which begin at 0.
import { defineTask } from 'millrace'
import { testMill } from 'millrace/testing'

const task = defineTask({ name: 'task', async run() {} })
const mill = testMill({ tasks: [task] })
for (const [cron, right] of [
  ['0 0 32 * *', '32 is no day of month'],
  ['0 0 1 13 *', '13 is no month'],
]) {
  const text = await mill.schedules.set('s', { cron, task }).then(
    () => 'accepted',
    (error) => error.message,
  )
  console.log(text.includes(right) ? 'ok' : 'WRONG', cron, text.split('\n').at(-1))
}
