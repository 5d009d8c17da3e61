// The program of docs/coming-from/bullmq.md (move-delayed.mjs) on a queue that has a job scheduler, as most have.
// Right: the four delayed jobs are moved, the scheduler's next job is left to its schedule, and the program says so.
// (BullMQ lets nobody remove that one.)
// Beside this file: move-delayed.mjs from the page. REDIS_URL is emptied.
import { execFileSync } from 'node:child_process'
import { Queue } from 'bullmq'
import { defineTask, millrace } from 'millrace'

const { hostname: host, port } = new URL(process.env.REDIS_URL)
const mails = new Queue('mails', { connection: { host, port: Number(port) } })
await mails.obliterate({ force: true })
await mails.upsertJobScheduler('digest', { pattern: '0 * * * *' }, { name: 'digest', data: { of: 'all' } })
for (const to of ['a', 'b', 'c', 'd']) await mails.add('welcome', { to }, { delay: 86_400_000 })
let ended = 'ok'
try {
  execFileSync('node', ['move-delayed.mjs'], { stdio: 'pipe' })
} catch (error) {
  ended = String(error.stderr).match(/Error: .*/)?.[0]
}
const mill = millrace({ store: process.env.REDIS_URL, tasks: [defineTask({ name: 'welcome', queue: 'mails' })] })
const { jobs } = await mill.queue('mails').jobs.list()
const moved = jobs.map(({ input }) => input.to ?? JSON.stringify(input))
console.log(moved.length === 4 && ended === 'ok' ? 'ok' : 'WRONG', {
  moved,
  ended,
  left: (await mails.getDelayed()).length,
})
await Promise.all([mill.close(), mails.close()])
