/**
 * The server of the proof of starts: logs when each request of a host arrived, and when its handler reported its start.
 */

import { createServer } from 'node:http'

interface Visit {
  readonly host: string
  readonly burst: string
  readonly startedAt: number
  readonly arrivedAt: number
}

let log: Visit[] = []
const server = createServer({ keepAliveTimeout: 600_000 }, (asked, answer) => {
  const arrivedAt = Number(process.hrtime.bigint() / 1_000n) / 1_000
  const { searchParams } = new URL(asked.url!, 'http://site')
  const host = searchParams.get('host')
  if (host !== null)
    log.push({ host, burst: searchParams.get('burst')!, startedAt: Number(searchParams.get('started')), arrivedAt })
  answer.end()
  process.send!(log.length)
})
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as { port: number }).port }))
process.on('message', () => {
  process.send!({ log })
  log = []
})
