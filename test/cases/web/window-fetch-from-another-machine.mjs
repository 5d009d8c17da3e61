// Without `token` and `authorize`, the dashboard answers only requests from its own machine, and a web Request has no address.
// Right: it is refused (401), unless the server gives the address of the peer and that is loopback.
import { createServer, get } from 'node:http'
import { networkInterfaces } from 'node:os'
import { millrace } from 'millrace'
import { webHandler } from 'millrace/web'

const window = webHandler(millrace({ store: 'memory:', queues: { default: {} } }), { basePath: '/jobs' })
// As every adapter from node:http to fetch does it.
const server = createServer(async (request, response) => {
  const answer = await window.fetch(
    new Request(`http://${request.headers.host}${request.url}`, { headers: request.headers }),
  )
  response.writeHead(answer.status).end(await answer.text())
})
await new Promise((listening) => server.listen(0, listening))
const outside = Object.values(networkInterfaces())
  .flat()
  .find(({ internal, family }) => !internal && family === 'IPv4')
if (outside === undefined) console.log('this machine has no address but loopback')
const at = {
  host: outside?.address ?? '127.0.0.1',
  port: server.address().port,
  path: '/jobs/api/v1/session',
  headers: { host: 'localhost' },
}
const { status, text } = await new Promise((told) =>
  get(at, (answer) => {
    let text = ''
    answer
      .on('data', (part) => {
        text += part
      })
      .on('end', () => told({ status: answer.statusCode, text }))
  }),
)
console.log(status === 401 ? 'ok' : 'WRONG', status, text.slice(0, 70))
process.exit()
