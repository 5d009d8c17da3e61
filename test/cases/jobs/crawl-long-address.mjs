// The recipe for a crawl: a page enqueues its links by `ctx.enqueue(crawl, { url }, { id: idOf(url) })`. One link has 300 characters; an id
// has at most 256 bytes. The page is done, and all three links are crawled once.
import { defineTask, idOf, millrace } from 'millrace'

const links = ['https://a.example/1', `https://a.example/search?q=${'x'.repeat(300)}`, 'https://a.example/2']
const seen = []
const crawl = defineTask({
  name: 'crawl',
  queue: 'crawl',
  group: ({ url }) => new URL(url).host,
  retry: { max: 1, backoff: () => 10 },
  async run({ url }, ctx) {
    seen.push(url)
    if (url === 'https://a.example/')
      for (const link of links) await ctx.enqueue(crawl, { url: link }, { id: idOf(link) })
  },
})
const store = process.env.STORE ?? 'memory:'
const mill = millrace({ store, namespace: `crawl${Date.now()}`, idempotency: '7d', tasks: [crawl] })
await mill.worker().start()
const page = await mill.enqueue(crawl, { url: 'https://a.example/' })
await page.result({ timeout: '3s' }).catch(({ code, message }) => console.log(code, message.slice(0, 120)))
await new Promise((done) => setTimeout(done, 500))
console.log(
  links.every((link) => seen.includes(link)) ? 'ok' : 'WRONG',
  seen.map((url) => url.length),
)
await mill.close()
