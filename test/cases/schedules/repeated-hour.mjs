// Clocks go back. As cron of Debian treats wildcard hours, a schedule that ticks every 15 minutes goes on doing so; only one of a fixed
// hour ticks once.
import { defineTask } from 'millrace'
import { testMill } from 'millrace/testing'

const task = defineTask({ name: 'task', async run() {} })
const mill = testMill({ tasks: [task], now: '2026-10-25T00:20:00Z' })
await mill.schedules.set('watch', { cron: '*/15 * * * *', timeZone: 'Europe/Zurich', task })
const ticks = (await mill.schedules.next('watch', 8)).map((at) => new Date(at))
const gaps = ticks.slice(1).map((at, i) => (at - ticks[i]) / 60_000)
console.log(Math.max(...gaps) === 15 ? 'ok' : 'WRONG', `longest gap ${Math.max(...gaps)} minutes`)
