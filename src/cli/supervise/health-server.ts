/** The health server: answers over HTTP whether jobs are being taken. It names no job, task or queue. */

import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { OperationError } from '../output/exit-code.js'
import type { ProcessReport } from './forked-worker.js'

interface Health {
  readonly status: 'ok' | 'failing'
  readonly processes: readonly object[]
}

/** Signs of life come each second. */
const longestSilenceMs = 5_000
/** An idle worker asks its store every few seconds. */
const longestStoreSilenceMs = 15_000
/** A probe sends its request at once. One that says nothing must not take the place of one that asks. */
const patienceMs = 2_000
const checkEveryMs = 500
/** Connections at once, of one address and of all. */
const mostOfAddress = 16
const mostOfAll = 128

/** Failing where no process takes jobs: none is alive and running, or the store answers none of them. */
export function healthOf(processes: readonly ProcessReport[]): Health {
  return {
    status: processes.some(consumes) ? 'ok' : 'failing',
    processes: processes.map(({ pid, state, upMs, restarts, heardMs, pulse }) => ({
      pid,
      state,
      upMs: Math.round(upMs),
      restarts,
      aliveMs: Math.round(heardMs),
      ...(pulse && { running: pulse.running, concurrency: pulse.concurrency, storeMs: Math.round(pulse.silentMs) }),
      ...(pulse && pulse.damaged.length > 0 ? { damagedQueues: pulse.damaged.length } : {}),
    })),
  }
}

function consumes({ state, heardMs, pulse }: ProcessReport): boolean {
  return (
    state === 'running' &&
    heardMs < longestSilenceMs &&
    pulse !== undefined &&
    pulse.silentMs + heardMs < longestStoreSilenceMs
  )
}

/** Serves `/health` and `/` from now on; resolves with the URL. Throws `OperationError` where it cannot listen there. */
export async function serveHealth(host: string, port: number, health: () => Health): Promise<string> {
  const server = createServer(
    { requestTimeout: patienceMs, headersTimeout: patienceMs, connectionsCheckingInterval: checkEveryMs },
    ({ method, url = '' }, response) => {
      const path = url.split('?', 1)[0]
      if (path !== '/health' && path !== '/') return answer(response, 404, { error: 'not found; see /health' })
      if (method !== 'GET' && method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD')
        return answer(response, 405, { error: 'only GET and HEAD are allowed' })
      }
      const found = health()
      answer(response, found.status === 'ok' ? 200 : 503, found)
    },
  )
  server.timeout = patienceMs
  server.on('timeout', (socket: Socket) => socket.destroy())
  server.maxRequestsPerSocket = 1
  boundConnections(server)
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EADDRINUSE' ? 'another process listens there' : message
    throw new OperationError(`--health-port: cannot listen on ${host}:${port}: ${reason}. Nothing was started.`, {
      cause: error,
    })
  }
  // Nobody who asks too often or breaks off may end the supervisor.
  server.on('error', () => {})
  const { address, family, port: bound } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/health`
}

/** Who has waited longest gives way to who comes: connections that are only held open keep nobody from asking. */
function boundConnections(server: Server): void {
  const open = new Map<Socket, string>()
  const giveWay = (sockets: Socket[], most: number) => {
    for (const socket of sockets.slice(0, Math.max(0, sockets.length - most))) {
      open.delete(socket)
      socket.destroy()
    }
  }
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    open.set(socket, address)
    socket.once('close', () => open.delete(socket))
    giveWay(
      [...open].filter(([, of]) => of === address).map(([one]) => one),
      mostOfAddress,
    )
    giveWay([...open.keys()], mostOfAll)
  })
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  })
  // Node leaves the body out of an answer to HEAD.
  response.end(`${JSON.stringify(body)}\n`)
}
