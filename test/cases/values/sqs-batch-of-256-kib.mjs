// Many services with the API of SQS, and older emulators, take 262,144 bytes per SendMessageBatch, not 1 MiB.
// Right: ten inputs of 90 kB, each far below the limit, are sent in smaller calls.
import http from 'node:http'
import { startFauxqs } from 'fauxqs'
import { defineTask, millrace } from 'millrace'

const sqs = await startFauxqs({ port: 0, logger: false })
const endpoint = http
  .createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    if (request.headers['x-amz-target']?.endsWith('SendMessageBatch') && body.length > 262_144) {
      response.writeHead(400, { 'content-type': 'application/x-amz-json-1.0' })
      return response.end(
        '{"__type":"com.amazonaws.sqs#BatchRequestTooLong","message":"Batch requests cannot be longer than 262144 bytes."}',
      )
    }
    const { method, url, headers } = request
    http
      .request({ port: sqs.port, method, path: url, headers }, (answer) =>
        answer.pipe(response.writeHead(answer.statusCode, answer.headers)),
      )
      .end(body)
  })
  .listen(0, '127.0.0.1')
await new Promise((listening) => endpoint.once('listening', listening))
sqs.createQueue('m-films')
sqs.createQueue('dlq-m-films')
const film = defineTask({ name: 'film', queue: 'films' })
const mill = millrace({
  store: `sqs://us-east-1?endpoint=http://127.0.0.1:${endpoint.address().port}`,
  namespace: 'm',
  tasks: [film],
})
const sent = await Promise.allSettled(
  [...Array(10).fill('x'.repeat(90_000)), 'small'].map((text) => mill.enqueue(film, text)),
)
console.log(sent.every(({ status }) => status === 'fulfilled') ? 'ok' : 'WRONG', [
  ...new Set(sent.map(({ reason }) => reason?.code)),
])
process.exit()
