// A licence allows two encodes at once. The workers declare it; a script that only enqueues does not mention it.
// Right: the stored limit holds, 2 at once before and after the script's first enqueue.
import { defineTask, millrace } from 'millrace'

const store = process.env.STORE ?? `sqlite:licence-${Date.now()}.db`
const namespace = `licence${Date.now()}`
let running = 0
let most = 0
const encode = () =>
  defineTask({
    name: 'encode',
    queue: 'video',
    async run() {
      most = Math.max(most, ++running)
      await new Promise((done) => setTimeout(done, 200))
      running -= 1
    },
  })
const [task, other] = [encode(), encode()]
const workers = millrace({ store, namespace, queues: { video: { maxRunning: 2 } }, tasks: [task] })
await workers.enqueueMany(
  task,
  Array.from({ length: 60 }, (_, i) => i),
)
await workers.worker({ concurrency: 10 }).start()
await new Promise((done) => setTimeout(done, 1_000))
const script = millrace({ store, namespace, queues: { video: {} }, tasks: [other] })
const before = most
await script.enqueue(other, 'one more')
await new Promise((done) => setTimeout(done, 1_000))
console.log(most === 2 ? 'ok' : 'WRONG', { before, after: most })
await Promise.all([workers.close(), script.close()])
