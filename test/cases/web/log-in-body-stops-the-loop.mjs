// Anybody may send `POST api/v1/session` (it is how one logs in).
// Right: a wrong body of any size is refused at once, in a few words, and does not stop the event loop.
import { millrace } from 'millrace'
import { webHandler } from 'millrace/web'

const window = webHandler(millrace({ store: 'memory:', queues: { default: {} } }), {
  token: 'a-token-of-24-characters',
})
const send = async (body) => {
  const headers = { 'content-type': 'application/json', 'x-millrace': '1', host: 'localhost' }
  const answer = await window.fetch(new Request('http://localhost/api/v1/session', { method: 'POST', headers, body }))
  return (await answer.text()).length
}
await send('{}')
const body = `{${Array.from({ length: 60_000 }, (_, i) => `"unknown${i}":1`).join()}}`
let [worst, last] = [0, performance.now()]
const watch = setInterval(() => {
  worst = Math.max(worst, performance.now() - last)
  last = performance.now()
}, 5)
const bytes = await send(body)
await new Promise((done) => setTimeout(done, 20))
clearInterval(watch)
console.log(bytes < 20_000 && worst < 150 ? 'ok' : 'WRONG', {
  sent: body.length,
  answered: bytes,
  blockedMs: Math.round(worst),
})
process.exit()
