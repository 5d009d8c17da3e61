// What a crawler and a gateway need, besides one limit for each host:
// 1 a rate for all together and another for each group;
// 2 a rate of its own for one group: its robots.txt says Crawl-delay: 10, a customer has paid for more.
// Right: all hosts together start 4 pages in a second, each host one; the slow one, asked to wait for longer, starts once; the
// configuration changes none of that when the program starts again.
import { defineTask, millrace } from 'millrace'

const starts = []
const crawl = defineTask({
  name: 'crawl',
  queue: 'crawl',
  group: ({ host }) => host,
  async run({ host }) {
    starts.push({ host, at: performance.now() })
  },
})
const store = process.env.STORE ?? 'memory:'
const options = {
  ...{ store, namespace: `hosts${Date.now()}`, tasks: [crawl] },
  queues: {
    crawl: {
      throttle: [
        { limit: 4, window: '1s' },
        { limit: 1, window: '1s', by: 'group' },
      ],
    },
  },
}
const asked = millrace(options)
await asked.ready()
await asked.queue('crawl').throttle.set({ limit: 1, window: '10m' }, { group: 'slow.example' })
const mill = store === 'memory:' ? asked : millrace(options)
if (mill !== asked) await asked.close()
const hosts = ['slow.example', 'a.example', 'b.example', 'c.example', 'd.example', 'e.example']
await mill.enqueueMany(
  crawl,
  [...hosts, ...hosts, ...hosts].map((host) => ({ host })),
)
await mill.worker({ concurrency: 5 }).start()
// 16 may start: one of the slow host, and three of each other.
for (let i = 0; starts.length < 16 && i < 400; i += 1) await new Promise((later) => setTimeout(later, 50))
const most = (of) => Math.max(0, ...of.map(({ at }) => of.filter((one) => one.at >= at && one.at <= at + 1_000).length))
const seen = {
  starts: starts.length,
  slow: starts.filter(({ host }) => host === 'slow.example').length,
  mostTogether: most(starts),
  mostOfOneHost: Math.max(...hosts.map((name) => most(starts.filter(({ host }) => host === name)))),
}
const { rates } = await mill.queue('crawl').throttle.rates()
console.log({ ...seen, rates: rates.map(({ group }) => group) })
const isRight = seen.starts === 16 && seen.slow === 1 && seen.mostTogether <= 4 && seen.mostOfOneHost === 1
console.log(isRight && rates.length === 1 ? 'ok' : 'WRONG')
await mill.close()
