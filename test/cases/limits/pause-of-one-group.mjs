// A crawler: one domain is on a blacklist for now, and another says in a successful answer that it wants to be left alone.
// Right: the first starts nothing until it is resumed; the second completes and is held; all others go on.
import { defineTask, millrace } from 'millrace'

const seen = []
const crawl = defineTask({
  name: 'crawl',
  queue: 'crawl',
  group: ({ host }) => host,
  async run({ host }, ctx) {
    seen.push(host)
    if (host === 'polite.example') ctx.hold('10m')
    return 'a page'
  },
})
const store = process.env.STORE ?? 'memory:'
const mill = millrace({ store, namespace: `pause${Date.now()}`, queues: { crawl: {} }, tasks: [crawl] })
await mill.ready()
const queue = mill.queue('crawl')
await queue.pause({ group: 'slow.example' })
await mill.worker({ concurrency: 1 }).start()
const first = await mill.enqueue(crawl, { host: 'polite.example' })
await first.result({ timeout: '5s' })
for (const host of ['slow.example', 'polite.example']) await mill.enqueue(crawl, { host })
const last = await mill.enqueue(crawl, { host: 'fast.example' })
await last.result({ timeout: '5s' })
const held = (await queue.throttle.holds()).holds.map(({ group, until }) => `${group} ${until ? 'held' : 'paused'}`)
const before = [...seen]
await queue.resume({ group: 'slow.example' })
await queue.throttle.release()
for (let i = 0; seen.length < 4 && i < 100; i += 1) await new Promise((later) => setTimeout(later, 50))
console.log({ before, held, after: seen, paused: (await queue.depth()).paused })
const isRight =
  before.join() === 'polite.example,fast.example' &&
  held.join() === 'slow.example paused,polite.example held' &&
  seen.slice(2).sort().join() === 'polite.example,slow.example'
console.log(isRight ? 'ok' : 'WRONG')
await mill.close()
