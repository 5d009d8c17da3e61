// The recipe of the webhooks guide, `hold(answer)`, given what servers really send; and `throttle(`${seconds}s`)` of
// one's own, which may be out of range.
// Right: a date is obeyed (here 5 s), nonsense costs no attempt and waits for 30 s, 0 means soon, and nothing holds for
// longer than an hour.
import { createServer } from 'node:http'
import { defineTask, hold, millrace } from 'millrace'

const server = createServer((request, response) =>
  response.writeHead(429, { 'retry-after': decodeURI(request.url.slice(1)) }).end(),
)
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const deliver = defineTask({
  name: 'deliver',
  queue: 'webhooks',
  group: ({ header, byHand }) => `${header} ${byHand}`,
  retry: { max: 0 },
  async run({ header, byHand }) {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/${encodeURI(header)}`)
    return hold(byHand ? `${Number(answer.headers.get('retry-after')) || 30}s` : answer)
  },
})
const expected = [
  [new Date(Date.now() + 5_000).toUTCString(), 4, 6, 30],
  ['0', 1, 1, 30],
  ['1.5', 1.5, 1.5, 1.5],
  ['-1', 1, 1, 1],
  ['99999999999', 3_600, 3_600, 3_600],
  ['999999999999999', 3_600, 3_600, 3_600],
  ['120, 120', 120, 120, 30],
  ['soon', 30, 30, 30],
]
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `ra${Date.now()}`, tasks: [deliver] })
const waits = new Map()
const wrong = []
mill.on('job.buried', ({ id, error }) => wrong.push(`${id} is buried: ${error}`))
const all = new Promise((done) =>
  mill.on('job.released', ({ id, holdMs }) => {
    if (!waits.has(id)) waits.set(id, holdMs / 1_000)
    if (waits.size === 2 * expected.length) done()
  }),
)
for (const [i, [header]] of expected.entries())
  for (const byHand of [false, true]) await mill.enqueue(deliver, { header, byHand }, { id: `${i} ${byHand}` })
await mill.worker().start()
await Promise.race([all, new Promise((late) => setTimeout(late, 10_000))])
for (const [i, [header, least, most, byHand]] of expected.entries()) {
  const [waited, own] = [waits.get(`${i} false`), waits.get(`${i} true`)]
  console.log(header.padEnd(30), waited, own)
  if (!(waited >= least && waited <= most)) wrong.push(`'${header}' waits ${waited} s`)
  if (own !== byHand) wrong.push(`'${header}' by hand waits ${own} s`)
}
console.log(wrong.length === 0 ? 'ok' : `WRONG: ${wrong.join('; ')}`)
await mill.close()
server.close()
