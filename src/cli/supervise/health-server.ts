/**
 * The health server: reports over HTTP whether jobs are being taken. It names no job, task or queue, unless it also
 * serves metrics.
 */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { acceptedFormat, type ExpositionFormat, expositionTypes } from '../../measures/exposition.js'
import { isLoopbackAddress, isLoopbackHost } from '../../web/host-list.js'
import { OperationError } from '../process/exit-code.js'
import type { ProcessReport } from './forked-worker.js'

interface Health {
  readonly status: 'ok' | 'failing'
  readonly processes: readonly object[]
}

/** The metrics of the health port. */
interface HealthMetrics {
  text(format: ExpositionFormat): Promise<string>
}

/** Signs of life come each second. */
const longestSilenceMs = 5_000
/** An idle worker asks its store every few seconds. */
const longestStoreSilenceMs = 15_000
/** A probe sends its request at once. A silent connection must not take the place of one that asks. */
const patienceMs = 2_000
const checkEveryMs = 500
/** How long a metrics request waits for a slow store. */
const metricsPatienceMs = 6_000
/** The most connections at once, for one address and for all. */
const mostOfAddress = 16
const mostOfAll = 128

/** The health. It is failing if no process takes jobs: none is alive and running, or the store answers none of them. */
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

/**
 * Serves `/health` and `/` from now on, and `/metrics` if there are any; resolves with the URL. Throws `OperationError`
 * if it cannot listen there.
 */
export async function serveHealth(
  host: string,
  port: number,
  health: () => Health,
  metrics?: HealthMetrics,
): Promise<string> {
  const server = createServer(
    { requestTimeout: patienceMs, headersTimeout: patienceMs, connectionsCheckingInterval: checkEveryMs },
    (request, response) => {
      const { method, url = '' } = request
      const path = url.split('?', 1)[0]
      const isMetrics = path === '/metrics' && metrics !== undefined
      if (path !== '/health' && path !== '/' && !isMetrics)
        return answer(response, 404, { error: 'not found; see /health' })
      if (method !== 'GET' && method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD')
        return answer(response, 405, { error: 'only GET and HEAD are allowed' })
      }
      if (isMetrics) return void tellMetrics(metrics, host, request, response)
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
  // A client that asks too often or breaks off must not end the supervisor.
  server.on('error', () => {})
  const { address, family, port: bound } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/health`
}

/** Closes the connection that has waited longest for a new one, so that idle connections block nobody. */
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

/** Never rejects. */
async function tellMetrics(
  metrics: HealthMetrics,
  host: string,
  { headers, socket }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A page of another site whose name was made to resolve to this address still sends that name.
  const isLocal = host === 'localhost' || isLoopbackAddress(host)
  if (isLocal && !isLoopbackHost(headers.host ?? ''))
    return answer(response, 421, { error: 'this port is asked by a loopback address; see --health-host' })
  socket.setTimeout(metricsPatienceMs)
  const format = acceptedFormat(headers.accept)
  send(response, 200, expositionTypes[format], await metrics.text(format))
}

function answer(response: ServerResponse, status: number, body: object): void {
  send(response, status, 'application/json; charset=utf-8', `${JSON.stringify(body)}\n`)
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  })
  // Node leaves the body out of an answer to HEAD.
  response.end(text)
}
