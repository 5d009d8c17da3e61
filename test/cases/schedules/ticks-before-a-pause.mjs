// No worker runs for six seconds (a deploy, a crash of the one that leads takes up to 15 s). Then an operator pauses a schedule and
// resumes it at once; then a worker starts. A paused schedule does not make up for its pause, but the six ticks that were due before it
// are enqueued, as without the pause: they are less than a minute late.
import { defineTask, millrace } from 'millrace'

const ran = new Set()
const task = defineTask({ name: 'tick', run: (_, { job }) => void ran.add(job.id) })
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `pause${Date.now()}`, tasks: [task] })
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
let worker = mill.worker()
await worker.start()
await mill.schedules.set('each-second', { every: '1s', task })
await sleep(1_500)
await worker.stop()
const from = Date.now()
await sleep(6_000)
await mill.schedules.pause('each-second')
await mill.schedules.resume('each-second')
worker = mill.worker()
await worker.start()
await sleep(2_500)
await worker.stop()
const due = [...ran].map((id) => Date.parse(id.split('@')[1])).filter((at) => at > from && at <= from + 6_000)
console.log(due.length >= 5 ? 'ok' : 'WRONG', `${due.length} of the 6 ticks before the pause`)
await mill.close()
