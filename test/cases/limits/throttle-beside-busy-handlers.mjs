// A mailer, 3 in a second and 300 in an hour, beside a queue whose handlers take 60 ms of the event loop each (templates, images, JSON).
// Right: more than two mails a second begin, and hardly a permit is wasted: a worker that is late declares it with its claims, and
// begins one handler in a turn of its loop.
import { defineTask, millrace } from 'millrace'

let mails = 0
let wasted = 0
const mail = defineTask({
  name: 'mail',
  queue: 'mail',
  run() {
    mails += 1
  },
})
const image = defineTask({
  name: 'image',
  queue: 'images',
  async run() {
    for (const end = performance.now() + 60; performance.now() < end; );
  },
})
const throttle = [
  { limit: 3, window: '1s' },
  { limit: 300, window: '1h' },
]
const mill = millrace({
  store: process.env.STORE ?? 'memory:',
  namespace: `mail${Date.now()}`,
  tasks: [mail, image],
  queues: { mail: { throttle }, images: {} },
})
mill.on('permit.wasted', () => {
  wasted += 1
})
await mill.enqueueMany(
  mail,
  Array.from({ length: 200 }, () => null),
)
await mill.enqueueMany(
  image,
  Array.from({ length: 900 }, () => null),
)
await mill.worker({ concurrency: 10 }).start()
await new Promise((done) => setTimeout(done, 20_000))
console.log(mails >= 30 && wasted <= mails ? 'ok' : 'WRONG', { mails, of: 60, wasted })
process.exit()
