// A window with a `token` (for programs) and `authorize` (for people, whose tokens the application signs).
// Right: 1 a request with another bearer than the token reaches `authorize`; 2 the right token is let in, whoever else has sent
// wrong ones from the same address.
import { millrace } from 'millrace'
import { webHandler } from 'millrace/web'

const token = 'a-token-of-24-characters'
const authorize = (request) =>
  request.headers.get('authorization') === 'Bearer signed-by-the-application' ? { name: 'ada', role: 'viewer' } : false
const mill = millrace({ store: 'memory:', queues: { default: {} } })
const ask = async (window, bearer) => {
  const headers = { host: 'localhost', authorization: `Bearer ${bearer}` }
  return (await window.fetch(new Request('http://localhost/api/v1/session', { headers }))).status
}
const first = await ask(webHandler(mill, { token, authorize }), 'signed-by-the-application')
console.log(first === 200 ? 'ok   ' : 'WRONG', 'a bearer of the application:', first)
const window = webHandler(mill, { token })
for (let i = 0; i < 10; i += 1) await ask(window, `wrong-${i}`)
const second = await ask(window, token)
console.log(second === 200 ? 'ok   ' : 'WRONG', 'the right token after ten wrong ones from one address:', second)
process.exit()
